"""What a vector is made from and what pins it: pure values and rules, shared by workers, store, search and doctor.

A vector is a little-endian float32 array of unit length, as bytes (S2-42, R4). The unit of reuse is the text really
sent to the model under one identity (R19, S2-27).
"""

from hashlib import blake2b
from typing import Literal, NamedTuple

SENT_HASH_BYTES = 16  # decides that a vector is reused: two texts must never share one
MAX_INPUT_BYTES = 128 * 1024  # UTF-8; a longer text is split without asking (R21)
MAX_QUERY_CHARS = 8192
LINK_WEIGHT_BYTES = 256  # text that holds the store's lock for as long as a chunk's link to its vector
CANARY_TOLERANCE = 1e-3  # of the cosine; also of the norm that counts as normalised (S1-14)
CANARY_TEXTS = (
    "The lighthouse keeper wrote down the weather every evening.",
    "A contract needs an offer, an acceptance and a consideration.",
    "Restart the service after the configuration file has changed.",
)

IdentityState = Literal["building", "active"]


class VectorIdentity(NamedTuple):
    """What every vector of a set has in common (S1-15); another value of any field is another set."""

    model: str  # as it is asked for
    served_model: str  # as the server names itself in its answers
    dimension: int
    normalised: bool  # the raw output had unit length within CANARY_TOLERANCE
    query_prefix: str
    document_prefix: str


class PinnedIdentity(NamedTuple):
    """An identity as a store has pinned it. `building`: its vectors are made beside those that answer."""

    id: int
    identity: VectorIdentity
    canary: tuple[bytes, ...]  # the vectors of CANARY_TEXTS when it was pinned
    state: IdentityState


def difference_from(identity: VectorIdentity, model: str, query_prefix: str, document_prefix: str) -> str:
    """In words, what of a configuration is not as an identity was pinned; "" where all is (S1-15)."""
    told = (
        ("model", identity.model, model),
        ("query_prefix", identity.query_prefix, query_prefix),
        ("document_prefix", identity.document_prefix, document_prefix),
    )
    return ", ".join(f"{name} is {now!r}, the index was made with {then!r}" for name, then, now in told if then != now)


def sent_text(document_prefix: str, heading_path: str, body: str, lead: str = "") -> str:
    """The text that is sent for a chunk: prefix, breadcrumb, blank line, body (S0-25).

    `{title}` in the prefix becomes the breadcrumb, or `none`. A chunk with neither breadcrumb nor body is sent as its
    lead, the frontmatter mostly: a model is never asked about nothing. What comes from the path is no part of the text,
    or a file that moves would have to be embedded again.
    """
    prefix = document_prefix.replace("{title}", heading_path or "none") if document_prefix else ""
    content = "\n\n".join(part for part in (heading_path, body) if part) or lead.strip()
    return prefix + content


def vector_weight_bytes(dimension: int) -> int:
    """How much text holds the store's lock for as long as one vector more: 20 us, and 40 ns a dimension."""
    return LINK_WEIGHT_BYTES + dimension // 2


def sent_hash(text: str) -> bytes:
    """Key of a text really sent; never compared across identities."""
    return blake2b(text.encode(), digest_size=SENT_HASH_BYTES).digest()


def query_text(query_prefix: str, query: str) -> str:
    """The text that is sent for a query: cut on a character border (S0-28)."""
    return query_prefix + query[:MAX_QUERY_CHARS]
