"""The pages of a run that goes on: what is planned, what is done (R35). They go with the run's end."""

import json
from collections.abc import Mapping, Sequence

from store.state_connection import StateConnection


class PageLedger(StateConnection):
    """The part of state.db that the pages of open runs are kept in."""

    def plan_pages(self, run_id: int, pages: Sequence[tuple[int, bytes]]) -> None:
        self._write(
            "INSERT INTO pages (run, page, state, payload, counts) VALUES (?, ?, 'planned', ?, '{}')"
            " ON CONFLICT (run, page) DO NOTHING",
            [(run_id, page, payload) for page, payload in pages],
        )

    def done_pages(self, run_id: int, numbers: Sequence[int]) -> Mapping[int, dict[str, int]]:
        """Which of these pages are in the store, with their counts by outcome."""
        rows = self._read(
            "SELECT page, counts FROM pages WHERE run = ? AND state = 'done'"
            " AND page IN (SELECT value FROM json_each(?))",
            (run_id, json.dumps(list(numbers))),
        )
        with self._believing():
            return {page: json.loads(counts) for page, counts in rows}

    def take_over_pages(self, run_id: int) -> tuple[dict[str, int], int]:
        """For a scheduler that goes on with a run: the counts of the pages that are done, and the highest number that
        was given to any. What was only planned is forgotten: it is planned again."""
        with self._writing():
            rows = self._connection.execute("SELECT page, state, counts FROM pages WHERE run = ?", (run_id,)).fetchall()
            self._connection.execute("DELETE FROM pages WHERE run = ? AND state = 'planned'", (run_id,))
        counts: dict[str, int] = {}
        with self._believing():
            for _, state, told in rows:
                if state == "done":
                    for name, number in json.loads(told).items():
                        counts[name] = counts.get(name, 0) + number
        return counts, max((int(row[0]) for row in rows), default=0)
