"""Backup and restore under faults, run as
`python -m tests.support.fault.backup_scenarios NAME:WAY:SAMPLE ...`.

As tests.support.fault.scenarios does it; what is looked at is the pair of databases, opened as a command opens it.
"""

import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from app.backing_up import back_up, restore
from app.wiring import readable_base, writable_base
from domain.errors import KnowledgeError, NotBuiltError
from domain.settings import Settings
from store.backup_reading import Backup
from store.port import Visibility
from tests.support.audit import audit
from tests.support.bases import TEXTS, build_base, index_into, layout_of, settings_of, write_files
from tests.support.fault.points import Trial, main
from tests.support.fault.scenarios import CHANGED


class Pair(NamedTuple):
    """What a pair of databases shows: the documents of the one, the runs of the other."""

    keys: frozenset[str]
    kinds: tuple[str, ...]  # of the runs, oldest first


@dataclass(frozen=True, slots=True)
class Place:
    """A base with a later state than its backup, and where another backup goes."""

    settings: Settings
    docs: Path
    earlier: Path  # of TEXTS only
    target: Path


def pair_of(settings: Settings) -> Pair | None:
    """None where there is no index."""
    try:
        with readable_base(settings) as base:
            rows = base.store.reader().documents("", visibility=Visibility.everything())
            return Pair(frozenset(row.key for row in rows), tuple(run.kind for run in base.state.runs())[::-1])
    except NotBuiltError:
        return None


def index_all(place: Place) -> None:
    write_files(place.docs, TEXTS | CHANGED)
    with writable_base(place.settings, "test") as base:
        index_into(base, place.settings, place.docs, "docs", sorted({*TEXTS, *CHANGED}))


def place_in(where: Path) -> Place:
    return Place(settings_of(where / "home"), where / "docs", where / "earlier.tar", where / "out" / "b.tar")


def lay_out(place: Place, template: Settings, earlier: Path) -> None:
    """A fresh copy of everything; `earlier` was made from the template before it went on."""
    shutil.rmtree(place.docs.parent, ignore_errors=True)
    place.target.parent.mkdir(parents=True)
    shutil.copytree(template.home, place.settings.home)
    shutil.copy(earlier, place.earlier)


def over_an_index(place: Place) -> None:
    index_all(place)


def over_nothing(place: Place) -> None:
    shutil.rmtree(place.settings.home)


def over_a_backup(place: Place) -> None:
    shutil.copy(place.earlier, place.target)
    index_all(place)


def do_restore(place: Place) -> None:
    restore(place.settings, place.earlier, force=True)


def do_backup(place: Place) -> None:
    back_up(place.settings, place.target, force=True)


@dataclass(frozen=True, slots=True)
class Scenario:
    prepare: Callable[[Place], None]
    act: Callable[[Place], None]


SCENARIOS = {
    "restore": Scenario(over_an_index, do_restore),
    "restore-anew": Scenario(over_nothing, do_restore),
    "backup": Scenario(over_a_backup, do_backup),
}


@dataclass(slots=True)
class Ground:
    """A base with its backup, the place that is worked on, and the states between which there is nothing."""

    scenario: Scenario
    template: Settings
    earlier: Path
    place: Place
    whole: list[Pair | None] = field(default_factory=list)  # before, then after

    def fresh(self) -> None:
        lay_out(self.place, self.template, self.earlier)
        self.scenario.prepare(self.place)
        if not self.whole:
            self.whole.append(pair_of(self.place.settings))

    def act(self) -> None:
        self.scenario.act(self.place)

    def went_through(self) -> None:
        self.whole.append(pair_of(self.place.settings))

    def examine(self) -> list[str]:
        """The old pair or the new one, never one file of each; a backup is the old one or the new one, and whole."""
        found = pair_of(self.place.settings)
        problems = [] if found in self.whole else [f"the pair is {found}, none of {self.whole}"]
        problems += audit(layout_of(self.place.settings).database) if found is not None else []
        if self.scenario.act is do_backup:
            try:
                with closing(Backup(self.place.target)) as backup:
                    backup.check_hashes()
            except KnowledgeError as error:
                problems.append(error.message)
        return problems

    def go_on(self) -> list[str]:
        """The same command, run again, works and leaves nothing beside; so does the next index."""
        self.act()
        home, out = self.place.settings.home, self.place.target.parent
        left = [path.name for path in (*home.iterdir(), *out.iterdir()) if path.name.endswith((".part", ".ready"))]
        index_all(self.place)
        found = pair_of(self.place.settings)
        problems = [f"{name} is left" for name in left]
        problems += ["the index lacks documents"] * (found is None or len(found.keys) != len({*TEXTS, *CHANGED}))
        return [*problems, *audit(layout_of(self.place.settings).database)]


def trial_of(name: str, scratch: Path) -> Trial:
    template = build_base(scratch / "template")
    earlier = scratch / "earlier.tar"
    back_up(template, earlier, force=False)
    place = place_in(scratch / "copy")
    ground = Ground(SCENARIOS[name], template, earlier, place)
    part = place.target.parent if ground.scenario.act is do_backup else place.settings.home
    private = place.settings.home
    return Trial(str(part), private, ground.fresh, ground.act, ground.went_through, ground.examine, ground.go_on)


if __name__ == "__main__":
    main(trial_of, sys.argv[1:])
