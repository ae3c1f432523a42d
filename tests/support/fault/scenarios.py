"""Actions on a store under faults, run as `python -m tests.support.fault.scenarios NAME:WAY:SAMPLE ...`.

Loaded with the injector; tests.support.fault.points is the loop.
"""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app import maintenance
from app.wiring import writable_base
from domain.checks import CheckState
from domain.errors import NotBuiltError
from domain.layout import BaseLayout
from domain.settings import Settings
from store.files import CACHEDIR_TAG_TEXT
from store.port import Visibility
from store.sqlite import SqliteStore
from tests.support import drifts
from tests.support.audit import audit
from tests.support.bases import TEXTS, build_base, index_into, settings_of, write_files
from tests.support.fault.points import Trial, main

CHANGED = {"a.md": "# Alpha\n\nchanged words\n", "new.md": "# New\n\nnewly written\n", "b.md": TEXTS["b.md"] * 3}
NO_DATABASE = b"this was a database once. "
States = dict[str, str] | None
"""Every document's text, by key; None where there is no store."""


def apply_group(settings: Settings, root: Path) -> None:
    """Replace, add and keep documents in one group, with everything around it."""
    with writable_base(settings, "test") as base:
        index_into(base, settings, root, "docs", sorted({*TEXTS, *CHANGED}))


def reset(settings: Settings, root: Path) -> None:
    maintenance.reset(settings, force=True)


def rebuild(settings: Settings, root: Path) -> None:
    maintenance.rebuild(settings)


def verify(settings: Settings, root: Path) -> None:
    """A check that cannot be made is told in its report: it must not say that it was."""
    report = maintenance.verify(settings, deep=True)
    if any(result.state is CheckState.FAIL for result in report.results):
        raise AssertionError(f"a sound store was called broken: {report.results}")


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
    "index": Scenario(unchanged, apply_group),
    "create": Scenario(gone, apply_group),
    "reset": Scenario(unchanged, reset),
    "reset-drifted": Scenario(drifted, reset),
    "reset-no-database": Scenario(no_database, reset),
    "rebuild": Scenario(unchanged, rebuild),
    "rebuild-drifted": Scenario(drifted, rebuild),
    "rm": Scenario(unchanged, remove),
    "compact": Scenario(littered, compact),
    "purge": Scenario(unchanged, purge),
    "verify": Scenario(unchanged, verify),
}


def states_of(settings: Settings) -> States:
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


@dataclass(slots=True)
class Ground:
    """A template, the copy that is worked on, and the states between which there is nothing."""

    scenario: Scenario
    template: Settings
    settings: Settings  # of the copy
    root: Path
    whole: list[States] = field(default_factory=list)

    def fresh(self) -> None:
        shutil.rmtree(self.settings.home.parent, ignore_errors=True)
        shutil.copytree(self.template.home, self.settings.home)
        self.scenario.prepare(self.settings.home)

    def act(self) -> None:
        self.scenario.act(self.settings, self.root)

    def went_through(self) -> None:
        may_be_empty = self.scenario.act is reset or self.scenario.prepare is gone
        self.whole += [states_of(self.settings), *((None, {}) if may_be_empty else ())]

    def examine(self) -> list[str]:
        """The store is the one from before or the one from after, never between."""
        if self.scenario.prepare is no_database and self._is_no_database():
            return []  # nothing was done yet
        found = states_of(self.settings)
        problems = [] if found is None else audit(BaseLayout(self.settings.home).database)
        if self.scenario.prepare is drifted and found == self.whole[0] and problems:
            problems = []  # as it was: drifted still
        if found not in self.whole:
            problems.append(f"the store holds {sorted(found or {})}, which is neither the old nor the new state")
        return problems

    def go_on(self) -> list[str]:
        """The same command, run again, and the next index leave a whole store, and whole files beside it."""
        self.act()
        apply_group(self.settings, self.root)
        found, layout = states_of(self.settings) or {}, BaseLayout(self.settings.home)
        missing = {f"docs/{name}" for name in {*TEXTS, *CHANGED}} - found.keys()
        cut = [
            path.name
            for path, text in ((layout.gitignore, "*\n"), (layout.cachedir_tag, CACHEDIR_TAG_TEXT))
            if path.read_text() != text
        ]
        problems = [f"{key} is missing" for key in sorted(missing)] + [f"{name} is cut short" for name in cut]
        return [*problems, *audit(layout.database)]

    def _is_no_database(self) -> bool:
        path = BaseLayout(self.settings.home).database
        return path.exists() and path.read_bytes().startswith(NO_DATABASE)


def trial_of(name: str, scratch: Path) -> Trial:
    template = build_base(scratch)
    write_files(scratch / "docs", CHANGED)
    ground = Ground(SCENARIOS[name], template, settings_of(scratch / "copy" / "home"), scratch / "docs")
    ground.whole.append(states_of(template))
    home = ground.settings.home
    return Trial(str(home), home, ground.fresh, ground.act, ground.went_through, ground.examine, ground.go_on)


if __name__ == "__main__":
    main(trial_of, sys.argv[1:])
