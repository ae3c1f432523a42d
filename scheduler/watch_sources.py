"""Where a watch hears of changes: inotify on Linux, watchfiles elsewhere."""

import sys
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from scheduler.watched_folders import WatchedRoot

Limit = Literal["max_user_watches", "max_user_instances", "other"]


class ChangeSink(Protocol):
    """Who is told. Called in the loop, and quick."""

    def look_at(self, root: str, path: str) -> None:
        """Something has happened at a path below a root (its `top`)."""
        ...

    def look_at_everything(self, root: str = "") -> None:
        """Something may have happened anywhere below the root, or below each."""
        ...

    def is_limited(self, limit: Limit, detail: str) -> None:
        """Not every folder can be watched."""
        ...


class ChangeSource(Protocol):
    """Hears of changes from `start` to `close`."""

    @property
    def is_partial(self) -> bool:
        """Whether some folder that should be watched is not."""
        ...

    async def start(self) -> int:
        """Once it returns, every change that follows is heard of; how many folders are watched, 0 where unknown."""
        ...

    async def refresh(self) -> None:
        """Look for folders that should be watched and are not."""
        ...

    async def close(self) -> None: ...


SourceOf = Callable[[Sequence[WatchedRoot], ChangeSink], ChangeSource]


def change_source(roots: Sequence[WatchedRoot], sink: ChangeSink) -> ChangeSource:
    """The one for this system."""
    if sys.platform == "linux":
        from scheduler.watch_linux import InotifySource

        return InotifySource(roots, sink)
    from scheduler.watch_portable import WatchfilesSource

    return WatchfilesSource(roots, sink)
