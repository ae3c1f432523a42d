"""What was needed for one piece of work is given back after it, where the next one may be an hour away."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.config import Loaded
from app.discovery import Located
from app.roles import scheduler_role
from app.roles.scheduler_role import Scheduling
from app.run_request import RunRequest
from app.submitting import queued_run
from app.wiring import readable_base
from domain.errors import KnowledgeError, UsageError
from domain.settings import Settings
from server import mcp_calls
from server.mcp_arguments import ReadArguments, SearchArguments
from server.mcp_calls import SharedReading, ToolCalls
from store.run_port import RunRecord
from store.state import SqliteStateStore
from tests.support.bases import build_base


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who has given something back so far."""
    told: list[str] = []
    monkeypatch.setattr(mcp_calls, "give_back_free_memory", lambda: told.append("agent"))
    monkeypatch.setattr(scheduler_role, "give_back_free_memory", lambda: told.append("scheduler"))
    return told


def test_an_agent_that_is_silent_keeps_nothing_of_its_last_question(tmp_path: Path, given_back: list[str]) -> None:
    """However the call ends; a server that keeps its bases open, for all agents together, sees to it by itself."""
    base = build_base(tmp_path)
    loaded = Loaded(Located("store", None, base.home), base)
    alone = ToolCalls(loaded)
    assert alone.search(SearchArguments(query="fox"), lambda: None).value["status"] == "ok"
    assert given_back == ["agent"]
    with pytest.raises(KnowledgeError):
        alone.read(ReadArguments(path="docs/there-is-none.md"), lambda: None)
    assert given_back == ["agent"] * 2
    with readable_base(base) as opened:
        lent: Any = SimpleNamespace(borrowed=lambda: nullcontext(opened))
        shared = ToolCalls(loaded, SharedReading(lent, None))
        assert shared.search(SearchArguments(query="fox"), lambda: None).value["status"] == "ok"
    assert given_back == ["agent"] * 2


@pytest.mark.parametrize("error", [None, UsageError("no such root")])
async def test_a_scheduler_keeps_nothing_of_a_run_that_has_ended(
    tmp_path: Path, given_back: list[str], monkeypatch: pytest.MonkeyPatch, error: KnowledgeError | None
) -> None:
    base: Settings = build_base(tmp_path)

    def carry_out(run: Any) -> None:
        assert given_back == []
        if error is not None:
            raise error

    monkeypatch.setattr(scheduler_role, "carry_out_service_run", carry_out)
    monkeypatch.setattr(Scheduling, "_service_run", lambda *_: None)
    runtime: Any = SimpleNamespace(
        layout=SimpleNamespace(state=base.home / "state.db"),
        log=_Silent(),
        status=SimpleNamespace(doing=""),
        telemetry=SimpleNamespace(count=lambda *_: None),
    )
    state = SqliteStateStore(base.home / "state.db")
    queued = state.queue_run(queued_run(RunRequest(), "cli"), RunRequest().to_json())
    run: RunRecord | None = state.start_run(queued.id, floor_generation=1)
    assert run is not None
    others: list[Any] = [SimpleNamespace(soon=lambda: None)] * 3
    parts: Any = [runtime, *others, state, *others]
    await Scheduling(*parts)._carry_out(run)
    state.close()
    assert given_back == ["scheduler"]


class _Silent:
    """A log that keeps nothing."""

    def bind(self, **_: Any) -> "_Silent":
        return self

    def info(self, *_: Any, **__: Any) -> None:
        return

    error = info
