"""Killed, or refused by the disk, at a write: the store is the old one or the new one, and the next command works.

Every call that writes to a file of the base is a point (P1, P13, P23, P24). Here some of them are tried; with
KNOWLEDGE_TEST_EVERY_FAULT=1 all of them are, which takes some minutes.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fault import injector
from tests.support.scratch import scratch_directory

EVERY = os.environ.get("KNOWLEDGE_TEST_EVERY_FAULT", "")

pytestmark = [
    pytest.mark.skipif(injector.compiler() is None, reason="the fault injector needs Linux and a C compiler (cc)"),
    pytest.mark.timeout(1200 if EVERY else 120),
]


# every how many-th call is tried: a first look at each way an action can end
RUNS = {
    ("apply", "kill"): 13,
    ("apply", "half"): 29,
    ("apply", "eio"): 23,
    ("apply", "enospc"): 19,
    ("create", "kill"): 29,
    ("create", "half"): 61,
    ("create", "eio"): 61,
    ("create", "enospc"): 61,
    ("reset", "kill"): 23,
    ("reset", "enospc"): 43,
    ("reset_drifted", "kill"): 43,
    ("reset_no_database", "kill"): 23,
    ("reset_no_database", "eio"): 43,
    ("rebuild", "kill"): 19,
    ("rebuild", "enospc"): 29,
    ("rebuild_drifted", "kill"): 29,
    ("remove", "kill"): 23,
    ("remove", "eio"): 31,
    ("compact", "kill"): 17,
    ("compact", "half"): 17,
    ("compact", "enospc"): 19,
    ("purge", "kill"): 19,
    ("purge", "eio"): 37,
    ("purge", "enospc"): 31,
}

# the same of the vector tables: written with documents or after them, pinned, switched, collected (fault 32)
VECTOR_RUNS = {
    ("apply", "kill"): 13,
    ("apply", "half"): 29,
    ("apply", "eio"): 23,
    ("apply", "enospc"): 19,
    ("cover", "kill"): 13,
    ("cover", "enospc"): 11,
    ("pin", "kill"): 11,
    ("pin_beside", "kill"): 7,
    ("activate", "kill"): 5,
    ("activate", "eio"): 7,
    ("collect", "kill"): 9,
    ("collect", "enospc"): 13,
    ("rebuild", "kill"): 23,
}
# a pair of databases put in the place of another, and written into one file (P32)
BACKUP_RUNS = {
    ("restore", "kill"): 17,
    ("restore", "half"): 43,
    ("restore", "eio"): 37,
    ("restore", "enospc"): 41,
    ("restore_anew", "kill"): 29,
    ("restore_anew", "enospc"): 37,
    ("backup", "kill"): 13,
    ("backup", "eio"): 17,
    ("backup", "enospc"): 17,
}
MODULES = {"scenarios": RUNS, "vector_scenarios": VECTOR_RUNS, "backup_scenarios": BACKUP_RUNS}


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Any]]:
    """What came of every run, those of a module made in one process: each point is a child of it."""
    found: dict[str, Any] = {}
    with scratch_directory() as path:
        library = injector.build(path)
        for module, runs in MODULES.items():
            arguments = [f"{scenario}:{mode}:{1 if EVERY else every}:3" for (scenario, mode), every in runs.items()]
            lines = injector.run_preloaded(library, [f"tests.support.fault.{module}", *arguments], timeout_s=1200)
            found |= {f"{module}:{told['run']}": told for told in map(json.loads, lines.splitlines())}
        yield found


@pytest.mark.parametrize(
    ("module", "scenario", "mode"), [(module, *run) for module, runs in MODULES.items() for run in runs]
)
def test_no_fault_leaves_a_broken_store(outcomes: dict[str, Any], module: str, scenario: str, mode: str) -> None:
    told = outcomes[f"{module}:{scenario}:{mode}"]
    assert told["points"] >= 3
    assert told["problems"] == []
    if mode in ("kill", "half"):
        assert set(told["statuses"]) == {"-9"}
    else:
        assert "14" in told["statuses"]
        assert set(told["statuses"]) <= {"0", "14"}  # a tidying-up that fails is no failure
