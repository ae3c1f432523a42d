"""T30, P12, P14: flipped bits, cut files and logs of other stores are refused, answered right, or found by `verify`.

Nothing ends in a crash, a hang, a traceback, or a citation that does not lead to its text. Tried in a child process
(tests.support.broken_files), so that a crash of SQLite itself is a failed test and not the end of all.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.broken_files import Told
from tests.support.depth import SEED, scaled
from tests.support.figures import Figure, NoteFigure

PROJECT = Path(__file__).parents[2]
# flips of single bits, cuts of the end
OF_DATABASE = {
    "knowledge.db": (scaled(40, 1_000), scaled(8, 100)),
    "state.db": (scaled(12, 400), scaled(4, 60)),
    "knowledge.db-wal": (scaled(8, 300), scaled(4, 60)),
    "state.db-wal": (scaled(8, 300), scaled(4, 60)),
}
FOREIGN_LOGS = 8
WAYS_TO_FAIL = ("silent", "wrong_citations", "unexpected")


def told_of(wanted: list[str]) -> dict[str, Told]:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.support.broken_files", str(SEED), *wanted],
        capture_output=True, text=True, check=False, cwd=PROJECT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return {name: Told(**fields) for name, fields in json.loads(done.stdout).items()}


def bad_of(told: Told) -> list[str]:
    return [*told.silent, *told.wrong_citations, *told.unexpected]


def figure_of(name: str, what: str, told: Told, seconds: float) -> Figure:
    return Figure(
        name=name,
        promises=("P12", "P14"),
        what=what,
        tried=told.tried,
        bad=len(bad_of(told)),
        asked=scaled(0, 1_000) if name == "store-bit-flips-knowledge-db" else 0,
        seconds=seconds,
        detail=f"{told.refused} refused (exit {' or '.join(sorted(told.statuses)) or 'none'}), {told.right} answered"
        f" right, {told.older} as at an earlier commit, {told.found} with other bytes that `verify` found;"
        f" {told.written} written to",
    )


@pytest.mark.timeout(scaled(300, 21_600))
def test_no_flipped_bit_ends_in_a_crash_or_a_silent_error(note_figure: NoteFigure) -> None:
    """T30."""
    began_s = time.monotonic()
    told = told_of([f"{name}:{flips}:{cuts}" for name, (flips, cuts) in OF_DATABASE.items()])
    seconds = time.monotonic() - began_s
    for name, of_file in told.items():
        what = f"flipped bits and cut ends of {name}"
        note_figure(
            figure_of(f"store-bit-flips-{name.replace('.', '-')}", what, of_file, seconds * share(of_file, told))
        )
    assert [bad for of_file in told.values() for bad in bad_of(of_file)] == []
    assert {name: of_file.tried for name, of_file in told.items()} == {
        name: flips + cuts for name, (flips, cuts) in OF_DATABASE.items()
    }
    for database in (told["knowledge.db"], told["state.db"]):
        assert database.refused + database.found > database.tried / 20  # what is broken is read
    assert told["knowledge.db-wal"].older > 0
    assert sum(of_file.written for of_file in told.values()) > 0


def share(told: Told, among: dict[str, Told]) -> float:
    """Of the time."""
    return told.tried / sum(other.tried for other in among.values())


def test_the_log_of_another_store_is_told(note_figure: NoteFigure) -> None:
    """T30: a -wal that belongs to another base, another day, or the other database."""
    began_s = time.monotonic()
    told = told_of(["foreign:0:0"])["foreign"]
    what = "write-ahead logs of other stores beside a database"
    note_figure(figure_of("store-foreign-logs", what, told, time.monotonic() - began_s))
    assert bad_of(told) == []
    assert told.tried == FOREIGN_LOGS
    assert told.refused > 0
