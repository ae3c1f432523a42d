"""The installed command where something is wrong: a code, a status, words, a hint; never a traceback."""

import fcntl
import json
import subprocess
from pathlib import Path

import pytest

from cli.version import VERSION
from tests.support.command_line import COMMAND, CommandLine, Ended, write_files


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


def assert_told(ended: Ended, status: int, *words: str) -> None:
    assert ended.status == status, ended.err
    assert "Traceback" not in ended.err
    for told in words:
        assert told in ended.err


@pytest.mark.parametrize("verb", [["index", "docs"], ["rm", "docs/a.md"], ["rebuild"], ["compact"], ["upgrade"]])
def test_no_command_makes_a_lost_record_anew(command: CommandLine, verb: list[str]) -> None:
    """S2-21: a state.db of its own making would be of another base, and hide what has happened."""
    write_files(command.cwd, {"docs/a.md": "# A\n\nwords\n"})
    assert command("index", "docs").status == 0
    home = command.cwd / "knowledge" / "default"
    for path in home.glob("state.db*"):
        path.unlink()
    for _ in range(2):
        assert_told(command(*verb), 10, "state.db, the record of its folders and runs, is not there", "restore --force")
    assert not list(home.glob("state.db*"))
    assert command("reset", "--force").status == 0
    assert command("index", "docs").status == 0


