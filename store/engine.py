"""What the SQLite at hand can do: asked of it, in memory."""

from msgspec import Struct

from store import driver

WORDS_TOKENIZER = "porter unicode61"
SUBSTRING_TOKENIZER = "trigram"


class Engine(Struct, frozen=True):
    module: str
    version: str
    has_full_text: bool  # FTS5 with every tokenizer that the schema names
    can_load_extensions: bool  # sqlite-vec does; Python is often built without the call at all


def describe_engine() -> Engine:
    """Raises StorageError where SQLite is too old to be used at all."""
    connection = driver.connect(":memory:", uri=False, timeout_s=0.0)
    try:
        return Engine(
            driver.module_name,
            driver.sqlite_version,
            all(_has_tokenizer(connection, name) for name in (WORDS_TOKENIZER, SUBSTRING_TOKENIZER)),
            driver.load_vector_functions(connection),
        )
    finally:
        connection.close()


def _has_tokenizer(connection: driver.Connection, tokenizer: str) -> bool:
    try:
        connection.execute(f"CREATE VIRTUAL TABLE temp.probe USING fts5(body, tokenize='{tokenizer}')")
        connection.execute("DROP TABLE temp.probe")
    except driver.Error:
        return False
    return True
