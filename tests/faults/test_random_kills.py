"""The writer killed at random moments and at its write calls, with readers beside it: nothing torn, lost, ghostly or
misplaced, and whoever comes next has an answer at once (P1, P2, P6, P7; the release bar's 1,000 kills)."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.depth import IS_NIGHTLY, SEED, scaled
from tests.support.fault import injector
from tests.support.figures import Figure, NoteFigure
from tests.support.scratch import scratch_directory

LIMIT_S = 21_600 if IS_NIGHTLY else 600
MODULE = "tests.support.fault.kill_rounds"
ROUNDS = scaled(15, 1000)
PROMISES = ("P1", "P2", "P6")
CALLS = 300  # of a writer from its start: it opens, and commits some groups
AT_CALLS = scaled(5, 2 * CALLS)  # each call twice: before it, and in the midst of it

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="a writer is forked for each kill, which is Unix's part"),
    pytest.mark.timeout(LIMIT_S),
]


def test_kills_at_random_moments(note_figure: NoteFigure) -> None:
    """P1, P2, P6, P7: what was acknowledged is there, as it was or as the group that was being written left it."""
    began_s = time.monotonic()
    with scratch_directory() as scratch:
        told = json.loads(_printed(scratch, [str(ROUNDS)], preloaded=False))
    what = "kill -9 of the writer at a random moment, two readers beside it"
    _judge(told, Figure("random-kills", (*PROMISES, "P7"), what, ROUNDS, asked=1000), began_s, note_figure)


@pytest.mark.skipif(injector.compiler() is None, reason="the fault injector needs Linux and a C compiler (cc)")
def test_kills_at_write_calls_beside_readers(note_figure: NoteFigure) -> None:
    """P1, P2, P6, P7: the same at the first write calls of a writer, before them and in the midst of them."""
    began_s = time.monotonic()
    with scratch_directory() as scratch:
        told = json.loads(_printed(scratch, [str(AT_CALLS), str(CALLS)], preloaded=True))
    what = "kill -9 of the writer at a write call, two readers beside it"
    figure = Figure("kills-at-calls-beside-readers", PROMISES, what, AT_CALLS, of=2 * CALLS, asked=CALLS)
    _judge(told, figure, began_s, note_figure)


def _printed(scratch: Path, arguments: list[str], *, preloaded: bool) -> str:
    """What the module of the rounds prints, run with the injector or without."""
    if preloaded:
        return injector.run_preloaded(injector.build(scratch), [MODULE, *arguments], timeout_s=LIMIT_S)
    command = [sys.executable, "-m", MODULE, *arguments]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        env={**os.environ, injector.SEED_VARIABLE: str(SEED)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _judge(told: Mapping[str, Any], figure: Figure, began_s: float, note_figure: NoteFigure) -> None:
    reads, problems = told["reads"], told["problems"]
    refused = sum(reads["errors"].values())
    bad_reads = len(reads["torn"]) + sum(reads["errors"].values())
    seconds = time.monotonic() - began_s
    note_figure(replace(figure, bad=len(problems), seconds=seconds, detail=_detail(told)))
    note_figure(
        Figure(
            f"{figure.name}-reads",
            ("P1",),
            "documents read whole and hits looked at by the readers beside it",
            reads["documents"] + reads["hits"],
            bad=bad_reads,
            seconds=seconds,
            detail=f"{reads['searches']:,} searches, {reads['openings']:,} openings, {refused} errors",
        )
    )
    assert problems == []
    assert reads["torn"] == []
    assert reads["errors"] == {}
    assert told["acknowledged"] > 0
    assert reads["documents"] > 0
    assert told["rounds"] == figure.tried


def _detail(told: Mapping[str, Any]) -> str:
    times = [
        f"{name} p50/p99/max {_spread(told[key])} ms"
        for name, key in (
            ("first answer", "first_answer_ms"),
            ("of it cpu", "first_answer_cpu_ms"),
            ("ready writer", "ready_writer_ms"),
            ("of it cpu", "ready_writer_cpu_ms"),
        )
    ]
    groups = f"{told['acknowledged']:,} groups acknowledged, {told['kept']} more found whole"
    return f"{groups}; {told['full_audits']} full audits, {told['ghosts_asked']:,} ghosts asked for; " + ", ".join(
        times
    )


def _spread(ascending: Sequence[float]) -> str:
    middle, late = ascending[len(ascending) // 2], ascending[min(len(ascending) - 1, len(ascending) * 99 // 100)]
    return f"{middle:.1f}/{late:.1f}/{ascending[-1]:.1f}"
