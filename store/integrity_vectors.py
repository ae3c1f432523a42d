"""The checks of the vector tables: links, states, the vectors themselves, and what is derived from them.

That a vector belongs to its chunk is seen by the hash of the text really sent, made again from what is stored (S2-27);
that its numbers are those of that text only the model could say.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from domain.checks import CheckResult, failed, passed
from domain.vectors import sent_hash, sent_text
from store import driver
from store.integrity_texts import CHUNKS_PER_PAGE, Offenders, in_one_state
from store.naming import NAMED, keys_of_chunks, printable_key, sentence
from store.vector_blocks import is_among, pack_signs, read_block, row_bytes, vector_pages
from store.vectors import LiveIdentity, are_sound, live_identities, shown_identity

if TYPE_CHECKING:
    from store.vector_blocks import Bits, Ids

MEND_HINT = "run `knowledge rebuild`, then `knowledge index`: vectors that are wrong are dropped, and made again"

DANGLING = (
    "NOT EXISTS (SELECT 1 FROM chunks WHERE id = chunk) OR NOT EXISTS"
    " (SELECT 1 FROM embeddings WHERE id = embedding AND embeddings.identity = vector_links.identity)"
)
_IS_LINKED = "EXISTS (SELECT 1 FROM vector_links WHERE chunk = chunks.id AND identity = {identity:d})"
_SOME_LINKED = f"EXISTS (SELECT 1 FROM chunks WHERE document = documents.id AND {_IS_LINKED})"  # noqa: S608
_SOME_LACKING = f"EXISTS (SELECT 1 FROM chunks WHERE document = documents.id AND NOT {_IS_LINKED})"  # noqa: S608
_LINKED_TEXTS = (
    "SELECT chunks.id, document, CAST(heading_path AS BLOB), CAST(body AS BLOB), CAST(lead AS BLOB), sent_hash"
    " FROM chunks JOIN vector_links ON chunk = chunks.id AND vector_links.identity = ?"
    " JOIN embeddings ON embeddings.id = embedding WHERE chunks.id > ? ORDER BY chunks.id LIMIT ?"
)


def check_links(connection: driver.Connection) -> CheckResult:
    """Every chunk of a ready document has its vector, no document has a part of them, and no link leads nowhere."""
    with in_one_state(connection):
        live = live_identities(connection)
        shown = shown_identity(live)
        loose = connection.execute(f"SELECT chunk FROM vector_links WHERE {DANGLING}").fetchall()  # noqa: S608
        wrong = [partly_linked(identity.id) for identity in live.values()]
        wrong += [f"vector_state = 'ready' AND {lacking_links(shown.id)}"] if shown else []
        cursor = connection.execute(
            f"SELECT CAST(key AS BLOB) FROM documents WHERE {' OR '.join(f'({part})' for part in wrong) or '0'}"  # noqa: S608
        )
        first = [printable_key(row[0]) for row in cursor.fetchmany(NAMED)]
        count = len(first) + sum(1 for _ in cursor)
        loose_in = keys_of_chunks(connection, [row[0] for row in loose[:NAMED]])
    said = [f"{len(loose)} links lead to no chunk or to no vector of their kind"] * bool(loose)
    said += [sentence(count, "lack vectors that they should have", first)] * bool(count)
    return _result("vectors_linked", "vector_links", said, list(dict.fromkeys(first + loose_in)))


def check_states(connection: driver.Connection) -> CheckResult:
    """vector_state says ready where every chunk is linked, and where not, whether that is waited for."""
    with in_one_state(connection):
        shown = shown_identity(live_identities(connection))
        lacking = "pending" if shown is not None and shown.state == "active" else "none"
        is_whole = f"NOT {lacking_links(shown.id)}" if shown is not None else "0"
        cursor = connection.execute(
            "SELECT CAST(key AS BLOB) FROM documents WHERE vector_state <> 'ready'"  # noqa: S608
            f" AND (vector_state <> '{lacking}' OR {is_whole})"
        )
        first = [printable_key(row[0]) for row in cursor.fetchmany(NAMED)]
        count = len(first) + sum(1 for _ in cursor)
    said = [sentence(count, "are in another state than their vectors", first)] * bool(count)
    return _result("vector_states", "documents", said, first)


def check_texts_of_links(connection: driver.Connection) -> CheckResult:
    """Every chunk is linked to the vector of its own text."""
    wrong = Offenders()
    for identity in live_identities(connection).values():
        for _, document in mislinked(connection, identity.id):
            wrong.add(connection, document)
    return wrong.result("vector_texts", "vector_links", "have the vector of another text", MEND_HINT)


def mislinked(connection: driver.Connection, identity: int) -> Iterator[tuple[int, int]]:
    """Chunk and document of each link to a vector of another text; a page of chunks at a time."""
    prefix = connection.execute("SELECT document_prefix FROM vector_identities WHERE id = ?", (identity,)).fetchone()[0]
    last = -(2**63)
    while True:
        rows = connection.execute(_LINKED_TEXTS, (identity, last, CHUNKS_PER_PAGE)).fetchall()
        for chunk, document, *parts, stored in rows:
            heading_path, body, lead = (part.decode("utf-8", "replace") for part in parts)
            if sent_hash(sent_text(prefix, heading_path, body, lead)) != stored:
                yield chunk, document
        if len(rows) < CHUNKS_PER_PAGE:
            return
        last = rows[-1][0]


def check_vectors(connection: driver.Connection) -> CheckResult:
    """Every vector has the length of its identity, is finite and of unit length."""
    first: list[int] = []
    count = connection.execute(
        "SELECT count(*) FROM embeddings WHERE identity NOT IN (SELECT id FROM vector_identities)"
    ).fetchone()[0]
    for identity in live_identities(connection).values():
        for embedding in unsound(connection, identity):
            count += 1
            first += [embedding] * (len(first) < NAMED)
    documents = _keys_of_embeddings(connection, first)
    said = [f"{count} vectors are damaged: not finite, not of unit length, or not of the length of their kind"]
    return _result("vectors_sound", "embeddings", said * bool(count), documents)


def unsound(connection: driver.Connection, identity: LiveIdentity) -> Iterator[int]:
    """Ids of an identity's vectors that are none."""
    rows = connection.execute(
        "SELECT id FROM embeddings NOT INDEXED WHERE identity = ? AND length(vector) <> ?",
        (identity.id, identity.dimension * 4),
    )
    yield from [row[0] for row in rows.fetchall()]
    for ids, floats in vector_pages(connection, identity.id, identity.dimension):
        sound = are_sound(floats, identity.dimension)
        yield from (number for number, is_sound in zip(ids, sound, strict=True) if not is_sound)


