"""How much a prefix holds, counted once for each state of the store: a monitor and a page ask again and again."""

from store import driver, queries
from store.port import StoreCounts, Visibility

MOST_KEPT = 64


class RememberedCounts:
    """Of one reading connection, by one thread at a time. A commit of anybody else is seen by `PRAGMA data_version`
    (https://www.sqlite.org/pragma.html#pragma_data_version), and then all is counted again."""

    def __init__(self) -> None:
        self._version = -1
        self._kept: dict[tuple[str, Visibility], StoreCounts] = {}

    def of(self, connection: driver.Connection, prefix: str, visibility: Visibility) -> StoreCounts:
        # asked before counting: a commit in between is counted under the older version, and so again the next time
        version = int(connection.execute("PRAGMA data_version").fetchone()[0])
        if version != self._version or len(self._kept) >= MOST_KEPT:
            self._version = version
            self._kept.clear()
        asked = (prefix, visibility)
        if asked not in self._kept:
            self._kept[asked] = queries.counts(connection, prefix, visibility)
        return self._kept[asked]
