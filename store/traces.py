"""Looking for what is left of removed texts in the files of a store, byte by byte.

Pieces of the texts are taken before they go; of these, only such count as stand nowhere in what stays. A whole block
of bytes is compared with all pieces at once. numpy is imported where it is used.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from domain.layout import BaseLayout, sidecars
from store import driver, files
from store.connection import translated
from store.queries import key_range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PIECE_BYTES = 24
PIECES_PER_DOCUMENT = 8
MAX_PIECES = 65_536  # some 10 MB; of more documents than that, every n-th is looked for
LEAST_BYTE_VALUES = 8  # distinct ones in a piece: a rule of dashes tells no text from another
BLOCK_BYTES = 512 * 1024  # small enough that what is made of it stays in the processor's cache
ROWS_PER_PAGE = 512
SEPARATOR = b"\xff"  # stands in no UTF-8: no piece goes across it

_BODIES = (
    "SELECT documents.id, CAST(body AS BLOB) FROM documents JOIN chunks ON document = documents.id"
    " WHERE key >= ? AND key < ? ORDER BY key, ordinal"
)
# What stays, by id or key behind a first one. Columns that stand side by side in a row stand so in the file.
_STAYING: tuple[tuple[str, int | str], ...] = (
    (
        "SELECT id, CAST(names AS BLOB), CAST(heading_path AS BLOB), CAST(lead AS BLOB), CAST(body AS BLOB)"
        " FROM chunks WHERE id > ? ORDER BY id LIMIT ?",
        -(2**63),
    ),
    (
        "SELECT id, CAST(key AS BLOB), CAST(title AS BLOB), CAST(warnings AS BLOB), CAST(tail AS BLOB)"
        " FROM documents WHERE id > ? ORDER BY id LIMIT ?",
        -(2**63),
    ),
    ("SELECT key, CAST(key AS BLOB) FROM tombstones WHERE key > ? ORDER BY key LIMIT ?", ""),
    ("SELECT key, CAST(key AS BLOB) FROM skipped_files WHERE key > ? ORDER BY key LIMIT ?", ""),
)
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)  # odd, with their bits well mixed
_SLOT_BITS = 22


class Pieces(NamedTuple):
    """What to look for: pieces of `PIECE_BYTES` bytes, by document."""

    by_document: dict[int, tuple[bytes, ...]]
    documents: int  # that are to go; of very many, not all are looked for

    @property
    def all(self) -> frozenset[bytes]:
        return frozenset(piece for own in self.by_document.values() for piece in own)

    def without(self, common: frozenset[bytes]) -> "Pieces":
        """Less what also stands elsewhere."""
        kept = {number: tuple(set(own) - common) for number, own in self.by_document.items()}
        return Pieces({number: own for number, own in kept.items() if own}, self.documents)


class Trace(NamedTuple):
    """A file in which removed text was found, and at how many places."""

    path: Path
    places: int


def take_pieces(connection: driver.Connection, path: Path, prefixes: Sequence[str]) -> Pieces:
    """Pieces of the documents below some key prefixes (or under some keys), evenly out of each one's chunks."""
    with translated(path):
        wanted = [key_range(prefix) for prefix in prefixes]
        total = sum(
            connection.execute("SELECT count(*) FROM documents WHERE key >= ? AND key < ?", keys).fetchone()[0]
            for keys in wanted
        )
        each = min(PIECES_PER_DOCUMENT, max(1, MAX_PIECES // max(1, total)))
        every = -(-total // MAX_PIECES)
        found: dict[int, tuple[bytes, ...]] = {}
        met = 0
        for keys in wanted:
            for document, rows in groupby(connection.execute(_BODIES, keys), key=lambda row: row[0]):
                met += 1
                if met % every == 0:
                    found[document] = pieces_of([row[1] for row in rows], each)
    return Pieces({document: pieces for document, pieces in found.items() if pieces}, total)


def pieces_of(bodies: Sequence[bytes], limit: int) -> tuple[bytes, ...]:
    """Up to `limit` pieces of a document's bodies, from its beginning to its end."""
    each = max(1, -(-limit // max(1, len(bodies))))
    found: dict[bytes, None] = {}
    for body in bodies:
        room = len(body) - PIECE_BYTES
        for number in range(each if room >= 0 else 0):
            start = room * (number + 1) // (each + 1)
            piece = body[start : start + PIECE_BYTES]
            if len(set(piece)) >= LEAST_BYTE_VALUES:
                found[piece] = None
    step = max(1, len(found) // limit)
    return tuple(found)[::step][:limit]


def common_pieces(connection: driver.Connection, path: Path, pieces: frozenset[bytes]) -> frozenset[bytes]:
    """Those of the pieces that stand in what is stored: texts, titles, paths."""
    finder, found = PieceFinder(pieces), set[bytes]()
    with translated(path):
        for statement, first in _STAYING:
            for block in _row_blocks(connection, statement, first):
                found.update(finder.found_in(block))
    return frozenset(found)


def find_traces(layout: BaseLayout, pieces: frozenset[bytes]) -> tuple[Trace, ...]:
    """Read every file of a base that may hold text, and count the places of pieces in it.

    No connection to these files may be open in this process: to open and close a file drops the locks that SQLite
    holds on it. Raises StorageError where a file cannot be read.
    """
    finder = PieceFinder(pieces)
    counted = [Trace(path, sum(len(finder.found_in(block)) for block in _file_blocks(path))) for path in _files(layout)]
    return tuple(trace for trace in counted if trace.places)


class PieceFinder:
    """Finds any of some pieces of `PIECE_BYTES` bytes, at any offset, in one pass.

    The first 16 bytes of each place become a number; a table tells at once of most numbers that no piece has them.
    """

    def __init__(self, pieces: frozenset[bytes]) -> None:
        import numpy as np

        self._pieces = pieces
        words = np.frombuffer(b"".join(piece[:16] for piece in pieces), dtype="<u8").reshape(-1, 2)
        self._numbers = np.unique(_numbers(words[:, 0], words[:, 1]))
        self._is_taken = np.zeros(1 << _SLOT_BITS, dtype=np.bool_)
        self._is_taken[self._numbers >> np.uint64(64 - _SLOT_BITS)] = True

    def found_in(self, block: bytes) -> list[bytes]:
        """The pieces of a block, one for each place."""
        import numpy as np

        found: list[bytes] = []
        if not self._pieces:
            return found
        for shift in range(8):
            count = (len(block) - shift) // 8
            if count < 2:
                break
            words = np.frombuffer(block, dtype="<u8", count=count, offset=shift)
            numbers = _numbers(words[:-1], words[1:])
            places = np.flatnonzero(self._is_taken[numbers >> np.uint64(64 - _SLOT_BITS)])
            likely = numbers[places]
            nearest = np.searchsorted(self._numbers[:-1], likely)
            for start in (places[self._numbers[nearest] == likely] * 8 + shift).tolist():
                piece = block[start : start + PIECE_BYTES]
                if piece in self._pieces:
                    found.append(piece)
        return found


def _numbers(first: "NDArray[np.uint64]", second: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    import numpy as np

    return (first * np.uint64(_FACTORS[0])) ^ (second * np.uint64(_FACTORS[1]))


def _row_blocks(connection: driver.Connection, statement: str, last: int | str) -> Iterator[bytes]:
    """The texts of all rows, a block at a time; no read transaction stays open between two pages of rows."""
    waiting, size = list[bytes](), 0
    while True:
        rows = connection.execute(statement, (last, ROWS_PER_PAGE)).fetchall()
        texts = [b"".join(row[1:]) for row in rows]
        waiting += texts
        size += sum(map(len, texts))
        if size >= BLOCK_BYTES or len(rows) < ROWS_PER_PAGE:
            yield SEPARATOR.join(waiting)
            waiting, size = [], 0
        if len(rows) < ROWS_PER_PAGE:
            return
        last = rows[-1][0]


def _files(layout: BaseLayout) -> Iterator[Path]:
    """Databases with what SQLite and a restore keep beside them, and the spool; never through a link."""
    for database in (layout.database, layout.state):
        for path in (*sidecars(database), files.rollback_journal(database)):
            if files.refuse_unsafe(path) is not None:
                yield path
    for directory in (layout.spool, layout.restore_staging, layout.restore_ready):
        if directory.is_dir() and not directory.is_symlink():
            yield from (path for path in sorted(directory.iterdir()) if path.is_file() and not path.is_symlink())


def _file_blocks(path: Path) -> Iterator[bytes]:
    """A file in blocks that overlap by less than a piece, so that each place is whole in exactly one."""
    with files.storage_errors(path, "read"), path.open("rb", buffering=0) as file:
        kept = b""
        while read := file.read(BLOCK_BYTES):
            block = kept + read
            yield block
            kept = block[-(PIECE_BYTES - 1) :]
