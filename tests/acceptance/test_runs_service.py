"""The command line while the service of its index is up: what changes the index is handed over and followed (R11)."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest

from store.state import SqliteStateStore
from tests.support.audit import audit
from tests.support.command_line import CommandLine, write_files
from tests.support.scratch import scratch_directory
from tests.support.service import Service, many_files, service

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def it() -> Iterator[Service]:
    with scratch_directory() as place, service(place, files=many_files(100, words=20)) as started:
        started.start_all()
        assert started.ended(started.submit()).state == "done"
        yield started
        assert audit(started.layout.database) == []


@pytest.fixture
def knowledge(it: Service) -> CommandLine:
    return CommandLine(it.folder)


def newest(it: Service) -> int:
    with closing(SqliteStateStore(it.layout.state, read_only=True)) as state:
        return state.runs(1)[0].id


def named(*arguments: str) -> tuple[str, ...]:
    return (*arguments, "--config", "knowledge.yaml")


def test_an_index_run_is_handed_over_and_followed(it: Service, knowledge: CommandLine) -> None:
    """R11, S4-61: the words of a run; progress and the run's number on the side."""
    write_files(it.folder / "docs", {"handed.md": "# Handed over\n"})
    done = knowledge(*named("index"))
    assert (done.status, done.out.splitlines()[0][:5]) == (0, "tier:"), done
    assert "\nindexed: 1 added, " in done.out
    assert f"run {newest(it)} is handed to the service" in done.err
    as_json = knowledge(*named("index", "--json")).value
    assert (as_json["state"], as_json["exit_status"], as_json["trigger"]) == ("done", 0, "cli")
    assert as_json["id"] == newest(it)
    shown = knowledge(*named("runs", "show", str(as_json["id"] - 1), "--changes"))
    assert "added docs/handed.md\n" in shown.out
    quiet = knowledge(*named("index", "--quiet"))
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")


def test_paths_are_handed_over_and_refused_as_here(it: Service, knowledge: CommandLine) -> None:
    write_files(it.folder / "docs", {"one.md": "# One\n", "two.md": "# Two\n"})
    assert knowledge(*named("index", "docs/one.md", "--json")).value["counts"] == {"added": 1}
    assert knowledge(*named("index", "docs/two.md", "--rehash", "--json")).value["full"] is False
    before = newest(it)
    for refused in (("index", "/etc"), ("index", "--workers", "2"), ("index", "--queue", "redis://localhost"),
                    ("index", "--re-embed")):  # fmt: skip
        ended = knowledge(*named(*refused))
        assert (ended.status, ended.out) == (2, ""), refused
    assert newest(it) == before


def test_a_run_can_be_handed_over_without_waiting(it: Service, knowledge: CommandLine) -> None:
    done = knowledge(*named("index", "--detach"))
    run = newest(it)
    assert (done.status, done.out) == (
        0, f"run {run} is handed to the service; to follow it: knowledge runs show {run} --follow\n",
    )  # fmt: skip
    followed = knowledge(*named("runs", "show", str(run), "--follow"))
    assert (followed.status, followed.out.splitlines()[0]) == (0, f"run {run}: index of docs, by command line")


def test_ctrl_c_detaches(it: Service, knowledge: CommandLine) -> None:
    """130, as nothing is known of the end: the run itself goes on."""
    worker = it.of("worker")[0]
    write_files(it.folder / "docs", {"followed.md": "# Followed\n"})
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        before = newest(it)
        process = knowledge.start(*named("index"))
        it.wait_until(lambda: newest(it) > before and it.run(newest(it)).state in ("checking", "waiting"))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    run = before + 1
    assert process.returncode == 130
    assert f"run {run} goes on; to follow it again: knowledge runs show {run} --follow" in err.decode()
    assert it.ended(run).counts["added"] == 1


def test_verify_and_compact_are_runs_with_the_report_of_old(it: Service, knowledge: CommandLine) -> None:
    verified = knowledge(*named("verify", "--deep", "--json")).value
    assert (verified["status"], verified["is_deep"], verified["exit_status"]) == ("pass", True, 0)
    assert not [check for check in verified["checks"] if check["state"] != "pass"]
    compacted = knowledge(*named("compact", "--json")).value
    assert (compacted["status"], compacted["segments_after"] <= compacted["segments_before"]) == ("done", True)
    kinds = [one["kind"] for one in knowledge(*named("runs", "--limit", "2", "--json")).value["runs"]]
    assert kinds == ["compact", "verify"]


def test_a_removal_is_done_by_the_writer_also_beside_a_run(it: Service, knowledge: CommandLine) -> None:
    """While a run is paused, too; the run goes on, and does not bring back what was removed under it."""
    write_files(it.folder / "docs", {f"beside-{number}.md": f"# Beside {number}\n" for number in range(40)})
    assert knowledge(*named("index")).status == 0
    worker = it.of("worker")[0]
    write_files(it.folder / "docs", {f"later-{number}.md": f"# Later {number}\n" for number in range(100)})
    os.kill(worker.pid, signal.SIGSTOP)
    run = it.submit()
    it.wait_until(lambda: it.run(run).state == "checking")
    asked = knowledge(*named("runs", "pause", str(run)))
    assert (asked.status, f"run {run} is asked to pause" in asked.out) == (0, True)
    os.kill(worker.pid, signal.SIGCONT)
    it.wait_until(lambda: it.run(run).state == "paused")
    removed = knowledge(*named("rm", "docs/beside-1.md", "docs/nothing.md", "--json"))
    assert (removed.status, removed.value["documents_removed"]) == (4, 1)
    assert it.run(run).state == "paused"
    assert knowledge(*named("rebuild")).status == 0
    resumed = knowledge(*named("runs", "resume", str(run)))
    assert (resumed.status, resumed.out[:4]) == (0, "run ")
    ended = it.ended(run)
    assert (ended.state, ended.counts["added"]) == ("done", 100)
    removal = next(one for one in knowledge(*named("runs", "--json")).value["runs"] if one["kind"] == "rm")
    assert (removal["state"], removal["counts"]) == ("done", {"removed": 1})
    assert knowledge(*named("index", "--json")).value["counts"]["added"] == 1


