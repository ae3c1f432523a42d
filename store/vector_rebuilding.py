"""Making the vector tables agree with themselves again; nothing is embedded here (P15).

What cannot be right is dropped, and its documents wait for their vectors as new ones do; packed signs are made again
from the vectors.
"""

from store import driver
from store.integrity_vectors import DANGLING, compare_blocks, lacking_links, mislinked, partly_linked, unsound
from store.vector_blocks import rebuild_blocks
from store.vectors import LiveIdentity, live_identities, shown_identity


def rebuild_vectors(connection: driver.Connection) -> int:
    """Drop broken links and vectors, make blocks and vector_state again; says how many vectors are left.

    The caller holds the transaction. Does nothing in a store without vector tables.
    """
    live = live_identities(connection)
    if not live:
        return 0
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS broken_rows (id INTEGER PRIMARY KEY)")
    connection.execute(f"DELETE FROM vector_links WHERE {DANGLING}")  # noqa: S608
    vectors = sum(_rebuild_identity(connection, identity) for identity in live.values())
    connection.execute(
        f"DELETE FROM vector_blocks WHERE identity NOT IN ({', '.join(str(number) for number in live)})"  # noqa: S608
    )
    shown = shown_identity(live)
    if shown is not None:
        _set_states(connection, shown)
    return vectors


def _rebuild_identity(connection: driver.Connection, identity: LiveIdentity) -> int:
    # of a vector and its signs that differ nobody can say which is right
    _choose(connection, [*unsound(connection, identity), *compare_blocks(connection, identity).different])
    connection.execute("DELETE FROM vector_links WHERE embedding IN (SELECT id FROM temp.broken_rows)")
    connection.execute("DELETE FROM embeddings WHERE id IN (SELECT id FROM temp.broken_rows)")
    _choose(connection, [chunk for chunk, _ in mislinked(connection, identity.id)])
    connection.execute(
        "DELETE FROM vector_links WHERE identity = ? AND chunk IN (SELECT id FROM temp.broken_rows)", (identity.id,)
    )
    rows = connection.execute(f"SELECT id FROM documents WHERE {partly_linked(identity.id)}").fetchall()  # noqa: S608
    _choose(connection, [row[0] for row in rows])
    connection.execute(
        "DELETE FROM vector_links WHERE identity = ? AND chunk IN"
        " (SELECT id FROM chunks WHERE document IN (SELECT id FROM temp.broken_rows))",
        (identity.id,),
    )
    _choose(connection, [])
    return rebuild_blocks(connection, identity.id)


def _choose(connection: driver.Connection, ids: list[int]) -> None:
    connection.execute("DELETE FROM temp.broken_rows")
    connection.executemany("INSERT INTO temp.broken_rows (id) VALUES (?)", [(number,) for number in set(ids)])


def _set_states(connection: driver.Connection, shown: LiveIdentity) -> None:
    lacking = "pending" if shown.state == "active" else "none"
    condition = lacking_links(shown.id)
    connection.execute(
        f"UPDATE documents SET vector_state = ? WHERE vector_state <> ? AND {condition}",  # noqa: S608
        (lacking, lacking),
    )
    connection.execute(
        f"UPDATE documents SET vector_state = 'ready' WHERE vector_state <> 'ready' AND NOT {condition}"  # noqa: S608
    )
