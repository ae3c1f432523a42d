"""Backup and restore under faults, run as
`python -m tests.support.fault.backup_scenarios SCENARIO:MODE:EVERY:OFFSET ...`.

As tests.support.fault.scenarios does it; what is looked at is the pair of databases, opened as a command opens it.
"""

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
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
from tests.support.fault.injector import count_calls, run_at
from tests.support.fault.scenarios import CHANGED, KILLED, MODES, Tally
from tests.support.scratch import scratch_directory


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


def laid_out(where: Path, template: Settings, earlier: Path) -> Place:
    """A fresh copy of everything; `earlier` was made from the template before it went on."""
    shutil.rmtree(where, ignore_errors=True)
    place = Place(settings_of(where / "home"), where / "docs", where / "earlier.tar", where / "out" / "b.tar")
    place.target.parent.mkdir(parents=True)
    shutil.copytree(template.home, place.settings.home)
    shutil.copy(earlier, place.earlier)
    return place


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
    "restore_anew": Scenario(over_nothing, do_restore),
    "backup": Scenario(over_a_backup, do_backup),
}


def main(name: str, mode: str, every: int, offset: int) -> Tally:
    scenario, tally = SCENARIOS[name], Tally()
    with scratch_directory() as scratch:
        template = build_base(scratch / "template")
        earlier = scratch / "earlier.tar"
        back_up(template, earlier, force=False)
        where = scratch / "copy"
        place = _fresh(where, template, earlier, scenario)
        part = str(place.target.parent if scenario.act is do_backup else place.settings.home)
        before = pair_of(place.settings)
        tally.calls = count_calls(part, lambda: scenario.act(place))
        whole = (before, pair_of(place.settings))
        for at in range(1 + offset, tally.calls + 1, every):
            place = _fresh(where, template, earlier, scenario)
            status = run_at(part, at, MODES[mode], lambda: scenario.act(place), sticky=mode == "enospc")  # noqa: B023
            tally.points += 1
            tally.statuses[str(status)] = tally.statuses.get(str(status), 0) + 1
            problems = [] if status in (0, KILLED, 14) else [f"ended with {status}"]
            problems += _examine(place, scenario, whole)
            problems += [f"then {problem}" for problem in _go_on(place, scenario)]
            tally.problems += [f"{at}: {problem}" for problem in problems]
    return tally


def _fresh(where: Path, template: Settings, earlier: Path, scenario: Scenario) -> Place:
    place = laid_out(where, template, earlier)
    scenario.prepare(place)
    return place


def _examine(place: Place, scenario: Scenario, whole: tuple[Pair | None, ...]) -> list[str]:
    """The old pair or the new one, never one file of each; a backup is the old one or the new one, and whole."""
    found = pair_of(place.settings)
    problems = [] if found in whole else [f"the pair is {found}, none of {whole}"]
    problems += audit(layout_of(place.settings).database) if found is not None else []
    if scenario.act is do_backup:
        try:
            with closing(Backup(place.target)) as backup:
                backup.check_hashes()
        except KnowledgeError as error:
            problems.append(error.message)
    return problems


def _go_on(place: Place, scenario: Scenario) -> list[str]:
    """The same command, run again, works and leaves nothing beside; so does the next index."""
    scenario.act(place)
    home, out = place.settings.home, place.target.parent
    left = [path.name for path in (*home.iterdir(), *out.iterdir()) if ".part" in path.name or ".ready" in path.name]
    index_all(place)
    found = pair_of(place.settings)
    problems = [f"{name} is left" for name in left]
    problems += ["the index lacks documents"] * (found is None or len(found.keys) != len({*TEXTS, *CHANGED}))
    return [*problems, *audit(layout_of(place.settings).database)]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        scenario, mode, every, offset = argument.split(":")
        tally = main(scenario, mode, int(every), int(offset))
        told = {"calls": tally.calls, "points": tally.points, "statuses": tally.statuses}
        sys.stdout.write(json.dumps({"run": f"{scenario}:{mode}", **told, "problems": tally.problems[:20]}) + "\n")
        sys.stdout.flush()
