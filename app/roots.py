"""Which roots a run is about: configured, recorded, or named on the command line (R20, R29)."""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from app.places import is_folder
from domain.errors import UsageError
from domain.keys import printable, unique_name
from domain.settings import RootSettings, Settings
from store.state_port import RootRecord


class RootScope(Struct, frozen=True):
    """What a run looks at of one root."""

    record: RootRecord
    settings: RootSettings
    start: str = ""  # a directory below the root, ending in `/`; "" = the whole root
    files: tuple[str, ...] = ()  # named files below the root; () = every file from `start` on
    is_gone: bool = False  # the named path is not there any more: what is stored of it may go

    @property
    def is_whole(self) -> bool:
        """Whether the run walks all of the root's folder."""
        return not self.start and not self.files

    @property
    def is_full(self) -> bool:
        """Whether the run sees all of the root, so that absence means removal (S0-31)."""
        return self.is_whole or (not self.start and self.files == self.record.single_files)

    @property
    def prefix(self) -> str:
        return f"{self.record.name}/"


def scopes_of_run(settings: Settings, recorded: Sequence[RootRecord], paths: Sequence[Path]) -> tuple[RootScope, ...]:
    """The scopes of a run in key order; new roots among them have names that no recorded one has.

    `paths` are absolute. Raises UsageError for a path that is no part of the base and cannot become one.
    """
    known = _known_roots(settings, recorded)
    if not paths:
        if not known:
            raise UsageError("there is nothing to index yet", hint="name a folder: `knowledge index YOUR_FOLDER`")
        return _in_key_order([_whole(root, root_settings) for root, root_settings in known])
    scopes: list[RootScope] = []
    for path in paths:
        scope = _scope_of(path, settings, [*((s.record, s.settings) for s in scopes), *known])
        scopes = _merged(scopes, scope)
    _refuse_overlaps([scope.record for scope in scopes], [record for record, _ in known])
    return _in_key_order(scopes)


def _in_key_order(scopes: Sequence[RootScope]) -> tuple[RootScope, ...]:
    return tuple(sorted(scopes, key=lambda scope: scope.prefix))


def _whole(record: RootRecord, settings: RootSettings) -> RootScope:
    return RootScope(record, settings, files=record.single_files)


def _known_roots(settings: Settings, recorded: Sequence[RootRecord]) -> list[tuple[RootRecord, RootSettings]]:
    """Configured roots with the name that they were recorded under, or get now; without a configuration, the
    recorded ones."""
    if not settings.roots:
        return [(record, RootSettings(path=Path(record.path), name=record.name)) for record in recorded]
    by_path = {record.path: record for record in recorded}
    taken = {record.name for record in recorded}
    known: list[tuple[RootRecord, RootSettings]] = []
    for root in settings.roots:
        path = os.path.realpath(root.path)
        record = by_path.get(path)
        if record is not None:
            record = replace(record, single_files=())  # the configuration names the folder
        else:
            name = unique_name(root.name or Path(path).name, taken)
            record = RootRecord(name, _utf8(path))
            taken.add(name)
        known.append((record, root))
    return known


def _scope_of(path: Path, settings: Settings, known: Sequence[tuple[RootRecord, RootSettings]]) -> RootScope:
    """What one named path means."""
    absolute = _resolved(path)
    for record, root_settings in known:
        relative = _below(absolute, record.path)
        if relative is not None and (not record.single_files or relative in ("", *record.single_files)):
            return _scope_inside(absolute, relative, record, root_settings)
    if settings.configured and settings.roots:
        raise UsageError(
            f"{path} is outside every root of the configuration",
            hint="add it to `paths` in the configuration, or leave it out",
        )
    if _is_gone(Path(absolute)):
        raise UsageError(f"there is no file or folder {path}", hint="check the path")
    return _new_root(absolute, settings, known)


