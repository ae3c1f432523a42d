"""Failures in state.db: recorded with their next try, let go, put back (store.failure_port)."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec.structs import astuple

from domain.files import FileStat, Reason
from domain.retry_rules import next_try_ns, standing_after
from store import driver
from store.failure_port import FailureCount, FailureRecord
from store.queries import key_range
from store.state_connection import StateConnection

KEPT_DETAIL_CHARS = 500
_COLUMNS = "key, reason, detail, tries, first_ns, last_ns, next_ns, standing, stat"


class FailureLedger(StateConnection):
    """The part of state.db that failures are kept in (store.failure_port.FailureLedgerPort)."""

    def failures(self, prefix: str = "") -> Sequence[FailureRecord]:
        return self.failures_page(prefix, limit=-1)

    def failures_page(self, prefix: str = "", *, after: str = "", limit: int) -> Sequence[FailureRecord]:
        rows = self._read(
            f"SELECT {_COLUMNS} FROM failures WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",  # noqa: S608
            (*key_range(prefix), after, limit),
        )
        with self._believing():
            return [_record(row) for row in rows]

    def failure(self, key: str) -> FailureRecord | None:
        rows = self._read(f"SELECT {_COLUMNS} FROM failures WHERE key = ?", (key,))  # noqa: S608 - no value
        with self._believing():
            return _record(rows[0]) if rows else None

    def failure_counts(self) -> Sequence[FailureCount]:
        rows = self._read("SELECT reason, standing, count(*) FROM failures GROUP BY 1, 2 ORDER BY 1, 2")
        return [FailureCount(*row) for row in rows]

    def record_failures(self, failures: Sequence[FailureRecord]) -> None:
        with self._writing():
            write_failures(self._connection, failures)

    def retry_failures(self, keys: Sequence[str]) -> None:
        self._write("UPDATE failures SET standing = 'open', next_ns = 0 WHERE key = ?", [(key,) for key in keys])

    def ignore_failures(self, keys: Sequence[str]) -> None:
        self._write("UPDATE failures SET standing = 'ignored', next_ns = 0 WHERE key = ?", [(key,) for key in keys])

    def forget_failures(self, keys: Sequence[str]) -> None:
        self._write("DELETE FROM failures WHERE key = ?", [(key,) for key in keys])

    def forget_old_failures(self, prefixes: Sequence[str], before_ns: int, *, kept: Collection[str] = ()) -> None:
        old: list[str] = []
        for prefix in prefixes:
            rows = self._read(
                "SELECT key FROM failures WHERE key >= ? AND key < ? AND last_ns < ?"
                " AND NOT (reason = ? AND (standing <> 'open' OR next_ns > ?))",
                (*key_range(prefix), before_ns, Reason.EMBEDDING_REFUSED.value, before_ns),
            )
            old += [key for (key,) in rows if key not in kept]
        if old:
            # what another process has recorded meanwhile is no old failure
            self._write("DELETE FROM failures WHERE key = ? AND last_ns < ?", [(key, before_ns) for key in old])


def write_failures(connection: driver.Connection, failures: Iterable[FailureRecord]) -> None:
    """Record failures in the caller's transaction."""
    for failure in failures:
        known = connection.execute(
            "SELECT tries, first_ns, standing FROM failures WHERE key = ?", (failure.key,)
        ).fetchone()
        tries = failure.tries + (known[0] if known else 0)
        is_ignored = known is not None and known[2] == "ignored"
        connection.execute(
            f"INSERT OR REPLACE INTO failures ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - no value
            (
                failure.key,
                failure.reason,
                failure.detail[:KEPT_DETAIL_CHARS],
                tries,
                known[1] if known else failure.first_ns,
                failure.last_ns,
                0 if is_ignored else next_try_ns(failure.reason, tries, failure.key, failure.last_ns),
                "ignored" if is_ignored else standing_after(failure.reason, tries),
                json.dumps(astuple(failure.stat)) if failure.stat is not None else "",
            ),
        )


def drop_recovered(connection: driver.Connection, keys: Sequence[str]) -> None:
    """Forget the failures of files that a page has brought home, in the caller's transaction."""
    if keys and connection.execute("SELECT 1 FROM failures LIMIT 1").fetchone():
        connection.executemany("DELETE FROM failures WHERE key = ?", [(key,) for key in keys])


def _record(row: Any) -> FailureRecord:
    key, reason, detail, tries, first_ns, last_ns, next_ns, standing, stat = row
    known = FileStat(*json.loads(stat)) if stat else None
    return FailureRecord(key, reason, detail, tries, first_ns, last_ns, next_ns, standing, known)
