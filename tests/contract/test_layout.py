"""What the checkout looks like: the packages and their borders, no machine's traces, no overlong files."""

import ast
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 400
DISTRIBUTION = "knowledge-service"
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
FOLDERS = (*PACKAGES, "tests", "bench", "scripts", "docs", ".ci")
ROOT_FILES = ("*.md", "*.toml", "*.yaml", "*.yml", "*.lock", "Makefile", "LICENSE", "Dockerfile", ".gitignore")
# put together here, so that this file does not hold what it looks for
TRACES = {
    "a path of a machine": re.compile(
        r"(?<![\w.~/$}>-])/(?:"
        + "|".join(("work", "root", "opt", r"home/(?!me\b|user\b|local\b)\w+", r"Users/\w+"))
        + r")(?![\w-])"
    ),
    "a path out of the checkout": re.compile(r"\.\./" + "shared"),
    "an address of a package registry": re.compile(
        "|".join((r"pypi\." + "org", "python" + "hosted", r"https?://\S+/simple\b", "--(extra-)?index" + "-url"))
    ),
}
# the option that keeps a registry's address out of the lock
ALLOWED = ("--no-emit-index" + "-url",)


def tracked() -> Iterator[Path]:
    """The files that are kept under version control, as far as their places tell."""
    for pattern in ROOT_FILES:
        yield from ROOT.glob(pattern)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            relative = path.relative_to(ROOT).parts
            if path.is_file() and "__pycache__" not in relative and relative[:2] != ("bench", "results"):
                yield path


def sources() -> Iterator[Path]:
    return (path for path in tracked() if path.suffix == ".py")


def test_the_packages_are_the_same_everywhere() -> None:
    tool = PYPROJECT["tool"]
    on_disk = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench", "tests", "scripts"}
    assert set(PACKAGES) == on_disk
    assert set(tool["coverage"]["run"]["source_pkgs"]) == on_disk
    assert set(tool["importlinter"]["root_packages"]) == on_disk
    assert set(tool["mypy"]["packages"]) - {"tests", "bench"} == on_disk


def test_every_package_has_its_layer() -> None:
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = {name.strip("() ") for layer in layers for name in layer.replace(":", "|").split("|")}
    assert named == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_distribution_offers_a_package_of_ours(package: str) -> None:
    """The names are plain words: this is an application with its own environment, and it notices a guest."""
    offered_by = set(importlib.metadata.packages_distributions().get(package, []))
    assert offered_by <= {DISTRIBUTION}, f"{package} is offered by {sorted(offered_by)}"
    assert package not in sys.stdlib_module_names
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    assert Path(found.origin).resolve() == ROOT / package / "__init__.py"


def test_import_contracts() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--config", "pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_carries_the_schema() -> None:
    """Hatchling takes every file of a listed package that .gitignore does not name."""
    assert all((ROOT / "store" / name).is_file() for name in ("schema.sql", "vectors.sql"))
    assert not any(
        line.strip().endswith(".sql") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    )


@pytest.mark.parametrize("kind", TRACES)
def test_no_traces_of_a_machine(kind: str) -> None:
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), start=1):
            for allowed in ALLOWED:
                line = line.replace(allowed, "")
            if TRACES[kind].search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, f"{kind}:\n" + "\n".join(found)


def test_the_traces_are_seen() -> None:
    assert TRACES["a path of a machine"].search("see /" + "root/notes")
    assert TRACES["a path of a machine"].search("'/" + "home/ann/notes'")
    assert not TRACES["a path of a machine"].search("docs/" + "root/notes and <root>/" + "work")
    assert TRACES["an address of a package registry"].search("https://mirror.example/" + "simple")


def test_no_file_is_overlong() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_bytes().splitlines()) for path in sources()}
    assert not {str(path): length for path, length in lengths.items() if length > MAX_LINES}


def test_every_module_says_what_it_is_for() -> None:
    """The packages' own __init__ files are empty; every other module begins with a docstring."""
    silent = []
    for path in sources():
        if "tests" in path.relative_to(ROOT).parts:
            continue
        text = path.read_text(encoding="utf-8")
        if text.strip() and ast.get_docstring(ast.parse(text)) is None:
            silent.append(str(path.relative_to(ROOT)))
    assert not silent
