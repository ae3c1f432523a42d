"""Identities of vectors and what becomes of them: pinned, built, switched, collected (R19, S1-15).

The writing end alone calls these, between its groups. A change of identity leaves the vectors that answer in their
place until the new set is whole.
"""

import time
from collections.abc import Sequence

from domain.errors import IntegrityError
from domain.vectors import IdentityState, PinnedIdentity, VectorIdentity
from store import driver
from store.connection import immediate
from store.meta import bump_commit_seq, commit_seq, take_ids
from store.vector_blocks import compact_blocks
from store.vector_port import VectorStatus
from store.vector_queries import status
from store.vector_schema import create_vector_schema, has_vectors

ROWS_PER_TRANSACTION = 2000
BLOCKS_PER_TRANSACTION = 64

_INSERT = "INSERT INTO vector_identities VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# both in the order of ids, and read from indexes alone: no float is touched
_ALL_OF_IDENTITY = (
    "INSERT INTO temp.doomed_vectors SELECT id FROM embeddings INDEXED BY embeddings_by_text"
    " WHERE identity = ? ORDER BY id"
)
_OLDEST_UNUSED = (
    "INSERT INTO temp.doomed_vectors SELECT id FROM embeddings INDEXED BY embeddings_by_text"
    " WHERE NOT EXISTS (SELECT 1 FROM vector_links WHERE embedding = embeddings.id) ORDER BY id LIMIT ?"
)
_FIRST_DOOMED = f"SELECT id FROM temp.doomed_vectors ORDER BY id LIMIT {ROWS_PER_TRANSACTION}"  # noqa: S608


def pin_identity(
    connection: driver.Connection, identity: VectorIdentity, canary: Sequence[bytes], *, afresh: bool
) -> PinnedIdentity:
    """See store.write_port. The first one brings the vector tables with it, in the same transaction.

    Raises ValueError for a canary that has not the identity's dimension.
    """
    if any(len(vector) != identity.dimension * 4 for vector in canary):
        raise ValueError(f"a canary that is not of {identity.dimension} dimensions")
    with immediate(connection):
        if not has_vectors(connection):
            create_vector_schema(connection)
        pinned = status(connection)
        kept = None if afresh else _kept(pinned, identity)
        if kept is not None:
            if kept.state == "active" and pinned.building is not None:
                _retire(connection, pinned.building)
                bump_commit_seq(connection)
            return kept
        made = _pin(connection, pinned, identity, canary)
        bump_commit_seq(connection)
        return made


def _kept(pinned: VectorStatus, identity: VectorIdentity) -> PinnedIdentity | None:
    """What is pinned already with these very values; a set that is being built before the one that answers."""
    for known in (pinned.building, pinned.active):
        if known is not None and known.identity == identity:
            return known
    return None


def _pin(
    connection: driver.Connection, pinned: VectorStatus, identity: VectorIdentity, canary: Sequence[bytes]
) -> PinnedIdentity:
    is_empty = connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is None
    if pinned.building is not None:
        _retire(connection, pinned.building)
    if is_empty and pinned.active is not None:
        _retire(connection, pinned.active)
    if pinned.active is None:  # documents were ready under a set that is given up
        connection.execute("UPDATE documents SET vector_state = 'none' WHERE vector_state <> 'none'")
    state: IdentityState = "active" if is_empty else "building"
    number = take_ids(connection, "vector_identities", 1) + 1
    connection.execute(_INSERT, (number, state, *identity, b"".join(canary), time.time_ns()))
    return PinnedIdentity(number, identity, tuple(canary), state)


def _retire(connection: driver.Connection, identity: PinnedIdentity) -> None:
    connection.execute("UPDATE vector_identities SET state = 'retired' WHERE id = ?", (identity.id,))


def activate_identity(connection: driver.Connection, identity: int, uncovered: int) -> int:
    """See store.write_port. One that is active already stays so."""
    with immediate(connection):
        pinned = status(connection)
        if pinned.active is not None and pinned.active.id == identity:
            return commit_seq(connection)
        if pinned.building is None or pinned.building.id != identity:
            raise IntegrityError(
                "the vectors that are to answer are not pinned as the set being built",
                hint="run `knowledge index` again",
            )
        lacking = _uncovered(connection, identity)
        if len(lacking) > uncovered:
            raise IntegrityError(
                f"{len(lacking)} documents have no vectors of the new kind yet; the old ones go on answering",
                hint="run `knowledge index --reindex` again: it makes those that are missing",
            )
        if pinned.active is not None:
            _retire(connection, pinned.active)
        connection.execute("UPDATE vector_identities SET state = 'active' WHERE id = ?", (identity,))
        connection.execute("UPDATE documents SET vector_state = 'ready' WHERE vector_state <> 'ready'")
        connection.executemany("UPDATE documents SET vector_state = 'pending' WHERE id = ?", lacking)
        return bump_commit_seq(connection)


