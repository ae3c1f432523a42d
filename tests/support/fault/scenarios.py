"""Actions on a store under faults, run as
`python -m tests.support.fault.scenarios SCENARIO:MODE:EVERY:OFFSET ...`.

Loaded with the injector. For each chosen call the store is copied afresh, the action runs in a forked child that is
killed or given an error at that call, and the store is opened and audited in this process. Prints a line of JSON each.
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
NO_DATABASE = b"this was a database once. "


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


def reset(settings: Settings, root: Path) -> None:
    maintenance.reset(settings, force=True)


def rebuild(settings: Settings, root: Path) -> None:
    maintenance.rebuild(settings)


def remove(settings: Settings, root: Path) -> None:
    maintenance.remove_paths(settings, root, ["docs/sub/"])


def compact(settings: Settings, root: Path) -> None:
    maintenance.compact(settings)


def purge(settings: Settings, root: Path) -> None:
    maintenance.purge_paths(settings, root, ["docs/sub/"])


def unchanged(home: Path) -> None:
    """The store as it was built."""


def gone(home: Path) -> None:
    shutil.rmtree(home)


def no_database(home: Path) -> None:
    (home / "knowledge.db").write_bytes(NO_DATABASE * 400)


def littered(home: Path) -> None:
    """Empty pages, and full text in several segments."""
    maintenance.remove_paths(settings_of(home), home, ["docs/sub/"])


def drifted(home: Path) -> None:
    drifts.apply_drift(home / "knowledge.db", drifts.zeroed_full_text_page)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is made of the store first, and the action that meets the fault."""

    prepare: Callable[[Path], None]
    act: Callable[[Settings, Path], None]


SCENARIOS = {
    "apply": Scenario(unchanged, apply_group),
    "create": Scenario(gone, apply_group),
    "reset": Scenario(unchanged, reset),
    "reset_drifted": Scenario(drifted, reset),
    "reset_no_database": Scenario(no_database, reset),
    "rebuild": Scenario(unchanged, rebuild),
    "rebuild_drifted": Scenario(drifted, rebuild),
    "remove": Scenario(unchanged, remove),
    "compact": Scenario(littered, compact),
    "purge": Scenario(unchanged, purge),
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


def main(name: str, mode: str, every: int, offset: int) -> Tally:
    scenario, tally = SCENARIOS[name], Tally()
    with scratch_directory() as scratch:
        template = build_base(scratch)
        root = scratch / "docs"
        write_files(root, CHANGED)
        settings = settings_of(scratch / "copy" / "home")
        before = states_of(template)
        _fresh(template, settings, scenario)
        tally.calls = count_calls(str(settings.home), lambda: scenario.act(settings, root))
        may_be_empty = scenario.act is reset or scenario.prepare is gone
        whole = (before, states_of(settings), *((None, {}) if may_be_empty else ()))
        for at in range(1 + offset, tally.calls + 1, every):
            _fresh(template, settings, scenario)
            status = run_at(
                str(settings.home), at, MODES[mode], lambda: scenario.act(settings, root), sticky=mode == "enospc"
            )
            tally.points += 1
            tally.statuses[str(status)] = tally.statuses.get(str(status), 0) + 1
            problems = [] if status in (0, KILLED, 14) else [f"ended with {status}"]
            problems += _examine(settings, scenario, whole)
            problems += [f"then {problem}" for problem in _go_on(settings, root, scenario)]
            tally.problems += [f"{at}: {problem}" for problem in problems]
    return tally


def _fresh(template: Settings, settings: Settings, scenario: Scenario) -> None:
    shutil.rmtree(settings.home.parent, ignore_errors=True)
    shutil.copytree(template.home, settings.home)
    scenario.prepare(settings.home)


def _is_no_database(settings: Settings) -> bool:
    path = BaseLayout(settings.home).database
    return path.exists() and path.read_bytes().startswith(NO_DATABASE)


def _examine(settings: Settings, scenario: Scenario, whole: tuple[dict[str, str] | None, ...]) -> list[str]:
    """The store is the one from before or the one from after, never between."""
    if scenario.prepare is no_database and _is_no_database(settings):
        return []  # nothing was done yet
    found = states_of(settings)
    problems = [] if found is None else audit(BaseLayout(settings.home).database)
    if scenario.prepare is drifted and found == whole[0] and problems:
        problems = []  # as it was: drifted still
    if found not in whole:
        problems.append(f"the store holds {sorted(found or {})}, which is neither the old nor the new state")
    return problems


def _go_on(settings: Settings, root: Path, scenario: Scenario) -> list[str]:
    """The same command, run again, and the next index leave a whole store."""
    scenario.act(settings, root)
    apply_group(settings, root)
    found = states_of(settings) or {}
    missing = {f"docs/{name}" for name in {*TEXTS, *CHANGED}} - found.keys()
    return [*audit(BaseLayout(settings.home).database), *(f"{key} is missing" for key in sorted(missing))]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        scenario, mode, every, offset = argument.split(":")
        tally = main(scenario, mode, int(every), int(offset))
        told = {"calls": tally.calls, "points": tally.points, "statuses": tally.statuses}
        sys.stdout.write(json.dumps({"run": f"{scenario}:{mode}", **told, "problems": tally.problems[:20]}) + "\n")
        sys.stdout.flush()
