"""Every part of a service is killed at moments that nobody has chosen; what is stored in the end is right (P2..P5)."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.audit import audit
from tests.support.chaos import (
    MATTER,
    PARTS,
    SLOW_S,
    Chaos,
    assert_like_a_clean_index,
    chaos,
    differing,
    rounds_wanted,
    vector_bytes,
)
from tests.support.figures import Figure, NoteFigure, keep
from tests.support.gates import Gate
from tests.support.meddler import Meddler
from tests.support.service import Role

pytestmark = pytest.mark.timeout(900 + 600 * rounds_wanted())
FILES = 120
NIGHTLY = 20  # of each part, as the release bar asks
WHAT = {
    "scheduler": "the scheduler",
    "worker": "a worker",
    "writer": "the writer",
    "broker": "the queue",
    "embeddings": "the embeddings server",
    "reader": "a reader",
    "all": "all of them at once",
}
_tried: Counter[str] = Counter()
_bad: Counter[str] = Counter()
_seconds: Counter[str] = Counter()


def _round(it: Chaos, what: str, parts: tuple[str, ...]) -> list[str]:
    """What is wrong after the parts were killed under a run: one that was over before is no proof, and the next one is
    not let to its end before."""
    began_s = time.monotonic()
    wrong: list[str] = []
    was_struck = False
    for too_late in range(2):
        while len(it.service.of("worker")) < 2:
            it.service.start("worker")
        try:
            ended, was_struck = it.round(*parts, is_held=too_late > 0)
            told = (ended.state, ended.cause, ended.counts, ended.progress)
            wrong = [f"{what}: {told}"] * (ended.state != "done")
            wrong += [f"{what}: {key} is {is_stored}" for key, is_stored in differing(it).items()]
        except TimeoutError as error:
            wrong, was_struck = [f"{what}: {error}"], True
        if was_struck or wrong:
            break
    _tried[what] += was_struck
    _bad[what] += bool(wrong)
    _seconds[what] += round(time.monotonic() - began_s)
    return wrong


def _figures() -> list[Figure]:
    """As far as it has come; the last ones have the kills of both kinds of queue."""
    return [
        Figure(
            f"kill-{what}",
            ("P1", "P2", "P3", "P4", "P6"),
            f"{words} killed under load, and what is stored at the end",
            _tried[what],
            bad=_bad[what],
            asked=NIGHTLY,
            seconds=_seconds[what],
            detail="with a queue that keeps its work and with one that loses it",
        )
        for what, words in WHAT.items()
    ]


@pytest.mark.parametrize(("commit", "keeps"), [("together", True), ("words_first", False)])
def test_whatever_is_killed_the_store_is_that_of_a_clean_index(
    commit: str, keeps: bool, note_figure: NoteFigure
) -> None:
    """P1, P2, P4, P6, faults 1, 7, 9, 10: each part alone, then all at once, with a queue that keeps its work and one
    that loses it; each run ends by itself, and whoever reads meanwhile sees nothing half."""
    wrong: list[str] = []
    with chaos(FILES, keeps=keeps, embeddings=commit) as it:
        it.service.start_all(workers=2)
        assert it.ended(it.service.first_run()).state == "done"
        it.read_on()
        for _ in range(rounds_wanted()):
            for what in WHAT:
                wrong += _round(it, what, PARTS if what == "all" else (what,))
            for figure in _figures():
                keep(figure)
        assert it.reader is not None and it.reader.is_reading
        wrong += it.reader.said().splitlines()
        for figure in _figures():
            note_figure(figure)
        assert wrong == []
        assert min(_tried[what] for what in WHAT) >= rounds_wanted(), "each was struck while a run went on"
        assert_like_a_clean_index(it, commit=commit)


@pytest.fixture
def gated() -> Iterator[tuple[Chaos, Gate]]:
    """A service whose first run has begun: its workers have pages in hand, and read nothing before the gate opens."""
    with chaos(FILES, keeps=True) as it:
        gate = Gate(it.service.folder)
        it.service.environ["worker"] = gate.environ
        it.service.start_all(workers=2)
        it.service.first_run()
        yield it, gate


def test_what_changes_under_a_run_and_a_queue_that_loses_jobs_leave_nothing_old(gated: tuple[Chaos, Gate]) -> None:
    """P3, fault 7: files that change 1, 5 and 50 ms after their page was sent, at the same length; a queue that is
    emptied twice; a job that has expired, and one that somebody has removed. After one more pass all is as on disk."""
    it, gate = gated
    run, meddler = it.service.first_run(), Meddler(it)
    with meddler.rewriting(delays_s=(0.001, 0.005, 0.05)):
        for harm in (meddler.expire_one, meddler.remove_one, meddler.lose_all, meddler.lose_all):
            harm()
        it.service.wait_until(lambda: len(meddler.rewritten) >= 6, SLOW_S)  # after each of the delays some
        gate.open()
        assert it.ended(run).state == "done"
    assert it.ended(it.service.submit()).state == "done"
    assert differing(it) == {}
    assert audit(it.service.layout.database, vector_of=vector_bytes) == []


def test_every_page_delivered_several_times_at_once_counts_once(gated: tuple[Chaos, Gate]) -> None:
    """P4: one row a path, counts as of one delivery, and nothing of the copies is left over."""
    it, gate = gated
    meddler = Meddler(it)
    with meddler.copying():
        it.service.wait_until(lambda: len(meddler.copied) >= 10, SLOW_S)  # one to four copies, each once
        gate.open()
        ended = it.ended(it.service.first_run())
    assert (ended.state, ended.counts) == ("done", {"added": FILES})
    assert differing(it) == {}
    assert audit(it.service.layout.database, vector_of=vector_bytes) == []
    again = it.ended(it.service.submit())
    assert (again.state, sum(again.counts.values())) == ("done", FILES)


def test_what_a_worker_read_long_ago_never_takes_the_place_of_newer_text() -> None:
    """P5: it is held while its files change and another reads them, within its run and over the next one."""
    with chaos(FILES) as it:
        it.service.start_all(workers=2)
        assert it.ended(it.service.first_run()).state == "done"
        it.embeddings.behaviour.held = MATTER
        it.change(FILES)
        run, meddler = it.service.submit(), Meddler(it)
        held, keys = _worker_that_has_read(it, meddler)
        os.kill(held.pid, signal.SIGSTOP)
        for key in keys:
            meddler.rewrite(key)
        it.embeddings.behaviour.held = ""
        assert it.ended(run).state == "done"
        for key in keys:
            meddler.rewrite(key)
        assert it.ended(it.service.submit()).state == "done"
        assert differing(it) == {}
        os.kill(held.pid, signal.SIGCONT)
        it.service.wait_until(lambda: not meddler.has_in_hand(held.pid), SLOW_S)
        assert it.ended(it.service.submit()).state == "done"
        assert differing(it) == {}
        assert audit(it.service.layout.database, vector_of=vector_bytes) == []


def _worker_that_has_read(it: Chaos, meddler: Meddler) -> tuple[Role, list[str]]:
    """A worker that has asked for vectors of files that it has in hand, and those files."""
    found: list[tuple[Role, list[str]]] = []

    def is_there() -> bool:
        asked = "".join(it.embeddings.texts_seen)
        for role in it.service.of("worker"):
            keys = meddler.in_hand(role.pid)
            texts = [it.docs.joinpath(key.removeprefix("docs/")).read_text("utf-8") for key in keys]
            if any(" ".join(text.split(maxsplit=7)[5:7]) in asked for text in texts):
                found.append((role, keys))
        return bool(found)

    it.service.wait_until(is_there, SLOW_S)
    return found[0]


def test_a_queue_that_is_away_for_longer_than_anybody_retries_comes_back_to_what_it_had(
    gated: tuple[Chaos, Gate],
) -> None:
    """P2, fault 7: with its marks of jobs that were begun and never ended, of workers that still live."""
    it, gate = gated
    run, meddler = it.service.first_run(), Meddler(it)
    for role in it.service.of("worker"):
        meddler.held_by(role.pid)
    time.sleep(1.2)  # it writes down what it has once a second
    it.kill("broker")
    time.sleep(6)
    gate.open()
    it.bring_back("broker")
    ended = it.ended(run)
    assert (ended.state, sum(ended.counts.values())) == ("done", FILES)
    assert differing(it) == {}
