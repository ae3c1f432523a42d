"""What becomes of a run that was followed (R37), how it is asked for again, and how quickly it is said to get on."""

from collections.abc import Sequence
from typing import Any, get_args

import pytest

from app.present_runs import average_pace, pace, state_words
from app.run_request import RunRequest
from app.run_standstill import still_s
from app.runs import again, error_of_run, exit_status_of
from domain import errors
from domain.errors import KnowledgeError, RefusedError
from store.run_port import RunRecord, RunState

SECOND = 1_000_000_000


def run(state: str = "done", **more: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "id": 7, "generation": 9, "kind": "index", "trigger": "cli", "roots": ("docs",), "state": state,
        "started_ns": SECOND, "ended_ns": None, "counts": {}, "full": True,
    }  # fmt: skip
    return RunRecord(**(fields | more))


@pytest.mark.parametrize(
    ("state", "cause", "status"),
    [
        ("done", "", 0),
        ("partial", "", 3),
        ("partial", "removals_held", 3),
        ("partial", "source_empty", 3),
        ("needs_approval", "removals_held", 3),
        ("partial", "embeddings_unavailable", 15),
        ("cancelled", "cancelled", 130),
        ("interrupted", "its process ended before it did", 130),
        ("failed", "queue_unreachable", 16),
        ("failed", "disk_full", 14),
        ("failed", "integrity: full_text:chunks_fts", 13),
        ("failed", "a code of a later version", 1),
    ],
)
def test_the_exit_status_of_a_followed_run(state: str, cause: str, status: int) -> None:
    """R37: as if the run had been one of this command line."""
    ended = run(state, cause=cause)
    assert exit_status_of(ended) == status
    error = error_of_run(ended)
    assert (error is None) == (status in (0, 3))
    if error is not None:
        assert error.exit_status == status
        assert "run 7" in error.message


def error_codes() -> Sequence[str]:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KnowledgeError)]
    return [kind.code for kind in kinds]


@pytest.mark.parametrize("code", error_codes())
def test_a_run_that_has_failed_is_told_as_the_error_that_it_was(code: str) -> None:
    error = error_of_run(run("failed", cause=code))
    assert error is not None
    assert error.code == code
    assert "runs retry 7" in error.hint


@pytest.mark.parametrize("state", get_args(RunState))
def test_every_state_has_words_of_its_own(state: str) -> None:
    said = [state_words(run(other)) for other in get_args(RunState)]
    assert said.count(state_words(run(state))) == 1
    assert "_" not in state_words(run(state))


class Ledger:
    """The part of state.db that `again` asks."""

    def __init__(self, record: RunRecord, request: dict[str, object]) -> None:
        self._record = record
        self._request = request

    def run(self, run_id: int) -> RunRecord:
        return self._record

    def request_of(self, run_id: int) -> dict[str, object]:
        return self._request


def asked_again(record: RunRecord, request: RunRequest | None = None) -> RunRequest:
    return again(Ledger(record, {} if request is None else request.to_json()), record.id)  # type: ignore[arg-type]


def test_a_run_of_a_service_is_asked_for_as_before() -> None:
    request = RunRequest(paths=("/docs/a",), rehash=True, requests_per_minute=4)
    assert asked_again(run(), request) == request


@pytest.mark.parametrize(
    ("record", "request_"),
    [
        (run(), RunRequest()),
        (run(full=False), RunRequest(roots=("docs",))),
        (run(kind="reindex"), RunRequest(kind="reindex", roots=("docs",), reindex=True)),
        (run(kind="verify", roots=()), RunRequest(kind="verify")),
        (run(kind="compact", roots=()), RunRequest(kind="compact")),
    ],
)
def test_a_run_of_a_command_line_is_asked_for_by_what_is_on_record(record: RunRecord, request_: RunRequest) -> None:
    assert asked_again(record) == request_


def test_a_removal_is_no_run_to_be_asked_for_again() -> None:
    with pytest.raises(RefusedError, match="was a `knowledge rm`"):
        asked_again(run(kind="rm"))


def test_the_pace_is_known_once_files_were_read_and_the_rest_once_all_were_found() -> None:
    progress = {"found": 100, "to_check": 80, "checked": 20}
    at = run("checking", progress=progress, progressed_ns=11 * SECOND)
    assert average_pace(run("walking")) == (0.0, None)
    assert average_pace(at) == (2.0, None)
    complete = run("checking", progress={**progress, "is_plan_complete": 1}, progressed_ns=11 * SECOND)
    assert average_pace(complete) == (2.0, 30.0)
    assert pace(complete, 6.0) == (6.0, 10.0)
    assert pace(complete, 0.0) == (0.0, None)
    read = run("checking", progress={"to_check": 80, "checked": 80, "is_plan_complete": 1}, progressed_ns=11 * SECOND)
    assert average_pace(read).remaining_s is None


@pytest.mark.parametrize(("state", "seconds"), [("checking", 90), ("waiting", 90), ("paused", 0), ("queued", 0)])
def test_a_run_is_still_by_its_counters_only(state: str, seconds: int) -> None:
    """Waiting, slow and dead are told apart by progress, not by silence."""
    now_ns = 1_000 * SECOND
    assert still_s(run(state, progressed_ns=now_ns - 90 * SECOND), now_ns) == seconds
    assert still_s(run(state, ended_ns=now_ns, progressed_ns=1), now_ns) == 0
    assert still_s(run(state, kind="verify", progressed_ns=1), now_ns) == 0
