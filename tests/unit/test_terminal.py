"""The editor's command line, and the progress beside a run."""

from pathlib import Path

import pytest

from app.present_index import progress_line
from app.progress import RunProgress
from cli import progress as progress_module
from cli.editor import editor_command, open_in_editor
from cli.main import run
from domain.errors import NotFoundError
from scheduler.plan import PlanTally


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("vi", ["vi", "+7", "/d/a.md"]),
        ("/usr/bin/emacs -nw", ["/usr/bin/emacs", "-nw", "+7", "/d/a.md"]),
        ("code --wait", ["code", "--wait", "--goto", "/d/a.md:7"]),
        ("hx", ["hx", "/d/a.md:7"]),
        ("", ["vi", "+7", "/d/a.md"]),
    ],
)
def test_editors_are_told_the_line_in_their_own_way(editor: str, command: list[str]) -> None:
    assert editor_command(editor, Path("/d/a.md"), 7) == command


def test_a_file_that_has_gone_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        open_in_editor(str(tmp_path), "docs/gone.md", 1)


def test_progress_in_a_line() -> None:
    progress = RunProgress(
        tallies=[PlanTally(met=12_000, to_check=10_000)], stage="indexing", checked=5_000, written=4_000
    )
    progress.began_s -= 10
    assert progress_line(progress).startswith("indexing: 12,000 found, 5,000 checked, 4,000 written, ")
    progress.is_plan_complete = True
    line = progress_line(progress)
    assert "5,000/10,000 checked" in line
    assert line.endswith("10 s left")
    progress.checked, progress.embedded = 10_000, 7
    assert "left" not in progress_line(progress)  # vectors are made still: nobody knows how long


def test_plain_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "PLAIN_LINE_EVERY_S", 0.01)
    with progress_module.shown(RunProgress(), is_quiet=False):
        import time

        time.sleep(0.1)
    assert "looking: 0 found" in capsys.readouterr().err
    with progress_module.shown(RunProgress(), is_quiet=True):
        pass
    assert capsys.readouterr().err == ""


def test_the_unexpected_ends_with_a_line_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_arguments: list[str]) -> int:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("cli.main._dispatch", broken)
    assert run(["status"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: unexpected ZeroDivisionError: division by zero\n")
    assert "Traceback" not in told
    assert run(["--debug", "status"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("raised", "status"), [(KeyboardInterrupt, 130), (BrokenPipeError, 0)])
def test_interrupted_and_unread(monkeypatch: pytest.MonkeyPatch, raised: type[BaseException], status: int) -> None:
    def stopped(_arguments: list[str]) -> int:
        raise raised

    monkeypatch.setattr("cli.main._dispatch", stopped)
    assert run(["status"]) == status
