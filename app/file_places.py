"""What a file that is asked about may be: a key of the index, or a path of this machine below one of its roots."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from app.places import absolute
from app.roots import RootScope, scopes_of_run
from app.showing import KnownPlaces, keys_of
from app.wiring import ReadableBase
from domain.citations import MARK, Citation
from domain.errors import CitationMalformedError, UsageError
from domain.keys import path_below_root, printable, root_of
from domain.settings import Settings
from store.port import Snapshot
from store.state_port import RootRecord

_NO_NAMES = frozenset(("", ".", ".."))


class AskedBy(Struct, frozen=True):
    """Who asks: relative paths are below `cwd`."""

    cwd: Path
    user_home: str


class FilePlace(Struct, frozen=True):
    """A path below a root. `scope` is None where no run looks at the root any more."""

    key: str  # as the index writes it
    relative: str  # posix, as the system has it; "" = the root itself
    record: RootRecord
    scope: RootScope | None

    @property
    def path(self) -> Path:
        return Path(self.record.path) / self.relative


def place_of(
    target: str, settings: Settings, snapshot: Snapshot, base: ReadableBase, asked_by: AskedBy
) -> FilePlace | None:
    """The likeliest of what a target may mean: a key that something is known of, a file that is there, any path below
    a root; None outside of every root."""
    recorded = base.state.roots()
    scopes = _scopes(settings, recorded)
    records = [*(scope.record for scope in scopes.values()), *(one for one in recorded if one.name not in scopes)]
    by_name = {record.name: record for record in records}
    candidates: list[FilePlace] = []
    for raw in _keys(target, KnownPlaces(records, settings.roots, asked_by.cwd, asked_by.user_home), asked_by):
        key = raw.rstrip("/")
        record, relative = by_name.get(root_of(key)), path_below_root(key)
        if record is not None and (not relative or _NO_NAMES.isdisjoint(relative.split("/"))):
            candidates.append(FilePlace(printable(key), relative, record, scopes.get(record.name)))
    if not candidates:
        return None
    for place in candidates:
        if base.state.failure(place.key) is not None or snapshot.file_trace(place.key) is not None:
            return place
    return next((place for place in candidates if os.path.lexists(place.path)), candidates[0])


def path_of(target: str, asked_by: AskedBy) -> str:
    """The target as an absolute path of this machine."""
    try:
        return str(absolute(target, below=asked_by.cwd, user_home=asked_by.user_home))
    except ValueError:  # a NUL in it
        return target


def _scopes(settings: Settings, recorded: Sequence[RootRecord]) -> dict[str, RootScope]:
    """By name: the roots that a run without paths would walk."""
    try:
        return {scope.record.name: scope for scope in scopes_of_run(settings, recorded, ())}
    except UsageError:  # there is no root yet
        return {}


def _keys(target: str, places: KnownPlaces, asked_by: AskedBy) -> Iterator[str]:
    """Of the target as it stands, with the links above it resolved, and without the number of a citation."""
    yield from keys_of(target, places)
    path = path_of(target, asked_by)
    with suppress(ValueError, OSError):
        folder, name = os.path.split(path)
        yield from keys_of(os.path.join(os.path.realpath(folder), name), places)[1:]  # noqa: PTH118
    for record in places.records:
        if path == record.path:
            yield record.name
    if MARK in target:
        with suppress(CitationMalformedError):
            yield from keys_of(Citation.parse(target).key, places)
