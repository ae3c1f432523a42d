"""Draws docs/architecture.md from the code's own import graph, so that it cannot drift.

The page's own words stay; what stands between its markers is written anew, and so are its two pictures. What cannot be
read out of the code (what a package is for, how its modules are grouped, which stations a document passes) stands in
scripts/architecture.toml. With --check nothing is written, and it ends with 1 when the page or a picture is stale.
Counts of imports may be a tenth off by then, or every import of an error class would make it so.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import grimp
from architecture_drawing import Station, matrix, way

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/architecture.md")
PACKAGES_PICTURE = Path("docs/images/architecture-packages.svg")
WAY_PICTURE = Path("docs/images/architecture-way.svg")
READ_FIRST = 12  # as many modules as one reads on a first day
COUNT = re.compile(r"(?<=` )\d+(?=[, ])|(?<=\| )\d+(?= \|)|(?<=>)\d+(?= inside<|<)|(?<=\()\d+(?= modules\))")
REST = ("*",)  # whatever no other group has; there may be none


class Group(NamedTuple):
    name: str
    patterns: tuple[str, ...]  # of module names within the package; the first group that fits has a module


class Package(NamedTuple):
    name: str
    purpose: str
    groups: tuple[Group, ...]


class Stop(NamedTuple):
    """One station of a document's way."""

    name: str
    modules: tuple[str, ...]
    said: str


class Code(NamedTuple):
    """What the code says of itself."""

    layers: tuple[tuple[str, ...], ...]  # uppermost first; those of one layer know nothing of each other
    modules: Mapping[str, str]  # the first line of each module's docstring; silent modules (__init__) are left out
    imports: Mapping[tuple[str, str], int]  # pairs of importing and imported module, by their packages
    importers: Mapping[str, int]  # how many modules import each one
    libraries: Mapping[str, frozenset[str]]  # distribution's module: who imports it; the standard library left out


