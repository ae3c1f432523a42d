"""Roles that are told to end while a run goes on: each ends with its own status, and little is done again (P27)."""

import signal
import time

import pytest

from tests.support.audit import audit
from tests.support.chaos import MATTER, SLOW_S, Chaos, chaos, differing
from tests.support.depth import scaled
from tests.support.figures import Figure, NoteFigure

ROUNDS = scaled(1, 20)  # of each way to end
FILES = 120
CHANGED = 40
BAR_S = 10.0
WAYS = (("worker", 130), ("writer", 0), ("scheduler", 0), ("worker", 0))

pytestmark = [pytest.mark.redis, pytest.mark.timeout(900 + 300 * ROUNDS)]


def _end_one(it: Chaos, name: str, status: int) -> tuple[float, str]:
    """How long it took, and what is wrong with how it ended."""
    role = it.service.of(name)[0]
    began_s = time.monotonic()
    for _ in range(2 if status else 1):
        role.process.send_signal(signal.SIGINT if status else signal.SIGTERM)
    ended = role.process.wait(SLOW_S)
    took_s = time.monotonic() - began_s
    it.service.start(name)
    return took_s, "" if ended == status else f"{name} ended with {ended}: {role.said()[-500:]}"


def _ended_under_load(it: Chaos, name: str, status: int) -> tuple[float, list[str]]:
    """The same in the midst of a run. Where the run was over before, once more with one that gets no vectors so long:
    what a worker has in hand it gives back then."""
    for is_held in (False, True):
        it.embeddings.behaviour.held = MATTER if is_held else ""
        it.change(CHANGED)
        run = it.service.submit()
        it.service.wait_until(lambda run=run: _is_under_way(it, run), SLOW_S)  # type: ignore[misc]
        took_s, wrong = _end_one(it, name, status)
        went_on = it.service.run(run).ended_ns is None
        it.embeddings.behaviour.held = ""
        ended = it.ended(run)
        told = [wrong] * bool(wrong) + [f"{name}: {ended.state} {ended.cause}"] * (ended.state != "done")
        told += [f"{name}: {key} is {is_stored}" for key, is_stored in differing(it).items()]
        if went_on or told:
            return took_s, told
    pytest.fail(f"no run was met in its midst by the end of {name}")


def _is_under_way(it: Chaos, run: int) -> bool:
    found = it.service.run(run)
    return found.ended_ns is not None or found.progress.get("checked", 0) >= 8 or it.embeddings.in_flight > 0


def test_a_role_that_is_told_to_end_under_load_leaves_little_to_do_again(note_figure: NoteFigure) -> None:
    """P27, fault 4: 0 for SIGTERM and 130 for Ctrl-C, pressed twice too; what was committed is not done again."""
    took_s, wrong, began_s = [], [], time.monotonic()
    with chaos(FILES) as it:
        it.embeddings.behaviour.delay_s = 0.05
        it.service.start_all(workers=2)
        assert it.ended(it.service.first_run()).state == "done"
        for _ in range(ROUNDS):
            for name, status in WAYS:
                took, told = _ended_under_load(it, name, status)
                took_s.append(took)
                wrong += told
        slow = sum(seconds > BAR_S for seconds in took_s)
        detail = f"slowest end {max(took_s):.1f} s; {slow} over {BAR_S:.0f} s"
        what = "SIGTERM and Ctrl-C under load: worker, writer, scheduler"
        tried, seconds = len(took_s), time.monotonic() - began_s
        note_figure(
            Figure("told-to-end", ("P27",), what, tried, bad=len(wrong), asked=80, seconds=seconds, detail=detail)
        )
        assert wrong == []
        assert audit(it.service.layout.database) == []


def test_what_a_role_has_committed_before_it_is_told_to_end_is_not_done_again() -> None:
    """P27: all three one after the other, in one run: no text is asked for twice, but what was in hand."""
    with chaos(FILES) as it:
        it.service.start_all(workers=2)
        run = it.service.first_run()
        it.service.wait_until(lambda: it.service.run(run).progress.get("written", 0) >= 16, SLOW_S)
        for name, status in WAYS:
            _, wrong = _end_one(it, name, status)
            assert wrong == ""
        ended = it.ended(run)
        assert ended.state == "done" and sum(ended.counts.values()) == FILES
        assert differing(it) == {}
        assert len(it.embeddings.texts_seen) < 2 * 2 * FILES
        assert audit(it.service.layout.database) == []
