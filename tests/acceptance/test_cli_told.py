"""`status --exit-code`, `notify test`, and the notify block of a configuration (issue 5, point 9)."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write_files


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    write_files(tmp_path / "docs", {"a.md": "# Alpha\n", "b.md": "# Beta\n"})
    return CommandLine(tmp_path)


def test_a_verdict_stands_first_and_decides_the_exit_status(command: CommandLine) -> None:
    """0 fine, 1 warning, 2 critical; an index that is not there is critical, not 10."""
    ended = command("status", "--exit-code")
    assert (ended.status, ended.out.split(":")[0]) == (2, "CRITICAL")
    assert command("status", "--exit-code", "--json").value["verdict"]["findings"][0]["code"] == "index_not_built"
    command("index", "docs")
    ended = command("status", "--exit-code")
    assert (ended.status, ended.out.splitlines()[0]) == (0, "OK: nothing to look at")
    assert "tier: lexical" in ended.out
    shutil.rmtree(command.cwd / "docs")
    assert command("index").status == 3
    ended = command("status", "--exit-code")
    assert ended.status == 1
    assert ended.out.startswith("WARNING: the last run left something out, the folder of docs is not there\n")
    value = command("status", "--exit-code", "--json").value
    assert value["verdict"]["level"] == "warning"
    assert [finding["code"] for finding in value["verdict"]["findings"]] == ["run_partial", "root_missing"]
    assert value["status"] == "complete"


def test_a_configuration_that_cannot_be_read_is_critical(command: CommandLine) -> None:
    (command.cwd / "knowledge.yaml").write_text("knowledge: {nonsense: 1}\n")
    ended = command("status", "--exit-code")
    assert (ended.status, ended.out.split(":")[0]) == (2, "CRITICAL")
    assert "nonsense" in ended.err


def notify(command: CommandLine, block: str) -> Path:
    path = command.cwd / "knowledge.yaml"
    path.write_text(f"knowledge:\n  paths: [docs]\n  notify: {block}\n")
    return path


def test_a_test_message_is_delivered_and_said(command: CommandLine) -> None:
    script = command.cwd / "told.py"
    script.write_text("import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())\n")
    got = command.cwd / "got.json"
    path = notify(command, json.dumps({"command": [sys.executable, str(script), str(got)]}))
    ended = command("notify", "test", "--config", str(path))
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == f"delivered to {sys.executable}: ended with 0\n"
    message = json.loads(got.read_text())
    assert (message["event"], message["base"]) == ("test", "knowledge")
    assert "test" in message["text"]


def test_a_message_that_does_not_arrive_is_said(command: CommandLine) -> None:
    path = notify(command, "{url_env: HOOK}")
    ended = command("notify", "test", "--config", str(path))
    assert ended.status == 4
    assert "the variable HOOK is not set" in ended.err
    ended = command("notify", "test", "--config", str(path), "--json", HOOK="http://hooks.example.org/secret")
    assert (ended.status, ended.value["delivered"]) == (4, False)
    assert "secret" not in ended.out


def test_without_a_block_nobody_is_told(command: CommandLine) -> None:
    ended = command("notify", "test")
    assert ended.status == 2
    assert "no notify block" in ended.err


def test_a_configuration_that_was_found_is_trusted_before_it_runs_a_program(command: CommandLine) -> None:
    notify(command, "{command: [/bin/true]}")
    ended = command("notify", "test")
    assert ended.status == 2
    assert "runs the program /bin/true (notify.command)" in ended.err


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("{}", "has neither url_env nor command"),
        ("{url_env: HOOK, command: [a]}", "has both url_env and command"),
        ("{url_env: 'https://hooks.example.org/xyz'}", "must be the NAME of an environment variable"),
        ("{url_env: HOOK, on: [everything]}", "must be one of failed, partial"),
        ("{url_env: HOOK, on: []}", "nothing would be told"),
        ("{url_env: HOOK, timeout: 1h}", "must be at most"),
        ("{command: ['']}", "the first of them a program"),
        ("{command: a b c}", "must be a list"),
        ("{url_env: HOOK, insecure_hosts: ['*']}", "must be the exact name of a host"),
    ],
)
def test_what_is_wrong_with_the_block_is_said(command: CommandLine, block: str, words: str) -> None:
    ended = command("config", "check", "--config", str(notify(command, block)))
    assert ended.status == 2
    assert words in ended.err
    assert "xyz" not in ended.err
