"""Builds what a command works with, and owns its lifetime: lock, state.db and knowledge.db of one base."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from domain.errors import KnowledgeError, LockedError, NotBuiltError
from domain.layout import BaseLayout
from domain.settings import Settings
from store import files
from store.documents import SqliteStoreWriter
from store.lock import WriteLock
from store.pending_restore import finish_restore, is_restore_pending, settle_restore
from store.sqlite import SqliteStore, open_store_writer
from store.state import SqliteStateStore

OPENING_TRIES = 5  # a restore exchanges the pair once; five in the time that it takes to open two files are none


@dataclass(frozen=True, slots=True)
class WritableBase:
    """A base held for writing: its lock is ours for as long as the value is used."""

    layout: BaseLayout
    state: SqliteStateStore
    writer: SqliteStoreWriter


@dataclass(frozen=True, slots=True)
class ReadableBase:
    """A base open for reading. `state` is None where state.db cannot be read beside a readable knowledge.db."""

    layout: BaseLayout
    state: SqliteStateStore
    store: SqliteStore


@contextmanager
def locked_home(settings: Settings, purpose: str) -> Iterator[BaseLayout]:
    """The base's home with its lock held; made where it is not there yet.

    Raises LockedError naming the holder, UnsafePlaceError, StorageError.
    """
    layout = BaseLayout(settings.home)
    files.make_home(layout, allow_network_filesystem=settings.allow_network_filesystem)
    with WriteLock(layout.lock, purpose=purpose):
        finish_restore(layout)
        yield layout


@contextmanager
def writable_base(settings: Settings, purpose: str) -> Iterator[WritableBase]:
    """Lock, state.db, knowledge.db in this order; closed in the other one."""
    with locked_home(settings, purpose) as layout, opened_base(layout, settings) as base:
        yield base


@contextmanager
def opened_base(layout: BaseLayout, settings: Settings) -> Iterator[WritableBase]:
    """state.db and knowledge.db for writing; the caller holds the lock."""
    state = SqliteStateStore(layout.state)
    try:
        writer = open_store_writer(layout, base_id=state.base_id(), substring_index=settings.substring_index)
        try:
            yield WritableBase(layout, state, writer)
        finally:
            writer.close()
    finally:
        state.close()


@contextmanager
def readable_base(settings: Settings) -> Iterator[ReadableBase]:
    """state.db and knowledge.db for reading, of one pair. Raises NotBuiltError where there is no index."""
    layout = BaseLayout(settings.home)
    state, store = _opened_pair(layout)
    try:
        yield ReadableBase(layout, state, store)
    finally:
        try:
            store.close()
        finally:
            state.close()


def _opened_pair(layout: BaseLayout) -> tuple[SqliteStateStore, SqliteStore]:
    """Both databases; opened again where a restore has exchanged one of them meanwhile."""
    for _ in range(OPENING_TRIES):
        settle_restore(layout)
        before = files.inodes(layout)
        try:
            state, store = _opened(layout)
        except KnowledgeError:
            if files.inodes(layout) == before and not is_restore_pending(layout):
                raise
            continue
        if files.inodes(layout) == before and not is_restore_pending(layout):
            return state, store
        store.close()
        state.close()
    raise LockedError(f"{layout.home} is being restored", hint="try again in a moment")


def _opened(layout: BaseLayout) -> tuple[SqliteStateStore, SqliteStore]:
    if files.lstat_or_none(layout.state) is None or files.lstat_or_none(layout.database) is None:
        raise NotBuiltError(f"there is no index at {layout.home}", hint="run `knowledge index YOUR_FOLDER` first")
    state = SqliteStateStore(layout.state, read_only=True)
    try:
        return state, SqliteStore(layout.database, base_id=state.base_id())
    except BaseException:
        state.close()
        raise
