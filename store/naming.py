"""Names of documents in what is said about a store: the first few, printable whatever bytes are stored."""

from collections.abc import Sequence

from store import driver

NAMED = 5  # how many are named; the rest is counted


def printable_key(raw: bytes | str) -> str:
    """A key read as bytes, since a damaged one need not be UTF-8."""
    return raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw


def sentence(count: int, what: str, first: Sequence[str]) -> str:
    more = ", ..." if count > len(first) else ""
    noun = "documents" if count != 1 else "document"
    return f"{count} {noun} {what}: {', '.join(first)}{more}"


def keys_of_documents(connection: driver.Connection, document_ids: Sequence[int]) -> list[str]:
    """Keys of the first documents among these ids."""
    marks = ", ".join("?" * len(document_ids[:NAMED]))
    rows = connection.execute(
        f"SELECT DISTINCT CAST(key AS BLOB) FROM documents WHERE id IN ({marks})",  # noqa: S608
        tuple(document_ids[:NAMED]),
    ).fetchall()
    return [printable_key(row[0]) for row in rows]


def keys_of_chunks(connection: driver.Connection, chunk_ids: Sequence[int]) -> list[str]:
    """Keys of the documents that the first of these chunks belong to."""
    marks = ", ".join("?" * len(chunk_ids[:NAMED]))
    rows = connection.execute(
        "SELECT DISTINCT CAST(key AS BLOB) FROM documents"  # noqa: S608
        f" WHERE id IN (SELECT document FROM chunks WHERE id IN ({marks}))",
        tuple(chunk_ids[:NAMED]),
    ).fetchall()
    return [printable_key(row[0]) for row in rows]
