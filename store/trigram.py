"""The substring lane's reads, on the trigram table: text written without blanks between words (R1, S2-46).

Pieces of three characters or more are asked of the table; it cannot be asked for shorter ones, so these are
found through the trigrams that begin with them, and where few are found, in the texts themselves (a piece
at the very end of a text begins no trigram).
"""

import json
from collections.abc import Sequence

from store import driver
from store.lexical import WEIGHTS, lane_filter, quoted
from store.port import Scope, SubstringFind, Visibility

TRIGRAM_CHARS = 3
MAX_PIECES = 40
MAX_PLACES = 50_000  # trigrams, or texts, looked at for one short piece

_PLACES = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.trigram_places USING fts5vocab(main, chunks_fts_tri, instance)"
_LAST_CHARACTER = "\U0010ffff"
_Filter = tuple[str, tuple[object, ...]]


def find_substrings(
    connection: driver.Connection,
    pieces: Sequence[str],
    relax: bool,
    limit: int,
    scope: Scope | None,
    visibility: Visibility,
) -> SubstringFind:
    distinct = list(dict.fromkeys(pieces))[:MAX_PIECES]
    usable = [piece for piece in distinct if len(piece) >= TRIGRAM_CHARS]
    short = [piece for piece in distinct if len(piece) < TRIGRAM_CHARS]
    chosen = lane_filter(scope, visibility, "rowid")
    if not usable:
        return _find_short(connection, short, limit, chosen)
    found = _match(connection, " AND ".join(map(quoted, usable)), short, limit, chosen)
    if found or not relax:
        return SubstringFind(found)
    if short:
        found = _match(connection, " AND ".join(map(quoted, usable)), [], limit, chosen)
    if not found:
        found = _match(connection, " OR ".join(map(quoted, _trigrams(usable))), [], limit, chosen)
    return SubstringFind(found, relaxed=bool(found))


def _match(
    connection: driver.Connection, expression: str, short: Sequence[str], limit: int, chosen: _Filter
) -> list[int]:
    """Ids by BM25, of texts that hold every short piece too."""
    clause, parameters = chosen
    filters = " AND (instr(body, ?) OR instr(heading_path, ?) OR instr(names, ?))" * len(short)
    rows = connection.execute(
        f"SELECT rowid, bm25(chunks_fts_tri, {WEIGHTS}) AS b FROM chunks_fts_tri"  # noqa: S608
        f" WHERE chunks_fts_tri MATCH ?{clause}{filters} ORDER BY b LIMIT ?",
        (expression, *parameters, *(piece for piece in short for _ in range(3)), limit),
    ).fetchall()
    return [chunk_id for _, chunk_id in sorted((score, chunk_id) for chunk_id, score in rows)]


def _trigrams(pieces: Sequence[str]) -> list[str]:
    """Of pieces that stand nowhere whole: their trigrams, the first `MAX_PIECES` of them."""
    parts = [piece[at : at + TRIGRAM_CHARS] for piece in pieces for at in range(len(piece) - TRIGRAM_CHARS + 1)]
    return list(dict.fromkeys(parts))[:MAX_PIECES]


def _find_short(connection: driver.Connection, pieces: Sequence[str], limit: int, chosen: _Filter) -> SubstringFind:
    """Texts that hold all the short pieces, the shortest first; else those with the most of them."""
    held: dict[int, int] = {}
    truncated = False
    for piece in pieces:
        ids, cut = _holding(connection, piece, limit, chosen)
        truncated = truncated or cut
        for chunk_id in ids:
            held[chunk_id] = held.get(chunk_id, 0) + 1
    most = max(held.values(), default=0)
    best = [chunk_id for chunk_id, count in held.items() if count == most]
    rows = connection.execute(
        "SELECT c.id FROM json_each(?) AS wanted JOIN chunks AS c ON c.id = wanted.value"
        " ORDER BY length(c.body) = 0, length(c.body), c.id LIMIT ?",
        (json.dumps(best), limit),
    ).fetchall()
    return SubstringFind([row[0] for row in rows], relaxed=0 < most < len(pieces), truncated=truncated)


def _holding(connection: driver.Connection, piece: str, limit: int, chosen: _Filter) -> tuple[set[int], bool]:
    """Ids of texts that hold a short piece, and whether some may be missing."""
    clause, parameters = chosen
    _offer_places(connection)
    folded = piece.lower()
    rows = connection.execute(
        "SELECT doc FROM temp.trigram_places WHERE term >= ? AND term < ?"  # noqa: S608
        f"{clause.replace('rowid', 'doc')} LIMIT ?",
        (folded, folded + _LAST_CHARACTER, *parameters, MAX_PLACES),
    ).fetchall()
    ids = {row[0] for row in rows}
    if len(ids) >= limit:
        return ids, len(rows) == MAX_PLACES
    read = connection.execute(
        "SELECT c.id, instr(c.body, ?) OR instr(c.heading_path, ?) OR instr(c.names, ?)"  # noqa: S608
        " FROM (SELECT id FROM chunks_fts_tri_docsize"
        f" WHERE 1{clause.replace('rowid', 'id')} LIMIT ?) AS places CROSS JOIN chunks AS c ON c.id = places.id",
        (piece, piece, piece, *parameters, MAX_PLACES),
    ).fetchall()
    return ids | {chunk_id for chunk_id, holds in read if holds}, len(read) == MAX_PLACES


def _offer_places(connection: driver.Connection) -> None:
    """Where each trigram stands, as a temporary view of the index: nothing is stored."""
    (read_only,) = connection.execute("PRAGMA query_only").fetchone()
    if read_only:  # also forbids temporary tables; the file itself was opened for reading only
        connection.execute("PRAGMA query_only = OFF")
    try:
        connection.execute(_PLACES)
    finally:
        if read_only:
            connection.execute("PRAGMA query_only = ON")
