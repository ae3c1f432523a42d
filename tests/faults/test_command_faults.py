"""The real command under faults, with its workers and its queue: its exit status, its words, and what it leaves.

A command is a process of its own; it and all that it starts count their write calls on the base's files together, and
the one that makes the chosen call meets the fault (P1, P2, P10, P13, P23, P24, P32). Limits of the system are tried the
same way: no file may grow (EFBIG), no memory be had.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from cli import main
from tests.support.bases import settings_of
from tests.support.command_line import Ended
from tests.support.depth import IS_NIGHTLY
from tests.support.embedding_server import embedding_server
from tests.support.fault import injector
from tests.support.fault.command_places import (
    ACTIONS,
    Place,
    lay_out,
    make_template,
    place_in,
    run_command,
    run_limited,
)
from tests.support.fault.commands import ground_of, left, try_points
from tests.support.fault.points import WAYS, Tally
from tests.support.fault.scenarios import States, states_of
from tests.support.figures import Figure, NoteFigure
from tests.support.scratch import scratch_directory
from tests.support.vector_runs import DIMENSION

needs_injector = pytest.mark.skipif(
    injector.compiler() is None, reason="the fault injector needs Linux and a C compiler (cc)"
)
pytestmark = [pytest.mark.redis, pytest.mark.timeout(21_600 if IS_NIGHTLY else 900)]

A_WAY = 4  # nightly: so many calls of each action in each way
# the short form: few actions, and of each one call in these ways
FEW = {
    "index-workers": ("enospc_on",),
    "rm": ("half", "eio"),
    "restore": ("kill", "eio_on"),
}
TOO_LITTLE = -1
KIB, MIB = 1024, 1024**2
FILE_LIMITS = [100, 4 * KIB, 60 * KIB, 100 * KIB, 140 * KIB, 180 * KIB, 220 * KIB, 260 * KIB, 300 * KIB, 340 * KIB]
MEMORY_LIMITS = [number * MIB for number in range(20, 130, 5)]


class Ready(NamedTuple):
    """A template that commands are tried over, and the injector."""

    place: Place
    template: Path
    library: Path


@pytest.fixture(scope="module")
def ready() -> Iterator[Ready]:
    with embedding_server(dimension=DIMENSION) as server, scratch_directory() as scratch:
        place = place_in(scratch)
        yield Ready(place, make_template(place, server.url), injector.build(scratch))


@needs_injector
@pytest.mark.parametrize("name", ACTIONS if IS_NIGHTLY else FEW)
def test_a_command_that_meets_a_fault(ready: Ready, note_figure: NoteFigure, name: str) -> None:
    """P1, P2, P10, P13, P23, P24, P32: -9 for a kill, 14 with words and no traceback for the disk; the next works."""
    began_s = time.monotonic()
    fault = injector.CommandFault(ready.library, ready.library.with_name("tally"), "")
    ground = ground_of(ready.place, ready.template, ACTIONS[name], fault)
    tally = Tally()
    for way in WAYS if IS_NIGHTLY else FEW[name]:
        try_points(ground, name, way, str(A_WAY if IS_NIGHTLY else 1), tally)
    told = ", ".join(f"{status}: {number}" for status, number in sorted(tally.statuses.items()))
    note_figure(
        Figure(
            name=f"command-{name}",
            promises=("P1", "P2", "P10", "P23", "P24"),
            what=f"`knowledge {' '.join(ACTIONS[name].words[:2])}` killed, or refused by the disk, at a write call",
            tried=tally.points,
            of=tally.calls,
            bad=len(tally.problems),
            seconds=time.monotonic() - began_s,
            detail=f"exit {told}",
        )
    )
    assert tally.problems == []
    assert tally.points >= len(WAYS if IS_NIGHTLY else FEW[name])
    assert set(tally.statuses) <= {"0", "-9", "14"}


@pytest.mark.skipif(sys.platform != "linux", reason="that no memory is to be had can be said on Linux only")
@pytest.mark.parametrize("limit", ["RLIMIT_FSIZE", "RLIMIT_AS"])
def test_a_command_under_a_limit_of_the_system(note_figure: NoteFigure, limit: str) -> None:
    """P24: a file that may not grow is the disk's refusal, 14; no memory is 1, or what it was refused for, in words.
    The store is whole, and the next command without the limit does it all."""
    began_s = time.monotonic()
    every, due = (FILE_LIMITS, (0, 14)) if limit == "RLIMIT_FSIZE" else (MEMORY_LIMITS, (0, 1, 14))
    limits = every if IS_NIGHTLY else [every[4]]
    problems: list[str] = []
    statuses: Counter[int] = Counter()
    with limited_ground() as (place, template, whole):
        for most in limits:
            if run_limited(place, ("--version",), limit, most).status != 0:
                statuses[TOO_LITTLE] += 1  # for the interpreter itself, whose words are not ours
                continue
            lay_out(place, template, ACTIONS["index"])
            done = run_limited(place, ACTIONS["index"].words, limit, most)
            statuses[done.status] += 1
            found = _ending(done, due) + left(place, whole, is_done=done.status == 0)
            again = run_command(place, ACTIONS["index"].words)
            found += [f"then {problem}" for problem in (*_ending(again, (0,)), *left(place, whole, is_done=True))]
            problems += [f"{most}: {problem}" for problem in found]
    note_figure(
        Figure(
            name=f"command-under-{'file-size' if limit == 'RLIMIT_FSIZE' else 'memory'}-limit",
            promises=("P24",),
            what=f"`knowledge index` under {limit}",
            tried=len(limits),
            of=len(every),
            bad=len(problems),
            seconds=time.monotonic() - began_s,
            detail="exit " + ", ".join(f"{status}: {number}" for status, number in sorted(statuses.items())),
        )
    )
    assert problems == []
    assert {1, 14, TOO_LITTLE} & statuses.keys(), "no limit was felt"


def test_no_memory_is_told_in_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """P24: it is not called unexpected, and nobody is asked to report it."""

    def out_of_memory(arguments: list[str]) -> int:
        raise MemoryError

    monkeypatch.setattr(main, "_dispatch", out_of_memory)
    assert main.run(["status"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: there was not enough memory")
    assert "report" not in told


@contextmanager
def limited_ground() -> Iterator[tuple[Place, Path, tuple[States, States]]]:
    """A place without vectors, its template, and its documents before and after the command."""
    with scratch_directory() as scratch:
        place = place_in(scratch)
        template = make_template(place, has_backup=False)
        lay_out(place, template, ACTIONS["index"])
        before = states_of(settings_of(place.home))
        assert run_command(place, ACTIONS["index"].words).status == 0
        yield place, template, (before, states_of(settings_of(place.home)))


def _ending(done: Ended, due: tuple[int, ...]) -> list[str]:
    problems = [f"ended with {done.status}: {done.err[-300:]}"] * (done.status not in due)
    problems += [f"says nothing, and ended with {done.status}"] * (done.status != 0 and not done.err.strip())
    return problems + [f"told a traceback: {done.err[-300:]}"] * ("Traceback" in done.err)
