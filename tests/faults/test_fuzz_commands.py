"""What is typed at the command, and written to `knowledge mcp`: an answer or words, never a traceback (T14..T19, T28).

Commands run in this process, one after the other over one index; the server of tools is the installed command.
"""

import io
import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli import main, terminal
from tests.support.command_line import CommandLine
from tests.support.depth import scaled
from tests.support.figures import NoteFigure
from tests.support.frame_checks import assert_harmless
from tests.support.fuzz_commands import arguments, mcp_line
from tests.support.fuzz_service import PLAIN
from tests.support.fuzz_trying import ASKED, Trial, chooser
from tests.support.mcp_clients import ALL_TOOLS, BareClient
from tests.support.status_bases import TEXTS, built

COMMANDS, LINES = scaled(250, ASKED), scaled(250, ASKED)
STATUSES = frozenset({0, 2, 3, 4, 5, *range(10, 17)})  # R37; 1 is for what nobody has thought of
MOST_BYTES = 4_000_000
ORDINARY = "[\u00ad\ufe00-\ufe0f]"  # as they stand in JSON: terminals take them for nothing
INTERNAL_ERROR = -32603  # of JSON-RPC
MIXED = {name.removeprefix("docs/"): text for name, text in PLAIN.items()} | TEXTS


class Typed:
    """Runs commands as if a terminal were behind them; what each wrote and said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr(terminal, "writes_to_terminal", lambda: True)

    def __call__(self, typed: list[str]) -> tuple[int, str, str]:
        written = [io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", newline="") for _ in "12"]
        with self._monkeypatch.context() as patch, io.StringIO() as nothing:
            patch.setattr(sys, "stdin", nothing)
            patch.setattr(sys, "stdout", written[0])
            patch.setattr(sys, "stderr", written[1])
            status = main.run(typed)
            for stream in written:
                stream.flush()
        out, err = (stream.buffer.getvalue().decode("utf-8", "replace") for stream in written)
        return status, out, err


def assert_told(typed: list[str], status: int, out: str, err: str) -> str:
    assert "Traceback" not in out + err or "--debug" in typed, err[-2_000:]
    assert not err.startswith("error: unexpected "), err
    assert status in STATUSES or (status == 1 and "--exit-code" in typed), (status, err)
    assert len(out) + len(err) < MOST_BYTES
    if "--raw" not in typed and "--debug" not in typed:
        assert_harmless(re.sub(ORDINARY, "", out + err))
    return f"status {status}"


def test_whatever_is_typed_is_answered_in_words(
    note_figure: NoteFigure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R37, P20, T14, T16, T18, T19: every verb, with options and words of every kind."""
    trial, run = Trial("commands"), Typed(monkeypatch)

    def typed_rightly(typed: list[str]) -> str:
        return assert_told(typed, *run(typed))

    built(tmp_path, MIXED)
    monkeypatch.chdir(tmp_path)
    for number in range(COMMANDS):
        typed = arguments(chooser("commands", number))
        shown = f"{number}: {[one[:200] for one in typed]}"
        trial.take(shown, partial(typed_rightly, typed))
    note_figure(trial.figure(("P20", "P21", "T14", "T16", "T18", "T19"), "arguments of the command"))
    assert trial.faults == [], trial.report()
    assert min(trial.outcomes["status 0"], trial.outcomes["status 2"], trial.outcomes["status 4"]) > 0


@pytest.fixture
def client(tmp_path: Path) -> Iterator[BareClient]:
    """A client of `knowledge mcp` that has said who it is; what the server says on the side goes to a file."""
    built(tmp_path, MIXED)
    client = BareClient(CommandLine(tmp_path), "--tools", ",".join(ALL_TOOLS), log=tmp_path / "mcp.log")
    assert client.greet()["id"] == 0
    yield client
    client.process.kill()
    client.process.communicate()


def answers_up_to(client: BareClient, ping: str) -> Iterator[dict[str, Any]]:
    """What came back for a line; the answer to a ping says that the server is still there."""
    while (answer := client.receive()).get("id") != ping:
        yield answer
    assert answer["result"] == {}


def ask(client: BareClient, line: bytes, number: int) -> str:
    client.send(line)
    client.send({"jsonrpc": "2.0", "id": f"ping {number}", "method": "ping"})
    kinds = set()
    for answer in answers_up_to(client, f"ping {number}"):
        written = json.dumps(answer)
        assert len(written) < MOST_BYTES and "Traceback (most" not in written and 'File \\"' not in written
        assert answer["jsonrpc"] == "2.0" and ("result" in answer) != ("error" in answer), answer
        assert "error" not in answer or answer["error"]["code"] != INTERNAL_ERROR, answer
        told = answer.get("result", {}).get("structuredContent") or {}
        code = (told.get("error") or {}).get("code")
        assert code not in ("unexpected", "store_refused"), answer
        kinds.add("refused" if code or "error" in answer else "answered")
    return " and ".join(sorted(kinds)) or "passed over"


def test_whatever_is_written_to_the_server_of_tools_is_answered_or_passed_over(
    note_figure: NoteFigure, client: BareClient, tmp_path: Path
) -> None:
    """T15, T16, T18, T19, T28: lines that are no JSON, no message, no call; behind each the server still answers."""
    trial = Trial("mcp")
    for number in range(LINES):
        line = mcp_line(chooser("mcp", number), number)
        trial.take(f"{number}: {line[:300]!r}", partial(ask, client, line, number))
        if client.process.poll() is not None:
            trial.fault(f"{number}: {line[:300]!r}", f"the server has ended with status {client.process.returncode}")
            break
    status, _, _ = client.end()
    note_figure(trial.figure(("P20", "P28", "T15", "T16", "T18", "T19", "T28"), "lines to the server of tools"))
    assert trial.faults == [], trial.report()
    log = (tmp_path / "mcp.log").read_text(encoding="utf-8")
    assert status == 0 and "Traceback" not in log
    assert min(trial.outcomes["answered"], trial.outcomes["refused"]) > LINES // 20
