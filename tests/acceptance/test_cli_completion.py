"""The scripts of `knowledge completion`, in the shells themselves (issue 6, point 5)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.completion_scripts import SCRIPTS
from cli.completion_table import completed_verbs, group_summaries
from store.run_port import RunRecord
from store.state import SqliteStateStore
from store.state_port import RootRecord
from tests.support.bases import settings_of
from tests.support.command_line import CommandLine

SHELLS = tuple(SCRIPTS)
HOSTILE_ROOTS = ("$(touch owned)", "`touch owned`", "a;touch owned", "it's", "two words", "--all")
_BASH = 'source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); _knowledge; printf "%s\\n" "${COMPREPLY[@]}"'
_ZSH = """
compdef() { : }
compset() { : }
compadd() { shift; print -rl -- "$@" }
_files() { print -r -- FILES }
_describe() { local row; for row in "${(@P)@[-1]}"; do print -r -- "${row%%:*}"; done }
source "$1"
words=("${@[2,-1]}")
CURRENT=$#words
_knowledge
"""
_FISH = "source $argv[1]; complete -C (string join ' ' -- (string escape -- $argv[2..-2]) $argv[-1])"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not on this machine")
    return name


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, verbs = tmp_path_factory.mktemp("scripts"), completed_verbs()
    made = {}
    for name, script in SCRIPTS.items():
        made[name] = folder / f"knowledge.{name}"
        made[name].write_text(script(verbs, group_summaries()), encoding="utf-8")
    return made


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The command, where there is a base with roots of every name, and two runs."""
    path = tmp_path / "bin" / "knowledge"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m cli.main "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    home = settings_of(tmp_path / "knowledge" / "default").home
    home.mkdir(parents=True)
    state = SqliteStateStore(home / "state.db")
    for number, name in enumerate(("docs", "handbook", *HOSTILE_ROOTS, "unseen\x1b[2J")):
        state.add_root(RootRecord(name, f"/texts/{number}"))
    for _ in range(2):
        run = state.begin_run(RunRecord(0, 0, "index", "cli", ("docs",), "walking", 1, None, {}), floor_generation=0)
        state.end_run(run.id, "done", {}, "")
    state.close()
    (tmp_path / "knowledge" / "default" / "knowledge.lock").touch()
    return path


def completed(shell: str, script: Path, words: list[str], folder: Path) -> list[str]:
    """What is offered for the last of the words, `knowledge` being the first."""
    start = {"bash": ["bash", "-c", _BASH, "-"], "zsh": ["zsh", "-f", "-c", _ZSH, "-"], "fish": ["fish", "-c", _FISH]}
    done = subprocess.run(
        [*start[shell], str(script), *words],
        cwd=folder,
        env={**CommandLine(folder).environment({}), "XDG_CONFIG_HOME": str(folder / "config")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = [line.partition("\t")[0] for line in done.stdout.splitlines() if line]
    return found if shell == "bash" else [line for line in found if line.startswith(words[-1])]


TYPED = {
    "sear": ["search"],
    "index --dry": ["--dry-run"],
    "search kernel --top": ["--top-k"],
    "search --mode ": ["auto", "lexical", "vector", "hybrid"],
    "vocab --sort ": ["count", "word"],
    "match --sort p": ["path"],
    "runs ap": ["approve"],
    "config ": ["init", "check", "show", "trust"],
    "runs list --li": ["--limit"],
    "eval run --col": ["--collection"],
    "worker --log-format ": ["console", "json"],
    "--config x.yaml sta": ["status", "stats"],
    "search --top-k 3 --ful": ["--full"],
    "completion ": ["bash", "zsh", "fish"],
    "--ver": ["--version"],
}


@pytest.mark.parametrize("typed", TYPED)
def test_verbs_and_options_are_in_the_script(shell: str, typed: str, scripts: dict[str, Path], tmp_path: Path) -> None:
    """No process is begun for them: there is no such program."""
    words = [str(tmp_path / "nowhere" / "knowledge"), *typed.split(" ")]
    assert sorted(completed(shell, scripts[shell], words, tmp_path)) == sorted(TYPED[typed])


def test_every_verb_is_offered(shell: str, scripts: dict[str, Path], tmp_path: Path) -> None:
    names = {verb.names[0].split()[0] for verb in completed_verbs()}
    assert set(completed(shell, scripts[shell], ["knowledge", ""], tmp_path)) == names


def test_roots_and_runs_are_asked_for(shell: str, scripts: dict[str, Path], program: Path, tmp_path: Path) -> None:
    def offered(*words: str) -> list[str]:
        return completed(shell, scripts[shell], [str(program), *words], tmp_path)

    assert offered("search", "--root", "hand") == ["handbook"]
    assert offered("rm", "--root", "doc") == ["docs"]
    assert sorted(offered("runs", "show", "")) == ["1", "2"]


def test_a_name_is_never_run(shell: str, scripts: dict[str, Path], program: Path, tmp_path: Path) -> None:
    """T11: a folder may be called as it likes; its name is quoted, and what cannot be typed is not offered."""
    found = completed(shell, scripts[shell], [str(program), "search", "--root", ""], tmp_path)
    assert len(found) == 2 + len(HOSTILE_ROOTS)
    if shell == "bash":
        assert r"\$\(touch\ owned\)" in found
        assert r"two\ words" in found
    assert not (tmp_path / "owned").exists()
    assert not any("\x1b" in name for name in found)


def test_behind_two_dashes_no_option_is_offered(shell: str, scripts: dict[str, Path], tmp_path: Path) -> None:
    if shell == "fish":
        pytest.skip("fish offers them all the same")
    assert completed(shell, scripts[shell], ["knowledge", "search", "--", "--to"], tmp_path) == []


def test_the_verb_prints_them(tmp_path: Path, program: Path) -> None:
    knowledge = CommandLine(tmp_path)
    for name, script in SCRIPTS.items():
        printed = knowledge("completion", name)
        assert (printed.status, printed.err) == (0, "")
        assert printed.out == script(completed_verbs(), group_summaries())
    assert knowledge("completion", "runs").out == "2\tindex, done\n1\tindex, done\n"
    assert set(knowledge("completion", "roots").out.splitlines()) == {"docs", "handbook", *HOSTILE_ROOTS}
    assert knowledge("completion", "csh").status == 2
    assert knowledge("completion").status == 2
    assert knowledge("completion", "roots", cwd=tmp_path / "bin").status == 0