def _uncovered(connection: driver.Connection, identity: int) -> list[tuple[int]]:
    """Ids of documents with a chunk that has no link. A chunk has one link an identity at most, and every link a
    chunk: equal numbers mean that there is none."""
    chunks = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
    links = connection.execute("SELECT count(*) FROM vector_links WHERE identity = ?", (identity,)).fetchone()[0]
    if chunks == links:
        return []
    return connection.execute(
        "SELECT DISTINCT document FROM chunks WHERE id NOT IN (SELECT chunk FROM vector_links WHERE identity = ?)",
        (identity,),
    ).fetchall()


def collect_vectors(connection: driver.Connection, keep_unused: int) -> int:
    """See store.write_port. Not beside a run: its pages may count on a vector that no chunk has yet."""
    if not has_vectors(connection):
        return 0
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS doomed_vectors (id INTEGER PRIMARY KEY)")
    retired = connection.execute("SELECT id FROM vector_identities WHERE state = 'retired'").fetchall()
    gone = sum(_drop_identity(connection, row[0]) for row in retired) + _drop_unused(connection, keep_unused)
    for row in connection.execute("SELECT id FROM vector_identities").fetchall():
        compact_blocks(connection, row[0])
    return gone


def _drop_identity(connection: driver.Connection, identity: int) -> int:
    """Everything of a retired identity; itself at last, so that what is cut short is gone on with."""
    _drop_blocks(connection, identity)
    _drop_links(connection, identity)
    gone = _delete_vectors(connection, _ALL_OF_IDENTITY, identity)
    with immediate(connection):
        connection.execute("DELETE FROM vector_identities WHERE id = ?", (identity,))
    return gone


def _drop_unused(connection: driver.Connection, keep_unused: int) -> int:
    stored = connection.execute("SELECT count(*) FROM embeddings").fetchone()[0]
    used = connection.execute("SELECT count(DISTINCT embedding) FROM vector_links").fetchone()[0]
    excess = stored - used - keep_unused
    return _delete_vectors(connection, _OLDEST_UNUSED, excess) if excess > 0 else 0


def _delete_vectors(connection: driver.Connection, choose: str, argument: int) -> int:
    """Delete vectors that no chunk has, in batches and in the order of their ids; `choose` names them all first."""
    gone = 0
    connection.execute("DELETE FROM temp.doomed_vectors")
    connection.execute(choose, (argument,))
    while True:
        with immediate(connection):
            went = connection.execute(f"DELETE FROM embeddings WHERE id IN ({_FIRST_DOOMED})").rowcount  # noqa: S608
            connection.execute(f"DELETE FROM temp.doomed_vectors WHERE id IN ({_FIRST_DOOMED})")  # noqa: S608
        gone += went
        if went < ROWS_PER_TRANSACTION:
            return gone


def _drop_links(connection: driver.Connection, identity: int) -> None:
    """A page of the table at a time: the links of the set that answers stand between those that go."""
    last = -1
    while True:
        page = connection.execute(
            "SELECT chunk FROM vector_links WHERE chunk > ? AND identity = ? ORDER BY chunk LIMIT ?",
            (last, identity, ROWS_PER_TRANSACTION),
        ).fetchall()
        if page:
            with immediate(connection):
                connection.execute(
                    "DELETE FROM vector_links WHERE chunk BETWEEN ? AND ? AND identity = ?",
                    (page[0][0], page[-1][0], identity),
                )
            last = page[-1][0]
        if len(page) < ROWS_PER_TRANSACTION:
            return


def _drop_blocks(connection: driver.Connection, identity: int) -> None:
    while True:
        with immediate(connection):
            went = connection.execute(
                "DELETE FROM vector_blocks WHERE id IN (SELECT id FROM vector_blocks WHERE identity = ? LIMIT ?)",
                (identity, BLOCKS_PER_TRANSACTION),
            ).rowcount
        if went < BLOCKS_PER_TRANSACTION:
            return
