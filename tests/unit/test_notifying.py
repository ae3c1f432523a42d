"""What is told, and what is not: each change once (issue 5, point 9)."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.notifying import Situation, notices_of, run_standings
from app.overdue import overdue_since_ns
from app.present_notify import message_of
from domain.settings import NOTIFY_EVENTS, NotifyEvent, ScheduleSettings, Settings
from store.notice_port import ToldState
from store.run_port import RunRecord
from store.schedule_port import ScheduleRecord

HOUR_NS = 3600 * 10**9
DAY_NS = 24 * HOUR_NS
SETTINGS = Settings("handbook", Path("/home"), config_path=None, configured=False)


def run(
    number: int, state: str, *roots: str, cause: str = "", full: bool = True, kind: str = "index", ended_ns: int = 0
) -> RunRecord:
    ended = None if state == "walking" else ended_ns or number * 10
    return RunRecord(number, number, kind, "cli", roots or ("docs",), state, number, ended, {}, cause=cause, full=full)


class Ledger:
    """What was told, as state.db would keep it."""

    def __init__(self, on: tuple[NotifyEvent, ...] = NOTIFY_EVENTS) -> None:
        self.on = on
        self.told: dict[str, ToldState] = {}

    def tell(self, now: Situation) -> list[NotifyEvent]:
        decision = notices_of(self.told, now, self.on)
        states: dict[str, str] = dict(decision.unspoken)
        for notice in decision.notices:
            states |= notice.states
        self.told |= {subject: ToldState(state, 1) for subject, state in states.items()}
        return [notice.event for notice in decision.notices]

    def runs(self, *runs: RunRecord) -> list[NotifyEvent]:
        return self.tell(Situation(run_standings(sorted(runs, key=lambda run: run.id, reverse=True))))


def test_a_state_is_told_once_and_so_is_its_recovery() -> None:
    ledger = Ledger()
    assert ledger.runs(run(1, "done")) == []
    assert ledger.runs(run(1, "done"), run(2, "failed", cause="disk_full")) == ["failed"]
    assert ledger.runs(run(2, "failed"), run(3, "failed")) == []
    assert ledger.runs(run(3, "failed"), run(4, "partial")) == ["partial"]
    assert ledger.runs(run(4, "partial"), run(5, "partial", cause="removals_held")) == ["removals_held"]
    assert ledger.runs(run(5, "needs_approval", cause="removals_held"), run(6, "done")) == ["recovered"]
    assert ledger.runs(run(6, "done"), run(7, "done")) == []


def test_a_run_over_several_roots_is_one_message() -> None:
    standings = run_standings([run(1, "failed", "a", "b", "c")])
    decision = notices_of({}, Situation(standings), NOTIFY_EVENTS)
    assert [notice.roots for notice in decision.notices] == [("a", "b", "c")]


@pytest.mark.parametrize("state", ["cancelled", "interrupted", "walking"])
def test_endings_that_say_nothing_change_nothing(state: str) -> None:
    ledger = Ledger()
    assert ledger.runs(run(1, "partial")) == ["partial"]
    assert ledger.runs(run(1, "partial"), run(2, state)) == []


def test_a_run_over_a_part_does_not_make_up_for_a_full_one() -> None:
    """As a watch's passes would, every few seconds."""
    ledger = Ledger()
    assert ledger.runs(run(1, "partial")) == ["partial"]
    assert ledger.runs(run(1, "partial"), run(2, "done", full=False)) == []
    assert ledger.runs(run(1, "partial"), run(2, "done", full=False), run(3, "failed", full=False)) == ["failed"]
    assert ledger.runs(run(1, "partial"), run(3, "failed", full=False), run(4, "done", full=False)) == ["partial"]
    assert ledger.runs(run(4, "done", full=False), run(5, "done")) == ["recovered"]