def test_a_removal_works_without_scheduler_and_queue(it: Service, knowledge: CommandLine) -> None:
    """The writer alone is enough; the rest of the command line says what is missing."""
    write_files(it.folder / "docs", {"alone.md": "# Alone\n"})
    assert knowledge(*named("index")).status == 0
    scheduler = it.of("scheduler")[0]
    assert scheduler.terminate() == 0
    try:
        assert knowledge(*named("rm", "docs/alone.md")).status == 0
        refused = knowledge(*named("index"))
        assert refused.status == 11
        assert "`knowledge writer`, process" in refused.err
        assert "knowledge scheduler" in refused.err
        assert knowledge(*named("compact")).status == 11
        run = it.submit()
        listed = knowledge(*named("runs")).out.splitlines()[1]
        assert listed.endswith("no scheduler is running: it begins when one is (`knowledge up`)"), listed
        cancelled = knowledge(*named("runs", "cancel", str(run)))
        assert (cancelled.status, cancelled.out) == (
            0, f"run {run}: cancelled (cancelled before it began) just now\n",
        )  # fmt: skip
    finally:
        back = it.start("scheduler")
        it.wait_until(lambda: '"active"' in back.said())


def test_what_exchanges_files_is_refused(it: Service, knowledge: CommandLine) -> None:
    backup = it.folder / "b.tar"
    assert knowledge(*named("backup", str(backup))).status == 0
    for command in (("reset", "--force"), ("restore", "--force", str(backup)), ("rm", "--purge", "docs/handed.md")):
        ended = knowledge(*named(*command))
        assert (ended.status, "stop it first" in ended.err) == (11, True), (command, ended)
        assert "knowledge scheduler" in ended.err


def test_held_removals_are_approved_on_a_service(it: Service, knowledge: CommandLine) -> None:
    """R34: exactly the list that was shown goes, by its digest."""
    write_files(it.folder / "docs", {f"mass/{number}.md": f"# Mass {number}\n" for number in range(150)})
    assert knowledge(*named("index")).status == 0
    for number in range(149):
        (it.folder / "docs" / "mass" / f"{number}.md").unlink()
    held = knowledge(*named("index"))
    assert held.status == 3
    run = newest(it)
    assert f"to let exactly these go: knowledge runs approve {run} --digest " in held.out
    shown = knowledge(*named("runs", "show", str(run), "--json")).value
    assert (shown["state"], shown["exit_status"], shown["removals_held"]["count"]) == ("needs_approval", 3, 149)
    wrong = knowledge(*named("runs", "approve", str(run), "--digest", "00ff"))
    assert (wrong.status, "look at it again" in wrong.err) == (4, True)
    write_files(it.folder / "docs", {"mass/7.md": "# Mass 7, back\n"})
    approved = knowledge(*named("runs", "approve", str(run), "--digest", shown["removals_held"]["digest"][:12]))
    assert approved.status == 0, approved
    assert "indexed: 148 removed\n" in approved.out
    again = knowledge(*named("runs", "approve", str(run)))
    assert (again.status, f"run {newest(it)} has been asked to let them go" in again.err) == (4, True)


def test_a_run_is_asked_for_again(it: Service, knowledge: CommandLine) -> None:
    write_files(it.folder / "docs", {"again.md": "# Again\n"})
    first = knowledge(*named("index", "docs/again.md", "--json")).value
    retried = knowledge(*named("runs", "retry", str(first["id"]), "--json")).value
    assert (retried["counts"], retried["full"], retried["roots"]) == ({"unchanged": 1}, False, ["docs"])
    assert knowledge(*named("runs", "retry", str(newest(it)), "--detach")).status == 0
    it.ended(newest(it))


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("runs", "show", "9999"), 4), (("runs", "cancel", "9999"), 4), (("runs", "cancel", "1"), 4),
        (("runs", "pause", "1"), 4), (("runs", "resume", "1"), 4), (("runs", "retry", "9999"), 4),
        (("runs", "approve", "1"), 4), (("runs", "show", "9999", "--follow"), 4),
        (("runs", "show", "x"), 2), (("runs", "show", "0"), 2), (("runs", "--limit", "0"), 2),
        (("runs", "shw", "1"), 2),
    ],
)  # fmt: skip
def test_bad_input_is_told_with_a_hint(knowledge: CommandLine, arguments: tuple[str, ...], status: int) -> None:
    ended = knowledge(*named(*arguments))
    assert (ended.status, "hint: " in ended.err) == (status, True), ended
    as_json = knowledge(*named(*arguments, "--json"))
    assert as_json.status == status
    assert json.loads(as_json.out)["error"]["message"]
