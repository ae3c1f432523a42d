"""Following the changes of roots: what is watched, when a pass is due, and what is told beside it.

One task drains events all the while; passes come one at a time, on whatever the caller runs them.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from app.roots import RootScope, scopes_of_run
from domain.errors import (
    EmbeddingsUnavailableError,
    KnowledgeError,
    LockedError,
    QueueError,
    StorageError,
    UsageError,
)
from domain.settings import Settings
from scheduler.watch import (
    DEFAULT_DEBOUNCE_S,
    LEAST_DEBOUNCE_S,
    RESCAN_EVERY_S,
    PassTiming,
    PendingChanges,
    WatchPass,
    is_gone,
)
from scheduler.watch_sources import ChangeSource, Limit, SourceOf, change_source
from scheduler.watched_folders import WatchedRoot
from store.state_port import RootRecord

NoticeKind = Literal["watching", "root_missing", "root_back", "limited", "retrying"]
_PASSING = (LockedError, EmbeddingsUnavailableError, QueueError, StorageError)  # over by itself, or by somebody else


class WatchNotice(Struct, frozen=True):
    """What whoever watches is told beside the passes. Words are made in app.present_watch."""

    kind: NoticeKind
    paths: tuple[str, ...] = ()
    folders: int = 0  # of `watching`; 0 = not counted
    limit: Limit = "other"  # of `limited`
    detail: str = ""
    error: KnowledgeError | None = None  # of `retrying`
    retry_s: float = 0.0


class WatchOptions(Struct, frozen=True):
    """How a watch goes about it."""

    debounce_s: float = DEFAULT_DEBOUNCE_S
    has_initial_pass: bool = True
    rescan_every_s: float = RESCAN_EVERY_S
    source: SourceOf = change_source
    clock_s: Callable[[], float] = time.monotonic


Index = Callable[[WatchPass], Awaitable[None]]
Tell = Callable[[WatchNotice], None]


def watched_roots(
    settings: Settings, recorded: Sequence[RootRecord], paths: Sequence[Path], *, has_initial_pass: bool = True
) -> tuple[WatchedRoot, ...]:
    """What is to be watched: the paths, or every root. Raises UsageError for a path that cannot become a root, and
    for one that is not indexed yet where no pass at the start would do it."""
    scopes = scopes_of_run(settings, recorded, paths)
    known = {record.path for record in recorded}
    for scope in scopes:
        if not has_initial_pass and scope.record.path not in known:
            raise UsageError(
                f"{scope.record.path} is not indexed yet", hint="leave out --no-initial, or run `knowledge index` first"
            )
    home = os.path.realpath(settings.home)
    return tuple(_watched_root(scope, home) for scope in scopes)


def _watched_root(scope: RootScope, home: str) -> WatchedRoot:
    root = scope.settings
    return WatchedRoot(
        path=scope.record.path,
        home=home,
        extensions=root.extensions,
        exclude_dirs=frozenset(root.exclude_dirs),
        include=root.include,
        exclude=root.exclude,
        start=scope.start,
        files=scope.files,
    )


async def watch_roots(
    roots: Sequence[WatchedRoot], index: Index, tell: Tell, options: WatchOptions | None = None
) -> None:
    """Follow the roots until cancelled. `index` returns once its pass is over; one is called at a time.

    What comes during a pass is looked at by exactly one more (S0-72). A pass that is kept from its work (LockedError,
    and what an outage raises) is tried again; what else `index` raises ends the watch. Raises UsageError where none of
    the roots is there.
    """
    chosen = options or WatchOptions()
    missing = tuple(root.top for root in roots if is_gone(root.top))
    if missing:
        tell(WatchNotice("root_missing", missing))
    present = [root for root in roots if root.top not in missing]
    if not present:
        raise UsageError(
            "none of the folders to watch is there", hint="check the paths; `knowledge sources` lists them"
        )
    await _Watch(present, index, tell, chosen).run()


class _Watch:
    """One watch, from its start to its cancellation."""

    def __init__(self, roots: Sequence[WatchedRoot], index: Index, tell: Tell, options: WatchOptions) -> None:
        self._roots = roots
        self._index = index
        self._tell = tell
        self._options = options
        self._pending = PendingChanges({root.top: root.tops() for root in roots})
        debounce_s = max(LEAST_DEBOUNCE_S, options.debounce_s)
        self._timing = PassTiming(options.clock_s(), debounce_s=debounce_s, rescan_every_s=options.rescan_every_s)
        self._woken = asyncio.Event()
        self._limits_told: set[Limit] = set()
        self._away: set[str] = set()
        self._was_told_to_retry = False
        self._source: ChangeSource = options.source(roots, self)

    # scheduler.watch_sources.ChangeSink

    def look_at(self, root: str, path: str) -> None:
        self._pending.look_at(root, path)
        self._wake()

    def look_at_everything(self, root: str = "") -> None:
        self._pending.look_at_everything(root)
        self._wake()

    def is_limited(self, limit: Limit, detail: str) -> None:
        if limit not in self._limits_told:  # once: the folders beyond it are looked at now and then
            self._limits_told.add(limit)
            self._tell(WatchNotice("limited", limit=limit, detail=detail))

    def _wake(self) -> None:
        self._timing.noticed(self._options.clock_s())
        self._woken.set()

    async def run(self) -> None:
        try:
            folders = await self._source.start()
            self._tell(WatchNotice("watching", tuple(path for root in self._roots for path in root.tops()), folders))
            if self._options.has_initial_pass:
                await self._pass(WatchPass("initial", self._everything()))
            while True:
                await self._pass(await self._next())
        finally:
            await self._source.close()

    async def _next(self) -> WatchPass:
        """Wait for the next pass to be due; events come in all the while."""
        while True:
            self._woken.clear()
            now_s = self._options.clock_s()
            wait_s = self._timing.wait_s(now_s) if self._pending else None
            rescan_s = self._timing.rescan_wait_s(now_s, partly_watched=self._source.is_partial)
            if wait_s == 0.0:
                return self._pending.take()
            if rescan_s == 0.0:
                await self._source.refresh()
                self._pending.look_at_everything()
                return self._pending.take()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rescan_s if wait_s is None else min(wait_s, rescan_s)):
                    await self._woken.wait()

    async def _pass(self, due: WatchPass) -> None:
        began_s = self._options.clock_s()
        self._timing.began()
        paths = tuple(self._those_of_present_roots(due.paths))
        try:
            if paths:
                await self._index(WatchPass(due.cause, paths))
        except _PASSING as error:
            self._pending.put_back(due)
            retry_s = self._timing.failed(self._options.clock_s())
            if not self._was_told_to_retry:
                self._tell(WatchNotice("retrying", error=error, retry_s=retry_s))
            self._was_told_to_retry = True
            return
        self._was_told_to_retry = False
        is_rescan = set(paths) >= set(self._everything())
        self._timing.ended(began_s, self._options.clock_s(), was_rescan=is_rescan or not paths)

    def _everything(self) -> tuple[Path, ...]:
        return tuple(Path(path) for root in self._roots for path in root.tops())

    def _those_of_present_roots(self, paths: Sequence[Path]) -> Iterator[Path]:
        """Without what is below a root that is not there: nothing of it is gone before somebody says so."""
        away = {root.top for root in self._roots if is_gone(root.top)}
        for kind, changed in (("root_missing", away - self._away), ("root_back", self._away - away)):
            if changed:
                self._tell(
                    WatchNotice("root_missing" if kind == "root_missing" else "root_back", tuple(sorted(changed)))
                )
        self._away = away
        for path in paths:
            if not any(path == Path(top) or path.is_relative_to(top) for top in away):
                yield path
