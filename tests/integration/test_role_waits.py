"""A role that has no index yet says so in its log: once, and again when it waits for something else."""

import asyncio
import io
import json
from pathlib import Path

import pytest

from app.roles import worker_role
from app.roles.role_log import make_log
from app.roles.runtime import Runtime
from app.roles.worker_role import known_base
from domain.layout import BaseLayout
from store.state import SqliteStateStore
from tests.support.bases import settings_of


async def test_what_a_role_waits_for_is_logged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_role, "TRY_AGAIN_S", 0.01)
    out, layout = io.StringIO(), BaseLayout(tmp_path)
    runtime = Runtime(settings_of(tmp_path), layout, "worker", "me", make_log("worker", "json", out))
    found = asyncio.create_task(known_base(runtime))
    await asyncio.sleep(0.1)
    layout.state.write_bytes(b"no database " * 1000)
    await asyncio.sleep(0.2)
    layout.state.unlink()
    state = SqliteStateStore(layout.state)
    base_id = state.base_id()
    state.close()
    assert await asyncio.wait_for(found, 10) == base_id
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    messages = [line["message"] for line in told if line["event"] == "waits"]
    assert f"there is no index at {tmp_path} yet" in messages[0]
    assert "state.db is damaged" in messages[1]
    assert len(messages) == len([one for one, after in zip(messages, [*messages[1:], ""], strict=True) if one != after])


async def test_a_role_that_is_told_to_end_waits_no_longer(tmp_path: Path) -> None:
    runtime = Runtime(
        settings_of(tmp_path), BaseLayout(tmp_path), "serve", "me", make_log("serve", "json", io.StringIO())
    )
    waiting = asyncio.create_task(known_base(runtime))
    await asyncio.sleep(0)
    runtime.stopping.set()
    assert await asyncio.wait_for(waiting, 10) == ""
