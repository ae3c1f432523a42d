"""Builds what a command works with, and owns its lifetime: lock, state.db and knowledge.db of one base."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from msgspec import Struct

from domain.errors import KnowledgeError, LockedError, NotBuiltError
from domain.layout import BaseLayout
from domain.settings import Settings
from store import files
from store.documents import SqliteStoreWriter
from store.lock import WriteLock
from store.pending_restore import await_restore, finish_restore, is_restore_pending, remove_staging, settle_restore
from store.port import StoreCounts, StoreIdentity
from store.sqlite import SqliteStore, open_store_writer
from store.state import SqliteStateStore
from store.write_port import StoreWriter, VectorWriter

OPENING_TRIES = 5  # a restore exchanges the pair once; five in the time that it takes to open two files are none


class RunWriter(StoreWriter, VectorWriter, Protocol):
    """What a run asks of the writing end of the store, wherever that is."""

    def identity(self) -> StoreIdentity: ...

    def has_documents(self) -> bool: ...

    def counts(self) -> StoreCounts: ...


class RunBase(Protocol):
    """What a run works with: a base whose lock is ours (WritableBase), or one that a service's writer holds."""

    @property
    def layout(self) -> BaseLayout: ...

    @property
    def state(self) -> SqliteStateStore: ...

    @property
    def writer(self) -> RunWriter: ...


class WritableBase(Struct, frozen=True):
    """A base held for writing: its lock is ours for as long as the value is used."""

    layout: BaseLayout
    state: SqliteStateStore
    writer: SqliteStoreWriter


class ReadableBase(Struct, frozen=True):
    """A base open for reading."""

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
    """state.db and knowledge.db for writing; the caller holds the lock.

    Raises NotBuiltError where state.db is lost beside a knowledge.db, as every opening of it for writing does.
    """
    state = SqliteStateStore(layout.state)
    try:
        writer = open_store_writer(layout, base_id=state.base_id(), substring_index=settings.substring_index)
        try:
            if layout.database_folder is None:
                remove_staging(layout.upgrade_staging)  # of an upgrade that something else has made needless
            yield WritableBase(layout, state, writer)
        finally:
            writer.close()
    finally:
        state.close()


@contextmanager
def readable_base(settings: Settings, *, finishes_restores: bool = True) -> Iterator[ReadableBase]:
    """state.db and knowledge.db for reading, of one pair. Raises NotBuiltError where there is no index.

    A restore that was cut short is finished first; not so with `finishes_restores` False: then nothing is written, and
    StorageError is raised.
    """
    layout = BaseLayout(settings.home)
    state, store = _opened_pair(layout, settle_restore if finishes_restores else await_restore)
    try:
        yield ReadableBase(layout, state, store)
    finally:
        try:
            store.close()
        finally:
            state.close()


def _opened_pair(layout: BaseLayout, settle: Callable[[BaseLayout], object]) -> tuple[SqliteStateStore, SqliteStore]:
    """Both databases; opened again where a restore has exchanged one of them meanwhile."""
    for _ in range(OPENING_TRIES):
        settle(layout)
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
