"""`knowledge watch` in a process of its own: what it says, what it indexes, how it ends (S0-71..75, R37)."""

import json
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from domain.layout import BaseLayout
from store.lock import WriteLock
from tests.support.command_line import CommandLine, write_files
from tests.support.waiting import eventually


class Watch:
    """A watch under way, and the lines that it has written."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.decode())

    def events(self, kind: str = "pass") -> list[dict[str, Any]]:
        return [event for line in list(self.lines) if (event := json.loads(line))["event"] == kind]

    def outcome(self, name: str) -> int:
        """How many files have ended so, in all passes."""
        return sum(event["counts"][name] for event in self.events())

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        status = self.process.wait(30)
        self._reader.join()
        return status

    def told(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


@contextmanager
def watching(command: CommandLine, *arguments: str) -> Iterator[Watch]:
    with command.start("watch", "--debounce", "100ms", *arguments) as process:
        watch = Watch(process)
        try:
            yield watch
        finally:
            if process.poll() is None:
                process.kill()
            watch._reader.join()


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    write_files(tmp_path / "docs", {"a.md": "# Alpha\n", "sub/b.md": "# Beta\n", "sub/deep/c.md": "# Gamma\n"})
    return CommandLine(tmp_path)


def test_what_changes_is_indexed_until_sigterm(command: CommandLine) -> None:
    """S0-71..74, R10: added, changed, moved and removed, each by what the files are when they are looked at."""
    docs = command.cwd / "docs"
    with watching(command, "docs", "--json") as watch:
        eventually(lambda: watch.outcome("added") == 3)
        write_files(docs, {"new/d.md": "# Delta\n", "a.md": "# Alpha, changed\n"})
        eventually(lambda: watch.outcome("added") == 4 and watch.outcome("updated") == 1)
        shutil.rmtree(docs / "sub")
        eventually(lambda: watch.outcome("removed") == 2)
        (docs / "a.md").unlink()
        write_files(docs, {"a.md": "# Alpha, again\n"})
        eventually(lambda: watch.outcome("updated") == 2)
        assert watch.end(signal.SIGTERM) == 0
    assert watch.events()[0]["cause"] == "initial"
    assert watch.events("watching")[0]["paths"] == [str(docs.resolve())]
    assert watch.outcome("removed") == 2
    listed = command("sources", "--all", "--json").value["sources"]
    assert [row["path"] for row in listed] == ["docs/a.md", "docs/new/d.md"]


def test_ctrl_c_ends_it_with_130_and_one_line_a_pass_was_said(command: CommandLine) -> None:
    with watching(command, "docs") as watch:
        eventually(lambda: any("first pass: 3 added" in line for line in watch.lines))
        assert watch.end(signal.SIGINT) == 130
        told = watch.told()
    assert f"watching: {(command.cwd / 'docs').resolve()} (3 folders)" in told
    assert "Traceback" not in told


def test_a_locked_index_is_a_warning_and_the_pass_comes_later(command: CommandLine) -> None:
    command("index", "docs")
    layout = BaseLayout(command.cwd / "knowledge" / "default")
    with watching(command, "--no-initial", "--json") as watch:
        eventually(lambda: bool(watch.events("watching")))
        with WriteLock(layout.lock, purpose="somebody else"):
            write_files(command.cwd / "docs", {"late.md": "# Late\n"})
            eventually(lambda: bool(watch.events("retrying")))
            assert watch.events("retrying")[0]["code"] == "locked"
        eventually(lambda: watch.outcome("added") == 1)
        assert len(watch.events("retrying")) == 1
        assert watch.end(signal.SIGTERM) == 0


def test_without_a_pass_at_the_start_only_what_changes_is_looked_at(command: CommandLine) -> None:
    command("index", "docs")
    write_files(command.cwd / "docs", {"before.md": "# Before\n"})
    with watching(command, "--no-initial", "--json") as watch:
        eventually(lambda: bool(watch.events("watching")))
        write_files(command.cwd / "docs", {"after.md": "# After\n"})
        eventually(lambda: watch.outcome("added") == 1)
        assert watch.end(signal.SIGTERM) == 0


def test_a_single_file_is_followed_alone(command: CommandLine) -> None:
    with watching(command, "docs/a.md", "--json") as watch:
        eventually(lambda: watch.outcome("added") == 1)
        write_files(command.cwd / "docs", {"other.md": "# Other\n", "a.md": "# Alpha, changed\n"})
        eventually(lambda: watch.outcome("updated") == 1)
        assert watch.end(signal.SIGTERM) == 0
    assert command("status", "--json").value["index"]["documents"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("absent",), "there is no file or folder"),
        ((), "there is nothing to index yet"),
        (("docs", "--no-initial"), "is not indexed yet"),
        (("docs", "--debounce", "soon"), "--debounce must be a duration"),
        (("docs", "--debounce", "-1s"), "--debounce must not be negative"),
    ],
)
def test_what_cannot_be_watched_is_said(command: CommandLine, arguments: tuple[str, ...], words: str) -> None:
    ended = command("watch", *arguments)
    assert ended.status == 2
    assert words in ended.err


def test_only_trouble_is_told_when_quiet(command: CommandLine) -> None:
    with watching(command, "docs", "--quiet") as watch:
        eventually(lambda: command("status", "--json").status == 0)
        eventually(lambda: command("status", "--json").value["index"]["documents"] == 3)
        assert watch.end(signal.SIGTERM) == 0
        assert watch.lines == []
        assert watch.told() == ""
