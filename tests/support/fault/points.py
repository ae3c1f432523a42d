"""The loop over an action's write calls: at some or all of them the action is killed, or refused by the disk.

For each point the action's ground is laid afresh, the action runs in a forked child that meets the fault, and what it
left is looked at in this process. A module of trials prints a line of JSON for each run of
`python -m MODULE NAME:WAY:SAMPLE ...`; a SAMPLE is a number of calls, or with a slash before it (/2) every so many.
"""

import errno
import json
import os
import random
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.support.depth import SEED
from tests.support.fault.injector import HALF, KILL, count_calls, run_at
from tests.support.scratch import scratch_directory

# in the nightly form, every so many calls a kill, and every so many a refusal: KNOWLEDGE_TEST_EVERY=KILLS,REFUSALS
EVERY_KILL, EVERY_REFUSAL = map(int, os.environ.get("KNOWLEDGE_TEST_EVERY", "2,1").split(","))
KILLED, REFUSED = -9, 14  # how an action may end; or with 0, where only a tidying-up has failed
Problems = Sequence[str]


class Way(NamedTuple):
    """How a call fails."""

    mode: int  # KILL, HALF or an errno
    keeps_failing: bool = False  # and every one after it


WAYS = {
    "kill": Way(KILL),
    "half": Way(HALF),
    "eio": Way(errno.EIO),
    "eio_on": Way(errno.EIO, keeps_failing=True),
    "enospc": Way(errno.ENOSPC),
    "enospc_on": Way(errno.ENOSPC, keeps_failing=True),
}
DEADLY = ("kill", "half")


@dataclass(frozen=True, slots=True)
class Trial:
    """One action and how it is judged; all of it works on one place that `fresh` lays out again."""

    part: str  # of the paths that are concerned
    home: Path  # nothing in it may be open to others, at any moment (P10)
    fresh: Callable[[], None]
    act: Callable[[], object]
    went_through: Callable[[], None]  # called once, after the action went through: what it leads to
    examine: Callable[[], Problems]  # right after the fault
    go_on: Callable[[], Problems]  # the same command again, and what follows


Make = Callable[[str, Path], Trial]
"""A trial by its name, in a directory that is its own."""


@dataclass(slots=True)
class Tally:
    calls: int = 0
    points: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def chosen(calls: int, sample: str, name: str) -> list[int]:
    """Which calls are tried, from 1; the same ones with the same seed."""
    rng, every_call = random.Random(f"{SEED}:{name}"), range(1, calls + 1)
    if sample.startswith("/"):
        every = int(sample[1:])
        return list(every_call[rng.randrange(every) :: every])
    return sorted(rng.sample(every_call, min(int(sample), calls)))


def main(make: Make, arguments: Sequence[str]) -> None:
    """The runs of one trial should stand beside each other: its ground is made once for them."""
    runs = [argument.split(":") for argument in arguments]
    for name, group in groupby(runs, key=lambda run: run[0]):
        with scratch_directory() as scratch:
            for told in _tried(make(name, scratch), [(way, sample) for _, way, sample in group], name):
                sys.stdout.write(json.dumps(told) + "\n")
                sys.stdout.flush()


def _tried(trial: Trial, ways: Sequence[tuple[str, str]], name: str) -> Iterator[Mapping[str, object]]:
    trial.fresh()
    calls = count_calls(trial.part, trial.act)
    trial.went_through()
    for way, sample in ways:
        tally = Tally(calls)
        for at in chosen(calls, sample, f"{name}:{way}"):
            _try_at(trial, at, WAYS[way], tally)
        told = {"calls": tally.calls, "points": tally.points, "statuses": tally.statuses}
        yield {"run": f"{name}:{way}", **told, "bad": len(tally.problems), "problems": tally.problems[:20]}


def _try_at(trial: Trial, at: int, way: Way, tally: Tally) -> None:
    trial.fresh()
    status = run_at(trial.part, at, way.mode, trial.act, sticky=way.keeps_failing)
    tally.points += 1
    tally.statuses[str(status)] = tally.statuses.get(str(status), 0) + 1
    problems = [] if status in (0, KILLED, REFUSED) else [f"ended with {status}"]
    problems += [f"{path} is open to others" for path in open_to_others(trial.home)]
    problems += _unless_it_raises("what is left", trial.examine)
    problems += [f"then {problem}" for problem in _unless_it_raises("going on", trial.go_on)]
    tally.problems += [f"{at}: {problem}" for problem in problems]


def _unless_it_raises(doing: str, look: Callable[[], Problems]) -> Problems:
    """A point whose store cannot be looked at is one that went wrong, and no end of the run."""
    try:
        return look()
    except Exception as error:  # noqa: BLE001 - whatever it is, it stands for what a user would have met
        return [f"{doing}: {type(error).__name__}: {error}"]


def open_to_others(home: Path) -> list[str]:
    """Files of a base that somebody else might read, and directories that they might enter; links are nobody's."""
    found = []
    for folder, folders, names in os.walk(home):
        for path in (Path(folder), *(Path(folder) / name for name in (*folders, *names))):
            status = path.lstat()
            if status.st_mode & 0o077 and not stat.S_ISLNK(status.st_mode):
                found.append(f"{path.relative_to(home)} ({stat.S_IMODE(status.st_mode):o})")
    return sorted(set(found))
