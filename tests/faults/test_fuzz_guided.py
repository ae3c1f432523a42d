"""The parsers that work on bytes alone, with inputs that are chosen by what the ones before have reached (T7..T29)."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from tests.support.depth import IS_NIGHTLY, scaled
from tests.support.embedding_server import vector_of
from tests.support.figures import Figure, NoteFigure
from tests.support.fuzz_answers import body, pieces_of
from tests.support.fuzz_configurations import configuration
from tests.support.fuzz_payloads import payload
from tests.support.fuzz_questions import citation, glob, match_query, query
from tests.support.fuzz_tars import BLOCK, described, whole
from tests.support.fuzz_texts import ignore_lines, markdown
from tests.support.fuzz_trying import ASKED, ROOT, chooser

pytestmark = pytest.mark.skipif(find_spec("atheris") is None, reason="atheris has no wheel for this Python or system")

INPUTS = scaled(1_200, ASKED)
SEEDS = scaled(6, 60)  # of each surface, to begin with
_LONGEST_BYTES = 4_096


def _answer(random: Random) -> bytes:
    return body(random, pieces_of([vector_of(text, 8) for text in ("a", "b")]), b'"served"')


def _question(random: Random) -> bytes:
    made = random.choice((query, glob, citation))(random)
    return made[:500].encode("utf-8", "replace")


def _manifest(random: Random) -> bytes:
    raw = whole({}, described({"version": random.choice((1, 2, "1"))}, {"state.db": b"x", "knowledge.db": b"y"}))
    return raw[BLOCK:_LONGEST_BYTES]


MAKERS: dict[str, Callable[[Random], bytes]] = {
    "answer": _answer,
    "chunker": lambda random: markdown(random).encode(),
    "configuration": configuration,
    "ignore": ignore_lines,
    "manifest": _manifest,
    "match": lambda random: match_query(random)[:500].encode("utf-8", "replace"),
    "payload": payload,
    "query": _question,
}


def write_seeds(corpus: Path, surface: str, first: bytes = b"") -> None:
    corpus.mkdir(exist_ok=True)
    for number in range(SEEDS):
        made = MAKERS[surface](chooser(f"guided {surface}", number))
        (corpus / f"{surface} {number}").write_bytes(first + made[: _LONGEST_BYTES - 1])


def guided(place: Path, surface: str) -> str:
    """Inputs to one surface, in a process of their own; what it said where there was a fault, else ""."""
    scratch = place / f"scratch {surface}"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.fuzz_guided", surface, str(place / surface), str(INPUTS)],
        cwd=scratch,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    told = (done.stdout + done.stderr).decode(errors="replace")
    return "" if done.returncode == 0 else f"{surface}: status {done.returncode}\n{told[-3_000:]}"


def test_the_parsers_have_no_fault_that_can_be_reached(note_figure: NoteFigure, tmp_path: Path) -> None:
    """T7, T14, T23, T26, T29: a sample begins with inputs of every kind and goes on in one process for all of them."""
    surfaces = sorted(MAKERS) if IS_NIGHTLY else ["all"]
    for number, surface in enumerate(sorted(MAKERS)):
        if IS_NIGHTLY:
            write_seeds(tmp_path / surface, surface)
        else:
            write_seeds(tmp_path / "all", surface, bytes([number]))
    began_s = time.monotonic()
    faults = [fault for surface in surfaces if (fault := guided(tmp_path, surface))]
    note_figure(
        Figure(
            name="fuzz-guided",
            promises=("T7", "T14", "T23", "T26", "T29"),
            what="fuzz of the parsers, guided by coverage",
            tried=INPUTS * len(surfaces),
            bad=len(faults),
            asked=ASKED * len(MAKERS),
            seconds=time.monotonic() - began_s,
            detail=f"{', '.join(sorted(MAKERS))}; none took 20 s",
        )
    )
    assert faults == [], "\n".join(faults)
