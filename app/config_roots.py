"""The roots of a configuration: where they lie, and which places are refused."""

import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from app.config_origins import Problem, Sources, has_control_characters, shown
from app.config_schema import PathBlock
from app.places import absolute, exists, is_folder, real
from domain.settings import RootSettings

_LINK_FIELDS = ("path", "absolute_path", "start_line", "heading_anchor")
_REFUSED_LINK_SCHEMES = ("javascript:", "data:", "vbscript:")  # a link is shown to people who click it


class Places(Struct, frozen=True):
    """What relative paths are relative to: the file's folder for the file, else the working directory."""

    cwd: Path
    folder: Path | None
    user_home: str

    def absolute(self, written: str, *, from_file: bool) -> Path:
        below = self.folder if from_file and self.folder is not None else self.cwd
        return absolute(written, below=below, user_home=self.user_home)


def roots_of(
    blocks: Sequence[str | PathBlock], sources: Sources, places: Places
) -> tuple[tuple[RootSettings, ...], list[Problem]]:
    """The roots and what is wrong in the words alone; the disk is asked by `place_problems`."""
    roots: list[RootSettings] = []
    problems: list[Problem] = []
    for index, entry in enumerate(blocks):
        key = f"paths[{index}]"
        block = PathBlock(path=entry) if isinstance(entry, str) else entry
        problems += word_problems(block, key)
        path = places.absolute(block.path, from_file=sources.is_from_file(key))
        roots.append(_root(block, path))
    return tuple(roots), problems + _repeated_names(roots)


def word_problems(block: PathBlock, key: str) -> Iterator[Problem]:
    """What can be wrong with an entry without a look at the disk."""
    if not block.path.strip() or has_control_characters(block.path):
        yield Problem(f"{key}.path", "must be the path of a folder")
    if block.name and (block.name in {".", ".."} or "/" in block.name or has_control_characters(block.name)):
        yield Problem(f"{key}.name", "must not hold / or control characters, nor be . or ..")
    if not all(extension.strip(". ") and not has_control_characters(extension) for extension in block.extensions):
        yield Problem(f"{key}.extensions", "must be endings such as .md")
    if any(not name or "/" in name for name in block.exclude_dirs):
        yield Problem(f"{key}.exclude_dirs", "must be names of folders, without /", "Use exclude for paths.")
    if not all(pattern.strip() for pattern in (*block.include, *block.exclude)):
        yield Problem(key, "include and exclude must not hold an empty pattern")
    yield from _link_problems(block.link, f"{key}.link")


def place_problems(roots: Sequence[RootSettings], home: Path, absent: Mapping[int, str]) -> Iterator[Problem]:
    """What is wrong with where the roots lie; `absent` are those that are no folder on the disk."""
    real_home = real(home)
    real_paths = [real(root.path) for root in roots]
    if real_home == Path(real_home.anchor):
        yield Problem("directory", "must not be the whole file system", "Leave it empty, or name a folder.")
    overlaps = _first_overlaps(real_paths)
    for index, (root, path) in enumerate(zip(roots, real_paths, strict=True)):
        key, words = f"paths[{index}]", shown(str(root.path))
        if path == Path(path.anchor):
            yield Problem(key, f"{words} is the whole file system", "Name the folders that hold the texts.")
        elif path == real_home or path.is_relative_to(real_home):
            yield Problem(key, f"{words} lies in the index's own directory {shown(str(home))}")
        elif index in absent:
            yield Problem(key, f"{words} {absent[index]}", "Check the path; relative ones start at the file's folder.")
        if (other := overlaps.get(index)) is not None:
            text = f"{words} overlaps with {shown(str(roots[other].path))} (paths[{other}])"
            yield Problem(key, text, "Keep one of them; leave parts out with exclude.")


def _first_overlaps(paths: Sequence[Path]) -> dict[int, int]:
    """Of each path that is, holds or lies in one before it: the first such. No pair is compared: of a few thousand
    there are millions."""
    at: dict[Path, int] = {}
    above: dict[Path, int] = {}  # of each folder on the way to a path, the first path below it
    found: dict[int, int] = {}
    for index, path in enumerate(paths):
        others = [at[one] for one in (path, *path.parents) if one in at]
        if path in above:
            others.append(above[path])
        if others:
            found[index] = min(others)
        at.setdefault(path, index)
        for parent in path.parents:
            above.setdefault(parent, index)
    return found


def absent_roots(roots: Sequence[RootSettings]) -> dict[int, str]:
    """Which roots (by position) are no folder now, and the words for it."""
    absent: dict[int, str] = {}
    for index, root in enumerate(roots):
        if is_folder(root.path):
            continue
        there = "is a file; name its folder and the file as include"
        absent[index] = there if exists(root.path) else "does not exist or may not be looked at"
    return absent


def _root(block: PathBlock, path: Path) -> RootSettings:
    extensions = (f".{extension.strip().lstrip('.').lower()}" for extension in block.extensions)
    return RootSettings(
        path=path,
        name=block.name,
        role=block.role,
        description=block.description,
        include=block.include,
        exclude=block.exclude,
        exclude_dirs=block.exclude_dirs,
        extensions=tuple(dict.fromkeys(extensions)),
        watch=block.watch,
        link=block.link,
        held_removals=block.held_removals,
    )


def _repeated_names(roots: Sequence[RootSettings]) -> list[Problem]:
    """Only names that were given: those of folders are made unique with _N when they are recorded."""
    first: dict[str, int] = {}
    problems = []
    for index, root in enumerate(roots):
        if root.name and root.name in first:
            text = f"the name {shown(root.name)} is taken by paths[{first[root.name]}]"
            problems.append(Problem(f"paths[{index}].name", text, "Give each root a name of its own."))
        first.setdefault(root.name, index)
    return problems


def _link_problems(link: str, key: str) -> Iterator[Problem]:
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(link) if name is not None]
    except ValueError:
        fields = ["{"]
    if unknown := [name for name in fields if name not in _LINK_FIELDS]:
        known = ", ".join(f"{{{name}}}" for name in _LINK_FIELDS)
        yield Problem(key, f"holds the unknown placeholder {{{shown(unknown[0])}}}; known are {known}")
    if link.strip().lower().startswith(_REFUSED_LINK_SCHEMES) or has_control_characters(link):
        yield Problem(key, "must be an address that is safe to click")
