"""The plan of a run: the walk and the stored keys, two streams in the same order, merged into what is to be done.

Pure: no file is opened and nothing is written. A key only walked is new, a key only stored is gone, a key in both
is the same when stat says so (R26), else it is checked.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct, field

from domain.files import WALK_REASONS, FileCheck, FileStat, Page, Reason
from domain.retry_rules import SUSPECT_REASONS, FailureStanding, is_waiting
from scheduler.walk import WalkedFile
from store.failure_port import FailureRecord
from store.port import StoredFile
from store.state_port import RemovalCandidate

RACY_WINDOW_NS = 2_000_000_000  # a change this soon after a check may not show in the times
CLOCKS_APART_NS = 60_000_000_000  # a worker whose clock is further ahead has not seen when it checked a file (P29)
PAGE_CAP_BYTES = 2 * 1024 * 1024  # text that one job carries, whatever the number of its files
PAGE_KEYS_CAP_BYTES = 512 * 1024  # keys and hashes that one job carries: half of what a payload may be
HASH_BYTES = 48  # of a file in a payload, beside its key
KEPT_KEYS_CAP = 100_000  # of failures that a plan remembers


class PlanPolicy(Struct, frozen=True):
    """How a run decides. `now_ns` is the clock at its start."""

    now_ns: int
    max_file_bytes: int
    trust_stat: bool = True  # change_detection: stat, and no --rehash
    force: bool = False  # --reindex: stored hashes do not count
    generation: int = 0  # of this run: what it has looked at before its process was replaced is not looked at again
    retry_failed: bool = False  # --rehash, --reindex: whether or not the time of their next try has come
    is_taken_over: bool = (
        False  # `generation` has begun in a process that is gone; its pages have counted what they did
    )


class NotTried(NamedTuple):
    """Files that failed and are not tried in this run, of one reason and one standing."""

    files: int
    first: str  # the first key
    next_ns: int  # the earliest next try; 0 = not by itself

    def plus(self, other: "NotTried") -> "NotTried":
        return NotTried(self.files + other.files, self.first, min(self.next_ns, other.next_ns))


class PlanTally(Struct):
    """What the plan has counted on its way; unchanged files never become objects of their own."""

    met: int = 0
    unchanged: int = 0
    skipped: int = 0
    skips: dict[Reason, int] = field(default_factory=dict)
    first_skips: dict[Reason, str] = field(default_factory=dict)
    to_check: int = 0
    bytes_to_check: int = 0
    candidates: int = 0
    warned: int = 0
    failed: int = 0  # before, and not to be tried in this run
    not_tried: dict[tuple[str, FailureStanding], NotTried] = field(default_factory=dict)  # by reason and standing
    kept_failures: set[str] = field(default_factory=set)  # their keys, and those of ignored files
    is_kept_cut: bool = False  # there are more of them than are remembered

    def leave(self, failure: FailureRecord, *, is_counted: bool = False) -> None:
        """Count a file that failed before and is not tried now, unless a page of this run has counted it."""
        if failure.standing == "ignored":
            self.skip(failure.key, Reason.IGNORED)
        elif not is_counted:
            self.failed += 1
            kind = (failure.reason, failure.standing)
            one = NotTried(1, failure.key, failure.next_ns)
            known = self.not_tried.get(kind)
            self.not_tried[kind] = one if known is None else known.plus(one)
        if len(self.kept_failures) < KEPT_KEYS_CAP:
            self.kept_failures.add(failure.key)
        else:
            self.is_kept_cut = True

    def skip(self, key: str, reason: Reason) -> None:
        self.skipped += 1
        self.skips[reason] = self.skips.get(reason, 0) + 1
        self.first_skips.setdefault(reason, key)


Planned = tuple[FileCheck, int] | RemovalCandidate
"""A file to be checked with its size in bytes, or a stored document that may have to go."""


class _Judge:
    """Sends a file to be checked, unless it failed before and is not to be tried yet.

    Failures come in key order, as files do, and are asked for only where a file needs work: a run that finds nothing
    to do reads none.
    """

    def __init__(self, failures: Iterable[FailureRecord], policy: PlanPolicy, tally: PlanTally) -> None:
        self._failures = iter(failures)
        self._last: FailureRecord | None = None
        self._policy = policy
        self._tally = tally

    def check(self, file: WalkedFile, stored_hash: bytes) -> Iterator[Planned]:
        failure = self._failure_of(file.key)
        if failure is not None and has_failed_in_run(failure, file.stat, self._policy):
            self._tally.leave(failure, is_counted=True)
            return
        if failure is not None and stays_failed(failure, file.stat, self._policy):
            self._tally.leave(failure)
            return
        self._tally.to_check += 1
        self._tally.bytes_to_check += file.stat.size_bytes
        is_suspect = failure is not None and failure.reason in SUSPECT_REASONS
        yield FileCheck(file.key, stored_hash, is_suspect), file.stat.size_bytes

    def _failure_of(self, key: str) -> FailureRecord | None:
        while self._last is None or self._last.key < key:
            self._last = next(self._failures, None)
            if self._last is None:
                return None
        return self._last if self._last.key == key else None


def has_failed_in_run(failure: FailureRecord, stat: FileStat, policy: PlanPolicy) -> bool:
    """Whether a file, as it is now, has failed in this run already, before its process was replaced."""
    return policy.is_taken_over and failure.last_ns >= policy.now_ns and failure.stat == stat


def stays_failed(failure: FailureRecord, stat: FileStat, policy: PlanPolicy) -> bool:
    """Whether a run leaves a file alone that failed before: it has not changed since, and its time has not come."""
    if failure.standing == "ignored":
        return True
    if policy.retry_failed or failure.stat != stat:
        return False
    return failure.standing == "quarantined" or is_waiting(failure.next_ns, policy.now_ns)


def plan(
    walked: Iterable[WalkedFile],
    stored: Iterable[StoredFile],
    policy: PlanPolicy,
    tally: PlanTally,
    failures: Iterable[FailureRecord] = (),
) -> Iterator[Planned]:
    """Merge streams in key order. Yields what needs work; counts the rest."""
    judge = _Judge(failures, policy, tally)
    stored_files = iter(stored)
    known = next(stored_files, None)
    for file in walked:
        while known is not None and known.key < file.key:
            yield from _only_stored(known, tally)
            known = next(stored_files, None)
        tally.met += 1
        if known is None or known.key != file.key:
            yield from _only_walked(file, judge, tally)
            continue
        if file.skip is None and known.stat == file.stat and not known.reason and _is_settled(known, policy):
            tally.unchanged += 1
            if known.warnings != "[]":
                tally.warned += 1
        else:
            yield from _both(file, known, policy, judge, tally)
        known = next(stored_files, None)
    while known is not None:
        yield from _only_stored(known, tally)
        known = next(stored_files, None)


def _was_looked_at(known: StoredFile, policy: PlanPolicy) -> bool:
    """By this run, before its process was replaced."""
    return policy.generation > 0 and known.generation == policy.generation


def _is_settled(known: StoredFile, policy: PlanPolicy) -> bool:
    """Whether equal stat fields prove equal bytes (R26)."""
    if _was_looked_at(known, policy):
        return True
    changed_ns = max(known.stat.mtime_ns, known.stat.ctime_ns)
    return (
        policy.trust_stat
        and not policy.force
        and known.checked_ns - changed_ns >= RACY_WINDOW_NS
        and changed_ns <= policy.now_ns
        and known.checked_ns <= policy.now_ns + CLOCKS_APART_NS
    )


def _only_walked(file: WalkedFile, judge: _Judge, tally: PlanTally) -> Iterator[Planned]:
    if file.skip is not None:
        tally.skip(file.key, file.skip)
    else:
        yield from judge.check(file, b"")


def _only_stored(known: StoredFile, tally: PlanTally) -> Iterator[Planned]:
    """A stored key that the walk did not meet; a skipped file that is gone is forgotten the same way."""
    if known.reason:
        yield RemovalCandidate(known.key, Reason.FORGOTTEN)
    else:
        tally.candidates += 1
        yield RemovalCandidate(known.key, Reason.GONE)


def _both(
    file: WalkedFile, known: StoredFile, policy: PlanPolicy, judge: _Judge, tally: PlanTally
) -> Iterator[Planned]:
    if file.skip is not None:
        tally.skip(file.key, file.skip)
        if not known.reason:
            tally.candidates += 1
            yield RemovalCandidate(file.key, file.skip, file.stat)
    elif known.reason and known.reason not in WALK_REASONS and known.stat == file.stat and _is_settled(known, policy):
        # a cap that was raised since makes a large file a candidate again
        if known.reason == Reason.TOO_LARGE and file.stat.size_bytes <= policy.max_file_bytes:
            yield from judge.check(file, b"")
        elif not _was_looked_at(known, policy):  # else its page has counted it
            tally.skip(file.key, Reason(known.reason))
    else:
        yield from judge.check(file, b"" if policy.force else known.file_hash)


def take_batch(
    planned: Iterator[Page | RemovalCandidate], *, pages: int, candidates: int
) -> tuple[list[Page], list[RemovalCandidate]]:
    """The next of a plan, up to so many pages or candidates; both empty at its end."""
    taken: tuple[list[Page], list[RemovalCandidate]] = ([], [])
    for item in planned:
        if isinstance(item, RemovalCandidate):
            taken[1].append(item)
        else:
            taken[0].append(item)
        if len(taken[0]) == pages or len(taken[1]) == candidates:
            break
    return taken


def into_pages(
    planned: Iterable[Planned],
    root: str,
    *,
    files_per_page: int,
    bytes_per_page: int = PAGE_CAP_BYTES,
    first_number: int = 1,
) -> Iterator[Page | RemovalCandidate]:
    """Cut a root's plan into pages of up to `files_per_page` files, `bytes_per_page` of text and the keys that one job
    may carry; candidates pass through, and suspects have pages of their own."""
    number = first_number
    files: list[FileCheck] = []
    text_bytes = keys_bytes = 0
    for item in planned:
        if isinstance(item, RemovalCandidate):
            yield item
            continue
        check, file_bytes = item
        if check.is_suspect:
            yield Page(number, root, (FileCheck(check.key, check.stored_hash),), alone=True)
            number += 1
            continue
        text_bytes += file_bytes
        keys_bytes += len(check.key.encode()) + HASH_BYTES
        is_over = text_bytes > bytes_per_page or keys_bytes > PAGE_KEYS_CAP_BYTES
        if files and (is_over or len(files) >= files_per_page):
            yield Page(number, root, tuple(files))
            number, files = number + 1, []
            text_bytes, keys_bytes = file_bytes, len(check.key.encode()) + HASH_BYTES
        files.append(check)
    if files:
        yield Page(number, root, tuple(files))
