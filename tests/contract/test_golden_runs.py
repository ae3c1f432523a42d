"""What `knowledge runs` prints, letter by letter. A change here is a change that users see."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from app.approving import HeldList
from app.discovery import Located
from app.present import json_text
from app.present_runs import (
    asked_text,
    change_lines,
    changes_gone_text,
    detached_text,
    ended_run_text,
    held_json,
    run_json,
    run_text,
    runs_json,
    runs_text,
    submitted_text,
)
from app.run_standstill import Standstill
from app.runs import ShownRun
from domain.settings import Settings
from domain.status import Tier, TierKind
from store.port import StoreCounts
from store.run_port import RunRecord

GOLDEN = Path(__file__).parent / "golden"
SECOND = 1_000_000_000
NOW = 1_700_003_600 * SECOND
HOME = Path("/base/knowledge/default")
SETTINGS, LOCATED = Settings("default", HOME, config_path=None, configured=False), Located("store", None, HOME)
PROGRESS = {"found": 12_400, "to_check": 12_000, "checked": 9_210, "written": 9_000, "embedded": 512, "reused": 3}


def run(
    run_id: int, state: str, *, cause: str = "", ago_s: int = 60, took_s: int | None = None, **more: object
) -> RunRecord:
    """A run of docs that has begun so long ago; ended where it says how long it took."""
    began_ns = NOW - ago_s * SECOND
    ended_ns = None if took_s is None else began_ns + took_s * SECOND
    fields: dict[str, object] = {
        "id": run_id, "generation": run_id, "kind": "index", "trigger": "cli", "roots": ("docs",), "state": state,
        "started_ns": began_ns, "ended_ns": ended_ns, "counts": {}, "cause": cause, "full": True,
        "queued_ns": began_ns - SECOND, "since_ns": began_ns,
    }  # fmt: skip
    return RunRecord(**(fields | more))  # type: ignore[arg-type]


HELD = HeldList(60, ("docs/000.md", "docs/evil\x1b[2J.md"), "ab" * 32)
APPROVABLE = run(
    13, "needs_approval", cause="removals_held", ago_s=600, took_s=5, counts={"added": 1, "unchanged": 149}
)
GOING = run(
    20, "checking", ago_s=100, progress={**PROGRESS, "is_plan_complete": 1}, progressed_ns=NOW - 8 * SECOND
)  # fmt: skip
FAILED = ShownRun(
    run(12, "failed", cause="embeddings_unavailable", ago_s=7_200, took_s=601,
        message="the embeddings server at \x1b[2J127.0.0.1:8766 does not answer", hint="start it")
)  # fmt: skip
SHOWN = [
    ShownRun(run(21, "queued", generation=0, trigger="schedule", schedule="nightly"), awaits_scheduler=True),
    ShownRun(GOING),
    ShownRun(run(19, "checking", ago_s=400, progress=PROGRESS, progressed_ns=NOW - 240 * SECOND),
             standstill=Standstill("worker", "slow", pages=3)),
    ShownRun(run(18, "waiting", cause="no worker is alive", progress=PROGRESS, progressed_ns=NOW - 70 * SECOND)),
    ShownRun(run(18, "checking", progress=PROGRESS, progressed_ns=NOW - 9 * SECOND),
             standstill=Standstill("writer", "silent", "`knowledge writer`, process 7", 2)),
    ShownRun(run(18, "waiting", cause="the queue is away", progress=PROGRESS, progressed_ns=NOW - 9 * SECOND),
             standstill=Standstill("scheduler", "silent", "`knowledge scheduler`, process 8")),
    ShownRun(run(17, "paused", cause="window closed", trigger="schedule", schedule="nightly", progress=PROGRESS)),
    ShownRun(run(16, "embedding", requested="cancel", progress={**PROGRESS, "is_plan_complete": 1})),
    ShownRun(run(15, "interrupted", cause="its process ended before it did", roots=("a", "b"))),
    ShownRun(run(14, "walking", trigger="watch", progress={"found": 40})),
    ShownRun(APPROVABLE),
    FAILED,
    ShownRun(run(11, "failed", cause="integrity: full_text:chunks_fts", kind="verify", roots=(), ago_s=90, took_s=9,
                 counts={"checks": 14, "checks_failed": 1})),
    ShownRun(run(10, "done", kind="compact", roots=(), ago_s=90, took_s=9,
                 counts={"bytes_before": 196_700, "bytes_after": 172_000, "vectors_dropped": 3})),
    ShownRun(run(9, "cancelled", cause="cancelled", took_s=2, counts={"added": 12})),
    ShownRun(run(8, "partial", cause="directory_unreadable", took_s=1, counts={"unchanged": 2})),
    ShownRun(run(7, "done", kind="reindex", ago_s=200_000, took_s=3_700, counts={"updated": 9_000, "failed": 3})),
]  # fmt: skip
APPROVABLE_SHOWN = ShownRun(APPROVABLE)
TIER = Tier(TierKind.LEXICAL)
TEXTS = {
    "runs.txt": runs_text(SHOWN, LOCATED, SETTINGS, NOW),
    "runs_none.txt": runs_text([], LOCATED, SETTINGS, NOW),
    "runs.json": json_text(runs_json([*SHOWN[:2], SHOWN[4], APPROVABLE_SHOWN, FAILED], NOW)),
    "runs_show.txt": run_text(ShownRun(APPROVABLE, held=HELD), NOW),
    "runs_show_failed.txt": run_text(FAILED, NOW),
    "runs_show.json": json_text({**run_json(ShownRun(APPROVABLE, held=HELD), NOW), "removals_held": held_json(HELD)}),
    "runs_changes.txt": "".join(change_lines("moved", ["docs/a.md", "docs/\x1b]0;x.md"])) + changes_gone_text(7, 30),
    "runs_followed.txt": submitted_text(GOING) + detached_text(20)
    + ended_run_text(ShownRun(APPROVABLE, held=HELD), TIER, StoreCounts(200, 1_240, 3))
    + ended_run_text(SHOWN[-1], TIER, StoreCounts(9_000, 20_000, 0)),
    "runs_asked.txt": "".join(
        asked_text(asked, wish, NOW)
        for asked, wish in (
            (GOING, "pause"), (SHOWN[6].run, "pause"), (SHOWN[7].run, "cancel"), (SHOWN[14].run, "cancel"), (GOING, ""),
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_golden(name: str) -> None:
    assert TEXTS[name] == (GOLDEN / name).read_text(encoding="utf-8")


def test_nothing_that_a_terminal_obeys_is_printed() -> None:
    assert not any(character in text for text in TEXTS.values() for character in "\x1b\x07")


def test_a_run_that_stands_still_on_purpose_is_not_called_still() -> None:
    paused = replace(GOING, state="paused", progressed_ns=1)
    assert "no progress" not in run_text(ShownRun(paused), NOW)
    assert "no progress for" in run_text(ShownRun(replace(paused, state="checking")), NOW)