def test_kinds_of_work_and_roots_stand_by_themselves() -> None:
    ledger = Ledger()
    first = ledger.runs(run(1, "failed", "a"), run(2, "done", "b"), run(3, "failed", "a", kind="verify"))
    assert first == ["failed", "failed"]
    assert ledger.runs(run(1, "failed", "a"), run(3, "failed", "a", kind="verify"), run(4, "done", "b")) == []
    assert ledger.runs(run(3, "failed", "a", kind="verify"), run(5, "done", "a", kind="reindex")) == ["recovered"]


def test_the_run_that_ended_last_counts_not_the_one_that_began_last() -> None:
    ledger = Ledger()
    assert ledger.runs(run(1, "failed", ended_ns=100), run(2, "done", ended_ns=50)) == ["failed"]


def test_quarantine_is_told_when_it_grows_and_when_it_is_empty() -> None:
    ledger = Ledger()
    said = [ledger.tell(Situation(quarantined=files)) for files in (0, 1, 1, 3, 2, 3, 0, 0)]
    assert said == [[], ["quarantined"], [], ["quarantined"], [], ["quarantined"], ["recovered"], []]


def test_overdue_is_told_once_and_its_recovery() -> None:
    ledger = Ledger()
    said = [ledger.tell(Situation(overdue={"nightly": since})) for since in (None, 5, 5, None, None)]
    assert said == [[], ["overdue"], [], ["recovered"], []]


def test_what_is_not_asked_for_is_not_told_later_either() -> None:
    ledger = Ledger(on=("failed", "recovered"))
    assert ledger.runs(run(1, "partial")) == []
    assert ledger.runs(run(2, "done")) == [], "a recovery of what was never told"
    assert ledger.runs(run(3, "failed")) == ["failed"]
    assert ledger.runs(run(4, "done")) == ["recovered"]


def schedule(**changes: object) -> Settings:
    nightly = ScheduleSettings("nightly", "0 3 * * *", **changes)  # type: ignore[arg-type]
    return Settings("handbook", Path("/home"), None, False, schedules=(nightly,))


def overdue(success_ns: int, now_ns: int, first_seen: Mapping[str, int] | None = None) -> int | None:
    records = [ScheduleRecord("nightly", 0, last_success_ns=success_ns)]
    return overdue_since_ns(schedule(), records, first_seen or {}, now_ns)["nightly"]


def test_a_schedule_is_overdue_when_two_ticks_have_passed_without_success() -> None:
    success_ns = 3 * HOUR_NS + 60
    assert overdue(success_ns, success_ns + DAY_NS) is None
    assert overdue(success_ns, 3 * HOUR_NS + 2 * DAY_NS) is None, "it may be at it"
    assert overdue(success_ns, 4 * HOUR_NS + 2 * DAY_NS) == success_ns


def test_a_schedule_that_never_succeeded_is_overdue_from_when_it_was_first_seen() -> None:
    assert overdue(0, 100 * DAY_NS) is None, "nobody has looked before"
    assert overdue(0, 3 * DAY_NS, {"nightly": HOUR_NS}) == HOUR_NS


def test_the_message_is_for_people_and_programs_and_names_no_file() -> None:
    standings = run_standings([run(12, "failed", "docs", cause="embeddings_unavailable")])
    (notice,) = notices_of({}, Situation(standings), NOTIFY_EVENTS).notices
    message = message_of(notice, SETTINGS, 0)
    assert message["text"] == "knowledge handbook: run 12 (index of docs) failed (embeddings_unavailable)"
    assert (message["event"], message["base"], message["roots"]) == ("failed", "handbook", ["docs"])
    assert message["run"]["cause"] == "embeddings_unavailable"


@pytest.mark.parametrize("situation", [Situation(quarantined=2), Situation(overdue={"nightly": 5})])
def test_every_other_message_has_words_too(situation: Situation) -> None:
    for notice in notices_of({}, situation, NOTIFY_EVENTS).notices:
        assert message_of(notice, SETTINGS, 0)["text"].startswith("knowledge handbook: ")
