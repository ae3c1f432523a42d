"""Which index a command means: a named configuration, else the nearest one, else the nearest store.

Cheap: a few stat calls per folder; YAML is loaded only for an agent.yaml that mentions a block.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, assert_never

from msgspec import Struct

from app.places import absolute, is_file, is_folder
from domain.errors import UsageError
from domain.layout import is_home

CONFIG_VARIABLE = "KNOWLEDGE_CONFIG"
DIRECTORY_VARIABLE = "KNOWLEDGE_DIRECTORY"
IDENTITY_VARIABLE = "KNOWLEDGE_IDENTITY"
CONFIG_NAME = "knowledge.yaml"
SHARED_CONFIG_NAME = "agent.yaml"  # only when it holds a block
STORES_NAME = "knowledge"
DEFAULT_IDENTITY = "default"
_BLOCK_KEY = re.compile(rb"""(?:^|[{,])[ \t]*["']?knowledge["']?[ \t]*:""", re.MULTILINE)
_MAX_LOOKED_AT_BYTES = 1024 * 1024

How = Literal["named", "found", "store", "directory", "nothing"]


class Located(Struct, frozen=True):
    """What was found. With a configuration its own `directory` decides: then `Settings.home` is the home."""

    how: How
    config_path: Path | None  # absolute
    home: Path  # absolute; need not exist
    places: tuple[Path, ...] = ()  # the folders that were looked in, nearest first

    def words(self) -> str:
        """How the index was found, in half a sentence."""
        match self.how:
            case "named":
                return f"configuration {self.config_path}"
            case "found":
                return f"configuration {self.config_path}, found here or above"
            case "store":
                return f"index {self.home}, found here or above"
            case "directory":
                return f"index {self.home}, named by {DIRECTORY_VARIABLE}"
            case "nothing":
                return f"default place {self.home}"
        assert_never(self.how)


def locate(cwd: Path, *, config: Path | None, environ: Mapping[str, str]) -> Located:
    """Find the base that a command started in `cwd` (absolute) means.

    Raises UsageError when several stores lie side by side and none is the default one, and
    ConfigurationError when an agent.yaml that seems to hold a block cannot be read.
    """
    user_home = environ.get("HOME", "")
    written = str(config) if config is not None else environ.get(CONFIG_VARIABLE, "")
    if written:
        path = absolute(written, below=cwd, user_home=user_home)
        return Located("named", path, _home_beside(path))
    places = (cwd, *cwd.parents)
    for folder in places:
        if (found := _configuration_in(folder)) is not None:
            looked_in = places[: places.index(folder) + 1]
            return Located("found", found, _home_beside(found), looked_in)
    if directory := environ.get(DIRECTORY_VARIABLE, ""):
        return Located("directory", None, absolute(directory, below=cwd, user_home=user_home), places)
    identity = environ.get(IDENTITY_VARIABLE, "")
    for folder in places:
        if (home := _store_in(folder, identity)) is not None:
            return Located("store", None, home, places)
    return Located("nothing", None, cwd / STORES_NAME / (identity or DEFAULT_IDENTITY), places)


def _home_beside(config_path: Path) -> Path:
    return config_path.parent / STORES_NAME / config_path.stem


def _configuration_in(folder: Path) -> Path | None:
    """A link that leads nowhere counts as found, so that the user hears of it."""
    path = folder / CONFIG_NAME
    if os.path.lexists(path) and not is_folder(path):
        return path
    shared = folder / SHARED_CONFIG_NAME
    return shared if is_file(shared) and _holds_block(shared) else None


def _holds_block(path: Path) -> bool:
    """Whether another program's file has a block of ours: a look at the text first, then properly."""
    try:
        with path.open("rb") as file:
            beginning = file.read(_MAX_LOOKED_AT_BYTES)
    except OSError:
        return False
    if _BLOCK_KEY.search(beginning) is None:
        return False
    from app.config_document import read_document

    return read_document(path).block is not None


def _store_in(folder: Path, identity: str) -> Path | None:
    """The store that a folder is, or the one that lies below its `knowledge/`."""
    if _is_home(folder) and identity in {"", folder.name}:
        return folder
    homes = {home.name: home for home in _homes_below(folder / STORES_NAME)}
    if identity:
        return homes.get(identity)
    if len(homes) > 1 and DEFAULT_IDENTITY not in homes:
        from app.config_origins import shown  # only for mistakes

        names = ", ".join(map(shown, sorted(homes)))
        raise UsageError(
            f"Several indexes lie in {shown(str(folder / STORES_NAME))}: {names}.",
            hint=f"Name one with {IDENTITY_VARIABLE}, or its configuration with --config.",
        )
    return homes.get(DEFAULT_IDENTITY) or next(iter(homes.values()), None)


def _homes_below(stores: Path) -> Iterator[Path]:
    try:
        with os.scandir(stores) as entries:
            folders = [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:  # not there, no folder, or not ours to read
        return
    yield from (folder for folder in folders if _is_home(folder))


def _is_home(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return is_home({entry.name for entry in entries})
    except OSError:
        return False
