"""`knowledge schedules`: next ticks on the clock of their zone, what came of the last one, who runs them (C-08)."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from app.discovery import Located
from app.present_schedules import NO_SCHEDULER, schedules_json, schedules_text
from app.schedule_status import schedules_status
from app.scheduling import due_runs
from cli.main import run
from domain.layout import BaseLayout
from domain.settings import ScheduleSettings, Settings
from store.lock import WriteLock
from store.run_port import RunState
from store.state import SqliteStateStore

NS = 1_000_000_000
HOUR_NS = 3600 * NS
NIGHTLY = ScheduleSettings(
    "nightly", "0 3 * * *", timezone="Europe/Malta", window="01:00-05:00", jitter_s=300.0, workers=2
)


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * NS


TICK_NS = ns("2026-10-24T03:00+02:00")  # the clock is set back in the night after
NOW_NS = ns("2026-10-24T12:00+02:00")


def settings_of(home: Path, *schedules: ScheduleSettings) -> Settings:
    return Settings("knowledge", home, None, configured=True, schedules=schedules)


def located(settings: Settings) -> Located:
    return Located("nothing", None, settings.home)


def text_of(settings: Settings, now_ns: int) -> str:
    return schedules_text(schedules_status(settings, now_ns), located(settings), settings, now_ns)


def json_of(settings: Settings, now_ns: int) -> Any:
    value = schedules_json(schedules_status(settings, now_ns), located(settings), settings, now_ns)
    return json.loads(json.dumps(value))


def ticked(settings: Settings, ending: RunState | None, *, begun: bool = True) -> int:
    """A schedule that was there for a tick; whose run has ended, or goes on."""
    state = SqliteStateStore(BaseLayout(settings.home).state)
    due_runs(settings, state, TICK_NS - HOUR_NS)
    (event,) = due_runs(settings, state, TICK_NS + 300 * NS)
    if begun:
        state.start_run(event.run_id, floor_generation=0)
    if ending is not None:
        state.end_run(event.run_id, ending, {}, "")
        due_runs(settings, state, TICK_NS + 400 * NS)
    state.close()
    return event.run_id


def test_next_times_stand_on_the_clock_of_the_zone(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, NIGHTLY)
    lines = text_of(settings, NOW_NS).splitlines()
    assert lines[1:] == [
        f"note: {NO_SCHEDULER}",
        "",
        "nightly: index at 0 3 * * * (Europe/Malta), 2 workers",
        "  next: Sun 2026-10-25 03:00 CET, in 16 h, put off by up to 5 min",
        "        Mon 2026-10-26 03:00 CET",
        "        Tue 2026-10-27 03:00 CET",
        "  window: 01:00-05:00, closed until Sun 2026-10-25 01:00 CEST",
        "  last: none: no scheduler has seen it yet",
    ]
    (found,) = json_of(settings, NOW_NS)["schedules"]
    assert found["next"] == ["2026-10-25T02:00:00Z", "2026-10-26T02:00:00Z", "2026-10-27T02:00:00Z"]
    assert found["next_local"][0] == "Sun 2026-10-25 03:00 CET"
    assert (found["window_open"], found["window_opens_at"]) == (False, "2026-10-24T23:00:00Z")
    assert (found["last_tick_at"], found["last_outcome"], found["skipped"]) == (None, None, 0)


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("done", "ended well"),
        ("partial", "ended with files left out"),
        ("failed", "failed"),
        ("needs_approval", "ended, and waits for an approval"),
    ],
)
def test_what_came_of_the_last_run(tmp_path: Path, ending: RunState, words: str) -> None:
    settings = settings_of(tmp_path, NIGHTLY)
    run_id = ticked(settings, ending)
    assert f"  last: tick of Sat 2026-10-24 03:00 CEST; run {run_id} {words} " in text_of(settings, NOW_NS)
    (found,) = json_of(settings, NOW_NS)["schedules"]
    assert (found["last_tick_at"], found["last_run"], found["last_outcome"]) == (
        "2026-10-24T01:00:00Z", run_id, ending,
    )  # fmt: skip
    assert found["last_outcome_at"] is not None
    assert (found["last_success_at"] is not None) is (ending == "done")


@pytest.mark.parametrize(("begun", "words"), [(True, "is at it (walking)"), (False, "is queued")])
def test_a_run_that_goes_on_and_the_ticks_it_skips(tmp_path: Path, begun: bool, words: str) -> None:
    settings = settings_of(tmp_path, ScheduleSettings("often", "*/10 * * * *"))
    run_id = ticked(settings, None, begun=begun)
    state = SqliteStateStore(BaseLayout(tmp_path).state)
    assert due_runs(settings, state, TICK_NS + 620 * NS)[0].kind == "skipped"
    state.close()
    text = text_of(settings, TICK_NS + 630 * NS)
    assert f"; run {run_id} {words}" in text
    assert "  skipped: 1 tick, as another run went on" in text
    assert json_of(settings, NOW_NS)["schedules"][0]["last_outcome"] == "queued"


def test_a_tick_that_nobody_took_is_told(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, NIGHTLY)
    ticked(settings, "done")
    late_ns = NOW_NS + 24 * HOUR_NS
    assert "  due: Sun 2026-10-25 03:00 CET, waits for a scheduler\n" in text_of(settings, late_ns)
    assert json_of(settings, late_ns)["schedules"][0]["due_at"] == "2026-10-25T02:00:00Z"
    with WriteLock(BaseLayout(tmp_path).scheduler_lock, purpose="knowledge scheduler"):
        assert "waits for its window\n" in text_of(settings, late_ns)


def test_who_runs_them(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, NIGHTLY)
    with WriteLock(BaseLayout(tmp_path).scheduler_lock, purpose="knowledge scheduler"):
        assert "run by `knowledge scheduler`, process " in text_of(settings, NOW_NS)
        assert json_of(settings, NOW_NS)["note"] is None
    assert f"note: {NO_SCHEDULER}" in text_of(settings, NOW_NS)


def test_the_verb_where_there_is_no_index_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["schedules"]) == 0
    assert "no schedules are configured" in capsys.readouterr().out
    (tmp_path / "knowledge.yaml").write_text(
        "knowledge:\n  enabled: true\n  schedules: [{name: \"a\u202eb\", cron: '*/5 * * * *'}]\n", "utf-8"
    )
    assert run(["schedules"]) == 0
    assert "\na<U+202E>b: index at */5 * * * * (UTC)\n" in capsys.readouterr().out
    assert run(["schedules", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert [len(schedule["next"]) for schedule in value["schedules"]] == [3]
    assert value["note"] == NO_SCHEDULER
    assert not list(tmp_path.glob("knowledge/**/state.db"))
