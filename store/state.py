"""state.db: authority over the base's id, roots, runs, pages, failures and receipts (R2, R35).

Migrated forward from its first version and never reset. Every call is one short BEGIN IMMEDIATE transaction, or a
read.
"""

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from domain.errors import FormatError, IntegrityError
from domain.files import FileStat, Reason
from store import driver
from store.connection import immediate, open_reader, open_writer, translated
from store.queries import key_range
from store.state_port import FailureRecord, PageOutcome, RemovalCandidate, RootRecord, RunRecord, RunState
from store.state_schema import STEPS

KEPT_RUNS = 30
_RUN_COLUMNS = "id, generation, kind, trigger, roots, state, started_ns, ended_ns, counts, cause, is_full, pid"


class SqliteStateStore:
    """One connection to one state.db (store.port.StateStore)."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._connection = open_reader(path) if read_only else open_writer(path, synchronous="FULL")
        try:
            self._migrate(read_only=read_only)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        with translated(self._path):
            self._connection.close()

    def rewrite_whole(self) -> None:
        """Write the file anew from its rows alone (VACUUM), and its log back: nothing of what was deleted is left."""
        with translated(self._path):
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def base_id(self) -> str:
        row = self._read("SELECT base_id FROM base")
        if not row:
            raise IntegrityError(f"{self._path} does not know its base", hint="restore it from a backup")
        return str(row[0][0])

    def roots(self) -> Sequence[RootRecord]:
        rows = self._read("SELECT name, path, single_files, last_full_generation FROM roots ORDER BY name")
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

    def begin_run(self, run: RunRecord, *, floor_generation: int) -> RunRecord:
        with translated(self._path), immediate(self._connection):
            connection = self._connection
            self._close_interrupted(connection)
            row = connection.execute(
                "UPDATE base SET generation = max(generation, ?) + 1 RETURNING generation",
                (floor_generation,),
            ).fetchall()
            generation = int(row[0][0])
            cursor = connection.execute(
                "INSERT INTO runs (generation, kind, trigger, roots, is_full, state, started_ns, counts, cause, pid)"
                " VALUES (?, ?, ?, ?, ?, 'walking', ?, '{}', '', ?)",
                (
                    generation,
                    run.kind,
                    run.trigger,
                    json.dumps(run.roots),
                    run.full,
                    run.started_ns,
                    os.getpid(),
                ),
            )
            connection.execute(
                "DELETE FROM runs WHERE id IN (SELECT id FROM runs ORDER BY id DESC LIMIT -1 OFFSET ?)",
                (KEPT_RUNS,),
            )
            run_id = int(cursor.lastrowid or 0)
        return RunRecord(
            run_id,
            generation,
            run.kind,
            run.trigger,
            run.roots,
            "walking",
            run.started_ns,
            None,
            {},
            "",
            run.full,
        )

    def end_run(self, run_id: int, state: RunState, counts: dict[str, int], cause: str) -> None:
        with translated(self._path), immediate(self._connection):
            self._connection.execute(
                "UPDATE runs SET state = ?, counts = ?, cause = ?, ended_ns = ? WHERE id = ?",
                (state, json.dumps(counts), cause, time.time_ns(), run_id),
            )
            self._connection.execute("DELETE FROM pages WHERE run = ?", (run_id,))

    def set_run_state(self, run_id: int, state: RunState, cause: str) -> None:
        self._write("UPDATE runs SET state = ?, cause = ? WHERE id = ?", [(state, cause, run_id)])

    def runs(self, limit: int = 20) -> Sequence[RunRecord]:
        rows = self._read(f"SELECT {_RUN_COLUMNS} FROM runs ORDER BY id DESC LIMIT ?", (limit,))  # noqa: S608
        return [
            RunRecord(
                row[0], row[1], row[2], row[3], tuple(json.loads(row[4])), row[5], row[6], row[7],
                json.loads(row[8]), row[9], bool(row[10]),
            )
            for row in rows
        ]  # fmt: skip

    def plan_pages(self, run_id: int, pages: Sequence[tuple[int, bytes]]) -> None:
        self._write(
            "INSERT INTO pages (run, page, state, payload, counts) VALUES (?, ?, 'planned', ?, '{}')"
            " ON CONFLICT (run, page) DO NOTHING",
            [(run_id, page, payload) for page, payload in pages],
        )

    def finish_pages(self, run_id: int, outcomes: Sequence[PageOutcome]) -> None:
        """Record pages as done with what came of them, once knowledge.db holds it (R35); by upsert."""
        if not outcomes:
            return
        with translated(self._path), immediate(self._connection):
            connection = self._connection
            connection.executemany(
                "INSERT INTO pages (run, page, state, payload, counts) VALUES (?, ?, 'done', NULL, ?)"
                " ON CONFLICT (run, page) DO UPDATE SET state = 'done', payload = NULL, counts = excluded.counts",
                [(run_id, outcome.page, json.dumps(outcome.counts)) for outcome in outcomes],
            )
            _write_failures(connection, [failure for outcome in outcomes for failure in outcome.failures])
            recovered = [(key,) for outcome in outcomes for key in outcome.recovered]
            if recovered and connection.execute("SELECT 1 FROM failures LIMIT 1").fetchone():
                connection.executemany("DELETE FROM failures WHERE key = ?", recovered)
            _write_candidates(connection, run_id, [c for outcome in outcomes for c in outcome.candidates])

    def failures(self, prefix: str = "") -> Sequence[FailureRecord]:
        rows = self._read("SELECT key, reason, detail, tries, first_ns, last_ns FROM failures ORDER BY key")
        return [FailureRecord(*row) for row in rows if str(row[0]).startswith(prefix)]

    def record_failures(self, failures: Sequence[FailureRecord]) -> None:
        with translated(self._path), immediate(self._connection):
            _write_failures(self._connection, failures)

    def forget_failures(self, keys: Sequence[str]) -> None:
        self._write("DELETE FROM failures WHERE key = ?", [(key,) for key in keys])

    def forget_old_failures(self, prefixes: Sequence[str], before_ns: int) -> None:
        """Forget failures below these prefixes that a full run has not met again."""
        self._write(
            "DELETE FROM failures WHERE last_ns < ? AND substr(key, 1, length(?)) = ?",
            [(before_ns, prefix, prefix) for prefix in prefixes],
        )

    def add_candidates(self, run_id: int, candidates: Sequence[RemovalCandidate]) -> None:
        with translated(self._path), immediate(self._connection):
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
        return [
            RemovalCandidate(key, Reason(reason), FileStat(*json.loads(stat)) if stat else None)
            for key, reason, stat in rows
        ]

    def record_receipt(self, command_id: str, kind: str, outcome: str) -> None:
        """Remember a command as done; a second time has no effect."""
        self._write(
            "INSERT INTO receipts (id, kind, at_ns, outcome) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            [(command_id, kind, time.time_ns(), outcome)],
        )

    def receipt(self, command_id: str) -> str | None:
        rows = self._read("SELECT outcome FROM receipts WHERE id = ?", (command_id,))
        return str(rows[0][0]) if rows else None

    @staticmethod
    def _close_interrupted(connection: driver.Connection) -> None:
        """The caller holds the writer's lock, so a run that has not ended has no process any more."""
        connection.execute(
            "UPDATE runs SET state = 'interrupted', cause = 'its process ended before it did', ended_ns = ?"
            " WHERE ended_ns IS NULL",
            (time.time_ns(),),
        )
        connection.execute("DELETE FROM pages")

    def _migrate(self, *, read_only: bool) -> None:
        with translated(self._path):
            version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
            names = {row[0] for row in self._connection.execute("SELECT name FROM sqlite_schema").fetchall()}
        if names and "base" not in names:
            raise FormatError(
                f"{self._path} is a database of another program",
                hint="move it away, or choose another directory",
            )
        if version > len(STEPS):
            raise FormatError(
                f"{self._path} was written by a newer version of this program (step {version}, known: {len(STEPS)})",
                hint="upgrade this program to the version that wrote it",
            )
        if read_only or version == len(STEPS):
            return
        with translated(self._path), immediate(self._connection):
            version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
            for number, step in enumerate(STEPS[version:], start=version + 1):
                for statement in step:
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {number}")
            self._connection.execute(
                "INSERT INTO base (id, base_id, created_ns, generation) VALUES (1, ?, ?, 0) ON CONFLICT DO NOTHING",
                (os.urandom(16).hex(), time.time_ns()),
            )

    def _read(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        with translated(self._path):
            return self._connection.execute(statement, tuple(parameters)).fetchall()

    def _write(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        with translated(self._path), immediate(self._connection):
            self._connection.executemany(statement, rows)


def _write_failures(connection: driver.Connection, failures: Sequence[FailureRecord]) -> None:
    connection.executemany(
        "INSERT INTO failures (key, reason, detail, tries, first_ns, last_ns) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET reason = excluded.reason, detail = excluded.detail,"
        " tries = tries + excluded.tries, last_ns = excluded.last_ns",
        [(f.key, f.reason, f.detail, f.tries, f.first_ns, f.last_ns) for f in failures],
    )


def _write_candidates(connection: driver.Connection, run_id: int, candidates: Sequence[RemovalCandidate]) -> None:
    connection.executemany(
        "INSERT INTO removal_candidates (run, key, reason, stat) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (run, key) DO UPDATE SET reason = excluded.reason, stat = excluded.stat",
        [(run_id, c.key, c.reason.value, json.dumps(c.stat) if c.stat else "") for c in candidates],
    )
