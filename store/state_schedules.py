"""Schedules in state.db: ticks taken once, what came of them (store.schedule_port)."""

from collections.abc import Collection, Mapping, Sequence

from store.run_port import RunRecord
from store.schedule_port import QUEUED, SKIPPED, ScheduleRecord, Tick
from store.state_connection import StateConnection
from store.state_runs import insert_run

_SUCCESS = "done"


class ScheduleLedger(StateConnection):
    """The part of state.db that ticks are kept in (store.schedule_port.ScheduleLedgerPort)."""

    def schedules(self) -> Sequence[ScheduleRecord]:
        rows = self._read(
            "SELECT name, last_tick_ns, last_run, last_outcome, outcome_ns, skipped, last_success_ns"
            " FROM schedules ORDER BY name"
        )
        return [ScheduleRecord(*row) for row in rows]

    def see_schedule(self, name: str, now_ns: int) -> None:
        self._write(
            "INSERT INTO schedules (name, last_tick_ns, last_run, last_outcome, outcome_ns, skipped, last_success_ns)"
            " VALUES (?, ?, 0, '', 0, 0, 0) ON CONFLICT (name) DO UPDATE SET last_tick_ns = excluded.last_tick_ns",
            [(name, now_ns)],
        )

    def forget_schedules(self, kept: Collection[str]) -> None:
        gone = [(record.name,) for record in self.schedules() if record.name not in kept]
        self._write("DELETE FROM schedules WHERE name = ?", gone)

    def tick(self, name: str, tick_ns: int, now_ns: int, *, run: RunRecord, request: Mapping[str, object]) -> Tick:
        with self._writing():
            row = self._connection.execute("SELECT last_tick_ns FROM schedules WHERE name = ?", (name,)).fetchone()
            if row is None or row[0] >= tick_ns:
                return Tick("taken")
            busy = self._connection.execute("SELECT max(id) FROM runs WHERE ended_ns IS NULL").fetchone()[0]
            if busy is not None:
                # whose own run has not ended on record is left at that: its end is still to come
                self._connection.execute(
                    "UPDATE schedules SET last_tick_ns = ?1, skipped = skipped + 1,"
                    " outcome_ns = iif(last_outcome = ?3, outcome_ns, ?2),"
                    " last_outcome = iif(last_outcome = ?3, last_outcome, ?4) WHERE name = ?5",
                    (tick_ns, now_ns, QUEUED, SKIPPED, name),
                )
                return Tick("skipped", int(busy))
            run_id = insert_run(self._connection, run, 0, "queued", request)
            self._connection.execute(
                "UPDATE schedules SET last_tick_ns = ?, last_run = ?, last_outcome = ?, outcome_ns = ? WHERE name = ?",
                (tick_ns, run_id, QUEUED, now_ns, name),
            )
        return Tick("queued", run_id)

    def close_tick(self, name: str, run_id: int, outcome: str, ended_ns: int) -> bool:
        with self._writing():
            cursor = self._connection.execute(
                "UPDATE schedules SET last_outcome = ?1, outcome_ns = ?2,"
                " last_success_ns = iif(?1 = ?3, ?2, last_success_ns)"
                " WHERE name = ?4 AND last_run = ?5 AND last_outcome = ?6",
                (outcome, ended_ns, _SUCCESS, name, run_id, QUEUED),
            )
            return cursor.rowcount == 1
