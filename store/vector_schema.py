"""The vector tables: all of them with exactly our SQL, or none (S0-04). They come with the first identity."""

import hashlib
from functools import cache
from pathlib import Path

from store import driver
from store.meta import set_meta

# What `embeddings` and `vector_identities` mean, apart from their columns: how a text is hashed, what a vector is.
# An upgrade takes vectors of this layout alone; a store without the row of meta has layout 1.
VECTORS_LAYOUT = 1
VECTORS_LAYOUT_KEY = "vectors_layout"
# SHA-256 over the objects of vectors.sql as SQLite keeps them; a contract test holds the two together
VECTOR_FINGERPRINT = "9c7d808eb5419648c695edf79ede3957965bbb5ddfdeae1fa56ac91b91fbbbdc"

# children before what they refer to; their indexes go with them, that on documents by its own name
VECTOR_DROP_ORDER = (
    ("INDEX", "documents_pending"),
    ("TABLE", "vector_blocks"),
    ("TABLE", "vector_links"),
    ("TABLE", "embeddings"),
    ("TABLE", "vector_identities"),
)
VECTOR_INDEXES = (
    "vector_identities_by_state",
    "embeddings_by_text",
    "embeddings_from_parts",
    "vector_links_by_embedding",
)
VECTOR_OBJECTS = frozenset((*(name for _, name in VECTOR_DROP_ORDER), *VECTOR_INDEXES))


@cache
def vector_statements() -> tuple[str, ...]:
    text = Path(__file__).with_name("vectors.sql").read_text(encoding="utf-8")
    return tuple(statement.strip() for statement in text.split("\n;\n"))


def has_vectors(connection: driver.Connection) -> bool:
    """Whether the store has vector tables; the format gate has seen that they are whole."""
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vector_identities'").fetchone() is not None


def create_vector_schema(connection: driver.Connection) -> None:
    """Make every vector object; the caller holds the transaction, and pins an identity in it."""
    for statement in vector_statements():
        connection.execute(statement)
    set_meta(connection, VECTORS_LAYOUT_KEY, str(VECTORS_LAYOUT))


def drop_vector_schema(connection: driver.Connection) -> None:
    """Drop what there is of the vector objects; before the tables that they refer to."""
    for kind, name in VECTOR_DROP_ORDER:
        connection.execute(f"DROP {kind} IF EXISTS {name}")


def vector_objects(objects: dict[str, str]) -> dict[str, str]:
    """Those of some schema objects (name -> SQL) that have the name of one of ours."""
    return {name: sql for name, sql in objects.items() if name in VECTOR_OBJECTS}


def vector_fingerprint(objects: dict[str, str]) -> str:
    """SHA-256 over the names and SQL of vector objects."""
    return hashlib.sha256(repr(sorted(objects.items())).encode()).hexdigest()
