"""Clocks that jump while a service works: no run, no file and no role is lost, and no schedule runs twice (P29).

The wall clock of each process is a file that the test writes; the queue and the disk keep the machine's.
"""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from store.run_port import RunRecord
from store.state import SqliteStateStore
from tests.support.audit import audit
from tests.support.chaos import MATTER, SLOW_S, Chaos, chaos, differing
from tests.support.depth import IS_NIGHTLY
from tests.support.figures import Figure, NoteFigure
from tests.support.poison import JumpingClock

pytestmark = [pytest.mark.redis, pytest.mark.timeout(900)]
FILES = 80
HOUR_S = 3600
HOURLY = "  schedules: [{name: hourly, cron: '0 * * * *', timezone: UTC}]"
ROLES = ("writer", "scheduler", "worker")
JUMPS_H = (1, -1, 25, -25) if IS_NIGHTLY else (1, -25)
LOOKS_S = 1.5  # every role has looked at its clock meanwhile, and said its lease
_jumps: dict[int, tuple[float, ...]] = {}  # by hours: how many, how many were bad, seconds, workers taken for dead


@pytest.fixture
def clocks() -> dict[str, JumpingClock]:
    return {}


@pytest.fixture
def it(clocks: dict[str, JumpingClock], monkeypatch: pytest.MonkeyPatch) -> Iterator[Chaos]:
    """Each role with a clock of its own; the scheduler's stands at five past some hour, so that no tick is near."""
    with chaos(FILES, embeddings="words_first", more=HOURLY) as started:
        for name in ROLES:
            clocks[name] = JumpingClock(started.service.folder, name)
        clocks["scheduler"].set(_five_past())
        for name in ROLES:
            with clocks[name].of(monkeypatch):
                started.service.start(name)
        assert started.ended(started.service.first_run()).state == "done"
        yield started


def _five_past() -> int:
    return 300 - int(time.time()) % HOUR_S


def _runs(it: Chaos) -> list[RunRecord]:
    with closing(SqliteStateStore(it.service.layout.state, read_only=True)) as state:
        return [run for run in state.runs(100) if run.trigger == "schedule"]


def _jumped(it: Chaos, clock: JumpingClock, seconds: int) -> RunRecord:
    """A run in whose midst a clock is set: it waits for the embeddings server until that is done."""
    it.change()
    it.embeddings.behaviour.held = MATTER
    run = it.service.submit()
    it.service.wait_until(lambda: it.service.run(run).progress.get("written", 0) > 0, SLOW_S)
    it.service.wait_until(lambda: it.embeddings.in_flight > 0, SLOW_S)
    clock.set(seconds)
    time.sleep(LOOKS_S)
    assert it.service.run(run).ended_ns is None
    it.embeddings.behaviour.held = ""
    return it.ended(run)


@pytest.mark.parametrize("hours", JUMPS_H)
def test_a_clock_that_jumps_in_the_midst_of_a_run_loses_nothing(
    it: Chaos, clocks: dict[str, JumpingClock], hours: int, note_figure: NoteFigure
) -> None:
    """Every role in turn, then back again: each run ends well, with what is on the disk. A worker is taken for dead
    where its machine is so busy that it says nothing for two seconds, and for no other cause: how often is told."""
    wrong, began_s = [], time.monotonic()
    for name in ROLES:
        before = _five_past() if name == "scheduler" else 0
        for ahead in (before + hours * HOUR_S, before):
            ended = _jumped(it, clocks[name], ahead)
            told = (name, ahead, ended.state, ended.cause, differing(it))
            wrong += [str(told)] * (told[2:] != ("done", "", {}))
    died = sum(role.said().count("worker_died") for role in it.service.of("scheduler"))
    _jumps[hours] = (2 * len(ROLES), len(wrong), time.monotonic() - began_s, died)
    tried, bad, seconds, deaths = (sum(each) for each in zip(*_jumps.values(), strict=True))
    detail = f"{deaths:.0f} workers taken for dead"
    what = "clocks set on and back by 1 and 25 hours in the midst of a run, each role in turn"
    note_figure(
        Figure("clock-jumps", ("P29",), what, int(tried), bad=int(bad), asked=24, seconds=seconds, detail=detail)
    )
    assert wrong == []
    assert audit(it.service.layout.database) == []


def test_a_schedule_runs_once_for_all_the_hours_that_were_jumped_over_and_not_again_for_those_it_went_back(
    it: Chaos, clocks: dict[str, JumpingClock]
) -> None:
    """The scheduler looks once a second; after each jump it has the time for a few looks."""
    assert _runs(it) == []
    start = _five_past()

    def jump(hours: int, runs: int) -> int:
        """How many scheduled runs there are then; waits for so many."""
        clocks["scheduler"].set(start + hours * HOUR_S)
        it.service.wait_until(lambda: len(_runs(it)) >= runs, SLOW_S)
        time.sleep(3)
        it.service.wait_until(lambda: all(run.ended_ns is not None for run in _runs(it)), SLOW_S)
        return len(_runs(it))

    assert jump(1, 1) == 1
    assert jump(26, 2) == 2, "25 ticks at once are one run"
    assert jump(1, 2) == 2, "what was run for is not run for again"
    assert jump(0, 2) == 2
    assert jump(27, 3) == 3, "and goes on from where it was"
    assert {run.state for run in _runs(it)} == {"done"}
