"""What every test stands on: no setting of the machine reaches it, and its home is its own."""

import os
import signal
from pathlib import Path

import hypothesis
import pytest
from _pytest.terminal import TerminalReporter

from tests.support.figures import PROPERTY, Figure, NoteFigure, keep

# a busy machine makes no example wrong
hypothesis.settings.register_profile("knowledge", deadline=None)
hypothesis.settings.load_profile("knowledge")


def pytest_configure(config: pytest.Config) -> None:
    """redis warns of a pipeline that was cut short when its object goes; its connection was closed with the pool.

    Ctrl-C is what tests send to commands: where the tests are a job in the background of a shell, it is ignored, and
    every process that they start would inherit that.
    """
    config.addinivalue_line("filterwarnings", "ignore:Unclosed client session:ResourceWarning")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


XDG = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Strip KNOWLEDGE_* and OTEL_* from the environment; the home directory, new and empty, is returned."""
    for name in [name for name in os.environ if name.startswith(("KNOWLEDGE_", "OTEL_"))]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in XDG:
        monkeypatch.setenv(name, str(home / name.lower()))
    return home


@pytest.fixture
def note_figure(request: pytest.FixtureRequest) -> NoteFigure:
    """Told what a test has tried, before it asserts that nothing went wrong."""

    def note(figure: Figure) -> None:
        request.node.user_properties.append((PROPERTY, figure.line()))
        keep(figure)

    return note


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """How many points of how many were tried, whatever the verbosity."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    lines = [value for report in reports for name, value in report.user_properties if name == PROPERTY]
    if lines:
        terminalreporter.section("what was tried")
        for line in sorted(set(lines)):
            terminalreporter.line(line)
