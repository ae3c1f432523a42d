"""Which roots an upgrade reads: those of every run, and what is indexed of roots that the configuration left behind."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from app.roots import RootScope, scopes_of_run
from domain.keys import path_below_root, root_of
from domain.settings import RootSettings, Settings
from store.state_port import RootRecord
from store.upgrade_source import document_keys


class UpgradeScopes(NamedTuple):
    known: tuple[RootScope, ...]  # configured, or recorded where nothing is configured
    left: tuple[RootScope, ...]  # recorded once, no longer configured, and in the index still

    @property
    def in_key_order(self) -> tuple[RootScope, ...]:
        return tuple(sorted((*self.known, *self.left), key=lambda scope: scope.prefix))


def upgrade_scopes(settings: Settings, recorded: Sequence[RootRecord], old: Path) -> UpgradeScopes:
    """The scopes of an upgrade of the index at `old`.

    Of a root that was left behind nobody knows any more what was excluded: the files that are in the index are read,
    and no others.
    """
    known = scopes_of_run(settings, recorded, ()) if settings.roots or recorded else ()
    names = {scope.record.name for scope in known}
    left = {record.name: record for record in recorded if record.name not in names}
    if not left:
        return UpgradeScopes(known, ())
    files: defaultdict[str, list[str]] = defaultdict(list)
    for keys in document_keys(old):
        for key in keys:
            if root_of(key) in left:
                files[root_of(key)].append(path_below_root(key))
    return UpgradeScopes(known, tuple(_scope_of_files(left[name], files[name]) for name in sorted(files)))


def _scope_of_files(record: RootRecord, files: Sequence[str]) -> RootScope:
    extensions = tuple(sorted({PurePosixPath(file).suffix.lower() for file in files}))
    settings = RootSettings(Path(record.path), record.name, exclude_dirs=(), extensions=extensions)
    return RootScope(record, settings, files=tuple(sorted(files)))