def read_code(root: Path) -> Code:
    layers = _layers(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")))
    packages = [name for layer in layers for name in layer]
    graph = grimp.build_graph(*packages, include_external_packages=True, cache_dir=None)
    pairs = sorted(
        (importer, imported)
        for importer in graph.modules
        if _package(importer) in packages
        for imported in graph.find_modules_directly_imported_by(importer)
    )
    inside = [pair for pair in pairs if _package(pair[1]) in packages]
    libraries: dict[str, set[str]] = defaultdict(set)
    for importer, imported in pairs:
        if _package(imported) not in {*packages, *sys.stdlib_module_names}:
            libraries[_package(imported)].add(importer)
    return Code(
        layers,
        dict(_docstrings(root, packages)),
        Counter((_package(importer), _package(imported)) for importer, imported in inside),
        Counter(imported for _, imported in inside),
        {name: frozenset(importers) for name, importers in sorted(libraries.items())},
    )


def read_words(path: Path) -> tuple[tuple[Package, ...], tuple[Stop, ...]]:
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    packages = tuple(
        Package(
            package["name"],
            package["purpose"],
            tuple(Group(group["name"], tuple(group["modules"])) for group in package["groups"]),
        )
        for package in read["package"]
    )
    return packages, tuple(Stop(stop["name"], tuple(stop["modules"]), stop["said"]) for stop in read["station"])


def made(root: Path) -> dict[Path, str]:
    """Every file that this script writes, with what belongs into it. Raises LookupError where words and code differ."""
    code = read_code(root)
    packages, stops = read_words(root / "scripts" / "architecture.toml")
    _agree(code, packages, stops)
    parts: dict[str, Callable[[], Iterator[str]]] = {
        "packages": lambda: _package_rows(code, packages),
        "way": lambda: _way_rows(code, stops),
        "first": lambda: _first_rows(code),
        "libraries": lambda: _library_rows(code),
        "modules": lambda: _module_rows(code, packages),
    }
    page = (root / PAGE).read_text(encoding="utf-8")
    for name, rows in parts.items():
        page = replaced(page, name, "\n".join(rows()))
    drawn = [Station(stop.name, stop.modules) for stop in stops]
    return {PAGE: page, PACKAGES_PICTURE: matrix(code.layers, code.imports), WAY_PICTURE: way(drawn)}


def replaced(page: str, name: str, text: str) -> str:
    """The page with `text` between the two markers of that name. Raises LookupError where it lacks one of them."""
    begin, end = f"<!-- made: {name} -->\n", "<!-- /made -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise LookupError(f"{PAGE} lacks the markers {begin.strip()} and {end}")
    return f"{before}{begin}\n{text}\n\n{end}{after}"


def is_stale(written: str, made_now: str) -> bool:
    """Whether they differ in more than counts that are a tenth off, or two."""
    if COUNT.sub("#", written) != COUNT.sub("#", made_now):
        return True
    pairs = zip(COUNT.findall(written), COUNT.findall(made_now), strict=True)
    return any(abs(int(old) - int(new)) > max(2, int(new) // 10) for old, new in pairs)


def _agree(code: Code, packages: Sequence[Package], stops: Sequence[Stop]) -> None:
    named = [package.name for package in packages]
    if named != [name for layer in code.layers for name in layer]:
        raise LookupError("scripts/architecture.toml names other packages, or in another order, than pyproject.toml")
    gone = [module for stop in stops for module in stop.modules if module not in code.modules]
    if gone:
        raise LookupError(f"scripts/architecture.toml names modules that are not there: {', '.join(gone)}")
    for package in packages:
        grouped = dict(_grouped(code, package))
        empty = [group.name for group in package.groups if group.patterns != REST and group.name not in grouped]
        lost = {*_of(code, package.name)}.difference(*grouped.values())
        if empty or lost:
            raise LookupError(f"scripts/architecture.toml: empty groups {empty}, modules in no group {sorted(lost)}")


def _package_rows(code: Code, packages: Sequence[Package]) -> Iterator[str]:
    yield "| package | holds | modules | imports |"
    yield "| --- | --- | ---: | --- |"
    for package in packages:
        below = [
            f"`{other.name}` {code.imports[package.name, other.name]}"
            for other in packages
            if other.name != package.name and code.imports.get((package.name, other.name))
        ]
        name = f"[`{package.name}/`](#{package.name})"
        yield f"| {name} | {package.purpose} | {len(_of(code, package.name))} | {', '.join(below) or 'nothing'} |"


def _way_rows(code: Code, stops: Sequence[Stop]) -> Iterator[str]:
    for number, stop in enumerate(stops, start=1):
        yield f"{number}. **{stop.name}.** {stop.said}"
        for module in stop.modules:
            yield f"   - {_link(module)}: {code.modules[module]}"


def _first_rows(code: Code) -> Iterator[str]:
    most = sorted((-count, module) for module, count in code.importers.items() if module in code.modules)
    yield "| module | imported by | what it is for |"
    yield "| --- | ---: | --- |"
    for count, module in most[:READ_FIRST]:
        yield f"| {_link(module)} | {-count} | {_cell(code.modules[module])} |"


def _library_rows(code: Code) -> Iterator[str]:
    yield "| library | is known to |"
    yield "| --- | --- |"
    for library, importers in code.libraries.items():
        by_package = Counter(_package(importer) for importer in importers)
        told = [
            _link(next(module for module in importers if _package(module) == package))
            if count == 1
            else f"`{package}` ({count} modules)"
            for package, count in sorted(by_package.items())
        ]
        yield f"| `{library}` | {', '.join(told)} |"


def _module_rows(code: Code, packages: Sequence[Package]) -> Iterator[str]:
    for package in packages:
        yield f"### {package.name}\n"
        yield f"{package.purpose[0].upper()}{package.purpose[1:]}.\n"
        grouped = list(_grouped(code, package))
        yield "| group | modules |"
        yield "| --- | --- |"
        for name, modules in grouped:
            yield f"| {name} | {', '.join(_link(module, package.name) for module in modules)} |"
        yield "\n<details><summary>What each is for</summary>\n"
        for _, modules in grouped:
            for module in modules:
                yield f"- `{module}`: {code.modules[module]}"
        yield "\n</details>\n"


def _grouped(code: Code, package: Package) -> Iterator[tuple[str, list[str]]]:
    left = _of(code, package.name)
    for group in package.groups:
        mine = [module for module in left if any(fnmatchcase(_within(module), pattern) for pattern in group.patterns)]
        left = [module for module in left if module not in mine]
        if mine:
            yield group.name, mine


def _of(code: Code, package: str) -> list[str]:
    return [module for module in code.modules if _package(module) == package]


def _layers(pyproject: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    contracts = pyproject["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return tuple(tuple(name.strip() for name in layer.split("|")) for layer in layers)


def _docstrings(root: Path, packages: Sequence[str]) -> Iterator[tuple[str, str]]:
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            if said is not None:
                parts = path.relative_to(root).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                yield name, " ".join(said.split("\n\n")[0].split())


def _package(module: str) -> str:
    return module.partition(".")[0]


def _within(module: str) -> str:
    return module.partition(".")[2]


def _link(module: str, package: str = "") -> str:
    """To the module's file; within a package's own table its name alone."""
    path = Path(*module.split("."))
    file = path / "__init__.py" if (ROOT / path).is_dir() else path.with_suffix(".py")
    return f"[`{_within(module) if package else module}`](../{file.as_posix()})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when something is stale")
    only_look = parser.parse_args().check
    try:
        files = made(ROOT)
    except LookupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if only_look:
        stale = [path for path, text in files.items() if is_stale(_text(ROOT / path), text)]
        sys.stderr.writelines(f"{path} is stale: run `make architecture`\n" for path in stale)
        return 1 if stale else 0
    for path, text in files.items():
        (ROOT / path).write_text(text, encoding="utf-8")
    return 0


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
