"""The set-up: what preflight says of a machine, what the lock must hold, what the Makefile picks."""

import ast
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIN = "thing==1.2 \\\n    --hash=sha256:" + "0" * 64 + "\n"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


preflight = script("preflight")
check_lock = script("check_lock")


class Machine:
    """Changes what preflight sees of this one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch

    def python(self, *version: int) -> None:
        self.patch.setattr(sys, "version_info", (*version, 0, "final", 0))
        self.patch.setattr(platform, "python_version", lambda: ".".join(map(str, version)))

    def runs_on(self, system: str, machine: str, libc: tuple[str, str] = ("glibc", "2.36")) -> None:
        self.patch.setattr(sys, "platform", system)
        self.patch.setattr(platform, "machine", lambda: machine)
        self.patch.setattr(platform, "libc_ver", lambda: libc)

    def lacks(self, module: str) -> None:
        find_spec = importlib.util.find_spec
        self.patch.setattr(importlib.util, "find_spec", lambda name: None if name == module else find_spec(name))

    def cannot_import(self, module: str) -> None:
        self.patch.setitem(sys.modules, module, None)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


LACKS: dict[str, tuple[Callable[[Machine], None], str]] = {
    "an old Python": (lambda m: m.python(3, 9, 2), "Python 3.11 or newer is needed"),
    "a Python without wheels yet": (lambda m: m.python(3, 99, 0), "use Python 3.11 to 3.14"),
    "no ensurepip": (lambda m: m.lacks("ensurepip"), "-venv"),
    "no venv": (lambda m: m.lacks("venv"), "-venv"),
    "Windows": (lambda m: m.runs_on("win32", "AMD64"), "WSL"),
    "a rare processor": (lambda m: m.runs_on("linux", "riscv64"), "no wheels for linux riscv64"),
    "no glibc": (lambda m: m.runs_on("linux", "x86_64", ("", "")), "Alpine"),
    "an old glibc": (lambda m: m.runs_on("linux", "x86_64", ("glibc", "2.17")), "this is 2.17"),
    "32 bits": (lambda m: m.patch.setattr(sys, "maxsize", 2**31 - 1), "64-bit"),
    "no ssl": (lambda m: m.cannot_import("ssl"), "without its ssl module"),
}


@pytest.mark.parametrize("what", LACKS)
def test_what_is_missing_is_one_line(what: str, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    take_away, said = LACKS[what]
    take_away(machine)
    assert preflight.main() == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("set-up: ")
    assert said in printed.err


def test_an_old_sqlite_counts_only_where_there_is_no_other(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    machine.runs_on("linux", "x86_64")
    assert preflight.missing() == ""
    machine.runs_on("linux", "aarch64")
    assert "SQLite 3.40 or newer is needed" in preflight.missing()


def test_a_machine_that_has_all_is_told_nothing() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "preflight.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_old_python_can_read_preflight() -> None:
    ast.parse((ROOT / "scripts" / "preflight.py").read_text(encoding="utf-8"), feature_version=(3, 6))


def test_make_stops_at_what_is_missing(tmp_path: Path) -> None:
    """In a folder with a space, with a Python that says it is old: one line, and nothing is made."""
    checkout = tmp_path / "a checkout"
    shutil.copytree(ROOT / "scripts", checkout / "scripts")
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout / name)
    old = tmp_path / "an old python"
    code = "import runpy, sys; sys.version_info = (3, 9, 2); runpy.run_path(sys.argv[1], run_name='__main__')"
    old.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$@"\n')
    old.chmod(0o755)
    done = subprocess.run(["make", "test", f"PYTHON={old}"], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.count("set-up: Python 3.11 or newer is needed") == 1
    assert not (checkout / ".venv").exists()


def test_make_says_when_there_is_no_python() -> None:
    done = subprocess.run(
        ["make", "--always-make", "setup", "PYTHON=python-that-is-nowhere"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.startswith("set-up: there is no python-that-is-nowhere here: install Python 3.11 or newer")


@pytest.mark.skipif(not (ROOT / ".venv/bin/knowledge").exists(), reason="the environment lies elsewhere")
def test_the_demo_ends_with_the_command_for_a_folder_of_ones_own() -> None:
    done = subprocess.run(["sh", "scripts/demo.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown, _, ending = done.stdout.partition("That index was a throwaway.")
    assert "$ knowledge index docs/" in shown
    words, _, meaning = shown.partition("Now in words that stand nowhere in docs/:")
    hybrid = "tier: hybrid (FTS5 + vectors, RRF) - model=wordllama-l2-supercat-256 dim=256"
    assert words.count(hybrid) == 2  # of the run, and of the first answer
    assert "1. docs/how-to.md#" in words and "How to > Move or remove an index" in words
    assert hybrid in meaning and "the nearest by meaning only" in meaning
    assert "1. docs/how-to.md#" in meaning and "How to > Leave files out" in meaning
    assert "DEGRADED" not in shown
    assert ".venv/bin/knowledge index ~/notes" in ending
    assert "export PATH=" in ending


def test_the_lock_is_current() -> None:
    pyproject, lock = ((ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "requirements.lock"))
    assert check_lock.problems(pyproject, lock) == []


@pytest.mark.parametrize(
    ("requirement", "lock", "said"),
    [
        ("thing>=1.2", PIN, None),
        ("Th_ing[extra]>=1,<2; os_name == 'posix'", PIN.replace("thing", "th-ing"), None),
        ("other", PIN, "other is not in requirements.lock"),
        ("thing>=1.3,<2", PIN, "thing 1.2 is not >=1.3"),
        ("thing", "thing==1.2 \\\nother==1 \\\n", "no hash"),
        ("thing", "--find-links elsewhere\n" + PIN, "neither a pin nor a hash"),
        ("thing", PIN + "other @ file:elsewhere\n", "neither a pin nor a hash"),
    ],
)
def test_a_stale_lock_is_told(requirement: str, lock: str, said: str | None) -> None:
    pyproject = f'[project]\ndependencies = ["{requirement}"]\n'
    found = check_lock.problems(pyproject, lock)
    assert (found == []) if said is None else any(said in line for line in found)


def test_ci_calls_the_test_command_and_nothing_else() -> None:
    ci = ROOT / ".ci" / "run"
    assert os.access(ci, os.X_OK)
    code = [
        line for line in ci.read_text(encoding="utf-8").splitlines() if line and not line.startswith(("#", "set", "cd"))
    ]
    assert code == ["exec make test"]
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
