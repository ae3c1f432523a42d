"""Changes as watchfiles tells them, for systems without inotify.

What it does not tell: that events were lost, and which changes are of permissions alone. A look at everything now and
then (scheduler.watch.RESCAN_EVERY_S) makes up for the first; a pass over an unchanged file for the second.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any

from scheduler.ignore_rules import IGNORE_FILE_NAME
from scheduler.watch_sources import ChangeSink
from scheduler.watched_folders import WatchedRoot, leads_out

_STEP_MS = 50
_BATCH_MS = 200
_AGAIN_AFTER_S = 5.0


class WatchfilesSource:
    """Hears of changes below the roots (scheduler.watch_sources.ChangeSource)."""

    def __init__(self, roots: Sequence[WatchedRoot], sink: ChangeSink) -> None:
        self._roots = roots
        self._sink = sink
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = asyncio.Event()
        self._deaf: set[str] = set()  # tops of roots that are not watched now

    @property
    def is_partial(self) -> bool:
        return bool(self._deaf)

    async def start(self) -> int:
        self._tasks = [asyncio.create_task(self._follow(root)) for root in self._roots]
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # each task has made its watcher before it waits for the first time
        return 0

    async def refresh(self) -> None:
        """Watchers look after themselves (`_follow`)."""

    async def close(self) -> None:
        self._stopped.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, root: WatchedRoot) -> None:
        """One watcher after the other: one that fails, as at a name that is no UTF-8, is followed by a look at all."""
        while True:
            try:
                async for changes in self._batches(root):
                    self._deaf.discard(root.top)
                    for _, path in changes:
                        self._hear(root, path)
            except (OSError, RuntimeError, ExceptionGroup) as error:  # a group where it fails while it is waited for
                if root.top not in self._deaf:
                    self._deaf.add(root.top)
                    self._sink.is_limited("other", str(_first(error)))
            await asyncio.sleep(_AGAIN_AFTER_S)
            self._sink.look_at_everything(root.top)

    def _batches(self, root: WatchedRoot) -> AsyncIterator[Any]:
        from watchfiles import awatch

        folders = {os.path.dirname(path) for path in root.tops()} if root.files else {root.top}  # noqa: PTH120
        return awatch(
            *sorted(folders),
            watch_filter=None,
            debounce=_BATCH_MS,
            step=_STEP_MS,
            rust_timeout=0,  # at a timeout, what has come in that moment would be dropped
            recursive=not root.files,
            stop_event=self._stopped,
        )

    def _hear(self, root: WatchedRoot, path: str) -> None:
        relative = os.path.relpath(path, root.path).replace(os.sep, "/")
        if relative.startswith("../") or path == root.home or path.startswith(root.home + os.sep):
            return
        name = relative.rpartition("/")[2]
        if name == IGNORE_FILE_NAME or path == root.top:
            self._sink.look_at_everything(root.top)
        elif root.files:
            if relative in root.files:
                self._sink.look_at(root.top, path)
        elif not leads_out(root, relative) and _may_matter(root, path, name):
            self._sink.look_at(root.top, path)


def _may_matter(root: WatchedRoot, path: str, name: str) -> bool:
    """A document, a folder, or what may have been a folder: nobody says what it was that is gone."""
    if name.lower().endswith(root.extensions):
        return True
    if name[:1] == "." or name in root.exclude_dirs:
        return False
    return os.path.isdir(path) or not os.path.lexists(path)  # noqa: PTH112 - strings


def _first(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
