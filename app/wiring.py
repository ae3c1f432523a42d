"""Builds what a command works with, and owns its lifetime: lock, state.db and knowledge.db of one base."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from domain.errors import NotBuiltError
from domain.layout import BaseLayout
from domain.settings import Settings
from store import files
from store.documents import SqliteStoreWriter
from store.lock import WriteLock
from store.sqlite import SqliteStore, open_store_writer
from store.state import SqliteStateStore


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
        yield layout


@contextmanager
def writable_base(settings: Settings, purpose: str) -> Iterator[WritableBase]:
    """Lock, state.db, knowledge.db in this order; closed in the other one."""
    with locked_home(settings, purpose) as layout:
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
    """state.db and knowledge.db for reading. Raises NotBuiltError where there is no index."""
    layout = BaseLayout(settings.home)
    if files.lstat_or_none(layout.state) is None or files.lstat_or_none(layout.database) is None:
        raise NotBuiltError(f"there is no index at {layout.home}", hint="run `knowledge index YOUR_FOLDER` first")
    state = SqliteStateStore(layout.state, read_only=True)
    try:
        store = SqliteStore(layout.database, base_id=state.base_id())
        try:
            yield ReadableBase(layout, state, store)
        finally:
            store.close()
    finally:
        state.close()
