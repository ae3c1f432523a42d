"""The plan of a run: the walk and the stored keys, two streams in the same order, merged into what is to be done.

Pure: no file is opened and nothing is written. A key only walked is new, a key only stored is gone, a key in both
is the same when stat says so (R26), else it is checked.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from domain.files import WALK_REASONS, FileCheck, Page, Reason
from scheduler.walk import WalkedFile
from store.port import StoredFile
from store.state_port import RemovalCandidate

RACY_WINDOW_NS = 2_000_000_000  # a change this soon after a check may not show in the times
PAGE_CAP_BYTES = 2 * 1024 * 1024  # text that one job carries, whatever the number of its files
PAGE_KEYS_CAP_BYTES = 512 * 1024  # keys and hashes that one job carries: half of what a payload may be
HASH_BYTES = 48  # of a file in a payload, beside its key


@dataclass(frozen=True, slots=True)
class PlanPolicy:
    """How a run decides. `now_ns` is the clock at its start."""

    now_ns: int
    max_file_bytes: int
    trust_stat: bool = True  # change_detection: stat, and no --rehash
    force: bool = False  # --reindex: stored hashes do not count


@dataclass(slots=True)
class PlanTally:
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

    def skip(self, key: str, reason: Reason) -> None:
        self.skipped += 1
        self.skips[reason] = self.skips.get(reason, 0) + 1
        self.first_skips.setdefault(reason, key)


Planned = tuple[FileCheck, int] | RemovalCandidate
"""A file to be checked with its size in bytes, or a stored document that may have to go."""


def plan(
    walked: Iterable[WalkedFile], stored: Iterable[StoredFile], policy: PlanPolicy, tally: PlanTally
) -> Iterator[Planned]:
    """Merge two streams in key order. Yields what needs work; counts the rest."""
    stored_files = iter(stored)
    known = next(stored_files, None)
    for file in walked:
        while known is not None and known.key < file.key:
            yield from _only_stored(known, tally)
            known = next(stored_files, None)
        tally.met += 1
        if known is None or known.key != file.key:
            yield from _only_walked(file, tally)
            continue
        if file.skip is None and known.stat == file.stat and not known.reason and _is_settled(known, policy):
            tally.unchanged += 1
            if known.warnings != "[]":
                tally.warned += 1
        else:
            yield from _both(file, known, policy, tally)
        known = next(stored_files, None)
    while known is not None:
        yield from _only_stored(known, tally)
        known = next(stored_files, None)


def _is_settled(known: StoredFile, policy: PlanPolicy) -> bool:
    """Whether equal stat fields prove equal bytes (R26)."""
    changed_ns = max(known.stat.mtime_ns, known.stat.ctime_ns)
    return (
        policy.trust_stat
        and not policy.force
        and known.checked_ns - changed_ns >= RACY_WINDOW_NS
        and changed_ns <= policy.now_ns
    )


def _check(file: WalkedFile, stored_hash: bytes, tally: PlanTally) -> Planned:
    tally.to_check += 1
    tally.bytes_to_check += file.stat.size_bytes
    return FileCheck(file.key, stored_hash), file.stat.size_bytes


def _only_walked(file: WalkedFile, tally: PlanTally) -> Iterator[Planned]:
    if file.skip is not None:
        tally.skip(file.key, file.skip)
    else:
        yield _check(file, b"", tally)


def _only_stored(known: StoredFile, tally: PlanTally) -> Iterator[Planned]:
    """A stored key that the walk did not meet; a skipped file that is gone is forgotten the same way."""
    if known.reason:
        yield RemovalCandidate(known.key, Reason.FORGOTTEN)
    else:
        tally.candidates += 1
        yield RemovalCandidate(known.key, Reason.GONE)


def _both(file: WalkedFile, known: StoredFile, policy: PlanPolicy, tally: PlanTally) -> Iterator[Planned]:
    if file.skip is not None:
        tally.skip(file.key, file.skip)
        if not known.reason:
            tally.candidates += 1
            yield RemovalCandidate(file.key, file.skip, file.stat)
    elif known.reason and known.reason not in WALK_REASONS and known.stat == file.stat and _is_settled(known, policy):
        # a cap that was raised since makes a large file a candidate again
        if known.reason == Reason.TOO_LARGE and file.stat.size_bytes <= policy.max_file_bytes:
            yield _check(file, b"", tally)
        else:
            tally.skip(file.key, Reason(known.reason))
    else:
        yield _check(file, b"" if policy.force else known.file_hash, tally)


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
    may carry; candidates pass through."""
    number = first_number
    files: list[FileCheck] = []
    text_bytes = keys_bytes = 0
    for item in planned:
        if isinstance(item, RemovalCandidate):
            yield item
            continue
        check, file_bytes = item
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
