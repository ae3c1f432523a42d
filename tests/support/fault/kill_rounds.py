"""A writer killed at random moments, again and again, with readers beside it; run as
`python -m tests.support.fault.kill_rounds ROUNDS`; with CALLS behind it, at their write calls from the first up to so
many, spread over them and half of them in the midst of a write (with the injector loaded). Prints one line of JSON.

Each round forks a writer (tests.support.fault.killed_writer), lets it come so far, waits a moment of random length and
kills it. Then the base is opened as a command opens it, asked, and looked at whole.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from app.searching import answer
from app.wiring import readable_base, writable_base
from domain.layout import BaseLayout
from domain.settings import Settings
from retrieval.answer import SearchRequest
from store import driver
from tests.support.audit import TOKENIZERS, audit
from tests.support.audit_vectors import audit_vectors
from tests.support.bases import settings_of
from tests.support.depth import SEED
from tests.support.fault.injector import HALF, KILL, arm
from tests.support.fault.killed_writer import Change, Said, heard, prepare, write_on
from tests.support.fault.live_reader import Readings, start_readers, stop_readers
from tests.support.fault.points import KILLED
from tests.support.fault.stamped import stamp_in, stamps_of
from tests.support.scratch import scratch_directory
from tests.support.vector_stores import vector_of

READERS = 2
MOST_LINES = 16  # of a writer before its last moment begins
LONGEST_MOMENT_S = 0.02
FULL_AUDIT_EVERY = 20
GHOSTS_ASKED = 3


@dataclass(slots=True)
class Outcome:
    rounds: int = 0
    acknowledged: int = 0  # groups
    kept: int = 0  # groups that were not acknowledged, and were there whole
    opening: int = 0  # rounds in which the writer died before its first group
    ghosts_asked: int = 0
    full_audits: int = 0
    problems: list[str] = field(default_factory=list)
    first_answer_s: list[float] = field(default_factory=list)
    first_answer_cpu_s: list[float] = field(default_factory=list)  # of this process: what a quiet machine would need
    ready_writer_s: list[float] = field(default_factory=list)
    ready_writer_cpu_s: list[float] = field(default_factory=list)


def kill_at_random(settings: Settings, number: int, rng: random.Random) -> Said:
    """Let a writer come to its n-th line, and kill it a moment later."""
    pid, lines = _writer(settings, number)
    told = [lines.readline() for _ in range(rng.randrange(MOST_LINES + 1))]
    time.sleep(rng.random() ** 2 * LONGEST_MOMENT_S)
    os.kill(pid, signal.SIGKILL)
    return _heard_of(pid, lines, told)


def kill_at_call(settings: Settings, number: int, at: int) -> Said:
    """Let a writer die at its n-th write call, every other one with that write half done."""
    pid, lines = _writer(settings, number, partial(arm, str(settings.home), at, (KILL, HALF)[number % 2]))
    return _heard_of(pid, lines, [])


def _writer(settings: Settings, number: int, begin: Callable[[], None] = lambda: None) -> tuple[int, IO[bytes]]:
    listening, saying = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(listening)
        try:
            begin()
            write_on(settings, number, f"{SEED}:{number}", saying)
        except BaseException:  # noqa: BLE001 - its status says it
            traceback.print_exc()
        os._exit(1)
    os.close(saying)
    return pid, os.fdopen(listening, "rb")


def _heard_of(pid: int, lines: IO[bytes], told: list[bytes]) -> Said:
    with lines:
        told += lines.readlines()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != KILLED:
        raise AssertionError(f"a writer ended by itself, with {status}")
    return heard([line for line in told if line])


def merged(state: Change, changes: Sequence[Change]) -> Change:
    for change in changes:
        state = {**state, **change}
    return {key: stamp for key, stamp in state.items() if stamp is not None}


def look(settings: Settings, outcome: Outcome, before: Change, said: Said) -> Change:
    """Open and ask, then compare with what was acknowledged; says what is stored."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    with readable_base(settings) as base:
        answer(base.store, SearchRequest("rivers"), None)
        outcome.first_answer_s.append(time.perf_counter() - began_s)
        outcome.first_answer_cpu_s.append(time.process_time() - began_cpu_s)
        with base.store.snapshot() as snapshot:
            stored, problems = stamps_of(snapshot)
        due = merged(before, said.acknowledged)
        due_too = merged(due, [said.announced] if said.announced is not None else [])
        if stored not in (due, due_too):
            problems.append(f"acknowledged and not there, or there and never written: {_differ(stored, due, due_too)}")
        outcome.kept += stored != due
        for change in (*said.acknowledged, said.announced or {})[-GHOSTS_ASKED:]:
            gone = {before.get(key) for key in change} - set(stored.values()) - {None}
            for stamp in sorted(filter(None, gone))[:GHOSTS_ASKED]:
                outcome.ghosts_asked += 1
                hits = answer(base.store, SearchRequest(f"s{stamp}", full=True), None).results
                problems += [f"a ghost of stamp {stamp}: {hit.citation}" for hit in hits if _is_of(hit.content, stamp)]
    outcome.problems += [f"{outcome.rounds}: {problem}" for problem in problems]
    return dict(stored)


