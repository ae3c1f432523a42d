"""Whatever stands in a configuration or in variables over it: settings, or words that say where it is wrong (T29)."""

import re
from functools import partial
from pathlib import Path

from app.config import load_with_sources, locate, read
from app.config_report import check, effective_values
from app.present import error_text
from domain.errors import ConfigurationError, UntrustedConfigurationError
from tests.support.depth import scaled
from tests.support.figures import NoteFigure
from tests.support.frame_checks import assert_harmless
from tests.support.fuzz_configurations import SECRET, configuration, variables
from tests.support.fuzz_trying import ASKED, Trial, chooser

INPUTS = scaled(300, ASKED)
_PLACED = re.compile(r"knowledge\.yaml:\d+|KNOWLEDGE_\w+|environment")
_WITHOUT_LINE = re.compile(
    r"larger than 1 MiB|holds control characters|aliases of the file grow without end|lines \d+ and \d+"
    r"|: knowledge\.[\w.\[\]]+: |^and \d+ more$"
)


def assert_told_rightly(error: ConfigurationError) -> None:
    """With file and line, or variable, or key; nothing in it acts on a terminal, and it holds no secret."""
    assert_harmless(error_text(error))
    assert SECRET not in error.message + error.hint
    assert 0 < len(error.message) + len(error.hint) < 40_000
    for line in error.message.splitlines():
        assert _PLACED.search(line) or _WITHOUT_LINE.search(line), line


def outcome(folder: Path, raw: bytes, environ: dict[str, str]) -> str:
    path = folder / "knowledge.yaml"
    path.write_bytes(raw)
    path.chmod(0o600)
    try:
        located = locate(folder, config=path, environ=environ)
        loaded = read(located, environ, cwd=folder, absent_roots="note")
        assert len(repr(effective_values(loaded, environ))) < 4_000_000
        check(located, environ, cwd=folder)
        load_with_sources(locate(folder, config=None, environ=environ), environ, cwd=folder)
    except UntrustedConfigurationError as error:
        assert_harmless(error_text(error))
        return "read, and not trusted"
    except ConfigurationError as error:
        assert_told_rightly(error)
        return f"refused ({error.code})"
    return "read"


def test_whatever_a_configuration_says_is_read_or_refused_with_its_place(
    note_figure: NoteFigure, tmp_path: Path
) -> None:
    """T29: bytes that are no YAML, YAML that is no configuration, and values that are nearly right."""
    trial = Trial("configurations")
    (tmp_path / "docs").mkdir()
    (tmp_path / "more").mkdir()
    for number in range(INPUTS):
        random = chooser("configurations", number)
        raw, environ = configuration(random), variables(random)
        shown = f"{number}: {raw[:400]!r} {environ!r:.200}"
        trial.take(shown, partial(outcome, tmp_path, raw, environ))
    note_figure(trial.figure(("P19", "T29"), "configurations, as files and as variables"))
    assert trial.faults == [], trial.report()
    read_whole = trial.outcomes["read"] + trial.outcomes["read, and not trusted"]
    assert min(read_whole, trial.outcomes["refused (configuration)"]) > INPUTS // 50
