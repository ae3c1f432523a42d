"""The doctor's look at what is indexed: each root, and how the last run ended."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.places import is_folder, real
from app.present_unreadable import unreadable_hint, unreadable_message
from app.unreadable_roots import unreadable_root
from domain.checks import CheckResult, failed, not_run, passed
from domain.settings import EXTENSIONS, Settings
from store.run_port import RunRecord
from store.state_port import RootRecord

_NANOSECONDS = 1_000_000_000
_AGAIN = {"reindex": "knowledge index --reindex", "upgrade": "knowledge upgrade"}


def check_roots(settings: Settings, recorded: Sequence[RootRecord]) -> Iterator[CheckResult]:
    """Every configured root, and every recorded one: there, a folder, readable."""
    names = {root.path: root.name for root in recorded}
    extensions: dict[str, tuple[str, ...]] = dict.fromkeys(names, EXTENSIONS)
    for configured in settings.roots:
        path = str(real(configured.path))
        names.setdefault(path, configured.name or Path(path).name)
        extensions[path] = configured.extensions
    if not names:
        yield not_run("roots", "there is no root yet", "run `knowledge index YOUR_FOLDER`")
    for path, name in sorted(names.items(), key=lambda item: item[1]):
        yield _check_root(name, Path(path), extensions[path])


def _check_root(name: str, path: Path, extensions: tuple[str, ...]) -> CheckResult:
    check = f"root:{name}"
    if not os.path.lexists(path):
        hint = f"mount or restore it; `knowledge rm --root {name}` gives it up"
        return failed(check, f"{path} is not there; what is indexed of it stays", hint)
    if not is_folder(path):
        return failed(check, f"{path} is not a folder", f"`knowledge rm --root {name}` gives it up")
    unreadable = unreadable_root(name, path, extensions)
    if unreadable is not None:
        return failed(check, unreadable_message(unreadable), unreadable_hint(unreadable))
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
    again = _AGAIN.get(run.kind, "knowledge index")
    hint = f"run `{again}`: it does what is left"
    return failed("last_run", words, hint, is_fatal=False)
