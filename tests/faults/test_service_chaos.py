"""Every part of a service is killed at moments that nobody has chosen; what is stored in the end is right (P2..P5)."""

import os
import signal
import time

import pytest

from tests.support.audit import audit
from tests.support.chaos import (
    PARTS,
    SLOW_S,
    assert_like_a_clean_index,
    chaos,
    differing,
    rounds_wanted,
    vector_bytes,
)
from tests.support.meddler import Meddler

pytestmark = pytest.mark.timeout(300 + 300 * rounds_wanted(1))
FILES = 120


@pytest.mark.parametrize(("commit", "keeps"), [("together", True), ("words_first", False)])
def test_whatever_is_killed_the_store_is_that_of_a_clean_index(commit: str, keeps: bool) -> None:
    """P2, P4, P6, faults 1, 7, 9, 10: each part alone, then all at once, with a queue that keeps its work and one that
    loses it; each run ends by itself."""
    with chaos(FILES, keeps=keeps, embeddings=commit) as it:
        it.service.start_all(workers=2)
        assert it.ended(it.service.first_run()).state == "done"
        for _ in range(rounds_wanted(1)):
            for parts in [*((part,) for part in PARTS), PARTS]:
                while len(it.service.of("worker")) < 2:
                    it.service.start("worker")
                ended = it.round(*parts)
                assert ended.state == "done", (parts, ended.cause, ended.counts, ended.progress)
                assert differing(it) == {}, parts
        assert_like_a_clean_index(it, commit=commit)


def test_what_changes_under_a_run_and_a_queue_that_loses_jobs_leave_nothing_old() -> None:
    """P3, fault 7: files that change 1, 5 and 50 ms after their page was sent, at the same length; a queue that is
    emptied twice; a job that has expired, and one that somebody has removed. After one more pass all is as on disk."""
    with chaos(FILES) as it:
        it.service.start_all(workers=2)
        run = it.service.first_run()
        meddler = Meddler(it)
        with meddler.rewriting(delays_s=(0.001, 0.005, 0.05)):
            for harm in (meddler.expire_one, meddler.remove_one, meddler.lose_all, meddler.lose_all):
                harm()
            assert it.ended(run).state == "done"
        assert len(meddler.rewritten) >= 6, "after each of the delays some"
        assert it.ended(it.service.submit()).state == "done"
        assert differing(it) == {}
        assert audit(it.service.layout.database, vector_of=vector_bytes) == []


def test_every_page_delivered_several_times_at_once_counts_once() -> None:
    """P4: one row a path, counts as of one delivery, and nothing of the copies is left over."""
    with chaos(FILES) as it:
        it.service.start_all(workers=2)
        meddler = Meddler(it)
        with meddler.copying():
            ended = it.ended(it.service.first_run())
        assert (ended.state, ended.counts) == ("done", {"added": FILES})
        assert len(meddler.copied) >= 10, "one to four copies, each once"
        assert differing(it) == {}
        assert audit(it.service.layout.database, vector_of=vector_bytes) == []
        again = it.ended(it.service.submit())
        assert (again.state, sum(again.counts.values())) == ("done", FILES)


def test_what_a_worker_read_long_ago_never_takes_the_place_of_newer_text() -> None:
    """P5: it is held while its files change and another reads them, within its run and over the next one."""
    with chaos(FILES) as it:
        it.service.start_all(workers=2)
        run = it.service.first_run()
        meddler = Meddler(it)
        held = it.service.of("worker")[0]
        keys = meddler.held_by(held.pid)
        os.kill(held.pid, signal.SIGSTOP)
        for key in keys:
            meddler.rewrite(key)
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


def test_a_queue_that_is_away_for_longer_than_anybody_retries_comes_back_to_what_it_had() -> None:
    """P2, fault 7: with its marks of jobs that were begun and never ended, of workers that still live."""
    with chaos(FILES, keeps=True) as it:
        it.embeddings.behaviour.delay_s = 0.5
        it.service.start_all(workers=2)
        run = it.service.first_run()
        meddler = Meddler(it)
        for role in it.service.of("worker"):
            meddler.held_by(role.pid)
        time.sleep(1.2)  # it writes down what it has once a second
        it.kill("broker")
        time.sleep(6)
        it.embeddings.behaviour.delay_s = 0.0
        it.bring_back("broker")
        ended = it.ended(run)
        assert (ended.state, sum(ended.counts.values())) == ("done", FILES)
        assert differing(it) == {}
