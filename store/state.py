"""state.db: authority over the base's id, roots, runs, pages, failures and receipts (R2, R35).

Migrated forward from its first version and never reset. Every call is one short BEGIN IMMEDIATE transaction, or a
read.
"""

import json
import time
from collections.abc import Sequence

from msgspec.structs import astuple

from domain.errors import IntegrityError
from domain.files import FileStat, Reason
from store import driver
from store.connection import translated
from store.queries import key_range
from store.state_failures import FailureLedger, drop_recovered, write_failures
from store.state_notices import NoticeLedger
from store.state_pages import PageLedger
from store.state_port import PageOutcome, RemovalCandidate, RootRecord
from store.state_runs import RunLedger, write_changes
from store.state_schedules import ScheduleLedger


class SqliteStateStore(RunLedger, FailureLedger, PageLedger, ScheduleLedger, NoticeLedger):
    """One connection to one state.db (store.state_port.StateStore)."""

    def rewrite_whole(self) -> None:
        """Write the file anew from its rows alone (VACUUM), and its log back: nothing of what was deleted is left."""
        with self._lock, translated(self._path):
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def base_id(self) -> str:
        row = self._read("SELECT base_id FROM base")
        if not row:
            raise IntegrityError(f"{self._path} does not know its base", hint="restore it from a backup")
        return str(row[0][0])

    def roots(self) -> Sequence[RootRecord]:
        rows = self._read("SELECT name, path, single_files, last_full_generation FROM roots ORDER BY name")
        with self._believing():
            return [RootRecord(name, path, tuple(json.loads(files)), last) for name, path, files, last in rows]

    def add_root(self, root: RootRecord) -> None:
        """Record a root, or what changed of it; its name stays as it is."""
        self._write(
            "INSERT INTO roots (name, path, single_files, last_full_generation) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET path = excluded.path, single_files = excluded.single_files",
            [(root.name, root.path, json.dumps(root.single_files), root.last_full_generation)],
        )

    def mark_full(self, names: Sequence[str], generation: int) -> None:
        self._write("UPDATE roots SET last_full_generation = ? WHERE name = ?", [(generation, n) for n in names])

    def remove_root(self, name: str) -> None:
        self._write("DELETE FROM roots WHERE name = ?", [(name,)])

    def finish_pages(self, run_id: int, outcomes: Sequence[PageOutcome]) -> None:
        """Record pages as done with what came of them, once knowledge.db holds it (R35); by upsert."""
        if not outcomes:
            return
        with self._writing():
            connection = self._connection
            connection.executemany(
                "INSERT INTO pages (run, page, state, payload, counts) VALUES (?, ?, 'done', NULL, ?)"
                " ON CONFLICT (run, page) DO UPDATE SET state = 'done', payload = NULL, counts = excluded.counts",
                [(run_id, outcome.page, json.dumps(outcome.counts)) for outcome in outcomes],
            )
            write_failures(connection, [failure for outcome in outcomes for failure in outcome.failures])
            drop_recovered(connection, [key for outcome in outcomes for key in outcome.recovered])
            _write_candidates(connection, run_id, [c for outcome in outcomes for c in outcome.candidates])
            for outcome in outcomes:
                write_changes(connection, run_id, outcome.page, outcome.changes)

    def add_candidates(self, run_id: int, candidates: Sequence[RemovalCandidate]) -> None:
        with self._writing():
            _write_candidates(self._connection, run_id, candidates)

    def candidate_count(self, run_id: int, prefix: str) -> int:
        rows = self._read(
            "SELECT count(*) FROM removal_candidates WHERE run = ? AND key >= ? AND key < ? AND reason <> ?",
            (run_id, *key_range(prefix), Reason.FORGOTTEN.value),
        )
        return int(rows[0][0])

    def candidates(self, run_id: int, prefix: str, *, after: str = "", limit: int) -> Sequence[RemovalCandidate]:
        rows = self._read(
            "SELECT key, reason, stat FROM removal_candidates"
            " WHERE run = ? AND key > ? AND key >= ? AND key < ? ORDER BY key LIMIT ?",
            (run_id, after, *key_range(prefix), limit),
        )
        with self._believing():
            return [
                RemovalCandidate(key, Reason(reason), FileStat(*json.loads(stat)) if stat else None)
                for key, reason, stat in rows
            ]

    def drop_candidates(self, run_id: int, keys: Sequence[str]) -> None:
        self._write("DELETE FROM removal_candidates WHERE run = ? AND key = ?", [(run_id, key) for key in keys])

    def drop_candidates_below(self, run_id: int, prefix: str) -> None:
        self._write(
            "DELETE FROM removal_candidates WHERE run = ? AND key >= ? AND key < ?", [(run_id, *key_range(prefix))]
        )

    def record_receipt(self, command_id: str, kind: str, outcome: str) -> None:
        """Remember a command as done; a second time has no effect."""
        self._write(
            "INSERT INTO receipts (id, kind, at_ns, outcome) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            [(command_id, kind, time.time_ns(), outcome)],
        )

    def receipt(self, command_id: str) -> str | None:
        rows = self._read("SELECT outcome FROM receipts WHERE id = ?", (command_id,))
        return str(rows[0][0]) if rows else None


def _write_candidates(connection: driver.Connection, run_id: int, candidates: Sequence[RemovalCandidate]) -> None:
    connection.executemany(
        "INSERT INTO removal_candidates (run, key, reason, stat) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (run, key) DO UPDATE SET reason = excluded.reason, stat = excluded.stat",
        [(run_id, c.key, c.reason.value, json.dumps(astuple(c.stat)) if c.stat else "") for c in candidates],
    )