@pytest.mark.parametrize("words", [8, 5000], ids=["less than a buffer", "more"])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_where_the_output_cannot_be_written(command: CommandLine, words: int, form: tuple[str, ...]) -> None:
    """R37: 14, and told on standard error, whatever was to be written."""
    write_files(command.cwd, {"docs/a.md": " ".join(f"word{number:05}" for number in range(words))})
    assert command("index", "docs").status == 0
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "words", *form], cwd=command.cwd, env=command.environment({}), stdout=full,
            stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip
    assert (done.returncode, done.stderr.decode()) == (
        14, "error: no space left to write to\nhint: free some space, then run the command again\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("index", "docs"), 0), (("search", "word"), 0), (("show", "docs/none.md"), 4), (("index", "nowhere"), 2),
        (("mcp", "config", "claude-code"), 0), (("words", "--bogus"), 2),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_where_nobody_takes_what_is_told(command: CommandLine, arguments: tuple[str, ...], status: int) -> None:
    """R37: the status is the command's own, also where notes and errors find no room."""
    write_files(command.cwd, {"docs/a.md": "one word"})
    assert command("index", "docs").status == 0
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=command.cwd, env=command.environment({}), stdout=subprocess.PIPE,
            stderr=full, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == status
    assert done.stdout == b"" if status else done.stdout != b""


VERBS_THAT_NEED_AN_INDEX = [
    ["search", "x"], ["show", "docs/a.md"], ["sources"], ["stats"], ["status"], ["rm", "docs/a.md"],
    ["reset", "--force"], ["rebuild"], ["verify"], ["compact"],
    ["rm", "docs/a.md", "--purge"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", VERBS_THAT_NEED_AN_INDEX, ids=lambda arguments: arguments[0])
def test_without_an_index_the_places_are_named(command: CommandLine, arguments: list[str]) -> None:
    ended = command(*arguments)
    assert_told(ended, 10, str(command.cwd), "hint: build it: `knowledge index YOUR_FOLDER`")
    as_json = command(*arguments, "--json")
    assert as_json.status == 10
    assert as_json.value["error"]["code"] == "index_not_built"
    assert not list(command.cwd.iterdir())


def test_search_without_an_index_is_the_same_object(command: CommandLine) -> None:
    value = command("search", "x", "--json").value
    assert (value["status"], value["results"], value["index"]) == ("index_not_built", [], None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serch"], "did you mean `knowledge search`?"),
        (["index", "--reindx"], "did you mean --reindex?"),
        (["index", "--workers", "-1"], "from 0 up"),
        (["index"], "name a folder"),
        (["index", "/does/not/exist"], "there is no file or folder"),
        (["index", "/"], "the root of the file system"),
        (["show"], "CITATION|PATH is missing"),
        (["status", "--nope"], "there is no option '--nope'"),
        (["status", "now"], "'now' is one word too many"),
        (["verify", "--nope"], "there is no option '--nope'"),
        (["compact", "--nope"], "No such option: --nope"),
        (["--config"], "--config needs a value"),
        (["--config", "nowhere.yaml", "status"], "nowhere.yaml"),
        (["rm"], "nothing to remove"),
        (["search", "--top-k", "many", "x"], "whole number"),
    ],
)
def test_usage(command: CommandLine, arguments: list[str], words: str) -> None:
    assert_told(command(*arguments), 2, "error: ", words)
    value = json.loads(command(*arguments, "--json").out) if arguments != ["--config"] else {"error": {"code": "usage"}}
    assert value["error"]["code"] in ("usage", "configuration")


def test_a_second_writer_is_told_who_holds_the_lock(command: CommandLine) -> None:
    write_files(command.cwd, {"docs/a.md": "alpha\n"})
    assert command("index", "docs").status == 0
    lock = command.cwd / "knowledge" / "default" / "knowledge.lock"
    with lock.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps({"pid": 4711, "command": "knowledge index", "since": 0}).encode())
        file.flush()
        assert_told(command("index"), 11, "`knowledge index`, process 4711")
        assert "process 4711" in command("status").out
        assert command("search", "alpha").status == 0


def test_reset_without_force_names_what_would_go(command: CommandLine) -> None:
    write_files(command.cwd, {"docs/a.md": "alpha\n"})
    assert command("index", "docs").status == 0
    assert_told(command("reset"), 4, "1 document with 1 chunk", "--force")
    assert command("reset", "--force").status == 0
    assert "note: " in command("search", "alpha").out
    assert command("index").status == 0
    assert command("verify", "--deep").status == 0
    assert command("rebuild").status == 0
    assert command("doctor").status == 0
    removed = command("rm", "docs/a.md", "docs/none.md")
    assert removed.status == 4
    assert "1 of 2 removed, 1 document" in removed.out
    assert command("rm", "--root", "docs", "--json").value["root"]["name"] == "docs"


def test_a_damaged_store_is_integrity(command: CommandLine) -> None:
    write_files(command.cwd, {"docs/a.md": "alpha\n"})
    assert command("index", "docs").status == 0
    (command.cwd / "knowledge" / "default" / "knowledge.db").write_bytes(b"no database" * 1000)
    assert_told(command("search", "alpha"), 13, "hint: ")


def test_a_base_that_is_switched_off_says_how_to_enable_it(command: CommandLine) -> None:
    write_files(command.cwd, {"knowledge.yaml": "knowledge:\n  enabled: false\n"})
    assert_told(command("search", "x"), 2, "enabled: true")
    assert command("search", "x", "--json").value["error"]["code"] == "disabled"


def test_config_is_read_wherever_it_stands(command: CommandLine, tmp_path: Path) -> None:
    write_files(tmp_path, {"sub/docs/a.md": "# A\n\nalpha\n", "sub/kb.yaml": "knowledge:\n  paths: [docs]\n"})
    assert command("--config", "sub/kb.yaml", "index").status == 0
    assert command("search", "alpha", "--config", "sub/kb.yaml", "--json").value["results"]
    assert command("--config=sub/kb.yaml", "search", "alpha", "--json").value["results"]
    assert command("search", "alpha", "--json", KNOWLEDGE_CONFIG="sub/kb.yaml").value["results"]
    assert command("--config", "sub/kb.yaml").status == 0
    assert command("--config", "sub/kb.yaml", "config", "check").status == 0
    assert_told(command("search", "alpha"), 10)


def test_version_and_help_need_nothing(command: CommandLine) -> None:
    assert command("--version").out == f"knowledge {VERSION}\n"
    assert command("--help").status == 0
    assert command("config").status == 0


def test_version_is_the_one_of_the_project() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{VERSION}"\n' in project


def test_debug_shows_where_it_comes_from(command: CommandLine) -> None:
    assert "Traceback" in command("--debug", "stats").err
