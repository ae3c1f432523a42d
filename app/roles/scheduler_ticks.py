"""What the scheduler looks at once a second: schedules that are due, windows that close, an index that is empty."""

import time
from contextlib import closing

from msgspec import Struct, field

from app.roles.runtime import Runtime
from app.run_request import RunRequest
from app.scheduling import WINDOW_CLOSED, ScheduleEvent, due_runs, window_wish
from app.submitting import queued_run
from domain.errors import KnowledgeError, NotBuiltError
from store.files import lstat_or_none
from store.run_port import RunRecord
from store.sqlite import SqliteStore
from store.state import SqliteStateStore


class Ticks(Struct, frozen=True):
    """Short transactions of state.db, none of which waits for anything."""

    runtime: Runtime
    state: SqliteStateStore
    windowed: set[int] = field(default_factory=set)  # runs that were asked to pause because their window has closed

    def look(self) -> list[ScheduleEvent]:
        """Do what is due now; what has come of the schedules."""
        now_ns = time.time_ns()
        events = due_runs(self.runtime.settings, self.state, now_ns)
        for event in events:
            self.runtime.log.info(f"schedule_{event.kind}", schedule=event.schedule, run=event.run_id)
        run = self.state.open_run()
        if run is not None:
            self._keep_to_window(run, now_ns)
        return events

    def may_begin(self, run: RunRecord) -> bool:
        """Whether a queued run's window, if it has one, is open."""
        request = RunRequest.from_json(self.state.request_of(run.id))
        return window_wish(self.runtime.settings, run, request, time.time_ns()) != "pause"

    def queue_first_run(self) -> RunRecord | None:
        """An index that no run has filled, of roots that are known, is filled without anybody having to ask (S4-15)."""
        if self.state.open_run() is not None or self.state.queued_runs():
            return None
        if not (self.runtime.settings.roots or self.state.roots()) or not self._is_empty():
            return None
        return self.state.queue_run(queued_run(RunRequest(), "start"), RunRequest().to_json())

    def _is_empty(self) -> bool:
        """A failure to look is no reason not to start (S4-16)."""
        database = self.runtime.layout.database
        if lstat_or_none(database) is None:
            return True
        try:
            with closing(SqliteStore(database, base_id=None)) as store, store.snapshot() as snapshot:
                return snapshot.identity().complete_ns is None and not snapshot.has_documents()
        except NotBuiltError:  # the writer is making it at this moment
            return True
        except KnowledgeError as error:
            self.runtime.log.warning("index_not_read", code=error.code, message=error.message)
            return False

    def _keep_to_window(self, run: RunRecord, now_ns: int) -> None:
        request = RunRequest.from_json(self.state.request_of(run.id))
        wish = window_wish(self.runtime.settings, run, request, now_ns)
        if wish == "pause":
            self.runtime.log.info("window_closes", run=run.id)
            self.state.ask(run.id, "pause")
            self.windowed.add(run.id)
        elif wish == "go on":
            self.runtime.log.info("window_opens", run=run.id)
            self.state.ask(run.id, "")
            self.windowed.discard(run.id)
        elif run.id in self.windowed and run.state == "paused" and run.cause != WINDOW_CLOSED:
            self.state.set_run_state(run.id, "paused", WINDOW_CLOSED)
