"""Changes as inotify tells them: a watch a folder, new folders watched as they come."""

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence

from scheduler.ignore_rules import IGNORE_FILE_NAME
from scheduler.inotify import (
    IN_CREATE,
    IN_DELETE_SELF,
    IN_IGNORED,
    IN_ISDIR,
    IN_MOVE_SELF,
    IN_MOVED_FROM,
    IN_MOVED_TO,
    IN_Q_OVERFLOW,
    IN_UNMOUNT,
    Event,
    Inotify,
)
from scheduler.watch_sources import ChangeSink, Limit
from scheduler.watched_folders import (
    WatchedFolder,
    WatchedRoot,
    first_folders,
    folder_in,
    folders_below,
    is_worth_a_look,
)

_FOLDERS_AT_A_TIME = 64  # listed in a thread, while events are heard
_READS_AT_A_TIME = 8  # then others have their turn


class InotifySource:
    """Hears of changes below the roots (scheduler.watch_sources.ChangeSource)."""

    def __init__(
        self, roots: Sequence[WatchedRoot], sink: ChangeSink, open_queue: Callable[[], Inotify] = Inotify
    ) -> None:
        self._roots = roots
        self._sink = sink
        self._open_queue = open_queue
        self._queue: Inotify | None = None
        self._folders: dict[int, WatchedFolder] = {}  # by watch
        self._watches: dict[str, int] = {}  # by the folder's path
        self._to_add: deque[WatchedFolder] = deque()
        self._adding: asyncio.Task[None] | None = None
        self._is_full = False  # the kernel takes no more watches

    @property
    def is_partial(self) -> bool:
        tops = {folder.path for root in self._roots for folder in first_folders(root)}
        return self._queue is None or self._is_full or not tops <= self._watches.keys()

    async def start(self) -> int:
        await self.refresh()
        return len(self._folders)

    async def refresh(self) -> None:
        self._is_full = False
        if self._queue is None and not self._open():
            return
        self._add([folder for root in self._roots for folder in first_folders(root)])
        while self._adding is not None and not self._adding.done():
            await asyncio.wait([self._adding])

    async def close(self) -> None:
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.gather(self._adding, return_exceptions=True)
        if self._queue is not None:
            asyncio.get_running_loop().remove_reader(self._queue.descriptor)
            self._queue.close()
            self._queue = None

    def _open(self) -> bool:
        try:
            self._queue = self._open_queue()
        except OSError as error:
            limit: Limit = "max_user_instances" if error.errno == errno.EMFILE else "other"
            self._sink.is_limited(limit, error.strerror or "")
            return False
        asyncio.get_running_loop().add_reader(self._queue.descriptor, self._drain)
        return True

    def _drain(self) -> None:
        for _ in range(_READS_AT_A_TIME):
            events = self._queue.read() if self._queue is not None else []
            if not events:
                return
            for event in events:
                self._hear(event)

    def _hear(self, event: Event) -> None:
        if event.mask & IN_Q_OVERFLOW:
            self._sink.look_at_everything()
            self._add([folder for root in self._roots for folder in first_folders(root)])
            return
        folder = self._folders.get(event.watch)
        if folder is None:  # of a watch that was taken back
            return
        if event.mask & IN_IGNORED:
            self._forget(event.watch, folder)
        elif event.mask & IN_UNMOUNT:
            self._sink.look_at_everything(folder.root.top)
        elif event.mask & (IN_DELETE_SELF | IN_MOVE_SELF):
            self._self_is_gone(event, folder)
        elif event.mask & IN_ISDIR:
            self._hear_of_folder(event, folder)
        elif event.name == IGNORE_FILE_NAME:
            self._sink.look_at_everything(folder.root.top)
            self._add(list(first_folders(folder.root)))
        elif is_worth_a_look(folder, event.name):
            self._sink.look_at(folder.root.top, f"{folder.path}/{event.name}")

    def _self_is_gone(self, event: Event, folder: WatchedFolder) -> None:
        """Of other folders the one above tells; for the first, nobody does."""
        if folder.path in (folder.root.top, folder.root.path):
            self._sink.look_at_everything(folder.root.top)
            if event.mask & IN_MOVE_SELF:  # what it has become is none of ours
                self._take_back(folder.path)

    def _hear_of_folder(self, event: Event, folder: WatchedFolder) -> None:
        below = folder_in(folder, event.name)
        if below is None:
            return
        if event.mask & IN_MOVED_FROM:  # its watches would go on to speak of it by its old name
            self._take_back(below.path)
        if event.mask & (IN_CREATE | IN_MOVED_TO):
            self._add([below])
        self._sink.look_at(folder.root.top, below.path)

    def _take_back(self, path: str) -> None:
        inside = f"{path}/"
        for found in [known for known in self._watches if known == path or known.startswith(inside)]:
            watch = self._watches[found]
            if self._queue is not None:
                self._queue.remove(watch)
            self._forget(watch, self._folders[watch])

    def _forget(self, watch: int, folder: WatchedFolder) -> None:
        self._folders.pop(watch, None)
        if self._watches.get(folder.path) == watch:
            del self._watches[folder.path]

    def _add(self, folders: Sequence[WatchedFolder]) -> None:
        self._to_add.extend(folders)
        if self._adding is None or self._adding.done():
            self._adding = asyncio.create_task(self._add_all())

    async def _add_all(self) -> None:
        """Each folder is watched before it is listed: what comes to it between is heard of twice, not never."""
        while self._to_add:
            taken = [self._to_add.popleft() for _ in range(min(_FOLDERS_AT_A_TIME, len(self._to_add)))]
            watched = [folder for folder in taken if self._watch(folder)]
            if self._is_full:
                self._to_add.clear()
            listed = await asyncio.to_thread(_listed, watched)
            for folder, below in zip(watched, listed, strict=True):
                if below is None:
                    self._take_back(folder.path)
                elif not self._is_full:
                    self._to_add.extend(below)

    def _watch(self, folder: WatchedFolder) -> bool:
        if self._queue is None or self._is_full:
            return False
        try:
            watch = self._queue.add(folder.path)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                self._is_full = True
                self._sink.is_limited("max_user_watches", folder.path)
                self._sink.look_at_everything()
            return False  # gone meanwhile, or not ours to read: a pass says so
        before = self._folders.get(watch)
        if before is not None and before.path != folder.path:  # the same folder by another name
            self._forget(watch, before)
        self._folders[watch] = folder
        self._watches[folder.path] = watch
        return True


def _listed(folders: Sequence[WatchedFolder]) -> list[list[WatchedFolder] | None]:
    return [folders_below(folder) for folder in folders]
