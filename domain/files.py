"""Values of files on their way through a run: what stat says, what is asked of a worker, what came of it."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct, field


class FileStat(Struct, frozen=True, gc=False, array_like=True):
    """What decides that a file did not change (R26). Inode and device are folded into signed 64 bits.

    In this order it stands in rows, and as an array in what is sent.
    """

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


class Outcome(StrEnum):
    """How a file that a run met has ended; every one ends in exactly one."""

    ADDED = "added"
    UPDATED = "updated"
    MOVED = "moved"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"
    REMOVED = "removed"
    EMBEDDED = "embedded"  # a document that was stored before got its vectors


class Reason(StrEnum):
    """Why a file was skipped, failed or removed. The words for people are made in app.present."""

    TOO_LARGE = "too_large"
    NOT_UTF8 = "not_utf8"
    EMPTY = "empty"
    EXCLUDED = "excluded"
    SYMLINK = "symlink"
    NOT_A_FILE = "not_a_file"
    NAME_NOT_UTF8 = "name_not_utf8"
    UNREADABLE = "unreadable"
    VANISHED = "vanished"
    TOO_SLOW = "too_slow"
    WORKER_DIED = "worker_died"
    OVER_LIMIT = "over_limit"  # of processor time, memory or waiting, in a process of its own
    STORE_REFUSED = "store_refused"
    EMBEDDING_REFUSED = "embedding_refused"
    UNEXPECTED = "unexpected"
    DIRECTORY_UNREADABLE = "directory_unreadable"
    GONE = "gone"
    IGNORED = "ignored"  # it failed, and somebody said to leave it
    FORGOTTEN = "forgotten"  # a skipped file that is gone: nothing is lost with it


# a skip for one of these reasons is decided by the walk, which sees it again at no cost
WALK_REASONS = frozenset({Reason.EXCLUDED, Reason.SYMLINK, Reason.NOT_A_FILE, Reason.NAME_NOT_UTF8})


PageKind = Literal["check", "vectors"]
"""`check`: files to be read; `vectors`: stored documents that lack their vectors."""


class FileCheck(Struct, frozen=True):
    """One file of a page: to be read, hashed and, when its hash is another than the stored one, cut."""

    key: str
    stored_hash: bytes = b""  # SHA-256 of the stored document; b"" = cut it in any case
    is_suspect: bool = False  # it ended whoever read it the last time: its page is one of its own, and `alone`


class Page(Struct, frozen=True):
    """The files that one job carries (R23), all of one root, in key order."""

    number: int  # from 1, in plan order; unique in its run
    root: str  # the root's name
    files: tuple[FileCheck, ...]
    kind: PageKind = "check"
    alone: bool = False  # each file in a limited process of its own: it is suspected of ending the one that reads it


class FileFailure(Struct, frozen=True):
    """A file that could not be checked; its stored document, if any, stays (R33)."""

    key: str
    reason: Reason
    detail: str = ""
    stat: FileStat | None = None  # when it was tried; None: nobody knows, so it is tried again whenever it is met


class OutcomeCounts(Struct, frozen=True):
    """How many files ended how; adds up without loss."""

    counts: dict[str, int] = field(default_factory=dict)

    def of(self, outcome: Outcome) -> int:
        return self.counts.get(outcome.value, 0)

    def plus(self, other: "OutcomeCounts") -> "OutcomeCounts":
        merged = dict(self.counts)
        for name, count in other.counts.items():
            merged[name] = merged.get(name, 0) + count
        return OutcomeCounts(merged)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def fold_signed_64(value: int) -> int:
    """An unsigned 64-bit identifier as the signed one with the same bits (what SQLite can hold)."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    return value - 0x1_0000_0000_0000_0000 if value >= 0x8000_0000_0000_0000 else value
