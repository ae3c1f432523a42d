"""What the names given to `rm` mean: keys of documents, or paths on this machine below a root."""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from domain.errors import UsageError
from domain.keys import is_utf8, path_below_root, root_of
from domain.layout import BaseLayout
from store.sqlite import SqliteSnapshot, SqliteStore
from store.state import SqliteStateStore
from store.state_port import RootRecord

_PATH_BEGINNINGS = ("/", "./", "../", "~", f".{os.sep}", f"..{os.sep}")


class RemovalTarget(Struct, frozen=True):
    """One name as it was given, and the key or key prefix (ending in `/`) it means; "" for nothing indexed."""

    argument: str
    prefix: str
    is_still_there: bool


def targets_of(
    layout: BaseLayout, state: SqliteStateStore, cwd: Path, arguments: Sequence[str]
) -> tuple[RemovalTarget, ...]:
    """Look every name up as a key and as a path. Raises UsageError where the two are different documents."""
    roots = state.roots()
    store = SqliteStore(layout.database, base_id=None)
    try:
        return tuple(_target(argument, roots, store.reader(), cwd) for argument in arguments)
    finally:
        store.close()


def meant_by(prefix: str) -> tuple[str, ...]:
    """A name means what lies below it, too: a file that has become a folder is stored as both until a run sees it."""
    return (prefix,) if prefix.endswith("/") else (prefix, f"{prefix}/")


def _target(argument: str, roots: Sequence[RootRecord], snapshot: SqliteSnapshot, cwd: Path) -> RemovalTarget:
    by_key = "" if argument.startswith(_PATH_BEGINNINGS) else _stored_prefix(argument, snapshot)
    by_path = _stored_prefix(_key_of_path(argument, roots, cwd), snapshot)
    if by_key and by_path and by_key.rstrip("/") != by_path.rstrip("/"):
        raise UsageError(
            f"{argument} means two things: {by_key} as a key, {by_path} as a path",
            hint=f"write ./{argument} for the path, or the whole key",
        )
    prefix = by_key or by_path
    return RemovalTarget(argument, prefix, bool(prefix) and _exists(prefix, roots))


def _stored_prefix(key: str, snapshot: SqliteSnapshot) -> str:
    """The key itself where a document has it, else as a folder where documents lie below it."""
    wanted = key.rstrip("/")
    if not wanted or not is_utf8(wanted):
        return ""
    for prefix in (wanted, f"{wanted}/"):
        if any(not stored.reason for stored in snapshot.stored_files(prefix)):
            return prefix
    return ""


def _key_of_path(argument: str, roots: Sequence[RootRecord], cwd: Path) -> str:
    """The key that a path on this machine has, as if it were there; "" outside of every root.

    Links in its folders are followed, as the walk's root was; the last part is taken as it is.
    """
    try:
        written = cwd / Path(argument).expanduser()
    except RuntimeError:  # `~name` of nobody
        return ""
    path = Path(os.path.abspath(written))  # noqa: PTH100 - resolve() would follow the last part
    for candidate in (Path(os.path.realpath(path.parent)) / path.name, Path(os.path.realpath(path))):
        for root in roots:
            if candidate.is_relative_to(root.path):
                below = candidate.relative_to(root.path).as_posix()
                return root.name if below == "." else f"{root.name}/{below}"
    return ""


def _exists(prefix: str, roots: Sequence[RootRecord]) -> bool:
    path = next((root.path for root in roots if root.name == root_of(prefix)), None)
    return path is not None and os.path.lexists(Path(path) / path_below_root(prefix))
