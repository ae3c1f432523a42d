"""The seam of failures: which files a run could not read or store, since when, and when each is tried again."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from domain.files import FileStat
from domain.retry_rules import FailureStanding


class FailureRecord(Struct, frozen=True):
    """A file whose last check failed. Times are nanoseconds since the epoch.

    `next_ns` and `standing` are set by the ledger when a failure is recorded (domain.retry_rules).
    """

    key: str
    reason: str
    detail: str
    tries: int
    first_ns: int
    last_ns: int
    next_ns: int = 0  # when it is tried again by itself; 0 = whenever it is met, or (quarantined, ignored) never
    standing: FailureStanding = "open"
    stat: FileStat | None = None  # of the file when it was tried; None = nobody knows


class FailureCount(NamedTuple):
    reason: str
    standing: FailureStanding
    files: int


class FailureLedgerPort(Protocol):
    """Authority over failures: one row a file. Synchronous, each call one short transaction."""

    def failures(self, prefix: str = "") -> Sequence[FailureRecord]:
        """All below a prefix, in key order."""
        ...

    def failures_page(self, prefix: str = "", *, after: str = "", limit: int) -> Sequence[FailureRecord]:
        """The next `limit` below a prefix behind the key `after`, in key order."""
        ...

    def failure(self, key: str) -> FailureRecord | None: ...

    def failure_counts(self) -> Sequence[FailureCount]: ...

    def record_failures(self, failures: Sequence[FailureRecord]) -> None:
        """One more failure of each file: tries add up, the first time stays, the next try is put off, and a file
        that is ignored stays so."""
        ...

    def retry_failures(self, keys: Sequence[str]) -> None:
        """Let files be tried in the next run that meets them, whatever they were put back for."""
        ...

    def ignore_failures(self, keys: Sequence[str]) -> None:
        """Let files not be tried again, whether they change or not."""
        ...

    def forget_failures(self, keys: Sequence[str]) -> None: ...

    def forget_old_failures(self, prefixes: Sequence[str], before_ns: int, *, kept: Collection[str] = ()) -> None:
        """Forget failures below these prefixes that a full run, begun at `before_ns`, has not met again; `kept` are
        those that it met and did not try. Of documents that wait for their vectors only, those stay that are not to be
        tried yet: a run does not meet their files."""
        ...
