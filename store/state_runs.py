"""Runs in state.db: begun, asked, looked at, ended (store.run_port)."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from domain.errors import IntegrityError
from store import driver
from store.connection import damaged
from store.run_port import Change, RunRecord, RunState, Wish
from store.state_connection import StateConnection

KEPT_RUNS = 500
LARGEST_ID = 2**63 - 1
PROCESS_GONE = "its process ended before it did"  # the cause of a run that nobody works on any more
KEPT_CHANGES_OF_RUNS = 30  # what runs have changed, and the removals they have held, is kept for the newest only
_COLUMNS = (
    "id, generation, kind, trigger, roots, state, started_ns, ended_ns, counts, cause, is_full, requested, schedule,"
    " queued_ns, since_ns, progress, progressed_ns, pid, message, hint"
)


class RunLedger(StateConnection):
    """The part of state.db that runs are kept in (store.run_port.RunLedgerPort)."""

    def begin_run(self, run: RunRecord, *, floor_generation: int) -> RunRecord:
        with self._writing():
            _close_interrupted(self._connection)
            generation = _next_generation(self._connection, floor_generation)
            run_id = insert_run(self._connection, run, generation, "walking", {})
            _forget_old(self._connection)
        return self._known(run_id)

    def begin_beside(self, run: RunRecord, *, floor_generation: int) -> RunRecord:
        with self._writing():
            generation = _next_generation(self._connection, floor_generation)
            run_id = insert_run(self._connection, run, generation, "interrupted", {})
            self._connection.execute(
                "UPDATE runs SET ended_ns = ?, cause = ? WHERE id = ?", (time.time_ns(), PROCESS_GONE, run_id)
            )
            _forget_old(self._connection)
        return self._known(run_id)

    def queue_run(self, run: RunRecord, request: Mapping[str, object]) -> RunRecord:
        with self._writing():
            run_id = insert_run(self._connection, run, 0, "queued", request)
        return self._known(run_id)

    def start_run(self, run_id: int, *, floor_generation: int) -> RunRecord | None:
        now_ns = time.time_ns()
        with self._writing():
            found = self._connection.execute(
                "SELECT 1 FROM runs WHERE id = ? AND state = 'queued'", (run_id,)
            ).fetchone()
            if found is None:
                return None
            generation = _next_generation(self._connection, floor_generation)
            self._connection.execute(
                "UPDATE runs SET state = 'walking', generation = ?, started_ns = ?, since_ns = ?, pid = ? WHERE id = ?",
                (generation, now_ns, now_ns, os.getpid(), run_id),
            )
            _forget_old(self._connection)
        return self._known(run_id)

    def describe_run(self, run_id: int, roots: Sequence[str], *, full: bool) -> None:
        self._write("UPDATE runs SET roots = ?, is_full = ? WHERE id = ?", [(json.dumps(list(roots)), full, run_id)])

    def end_run(
        self, run_id: int, state: RunState, counts: dict[str, int], cause: str, message: str = "", hint: str = ""
    ) -> None:
        now_ns = time.time_ns()
        with self._writing():
            self._connection.execute(
                "UPDATE runs SET state = ?, counts = ?, cause = ?, message = ?, hint = ?, ended_ns = ?, since_ns = ?,"
                " requested = '' WHERE id = ?",
                (state, json.dumps(counts), cause, message, hint, now_ns, now_ns, run_id),
            )
            self._connection.execute("DELETE FROM pages WHERE run = ?", (run_id,))

    def set_run_state(self, run_id: int, state: RunState, cause: str) -> None:
        self._write(
            "UPDATE runs SET since_ns = iif(state = ?1, since_ns, ?3), state = ?1, cause = ?2"
            " WHERE id = ?4 AND ended_ns IS NULL",
            [(state, cause, time.time_ns(), run_id)],
        )

    def run(self, run_id: int) -> RunRecord | None:
        if run_id > LARGEST_ID:  # there is none, and SQLite cannot be asked for it
            return None
        rows = self._read(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (run_id,))  # noqa: S608
        return self._run_of(rows[0]) if rows else None

    def runs(self, limit: int = 20) -> Sequence[RunRecord]:
        rows = self._read(f"SELECT {_COLUMNS} FROM runs ORDER BY id DESC LIMIT ?", (limit,))  # noqa: S608
        return [self._run_of(row) for row in rows]

    def open_run(self) -> RunRecord | None:
        rows = self._read(
            f"SELECT {_COLUMNS} FROM runs WHERE ended_ns IS NULL AND state <> 'queued' ORDER BY id DESC LIMIT 1"  # noqa: S608
        )
        return self._run_of(rows[0]) if rows else None

    def queued_runs(self) -> Sequence[RunRecord]:
        rows = self._read(f"SELECT {_COLUMNS} FROM runs WHERE state = 'queued' ORDER BY id")  # noqa: S608
        return [self._run_of(row) for row in rows]

    def request_of(self, run_id: int) -> dict[str, object]:
        return self._json_of("request", run_id)

    def plan_of(self, run_id: int) -> dict[str, object]:
        return self._json_of("plan", run_id)

    def record_plan(self, run_id: int, plan: Mapping[str, object]) -> None:
        self._write("UPDATE runs SET plan = ? WHERE id = ?", [(json.dumps(plan), run_id)])

    def ask(self, run_id: int, wish: Wish) -> bool:
        now_ns = time.time_ns()
        with self._writing():
            row = self._connection.execute("SELECT state, ended_ns FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is None or row[1] is not None:
                return False
            if row[0] == "queued" and wish == "cancel":
                self._connection.execute(
                    "UPDATE runs SET state = 'cancelled', cause = 'cancelled before it began', ended_ns = ?,"
                    " since_ns = ? WHERE id = ?",
                    (now_ns, now_ns, run_id),
                )
            else:
                self._connection.execute("UPDATE runs SET requested = ? WHERE id = ?", (wish, run_id))
        return True

    def wish(self, run_id: int) -> Wish:
        rows = self._read("SELECT requested FROM runs WHERE id = ?", (run_id,))
        return cast("Wish", rows[0][0]) if rows else ""

    def note_progress(self, run_id: int, progress: Mapping[str, int]) -> None:
        told = json.dumps(progress, sort_keys=True)
        self._write(
            "UPDATE runs SET progressed_ns = ?1, progress = ?2 WHERE id = ?3 AND progress <> ?2",
            [(time.time_ns(), told, run_id)],
        )

    def add_changes(self, run_id: int, page: int, changes: Mapping[Change, Sequence[str]]) -> None:
        with self._writing():
            write_changes(self._connection, run_id, page, changes)

    def changes(
        self, run_id: int, change: Change, *, after_page: int = -1, limit: int
    ) -> Sequence[tuple[int, tuple[str, ...]]]:
        rows = self._read(
            "SELECT page, keys FROM run_changes WHERE run = ? AND change = ? AND page > ? ORDER BY page LIMIT ?",
            (run_id, change, after_page, limit),
        )
        with self._believing():
            return [(page, tuple(bytes(keys).decode().split("\0"))) for page, keys in rows]

    def _known(self, run_id: int) -> RunRecord:
        found = self.run(run_id)
        if found is None:
            raise damaged(f"run {run_id} was recorded and is not there", self._path)
        return found

    def _run_of(self, row: Any) -> RunRecord:
        with self._believing():
            return _record(row)

    def _json_of(self, column: str, run_id: int) -> dict[str, object]:
        rows = self._read(f"SELECT {column} FROM runs WHERE id = ?", (run_id,))  # noqa: S608 - a name of ours
        with self._believing():
            value = json.loads(rows[0][0]) if rows else {}
        return dict(value) if isinstance(value, dict) else {}


def write_changes(
    connection: driver.Connection, run_id: int, page: int, changes: Mapping[Change, Sequence[str]]
) -> None:
    """In the caller's transaction; written again, a page's changes take the place of those that were written."""
    connection.executemany(
        "INSERT OR REPLACE INTO run_changes (run, page, change, keys) VALUES (?, ?, ?, ?)",
        [(run_id, page, change, "\0".join(keys).encode()) for change, keys in changes.items() if keys],
    )


def insert_run(
    connection: driver.Connection, run: RunRecord, generation: int, state: RunState, request: Mapping[str, object]
) -> int:
    """In the caller's transaction; the id that the run has now."""
    now_ns = time.time_ns()
    cursor = connection.execute(
        "INSERT INTO runs (generation, kind, trigger, roots, is_full, state, started_ns, counts, cause, pid, request,"
        " schedule, queued_ns, since_ns) VALUES (?, ?, ?, ?, ?, ?, ?, '{}', '', ?, ?, ?, ?, ?)",
        (
            generation,
            run.kind,
            run.trigger,
            json.dumps(run.roots),
            run.full,
            state,
            run.started_ns,
            os.getpid(),
            json.dumps(request),
            run.schedule,
            now_ns,
            now_ns,
        ),
    )
    return int(cursor.lastrowid or 0)