def _scope_inside(absolute: str, relative: str, record: RootRecord, settings: RootSettings) -> RootScope:
    if not relative:  # naming a root whose single files were indexed before makes it a whole one
        return RootScope(replace(record, single_files=()), settings)
    path = Path(absolute)
    if is_folder(path) and not path.is_symlink():
        return RootScope(record, settings, start=f"{_utf8(relative)}/")
    return RootScope(record, settings, files=(relative,), is_gone=_is_gone(path) and is_folder(Path(record.path)))


def _is_gone(path: Path) -> bool:
    """Whether there is nothing; what may not be looked at is there."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _utf8(path: str) -> str:
    """A path that the index can hold. Raises UsageError for one with bytes that are no UTF-8."""
    if printable(path) != path:
        raise UsageError(f"the name of {printable(path)} is no UTF-8", hint="rename it, or name another folder")
    return path


def _new_root(absolute: str, settings: Settings, known: Sequence[tuple[RootRecord, RootSettings]]) -> RootScope:
    """A folder becomes a root; a file registers its folder, with itself as the only include (R20)."""
    path = Path(_utf8(absolute))
    is_whole = is_folder(path) and not path.is_symlink()
    folder = path if is_whole else path.parent
    _refuse_unsafe_root(folder, settings)
    single = () if is_whole else (path.name,)
    taken = {record.name for record, _ in known}
    for record, root_settings in known:
        if record.path == str(folder):  # more single files of a folder that has some
            files = tuple(sorted({*record.single_files, *single}))
            return RootScope(replace(record, single_files=files), root_settings, files=single)
    record = RootRecord(unique_name(folder.name, taken), str(folder), single)
    return RootScope(record, RootSettings(path=folder, name=record.name), files=single)


def _refuse_unsafe_root(folder: Path, settings: Settings) -> None:
    if folder == Path(folder.anchor):
        raise UsageError("the root of the file system cannot be indexed", hint="name a folder in it")
    home = os.path.realpath(settings.home)
    if _below(str(folder), home) is not None:
        raise UsageError(f"{folder} lies in the index's own directory {home}", hint="name a folder of documents")


def _refuse_overlaps(wanted: Sequence[RootRecord], known: Sequence[RootRecord]) -> None:
    """One file must have one key: a root may not lie in another one (R20)."""
    for record in wanted:
        for other in (*wanted, *known):
            if other.name == record.name or other.path == record.path:
                continue
            if not other.single_files and _below(record.path, other.path) is not None:
                raise UsageError(
                    f"{record.path} lies in {other.path}, which is a root already",
                    hint=f"index that one; `knowledge index {record.path}` refreshes only this part of it",
                )
            if not record.single_files and _below(other.path, record.path) is not None:
                raise UsageError(
                    f"{other.path}, which is a root already, lies in {record.path}",
                    hint=f"remove the inner one first: `knowledge rm --root {other.name}`",
                )


def _merged(scopes: list[RootScope], scope: RootScope) -> list[RootScope]:
    """Add a scope; named files of one root are one scope, and a whole root swallows its parts."""
    same = [other for other in scopes if other.record.name == scope.record.name]
    others = [other for other in scopes if other.record.name != scope.record.name]
    if any(other.is_whole for other in same):
        return scopes
    if scope.is_whole:
        return [*others, scope]
    if scope.files and not scope.is_gone:
        for other in same:
            if other.files and not other.is_gone:
                files = tuple(sorted({*other.files, *scope.files}))
                kept = [item for item in same if item is not other]
                return [*others, *kept, replace(scope, files=files)]
    return [*scopes, scope]


def _resolved(path: Path) -> str:
    """The path with links in its folders resolved, its last part as it is: a link itself is looked at, not followed,
    unless it is a folder named on purpose."""
    if is_folder(path):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118


def _below(path: str, root: str) -> str | None:
    """The posix path of `path` below `root`, "" for the root itself, None outside."""
    if path == root:
        return ""
    inside = root.rstrip(os.sep) + os.sep
    return path[len(inside) :].replace(os.sep, "/") if path.startswith(inside) else None
