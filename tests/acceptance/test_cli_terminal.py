"""What a terminal is written: bold and links where it has them, and nothing that a document has in mind (T11)."""

import os
import pty
import re
import socket
import subprocess
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from cli import terminal
from tests.support.command_line import COMMAND, CommandLine, write_files

HOSTILE_LINK = "\x1b]8;;https://evil.example/\x1b\\click\x1b]8;;\x1b\\"
HOSTILE_NAME = "a\x1b]8;;https:evil.example\x07b\u202e.md"
TEXTS: dict[str, str | bytes] = {
    "plain name.md": "# Plain\n\nthe quick fox\n",
    "hostile.md": f"# {HOSTILE_LINK}\n\nthe quick fox {HOSTILE_LINK} \x9b2J \x9d8;;https://evil.example/\x9c x\n",
    HOSTILE_NAME: "# Name\n\nthe quick fox\n",
    "é;#%.md": "# Signs\n\nthe quick fox\n",
}
_LINKS = re.compile(r"\x1b\]8;;(.*?)\x1b\\")
_BOLD = re.compile(r"\x1b\[[01]m")


@pytest.fixture
def knowledge(tmp_path: Path) -> CommandLine:
    write_files(tmp_path / "docs", TEXTS)
    command = CommandLine(tmp_path)
    assert command("index", str(tmp_path / "docs")).status == 0
    return command


def on_terminal(command: CommandLine, *arguments: str, **variables: str) -> str:
    """What the command writes to a terminal as standard output."""
    ours, theirs = pty.openpty()
    with closing(os.fdopen(ours, "rb", buffering=0)) as reading:
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=command.cwd,
            env=command.environment({"TERM": "xterm-256color", **variables}),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        written = bytearray()
        try:
            while piece := reading.read(4096):
                written += piece
        except OSError:  # Linux: the other end is closed
            pass
        assert process.wait(60) == 0
    return written.decode()


def address_of(path: Path) -> str:
    return f"file://{socket.gethostname()}{quote(os.fsencode(path))}"


def test_links_lead_to_the_files_and_nowhere_else(knowledge: CommandLine) -> None:
    shown = on_terminal(knowledge, "search", "--all-chunks", "fox", TERM_PROGRAM="WezTerm")
    addresses = [address for address in _LINKS.findall(shown) if address]
    assert sorted(addresses) == sorted(address_of(knowledge.cwd / "docs" / name) for name in TEXTS)
    rest = _BOLD.sub("", _LINKS.sub("", shown))
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", rest)
    assert all(re.fullmatch(r"[\w%./:~-]+", address, re.ASCII) for address in addresses)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"TERM_PROGRAM": "WezTerm", "NO_COLOR": "1"},
        {"TERM_PROGRAM": "WezTerm", "TERM": "dumb"},
        {"TERM_PROGRAM": "WezTerm", "FORCE_HYPERLINK": "0"},
        {"TERM_PROGRAM": "WezTerm", "TERM": "tmux-256color"},
        {"VTE_VERSION": "4999"},
    ],
)
def test_no_link_where_none_is_wanted_or_known(knowledge: CommandLine, variables: dict[str, str]) -> None:
    shown = on_terminal(knowledge, "search", "fox", **variables)
    assert "\x1b]" not in shown
    is_plain = "NO_COLOR" in variables or variables.get("TERM") == "dumb"
    assert ("\x1b" in shown) is not is_plain


def test_a_pipe_is_written_no_escape(knowledge: CommandLine) -> None:
    piped = knowledge("search", "fox", TERM="xterm-kitty", FORCE_HYPERLINK="1")
    assert "fox" in piped.out
    assert "\x1b" not in piped.out + piped.err


@pytest.mark.parametrize(
    ("environ", "has_links"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "foot"}, True),
        ({"VTE_VERSION": "7200"}, True),
        ({"VTE_VERSION": "new"}, False),
        ({"WT_SESSION": "x"}, True),
        ({"KONSOLE_VERSION": "230800"}, True),
        ({"FORCE_HYPERLINK": "1"}, True),
        ({"FORCE_HYPERLINK": "1", "NO_COLOR": "1"}, False),
        ({"TERM": "screen", "KITTY_WINDOW_ID": "1"}, False),
        ({"TERM": "linux", "TERM_PROGRAM": "vscode"}, False),
        ({"TERM": "xterm"}, False),
    ],
)
def test_which_terminals_have_links(environ: dict[str, str], has_links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "writes_to_terminal", lambda: True)
    assert terminal.may_link(environ) is has_links
    monkeypatch.setattr(terminal, "writes_to_terminal", lambda: False)
    assert terminal.may_link(environ) is False


@pytest.mark.parametrize(("kind", "redraws"), [("xterm", True), ("dumb", False)])
def test_a_dumb_terminal_is_told_lines(kind: str, redraws: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "tells_a_terminal", lambda: True)
    assert terminal.may_redraw({"TERM": kind}) is redraws