def _is_of(text: str | None, stamp: int) -> bool:
    return stamp_in(text or "") == stamp


def _differ(stored: dict[str, int], *dues: Change) -> list[object]:
    return [sorted(set(stored.items()) ^ set(due.items()), key=str)[:6] for due in dues]


def reopen(settings: Settings, outcome: Outcome) -> None:
    """The next writer; and what two opinions say of the store."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    with writable_base(settings, "test"):
        outcome.ready_writer_s.append(time.perf_counter() - began_s)
        outcome.ready_writer_cpu_s.append(time.process_time() - began_cpu_s)
    path = BaseLayout(settings.home).database
    is_full = outcome.rounds % FULL_AUDIT_EVERY == 0
    outcome.full_audits += is_full
    problems = audit(path, vector_of=vector_of) if is_full else quick_audit(path)
    outcome.problems += [f"{outcome.rounds}: {problem}" for problem in problems]


def quick_audit(path: Path) -> list[str]:
    """SQLite's own word on the file and on each full-text table, and every vector against its text."""
    problems = []
    with closing(driver.connect(str(path), uri=False, timeout_s=5)) as connection:
        try:
            problems += [row[0] for row in connection.execute("PRAGMA quick_check") if row[0] != "ok"]
            problems += [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
            for table in TOKENIZERS:
                connection.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
            problems += audit_vectors(connection, vector_of)
        except driver.Error as error:
            problems.append(f"unreadable: {error}")
    return problems


def run(rounds: int, calls: int) -> tuple[Outcome, Readings]:
    outcome, rng = Outcome(), random.Random(SEED)
    with scratch_directory() as scratch:
        settings = settings_of(scratch / "home")
        stored = prepare(settings)
        readers = start_readers(settings, READERS, SEED)
        try:
            for number in range(1, rounds + 1):
                outcome.rounds = number
                if calls:
                    said = kill_at_call(settings, number, 1 + number * calls // rounds)
                else:
                    said = kill_at_random(settings, number, rng)
                outcome.acknowledged += len(said.acknowledged)
                outcome.opening += not said.acknowledged and said.announced is None
                stored = look(settings, outcome, stored, said)
                reopen(settings, outcome)
        finally:
            readings = stop_readers(readers)
        outcome.full_audits += 1
        outcome.problems += audit(BaseLayout(settings.home).database, vector_of=vector_of)
    return outcome, readings


def told(outcome: Outcome, readings: Readings) -> dict[str, object]:
    counts = {name: getattr(outcome, name) for name in ("rounds", "acknowledged", "kept", "opening", "ghosts_asked")}
    reads = {name: getattr(readings, name) for name in ("documents", "hits", "searches", "openings")}
    times = {
        f"{name}_ms": getattr(outcome, f"{name}_s")
        for name in ("first_answer", "first_answer_cpu", "ready_writer", "ready_writer_cpu")
    }
    return {
        **counts,
        "full_audits": outcome.full_audits,
        "problems": outcome.problems,
        "reads": {**reads, "torn": readings.torn, "errors": dict(readings.errors)},
        **{name: [round(value * 1000, 2) for value in sorted(values)] for name, values in times.items()},
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(told(*run(int(sys.argv[1]), int((*sys.argv, "0")[2])))) + "\n")
