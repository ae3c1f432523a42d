"""The hashes of a document, named so that they are never interchanged (R14).

file_hash     SHA-256 of the raw bytes: decides that a file did not change
content_hash  SHA-256 of the canonical text: behind the frontmatter and the byte order mark, newlines as LF
text_hash     of one chunk's body: tells copies, and a body that changed under the store
"""

from hashlib import blake2b, sha256

TEXT_HASH_BYTES = 12  # of a hundred million bodies, two differ and collide with a chance below 1e-12


def file_hash(raw: bytes) -> bytes:
    return sha256(raw).digest()


def content_hash(raw: bytes, text: str, content_start: int, hash_of_file: bytes) -> bytes:
    """`content_start` is the character at which the content begins, behind the frontmatter."""
    if content_start == 0 and b"\r" not in raw:
        return hash_of_file
    content = text[content_start:]
    if "\r" in content:
        content = content.replace("\r\n", "\n").replace("\r", "\n")
    return sha256(content.encode()).digest()


def text_hash(body: str) -> bytes:
    return text_hash_of_bytes(body.encode())


def text_hash_of_bytes(body: bytes) -> bytes:
    """`text_hash` of a body that is at hand as UTF-8."""
    return blake2b(body, digest_size=TEXT_HASH_BYTES).digest()
