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
from tests.support.chaos import SLOW_S, Chaos, chaos, differing, text_of
from tests.support.poison import JumpingClock

pytestmark = [pytest.mark.redis, pytest.mark.timeout(300)]
FILES = 80
HOUR_S = 3600
HOURLY = "  schedules: [{name: hourly, cron: '0 * * * *', timezone: UTC}]"
ROLES = ("writer", "scheduler", "worker")


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
                time.sleep(0.5)  # it has begun before the next one's environment is set
        assert started.ended(started.service.first_run()).state == "done"
        started.embeddings.behaviour.delay_s = 0.2  # so that a run can be met in its midst
        yield started


def _five_past() -> int:
    return 300 - int(time.time()) % HOUR_S


def _change(it: Chaos) -> None:
    for path in it.dice.sample(sorted(it.docs.rglob("*.md")), 40):
        path.write_text(text_of(it.dice.randrange(10**9)), encoding="utf-8")


def _runs(it: Chaos) -> list[RunRecord]:
    with closing(SqliteStateStore(it.service.layout.state, read_only=True)) as state:
        return [run for run in state.runs(100) if run.trigger == "schedule"]


@pytest.mark.parametrize("hours", [1, -1, 25, -25])
def test_a_clock_that_jumps_in_the_midst_of_a_run_loses_nothing(
    it: Chaos, clocks: dict[str, JumpingClock], hours: int
) -> None:
    """Every role in turn, then back again: each run ends well, with what is on the disk, and nobody is taken for dead
    or for away."""
    for name in ROLES:
        before = _five_past() if name == "scheduler" else 0
        for ahead in (before + hours * HOUR_S, before):
            _change(it)
            run = it.service.submit()
            it.service.wait_until(lambda run=run: it.service.run(run).progress.get("written", 0) > 0, SLOW_S)  # type: ignore[misc]
            clocks[name].set(ahead)
            assert it.service.run(run).ended_ns is None
            ended = it.ended(run)
            assert (ended.state, ended.cause) == ("done", ""), (name, ahead)
            assert differing(it) == {}, (name, ahead)
    (scheduler,) = it.service.of("scheduler")
    assert "worker_died" not in scheduler.said()
    assert audit(it.service.layout.database) == []


def test_a_schedule_runs_once_for_all_the_hours_that_were_jumped_over_and_not_again_for_those_it_went_back(
    it: Chaos, clocks: dict[str, JumpingClock]
) -> None:
    """The scheduler looks once a second; a few looks after each jump."""
    assert _runs(it) == []
    start = _five_past()

    def jump(hours: int) -> int:
        clocks["scheduler"].set(start + hours * HOUR_S)
        time.sleep(3)
        it.service.wait_until(lambda: all(run.ended_ns is not None for run in _runs(it)), SLOW_S)
        return len(_runs(it))

    assert jump(1) == 1
    assert jump(26) == 2, "25 ticks at once are one run"
    assert jump(1) == 2, "what was run for is not run for again"
    assert jump(0) == 2
    assert jump(27) == 3, "and goes on from where it was"
    assert {run.state for run in _runs(it)} == {"done"}
