"""Killed, or refused by the disk, at a write: the store is the old one or the new one, and the next command works.

Every call that writes to a file of the base is a point (P1, P10, P12, P13, P23, P24, P32). Here some of them are
tried, in each of the ways that a call can fail; the nightly form tries every second one for kills, and every one for
the disk's refusals. KNOWLEDGE_TEST_EVERY=KILLS,REFUSALS says it otherwise: 2,3 tries every third one for these.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.roles.calls import Verify, place_call
from domain.layout import BaseLayout
from store import files
from tests.support.depth import IS_NIGHTLY
from tests.support.embedding_server import embedding_server
from tests.support.fault import injector
from tests.support.fault.points import DEADLY, EVERY_KILL, EVERY_REFUSAL, WAYS
from tests.support.fault.run_scenarios import SERVER_VARIABLE
from tests.support.figures import Figure, NoteFigure
from tests.support.scratch import scratch_directory
from tests.support.vector_runs import DIMENSION
from tests.support.writing import finished
from workers.spool import write_page

LIMIT_S = 21_600 if IS_NIGHTLY else 600  # a module's actions are tried within one test
needs_injector = pytest.mark.skipif(
    injector.compiler() is None, reason="the fault injector needs Linux and a C compiler (cc)"
)
pytestmark = pytest.mark.timeout(LIMIT_S)

# how many calls of an action are tried in a way, in the short form
FEW = {"kill": 2, "half": 1, "eio": 1, "enospc_on": 1}
ONE = {"kill": 1, "eio": 1, "enospc_on": 1}  # of whole runs, which take ten times as long
STORE_ACTIONS = (
    *("index", "create", "rm", "purge", "reset", "reset-drifted", "reset-no-database"),
    *("rebuild", "rebuild-drifted", "compact", "verify"),
)
VECTOR_ACTIONS = tuple(f"vectors-{name}" for name in ("index", "cover", "pin", "pin-beside", "activate", "collect"))
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "scenarios": STORE_ACTIONS,
    "vector_scenarios": (*VECTOR_ACTIONS, "vectors-rebuild"),  # fault 32
    "backup_scenarios": ("restore", "restore-anew", "backup"),
    "run_scenarios": ("run-index", "run-reindex", "run-other-model", "run-rehash", "run-upgrade"),
}
PROMISES = {"backup_scenarios": ("P32",), "vector_scenarios": ("P1", "P6"), "run_scenarios": ("P1", "P2", "P6")}
Tried = Callable[[str, str], Sequence[Mapping[str, Any]]]


def _few(module: str) -> Mapping[str, int]:
    return ONE if module == "run_scenarios" else FEW


def _sample(module: str, way: str) -> str:
    """For tests.support.fault.points: so many calls, or every one of so many where a slash stands before the number."""
    if not IS_NIGHTLY:
        return str(_few(module)[way])
    return f"/{EVERY_KILL if way in DEADLY else EVERY_REFUSAL}"


@pytest.fixture(scope="module")
def tried() -> Iterator[Tried]:
    """What came of an action, way by way. The short form tries all actions of a module in one process: each point is
    a child of it, and what it imports is imported once."""
    found: dict[str, list[dict[str, Any]]] = {}
    with scratch_directory() as path, embedding_server(dimension=DIMENSION) as server:
        library = injector.build(path)

        def outcomes(module: str, action: str) -> Sequence[Mapping[str, Any]]:
            if action not in found:
                actions = (action,) if IS_NIGHTLY else ACTIONS[module]
                ways = WAYS if IS_NIGHTLY else _few(module)
                runs = [f"{name}:{way}:{_sample(module, way)}" for name in actions for way in ways]
                lines = injector.run_preloaded(
                    library,
                    [f"tests.support.fault.{module}", *runs],
                    timeout_s=LIMIT_S,
                    environ={SERVER_VARIABLE: server.url, "TMPDIR": str(path)},
                )
                for told in map(json.loads, lines.splitlines()):
                    found.setdefault(told["run"].partition(":")[0], []).append(told)
            return found[action]

        yield outcomes


@needs_injector
@pytest.mark.parametrize(
    ("module", "action"),
    [
        pytest.param(module, action, marks=[pytest.mark.redis] if module == "run_scenarios" else [], id=action)
        for module, actions in ACTIONS.items()
        for action in actions
    ],
)
def test_no_fault_leaves_a_broken_store(tried: Tried, note_figure: NoteFigure, module: str, action: str) -> None:
    """P1, P2, P6, P10, P12, P13, P23, P24, P32: of a killed action and of one that the disk has refused."""
    began_s = time.monotonic()
    told = {line["run"].partition(":")[2]: line for line in tried(module, action)}
    elapsed_s = time.monotonic() - began_s
    own = PROMISES.get(module, ("P1", "P13") if action.startswith("reset") else ("P1",))
    deadly = [line for way, line in told.items() if way in DEADLY]
    refusals = [line for way, line in told.items() if way not in DEADLY]
    note_figure(_figure("kill", action, (*own, "P10"), deadly, elapsed_s))
    note_figure(_figure("error", action, (*own, "P23", "P24"), refusals, elapsed_s))
    assert [problem for line in told.values() for problem in line["problems"]] == []
    assert {status for line in deadly for status in line["statuses"]} == {"-9"}
    assert {status for line in refusals for status in line["statuses"]} <= {"0", "14"}  # a tidying-up may fail
    if sum(line["points"] for line in refusals) > 16:  # and what is more than that, is told
        assert any("14" in line["statuses"] for line in refusals)


def _figure(
    kind: str, action: str, promises: tuple[str, ...], lines: Sequence[Mapping[str, Any]], elapsed_s: float
) -> Figure:
    calls = sum(line["calls"] for line in lines)
    statuses: Counter[str] = Counter()
    for line in lines:
        statuses.update(line["statuses"])
    ways = "killed before and in the midst of a write" if kind == "kill" else "EIO and ENOSPC, once and for good"
    return Figure(
        name=f"store-{kind}-{action}",
        promises=promises,
        what=f"{action}, {ways}: write calls",
        tried=sum(line["points"] for line in lines),
        of=calls,
        bad=sum(line["bad"] for line in lines),
        asked=sum(line["calls"] // 2 for line in lines) if kind == "kill" else calls,
        seconds=elapsed_s,
        detail="exit " + ", ".join(f"{status}: {number}" for status, number in sorted(statuses.items())),
    )


@pytest.mark.parametrize("cut", ["", "*"])
def test_what_a_crash_has_cut_short_beside_the_databases_is_made_whole(tmp_path: Path, cut: str) -> None:
    """P2: a .gitignore without its line would let an index be committed, for ever."""
    layout = BaseLayout(tmp_path / "home")
    layout.home.mkdir()
    layout.gitignore.write_text(cut)
    layout.cachedir_tag.write_text(files.CACHEDIR_TAG_TEXT[:20])
    files.make_home(layout)
    assert layout.gitignore.read_text() == "*\n"
    assert layout.cachedir_tag.read_text() == files.CACHEDIR_TAG_TEXT


def test_what_its_owner_has_written_there_stays(tmp_path: Path) -> None:
    layout = BaseLayout(tmp_path / "home")
    files.make_home(layout)
    layout.gitignore.write_text("!\n")
    files.make_home(layout)
    assert layout.gitignore.read_text() == "!\n"


def test_what_processes_hand_each_other_is_private_from_the_first_instant(tmp_path: Path) -> None:
    """P10: pages with the text of documents, and calls of the writer, whatever the umask."""
    before = os.umask(0)
    try:
        write_page(tmp_path, "1-1-1.page", finished(1, ["docs/a.md"]))
        place_call(tmp_path, Verify(deep=False))
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o600, 0o600]