def _next_generation(connection: driver.Connection, floor_generation: int) -> int:
    row = connection.execute(
        "UPDATE base SET generation = max(generation, ?) + 1 RETURNING generation", (floor_generation,)
    ).fetchall()
    if not row:
        raise IntegrityError("state.db does not know its base", hint="restore it from a backup")
    return int(row[0][0])


def _close_interrupted(connection: driver.Connection) -> None:
    """The caller holds the writer's lock, so a run that has not ended has no process any more."""
    connection.execute(
        "UPDATE runs SET state = 'interrupted', cause = ?, ended_ns = ? WHERE ended_ns IS NULL AND state <> 'queued'",
        (PROCESS_GONE, time.time_ns()),
    )
    connection.execute("DELETE FROM pages")


def _forget_old(connection: driver.Connection) -> None:
    old = "SELECT id FROM runs ORDER BY id DESC LIMIT -1 OFFSET ?"
    connection.execute(f"DELETE FROM run_changes WHERE run IN ({old})", (KEPT_CHANGES_OF_RUNS,))  # noqa: S608
    connection.execute(f"DELETE FROM removal_candidates WHERE run IN ({old})", (KEPT_CHANGES_OF_RUNS,))  # noqa: S608
    connection.execute(f"DELETE FROM runs WHERE id IN ({old}) AND ended_ns IS NOT NULL", (KEPT_RUNS,))  # noqa: S608


def _record(row: Any) -> RunRecord:
    return RunRecord(
        id=row[0],
        generation=row[1],
        kind=row[2],
        trigger=row[3],
        roots=tuple(json.loads(row[4])),
        state=row[5],
        started_ns=row[6],
        ended_ns=row[7],
        counts=json.loads(row[8]),
        cause=row[9],
        full=bool(row[10]),
        requested=row[11],
        schedule=row[12],
        queued_ns=row[13],
        since_ns=row[14],
        progress=json.loads(row[15]),
        progressed_ns=row[16],
        pid=row[17],
        message=row[18],
        hint=row[19],
    )