def check_blocks(connection: driver.Connection) -> CheckResult:
    """Every vector stands in exactly one block, with the signs that it has. The store must stand still."""
    found = BlockFaults([], [], 0)
    for identity in live_identities(connection).values():
        found = found.plus(compare_blocks(connection, identity))
    said = [f"{found.broken} blocks cannot be read, or name a vector twice or out of order"] * bool(found.broken)
    said += [f"{len(found.missing)} vectors are in none"] * bool(found.missing)
    said += [f"{len(found.different)} vectors have other signs than the block says"] * bool(found.different)
    documents = _keys_of_embeddings(connection, found.different + found.missing)
    return _result("vector_blocks", "vector_blocks", said, documents)


class BlockFaults(NamedTuple):
    """Ids of vectors that stand in no block, and of those whose signs are others there; how many blocks are none."""

    missing: list[int]
    different: list[int]
    broken: int

    def plus(self, other: "BlockFaults") -> "BlockFaults":
        return BlockFaults(self.missing + other.missing, self.different + other.different, self.broken + other.broken)


def compare_blocks(connection: driver.Connection, identity: LiveIdentity) -> BlockFaults:
    """The blocks of an identity against its vectors. Both ascend by id, so one block is in memory at a time."""
    found, last = BlockFaults([], [], 0), 0
    width = row_bytes(identity.dimension)
    listed = connection.execute(
        "SELECT id FROM vector_blocks WHERE identity = ? ORDER BY id", (identity.id,)
    ).fetchall()
    for (block_id,) in listed:
        try:
            ids, bits = read_block(connection, block_id)
            numbers = [last, *ids.tolist()]
        except (ValueError, TypeError):
            found = found.plus(BlockFaults([], [], 1))
            continue
        if bits.shape != (len(ids), width) or any(first >= second for first, second in pairwise(numbers)):
            found = found.plus(BlockFaults([], [], 1))
            continue
        for stored, floats in vector_pages(connection, identity.id, identity.dimension, after=last, up_to=numbers[-1]):
            found = found.plus(_compare(stored, pack_signs(floats, identity.dimension), ids, bits))
        last = numbers[-1]
    behind = [
        number for page, _ in vector_pages(connection, identity.id, identity.dimension, after=last) for number in page
    ]
    return found.plus(BlockFaults(behind, [], 0))


def _compare(stored: list[int], signs: bytes, ids: "Ids", bits: "Bits") -> BlockFaults:
    """Some vectors and their signs against a block, in which all of them should be."""
    import numpy as np

    numbers = np.asarray(stored, dtype=np.int64)
    has_row = is_among(numbers, ids)
    own = np.frombuffer(signs, dtype=np.uint8).reshape(len(stored), -1)[has_row]
    is_different = (bits[np.searchsorted(ids, numbers[has_row])] != own).any(axis=1)
    return BlockFaults(numbers[~has_row].tolist(), numbers[has_row][is_different].tolist(), 0)


def lacking_links(identity: int) -> str:
    """A condition on `documents`: a chunk has no link under an identity."""
    return _SOME_LACKING.format(identity=identity)


def partly_linked(identity: int) -> str:
    """A condition on `documents`: some chunks are linked under an identity, and some are not."""
    return f"{_SOME_LINKED} AND {_SOME_LACKING}".format(identity=identity)


def _keys_of_embeddings(connection: driver.Connection, embeddings: list[int]) -> list[str]:
    marks = ", ".join("?" * len(embeddings[:NAMED]))
    rows = connection.execute(
        f"SELECT chunk FROM vector_links WHERE embedding IN ({marks}) LIMIT {NAMED}",  # noqa: S608
        tuple(embeddings[:NAMED]),
    ).fetchall()
    return keys_of_chunks(connection, [row[0] for row in rows])


def _result(name: str, table: str, said: list[str], documents: list[str]) -> CheckResult:
    if not said:
        return passed(name, table=table)
    return failed(name, f"{table}: {'; '.join(said)}", MEND_HINT, table=table, documents=documents)
