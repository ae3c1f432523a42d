"""A service whose surroundings fail: roots that vanish, a queue that is full or forgets, a model that hangs, clocks
that lie."""

import os
import time
from contextlib import suppress

import pytest

from app.roles.calls import ApplyGroup, await_answer, place_call
from store.write_port import GroupResult, RemoveWrite, WriteGroup
from tests.support.audit import audit
from tests.support.chaos import MATTER, SLOW_S, Chaos, chaos, differing
from tests.support.command_line import CommandLine
from tests.support.figures import Figure, NoteFigure
from tests.support.gates import Gate
from tests.support.meddler import Meddler
from tests.support.poison import clock_moved
from tests.support.service import Role
from tests.support.trees import mode

pytestmark = pytest.mark.timeout(900)
FILES = 60
HOUR_S = 3600


def _started(it: Chaos, *, workers: int = 1) -> None:
    it.service.start_all(workers=workers)
    assert it.ended(it.service.first_run()).state == "done"


def _stored(it: Chaos) -> int:
    ((count,),) = it.base.rows("SELECT count(*) FROM documents")
    return int(count)


def test_a_root_that_vanishes_between_runs_takes_nothing_with_it() -> None:
    """P8, fault 33: renamed, emptied (what an unmounted one looks like), closed to the service: nothing is removed, the
    run says why, and the next one is as if nothing had been."""
    with chaos(FILES, embeddings="") as it:
        it.service.heeds_modes = True
        _started(it)
        away = it.docs.with_name("away")

        it.docs.rename(away)
        gone = it.ended(it.service.submit())
        assert (gone.state, gone.cause, _stored(it)) == ("partial", "source_unreadable", FILES)

        it.docs.mkdir()
        emptied = it.ended(it.service.submit())
        assert (emptied.state, emptied.cause, _stored(it)) == ("partial", "source_empty", FILES)

        it.docs.rmdir()
        away.rename(it.docs)
        with mode(it.docs, 0o000):
            closed = it.ended(it.service.submit())
        assert (closed.state, closed.cause, _stored(it)) == ("partial", "root_unreadable", FILES)
        assert "may not read" in closed.message and str(it.docs) in closed.message
        assert closed.hint
        with mode(it.docs / "3", 0o000):
            half = it.ended(it.service.submit())
        assert (half.state, half.cause, _stored(it)) == ("partial", "source_unreadable", FILES)

        back = it.ended(it.service.submit())
        assert (back.state, back.counts) == ("done", {"unchanged": FILES})
        assert differing(it) == {}


def test_a_run_that_fails_says_why_and_what_mends_it() -> None:
    """Fault 15: whoever looks later has the words of the error, not its code alone; what depends on it is not done."""
    with chaos(FILES, embeddings="") as it:
        _started(it)
        (it.docs / "1" / "0001.md").unlink()
        failed = it.ended(it.service.submit(roots=["nowhere"]))
        assert (failed.state, failed.cause, failed.message) == ("failed", "usage", "there is no root 'nowhere'")
        assert _stored(it) == FILES
        shown = CommandLine(it.service.folder, within_s=SLOW_S)(
            "runs", "show", str(failed.id), "--config", "knowledge.yaml"
        )
        assert "\n  why: there is no root 'nowhere'\n  hint: `knowledge sources` lists the roots\n" in shown.out
        followed = CommandLine(it.service.folder, within_s=SLOW_S)(
            "runs", "retry", str(failed.id), "--config", "knowledge.yaml"
        )
        assert followed.status == 2
        assert f"run {failed.id + 1} failed: there is no root 'nowhere'" in followed.err


def test_a_model_that_hangs_keeps_no_text_from_being_committed(note_figure: NoteFigure) -> None:
    """P26: with requests that are never answered, words are written and removed all the same: no transaction is open
    meanwhile."""
    with chaos(FILES, embeddings="words_first") as it:
        gate = Gate(it.service.folder)
        gate.open()
        it.service.environ["worker"] = gate.environ
        _started(it)
        gate.close()
        it.change(FILES)
        run = it.service.submit()
        it.service.wait_until(lambda: it.service.run(run).state in ("checking", "embedding"), SLOW_S)
        it.embeddings.behaviour.trick = "hang"
        began_s = time.monotonic()
        gate.open()
        it.service.wait_until(lambda: it.embeddings.in_flight > 0, SLOW_S)
        with suppress(TimeoutError):
            it.service.wait_until(lambda: differing(it) == {}, SLOW_S)
        left, seconds = len(differing(it)), time.monotonic() - began_s
        detail = "new texts were all committed while no request was answered"
        what = "documents committed while the embeddings server hangs"
        note_figure(Figure("embeddings-hang", ("P26",), what, FILES, bad=left, seconds=seconds, detail=detail))
        assert left == 0
        one = RemoveWrite("docs/1/0001.md", time.time_ns(), it.service.run(run).generation)
        call = place_call(it.service.layout.calls, ApplyGroup(WriteGroup(removes=[one])))
        (removed,) = await_answer(it.service.layout.calls, call, GroupResult, lambda: None).results
        assert removed.verdict == "applied"
        assert it.service.run(run).ended_ns is None
        it.embeddings.behaviour.trick = ""
        assert it.ended(run).state == "done"
        assert audit(it.service.layout.database) == []


def test_a_run_with_a_limit_is_in_the_hands_of_so_many_workers() -> None:
    """C-08: with three of them alive, one page at a time is worked on."""
    with chaos(FILES) as it:
        _started(it, workers=3)
        it.change(FILES)
        it.embeddings.behaviour.held = MATTER
        run = it.service.submit(workers=1)
        meddler, seen = Meddler(it), [0]

        def look() -> int:
            seen.append(len(meddler.jobs()))
            return seen[-1]

        it.service.wait_until(lambda: look() > 0, SLOW_S)
        for _ in range(20):  # the other two have had the time to take more
            look()
            time.sleep(0.05)
        it.embeddings.behaviour.held = ""
        it.service.wait_until(lambda: bool(look() + 1 and it.service.run(run).ended_ns), SLOW_S)
        assert it.service.run(run).counts == {"updated": FILES}
        assert max(seen) == 1


