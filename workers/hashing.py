"""The hashes that a worker takes of a file; the rules are domain.hashes, which `verify` shares."""

from domain.hashes import TEXT_HASH_BYTES, content_hash, file_hash, text_hash

__all__ = ["TEXT_HASH_BYTES", "content_hash", "file_hash", "text_hash"]
