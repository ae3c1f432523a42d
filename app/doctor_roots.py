"""The doctor's look at what is indexed: each root, and how the last run ended."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.places import is_folder, real
from domain.checks import CheckResult, failed, not_run, passed
from domain.settings import Settings
from store.state_port import RootRecord, RunRecord

_NANOSECONDS = 1_000_000_000


def check_roots(settings: Settings, recorded: Sequence[RootRecord]) -> Iterator[CheckResult]:
    """Every configured root, and every recorded one: there, a folder, readable."""
    names = {root.path: root.name for root in recorded}
    for configured in settings.roots:
        path = str(real(configured.path))
        names.setdefault(path, configured.name or Path(path).name)
    if not names:
        yield not_run("roots", "there is no root yet", "run `knowledge index YOUR_FOLDER`")
    for path, name in sorted(names.items(), key=lambda item: item[1]):
        yield _check_root(name, Path(path))


def _check_root(name: str, path: Path) -> CheckResult:
    check = f"root:{name}"
    if not os.path.lexists(path):
        hint = f"mount or restore it; `knowledge rm --root {name}` gives it up"
        return failed(check, f"{path} is not there; what is indexed of it stays", hint)
    if not is_folder(path):
        return failed(check, f"{path} is not a folder", f"`knowledge rm --root {name}` gives it up")
    try:
        with os.scandir(path) as entries:
            next(entries, None)
    except OSError as error:
        return failed(check, f"{path} cannot be read: {error.strerror}", "check who may read it")
    return passed(check, str(path))


def check_last_run(runs: Sequence[RunRecord]) -> CheckResult:
    """How the newest run has ended."""
    if not runs:
        return not_run("last_run", "there was none yet", "run `knowledge index YOUR_FOLDER`")
    run = runs[0]
    began = datetime.fromtimestamp(run.started_ns / _NANOSECONDS, tz=UTC).isoformat(timespec="seconds")
    words = f"{run.kind} of {began}: {run.state}" + (f" ({run.cause})" if run.cause and run.cause != run.state else "")
    if run.state == "done" or run.ended_ns is None:
        return passed("last_run", words)
    again = "knowledge index --reindex" if run.kind == "reindex" else "knowledge index"
    hint = f"run `{again}`: it does what is left"
    return failed("last_run", words, hint, is_fatal=False)
