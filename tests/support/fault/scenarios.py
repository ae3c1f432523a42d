"""Actions on a store under faults, run as `python -m tests.support.fault.scenarios ACTION MODE EVERY OFFSET`.

Loaded with the injector. For each chosen call the store is copied afresh, the action runs in a forked child that is
killed or given an error at that call, and the store is opened and audited in this process. Prints one line of JSON.
"""

import errno
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app import maintenance
from app.wiring import writable_base
from domain.errors import NotBuiltError
from domain.layout import BaseLayout
from domain.settings import Settings
from store.port import Visibility
from store.sqlite import SqliteStore
from tests.support import drifts
from tests.support.audit import audit
from tests.support.bases import TEXTS, build_base, index_into, settings_of, write_files
from tests.support.fault.injector import HALF, KILL, count_calls, run_at
from tests.support.scratch import scratch_directory

MODES = {"kill": KILL, "half": HALF, "eio": errno.EIO, "enospc": errno.ENOSPC}
CHANGED = {"a.md": "# Alpha\n\nchanged words\n", "new.md": "# New\n\nnewly written\n", "b.md": TEXTS["b.md"] * 3}
KILLED = -9


@dataclass(slots=True)
class Tally:
    calls: int = 0
    points: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def apply_group(settings: Settings, root: Path) -> None:
    """Replace, add and keep documents in one group, with everything around it."""
    with writable_base(settings, "test") as base:
        index_into(base, settings, root, "docs", sorted({*TEXTS, *CHANGED}))


def create(settings: Settings, root: Path) -> None:
    """The first index, where there was no store."""
    shutil.rmtree(settings.home)
    apply_group(settings, root)


def reset(settings: Settings, root: Path) -> None:
    maintenance.reset(settings, force=True)


def reset_broken(settings: Settings, root: Path) -> None:
    """The way through a new file: what lies there is no database."""
    (settings.home / "knowledge.db").write_bytes(b"this was a database once" * 400)
    maintenance.reset(settings, force=True)


def rebuild(settings: Settings, root: Path) -> None:
    maintenance.rebuild(settings)


def rebuild_drifted(settings: Settings, root: Path) -> None:
    drifts.apply_drift(settings.home / "knowledge.db", drifts.zeroed_full_text_page)
    maintenance.rebuild(settings)


def remove(settings: Settings, root: Path) -> None:
    maintenance.remove_paths(settings, root, ["docs/sub/"])


ACTIONS: dict[str, Callable[[Settings, Path], None]] = {
    action.__name__: action for action in (apply_group, create, reset, reset_broken, rebuild, rebuild_drifted, remove)
}


def states_of(settings: Settings) -> dict[str, str] | None:
    """Every document's text, by key; None where there is no store."""
    path = BaseLayout(settings.home).database
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        store = SqliteStore(path, base_id=None)
    except NotBuiltError:
        return None
    try:
        snapshot, everything = store.reader(), Visibility.everything()
        documents = snapshot.documents("", visibility=everything)
        return {row.key: str(snapshot.text(row.key, visibility=everything)) for row in documents}
    finally:
        store.close()


def main(action_name: str, mode_name: str, every: int, offset: int) -> Tally:
    action, tally = ACTIONS[action_name], Tally()
    with scratch_directory() as scratch:
        template = build_base(scratch)
        root = scratch / "docs"
        write_files(root, CHANGED)
        settings = settings_of(scratch / "copy" / "home")
        before = _fresh(template, settings)
        tally.calls = count_calls(str(settings.home), lambda: action(settings, root))
        after = states_of(settings)
        for at in range(1 + offset, tally.calls + 1, every):
            _fresh(template, settings)
            status = run_at(
                str(settings.home), at, MODES[mode_name], lambda: action(settings, root), sticky=mode_name == "enospc"
            )
            tally.points += 1
            tally.statuses[str(status)] = tally.statuses.get(str(status), 0) + 1
            tally.problems += [f"{at}: {problem}" for problem in _examine(settings, action_name, (before, after), status)]
            if action_name != "rebuild":
                tally.problems += [f"{at}: then {problem}" for problem in _go_on(settings, root)]
    return tally


def _fresh(template: Settings, settings: Settings) -> dict[str, str] | None:
    shutil.rmtree(settings.home.parent, ignore_errors=True)
    shutil.copytree(template.home, settings.home)
    return states_of(settings)


def _examine(
    settings: Settings, action: str, whole: tuple[dict[str, str] | None, dict[str, str] | None], status: int
) -> list[str]:
    """The store is the one from before or the one from after, never between; the child ended as it should."""
    problems = [] if status in (0, KILLED, 14) else [f"ended with {status}"]
    path = BaseLayout(settings.home).database
    if action == "reset_broken" and path.exists() and path.read_bytes()[:4] == b"this":
        return problems  # not begun yet
    if action == "rebuild_drifted" and audit(path):
        return problems  # as it was: what is not mended stays drifted, and the next rebuild mends it
    found = states_of(settings)
    if found is not None:
        problems += audit(path)
    allowed = [*whole, None, {}] if action in ("create", "reset", "reset_broken") else [*whole]
    if found not in allowed:
        problems.append(f"the store holds {sorted(found or {})}, which is neither the old nor the new state")
    return problems


def _go_on(settings: Settings, root: Path) -> list[str]:
    """The next command works, and leaves a whole store."""
    if settings.home.exists() and (settings.home / "knowledge.db").exists():
        if (settings.home / "knowledge.db").read_bytes()[:4] == b"this":
            return []
        maintenance.rebuild(settings)
    apply_group(settings, root)
    found = states_of(settings) or {}
    missing = {f"docs/{name}" for name in {*TEXTS, *CHANGED}} - found.keys()
    return [*audit(BaseLayout(settings.home).database), *(f"{key} is missing" for key in sorted(missing))]


if __name__ == "__main__":
    tally = main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(
        json.dumps(
            {"calls": tally.calls, "points": tally.points, "statuses": tally.statuses, "problems": tally.problems[:20]}
        )
    )
