"""Roots with `watch: true`: the scheduler follows their changes, and queues a run for what has changed."""

import asyncio

from app.roles.runtime import Runtime
from app.run_request import RunRequest
from app.submitting import queued_run
from app.watching import WatchNotice, watch_roots, watched_roots
from domain.errors import KnowledgeError
from scheduler.watch import WatchPass
from store.state import SqliteStateStore

LOOK_EVERY_S = 0.2
TRY_AGAIN_S = 30.0


async def follow_roots(runtime: Runtime, state: SqliteStateStore) -> None:
    """Until cancelled. A watch that cannot be kept is begun again after a while: schedules do not depend on it."""
    paths = [root.path for root in runtime.settings.roots if root.watch]
    while True:
        if not paths:
            await asyncio.Event().wait()
        try:
            await watch_roots(
                watched_roots(runtime.settings, state.roots(), paths),
                lambda changes: _queue_and_await(runtime, state, changes),
                lambda notice: _log(runtime, notice),
            )
        except KnowledgeError as error:
            runtime.log.warning("watch_ended", code=error.code, message=error.message)
        await asyncio.sleep(TRY_AGAIN_S)


async def _queue_and_await(runtime: Runtime, state: SqliteStateStore, changes: WatchPass) -> None:
    """A run over what has changed; it has ended when this returns, so that changes meanwhile make one more."""
    paths = tuple(str(path) for path in changes.paths)
    request = RunRequest(paths=paths)
    run = state.queue_run(queued_run(request, "watch"), request.to_json())
    runtime.log.info("watch_pass", run=run.id, paths=len(paths), cause=changes.cause)
    while True:
        known = state.run(run.id)
        if known is None or known.ended_ns is not None:
            return
        await asyncio.sleep(LOOK_EVERY_S)


def _log(runtime: Runtime, notice: WatchNotice) -> None:
    runtime.log.info(f"watch_{notice.kind}", folders=notice.folders, detail=notice.detail)
