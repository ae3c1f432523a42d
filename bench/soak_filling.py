"""Before a soak begins: the index is brought to the size at which it stays.

Vectors that no chunk has any more are kept for files that come back, up to a number. Until it is reached an index grows
under churn, and with it what every reader has in memory: that growth has an end, so it belongs to the warming up.
"""

from contextlib import closing

from app.vector_run import kept_unused
from bench.soak_corpus import Churn
from bench.soak_plan import Plan
from bench.soak_service import Soaking
from store.sqlite import SqliteStore
from store.vector_port import VectorCounts

SHARE_A_RUN = 10  # a tenth of the files: many more at once, and the removal of those that are gone would be held
MOST_RUNS = 200


def vectors_of(it: Soaking) -> VectorCounts:
    with closing(SqliteStore(it.service.layout.database, base_id=None)) as store, store.snapshot() as snapshot:
        return snapshot.vector_counts()


def fill_unused(it: Soaking, plan: Plan, churn: Churn) -> int:
    """Change files, and index them, until as many unused vectors are kept as ever will be; how many there are then.

    The changes count as none of the soak's. Few files never come to that many: then it is given up after MOST_RUNS, and
    the report says how many there are.
    """
    if not plan.fills:
        return vectors_of(it).unused
    for _ in range(MOST_RUNS):
        counts = vectors_of(it)
        if counts.unused >= kept_unused(counts.linked_chunks):
            break
        churn.batch(max(1, plan.files // SHARE_A_RUN))
        run = it.service.submit()
        it.wait_for(lambda number=run: it.service.run(number).ended_ns is not None)  # type: ignore[misc]
    churn.done.clear()
    return vectors_of(it).unused
