"""The checks that read every text: hashes of bodies, marks of the trigram table, whole documents.

Text is read as bytes, so that a damaged one is compared instead of refused by the driver. Each page is one short
read transaction; a page's bounds are ids, which never change their meaning while a row stands.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from domain.checks import CheckResult, failed, passed
from domain.hashes import text_hash_of_bytes
from domain.markdown.scripts import is_spaceless
from store import driver
from store.format_gate import RESET_HINT
from store.naming import NAMED, keys_of_documents, sentence

CHUNKS_PER_PAGE = 256  # of a larger page the texts do not stay in the processor's cache
DOCUMENTS_PER_PAGE = 64

_CHUNKS = (
    "SELECT id, document, coalesce(CAST(body AS BLOB), x''), coalesce(CAST(heading_path AS BLOB), x''),"
    " text_hash, in_tri"
    " FROM chunks WHERE id > ? ORDER BY id LIMIT ?"
)
_DOCUMENTS = "SELECT id, file_hash, coalesce(CAST(tail AS BLOB), x'') FROM documents WHERE id > ? ORDER BY id LIMIT ?"
_PIECES = (
    "SELECT document, coalesce(CAST(lead AS BLOB), x''), coalesce(CAST(body AS BLOB), x'') FROM chunks"
    " WHERE document BETWEEN ? AND ? ORDER BY document, ordinal"
)


class Offenders:
    """The documents that fail a check: the first few by name, all of them counted."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []
        self._last_id = -1

    def add(self, connection: driver.Connection, document_id: int) -> None:
        if document_id == self._last_id:  # another chunk of the same one
            return
        self._last_id = document_id
        self.count += 1
        if len(self.first) < NAMED:
            keys = keys_of_documents(connection, (document_id,))
            self.first += keys or [f"document {document_id}"]

    def add_where(
        self, connection: driver.Connection, documents: Sequence[int], wanted: Sequence[object], found: Sequence[object]
    ) -> None:
        """The documents, one for each chunk of a page, of the chunks that are not as they should be."""
        for document_id, right, stored in zip(documents, wanted, found, strict=True):
            if right != stored:
                self.add(connection, document_id)

    def result(self, name: str, table: str, what: str, hint: str) -> CheckResult:
        if not self.count:
            return passed(name, table=table)
        return failed(name, sentence(self.count, what, self.first), hint, table=table, documents=self.first)


def check_texts(connection: driver.Connection) -> tuple[CheckResult, CheckResult]:
    """Every body against its text_hash, and every in_tri against the setting pinned in meta (R1)."""
    setting = pinned_setting(connection)
    changed, mismarked = Offenders(), Offenders()
    for documents, bodies, heading_paths, text_hashes, in_tri in _chunk_pages(connection):
        # a page is compared as a whole, for hardly one has anything wrong
        hashes = [text_hash_of_bytes(body) for body in bodies]
        if hashes != text_hashes:
            changed.add_where(connection, documents, hashes, text_hashes)
        marks = _marks(setting, heading_paths, bodies)
        if marks != in_tri:
            mismarked.add_where(connection, documents, marks, in_tri)
    return (
        changed.result("text_hashes", "chunks", "hold text that has changed under the store", RESET_HINT),
        mismarked.result(
            "substring_marks",
            "chunks",
            f"are marked otherwise than substring_index '{setting}' says",
            "run `knowledge rebuild`: the marks and full text are made again from what is stored",
        ),
    )


def pinned_setting(connection: driver.Connection) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = 'substring_index'").fetchone()
    return str(row[0]) if row is not None else ""


def belongs_in_trigrams(setting: str, heading_path: bytes, body: bytes) -> int:
    """1 where a chunk goes into the trigram table: all of them, none, or those written without spaces."""
    if setting != "auto":
        return int(setting == "on")
    return int(
        any(not part.isascii() and is_spaceless(part.decode("utf-8", "replace")) for part in (heading_path, body))
    )


def check_documents(connection: driver.Connection) -> CheckResult:
    """Lead and body of every chunk in order, then the tail, against the SHA-256 of the file (R13)."""
    broken = Offenders()
    for documents, pieces in _document_pages(connection):
        remaining = iter(pieces)
        piece = next(remaining, None)
        for document_id, file_hash, tail in documents:
            parts: list[bytes] = []
            while piece is not None and piece[0] <= document_id:
                if piece[0] == document_id:
                    parts += piece[1:]
                piece = next(remaining, None)
            if sha256(b"".join((*parts, tail))).digest() != file_hash:
                broken.add(connection, document_id)
    return broken.result("documents_whole", "documents", "do not give back the file they were made from", RESET_HINT)


def _marks(setting: str, heading_paths: Sequence[bytes], bodies: Sequence[bytes]) -> list[int]:
    unmarked = belongs_in_trigrams(setting, b"", b"")  # what goes for every text in ASCII, which most are
    return [
        unmarked if body.isascii() and heading_path.isascii() else belongs_in_trigrams(setting, heading_path, body)
        for heading_path, body in zip(heading_paths, bodies, strict=True)
    ]


def _chunk_pages(connection: driver.Connection) -> Iterator[list[list[Any]]]:
    """Pages of chunks by column: document, body, heading path, hash, mark."""
    last = -(2**63)
    while True:
        rows = connection.execute(_CHUNKS, (last, CHUNKS_PER_PAGE)).fetchall()
        if rows:
            _, *columns = map(list, zip(*rows, strict=True))
            yield columns
        if len(rows) < CHUNKS_PER_PAGE:
            return
        last = rows[-1][0]


def _document_pages(
    connection: driver.Connection,
) -> Iterator[tuple[list[tuple[int, bytes, bytes]], driver.Cursor]]:
    last = -(2**63)
    while True:
        with in_one_state(connection):
            documents = connection.execute(_DOCUMENTS, (last, DOCUMENTS_PER_PAGE)).fetchall()
            if not documents:
                return
            last = documents[-1][0]
            yield documents, connection.execute(_PIECES, (documents[0][0], last))


@contextmanager
def in_one_state(connection: driver.Connection) -> Iterator[None]:
    """What is read here is of one state of the store, as a document and its chunks must be; keep it short."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