def test_a_queue_that_forgets_is_warned_of_and_one_that_is_full_is_waited_for() -> None:
    """Faults 11 and 16: a queue that drops work is told of, in the log once and in the lease that others look at. Of a
    full one the run says that it waits; it is cancelled meanwhile, removals work, and with more memory it goes on."""
    from redis import Redis

    with (
        chaos(FILES, embeddings="", broker=("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")) as it,
        Redis(unix_socket_path=it.service.socket) as client,
    ):
        _started(it)
        scheduler = it.service.of("scheduler")[0]
        it.service.wait_until(lambda: "queue_unfit" in scheduler.said())
        assert "allkeys-lru" in scheduler.said() and "noeviction" in scheduler.said()

        def is_told() -> bool:
            leases = [client.get(key) or b"" for key in client.scan_iter(match="*lease:scheduler:*")]
            return any(b"allkeys-lru" in lease for lease in leases)

        it.service.wait_until(is_told)
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        it.docs.joinpath("0", "new.md").write_text("# New\n\nwords\n", encoding="utf-8")
        run = it.service.submit()
        it.service.wait_until(lambda: "memory is full" in it.service.run(run).cause, SLOW_S)
        assert it.service.run(run).state == "waiting"
        it.service.ask(run, "cancel")
        assert it.ended(run).state == "cancelled"

        again = it.service.submit()
        it.service.wait_until(lambda: "memory is full" in it.service.run(again).cause, SLOW_S)
        one = RemoveWrite("docs/1/0001.md", time.time_ns(), it.service.run(again).generation)
        gone = WriteGroup(removes=[one])
        call = place_call(it.service.layout.calls, ApplyGroup(gone))
        (removed,) = await_answer(it.service.layout.calls, call, GroupResult, lambda: None).results
        assert removed.verdict == "applied"
        client.config_set("maxmemory", 0)
        ended = it.ended(again)
        assert (ended.state, ended.counts) == ("done", {"added": 1, "unchanged": FILES})
        assert differing(it).keys() == {one.key}
        assert scheduler.said().count("queue_unfit") == 1


def test_one_scheduler_and_one_writer_whatever_comes_and_dies() -> None:
    """P9: of several processes of a role one is at work, and when that one is killed another one is, with no operator;
    one whose lock file somebody removes leaves, so that there are never two."""
    with chaos(FILES, embeddings="") as it:
        _started(it)
        for name in ("scheduler", "writer"):
            first = it.service.of(name)[0]
            others = [it.service.start(name) for _ in range(2)]
            it.service.wait_until(lambda others=others: all("stands_by" in one.said() for one in others), SLOW_S)  # type: ignore[misc]
            assert not any(_is_active(one) for one in others)
            first.kill()
            it.service.wait_until(lambda others=others: any(_is_active(one) for one in others), SLOW_S)  # type: ignore[misc]
            time.sleep(0.6)
            (second,) = [one for one in others if _is_active(one)]

            lock = it.service.layout.lock if name == "writer" else it.service.layout.scheduler_lock
            lock.unlink()
            it.service.wait_until(lambda second=second: second.process.poll() is not None, SLOW_S)  # type: ignore[misc]
            assert second.process.returncode == 11 and "lock_lost" in second.said()
            it.service.wait_until(lambda others=others: sum(map(_is_active, others)) == 2, SLOW_S)  # type: ignore[misc]
            assert len(it.service.of(name)) == 1
        ended = it.ended(it.service.submit())
        assert (ended.state, ended.counts) == ("done", {"unchanged": FILES})


def _is_active(role: Role) -> bool:
    """Whether it has ever done the work."""
    return '"active"' in role.said()


def test_clocks_that_are_hours_apart_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """P29: a worker an hour behind and one a day ahead, a scheduler an hour ahead, a writer a day behind; files of
    1969 and 2106. Each sees the jobs of the others, and what changes is found by every later run."""
    with chaos(FILES, embeddings="") as it:
        os.utime(it.docs / "0" / "0000.md", (-86400, -86400))
        os.utime(it.docs / "1" / "0001.md", (4_291_747_200, 4_291_747_200))
        moves = {"writer": -25 * HOUR_S, "scheduler": HOUR_S, "worker": -HOUR_S}
        for name, seconds in moves.items():
            with clock_moved(it.service.folder, monkeypatch, seconds):
                it.service.start(name)
        assert it.ended(it.service.first_run()).state == "done"
        assert _stored(it) == FILES and differing(it) == {}

        behind = it.service.of("worker")[0]
        with clock_moved(it.service.folder, monkeypatch, 25 * HOUR_S):
            ahead = it.service.start("worker")
            it.service.wait_until(lambda: "queue_unfit" in ahead.said() and "queue_unfit" in behind.said(), SLOW_S)
        assert behind.terminate() == 0
        for round_ in range(2):  # read by the one that is ahead, then by the one that is behind
            for path in sorted(it.docs.rglob("*.md"))[:20]:
                path.write_text(f"# Round {round_}\n\nsame length\n", encoding="utf-8")
            assert it.ended(it.service.submit()).state == "done"
            assert differing(it) == {}
            if not round_:
                assert ahead.terminate() == 0
                with clock_moved(it.service.folder, monkeypatch, -HOUR_S):
                    it.service.start("worker")
        assert audit(it.service.layout.database) == []
