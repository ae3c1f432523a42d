"""A storm of changes below a root that a service follows: none is missed, and there is an end to it (P22)."""

import random
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from domain.settings import QueueSettings
from scheduler.watch import DEFAULT_DEBOUNCE_S
from store.run_port import RunRecord
from store.state import SqliteStateStore
from tests.support.audit import audit
from tests.support.chaos import SLOW_S, Chaos, chaos, differing
from tests.support.depth import SEED, scaled
from tests.support.figures import Figure, NoteFigure

FILES = scaled(60, 500)
STEPS = scaled(1000, 33_000)  # of about three events each: made, written and closed; renamed away and to
SMALL = "# Note {number}\n\nstate {step} of it\n"
QUIET_S = 3 * DEFAULT_DEBOUNCE_S  # whatever was heard before has begun its pass by then
CONVERGED_WITHIN_S = scaled(1, 10) * SLOW_S
WATCHED = "{path: docs/, watch: true}"

pytestmark = [pytest.mark.redis, pytest.mark.timeout(scaled(900, 3600))]


def _step(docs: Path, dice: random.Random, step: int) -> int:
    """One change as editors and copies make them; how many events the kernel tells of."""
    path = docs / f"{dice.randrange(8)}" / f"storm-{dice.randrange(FILES):04}.md"
    text = SMALL.format(number=step, step=dice.random())
    kind = dice.randrange(4)
    if kind == 0:  # saved by way of another name
        aside = path.with_suffix(".part")
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
        return 5
    if kind == 1 and path.exists():
        path.unlink()
        path.write_text(text, encoding="utf-8")
        return 4
    if kind == 2 and path.exists():
        path.rename(path.with_name(f"moved-{path.name}"))
        return 2
    path.write_text(text, encoding="utf-8")
    return 3


def _passes(it: Chaos) -> list[RunRecord]:
    with closing(SqliteStateStore(it.service.layout.state, read_only=True)) as state:
        return [run for run in state.runs(1000) if run.trigger == "watch"]


def _is_over(it: Chaos) -> bool:
    """Whether no pass is under way and none has begun for long enough. This is asked before the files are looked at:
    reading them all again and again would take a processor from the passes."""
    ended_ns = [run.ended_ns for run in _passes(it)]
    last_ns = max((one for one in ended_ns if one is not None), default=None)
    return last_ns is not None and None not in ended_ns and time.time_ns() - last_ns > QUIET_S * 1e9


def test_a_storm_of_changes_ends_with_an_index_that_is_as_the_files_are(note_figure: NoteFigure) -> None:
    """P22: faster than they are taken; saved aside, deleted and made again, renamed. The kernel may drop events."""
    with chaos(FILES, embeddings="", root=WATCHED, files_per_job=QueueSettings().files_per_job) as it:
        it.service.start_all()
        assert it.ended(it.service.first_run()).state == "done"
        (scheduler,) = it.service.of("scheduler")
        it.service.wait_until(lambda: "watch_watching" in scheduler.said(), SLOW_S)
        dice, began_s = random.Random(SEED), time.monotonic()
        events = sum(_step(it.docs, dice, step) for step in range(STEPS))
        quiet_s, quiet_ns = time.monotonic() - began_s, time.time_ns()
        with suppress(TimeoutError):
            it.service.wait_until(lambda: _is_over(it) and differing(it) == {}, CONVERGED_WITHIN_S)
        passes = _passes(it)
        converged_s = (max((run.ended_ns or time.time_ns() for run in passes), default=time.time_ns()) - quiet_ns) / 1e9
        left = differing(it)
        detail = f"in {quiet_s:.0f} s; {len(passes)} passes; the last one ended {converged_s:.1f} s after the last"
        what = f"events of {STEPS:,} changes below a watched root"
        seconds = time.monotonic() - began_s
        note_figure(
            Figure("watch-storm", ("P22",), what, events, bad=len(left), asked=100_000, seconds=seconds, detail=detail)
        )
        assert left == {}
        assert audit(it.service.layout.database) == []
