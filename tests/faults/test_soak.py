"""A soak of half a minute (P25, P2, P32): what `make soak` watches for an hour, with every part of it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.depth import scaled
from tests.support.figures import Figure, NoteFigure
from tests.support.scratch import scratch_directory
from tests.support.waiting import eventually

MINUTES = scaled(1, 30) * 0.4
FILES = scaled(120, 1_000)
PROCESSES = {"scheduler", "worker 1", "worker 2", "writer", "serve", "queue", "agent 1", "agent 2", "agent 3"}
INCIDENTS = {"writer killed", "queue restarted", "embeddings away"}

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="a soak looks at /proc of Linux"),
    pytest.mark.timeout(600 + 120 * MINUTES),
]


def mention(place: Path) -> list[str]:
    """The command lines of living processes that name this place."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if str(place) in command and folder.name != str(os.getpid()):
            found.append(command)
    return found


def wrong(told: dict[str, Any]) -> list[str]:
    """What is not as it should be, however slow the machine is."""
    found = list(told["falls_short"])
    found += [f"{check['at_s']}: no documents" for check in told["checks"] if not check["documents"]]
    found += [f"{process['name']}: no samples" for process in told["processes"] if not process["rss"]["samples"]]
    found += [f"{one['name']}: never went on" for one in told["incidents"] if None in one["took_s"].values()]
    return found


def test_a_service_is_well_after_churn_searches_and_harm(tmp_path: Path, note_figure: NoteFigure) -> None:
    """P25, P2, P32: every search, command and call is answered, every backup is right, everything goes on by itself,
    what is stored is what is on the disk, and nothing is left."""
    began_s = time.monotonic()
    command = [sys.executable, "-m", "bench.soak", "--minutes", str(MINUTES), "--files", str(FILES)]
    with scratch_directory() as scratch:
        done = subprocess.run(
            [*command, "--results", str(tmp_path)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "TMPDIR": str(scratch)},
            capture_output=True,
            text=True,
            check=False,
        )
        eventually(lambda: mention(scratch) == [])
        left = [path.name for path in scratch.iterdir()]
    assert (tmp_path / "soak.json").exists(), done.stdout + done.stderr
    told = json.loads((tmp_path / "soak.json").read_text("utf-8"))
    bad = wrong(told)
    searches = sum(minute["searches"] for minute in told["search_minutes"])
    note_figure(
        Figure(
            "soak_short",
            ("P25", "P2", "P32"),
            f"searches beside churn, three kinds of harm and {len(told['checks'])} audited backups",
            searches,
            bad=len(bad),
            seconds=time.monotonic() - began_s,
            detail=f"largest log {told['largest_log_mb']:.1f} MB, {sum(told['changes'].values()):,} changes of files",
        )
    )
    assert (bad, done.returncode) == ([], 0), done.stdout
    assert {process["name"] for process in told["processes"]} == PROCESSES
    assert {incident["name"] for incident in told["incidents"]} == INCIDENTS
    assert searches > 0 and told["runs"]["done"] >= 3 and len(told["checks"]) >= 1
    assert (left, done.stderr) == ([], "")
