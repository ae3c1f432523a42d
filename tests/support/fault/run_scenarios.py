"""Whole runs under faults, from walk to report, over a queue and with a server of embeddings; run as
`python -m tests.support.fault.run_scenarios NAME:WAY:SAMPLE ...`, KNOWLEDGE_TEST_EMBEDDINGS naming that server.

Loaded with the injector; tests.support.fault.points is the loop. A run commits its pages one after another: what is
asked of each document is that it is the old one or the new one, whole, with every vector its own.
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from app.progress import RunProgress
from app.upgrade_report import UpgradeRequest
from app.upgrading import upgrade
from domain.errors import FormatError, KnowledgeError
from domain.settings import EmbeddingsSettings, QueueSettings
from tests.support.audit import audit
from tests.support.embedding_server import vector_array_of
from tests.support.fault.injector import run_at
from tests.support.fault.points import Trial, main
from tests.support.old_stores import OLD
from tests.support.runs import Base, base_in
from tests.support.trees import make_tree
from tests.support.vector_runs import misplaced, tree_of, uncovered

SERVER_VARIABLE = "KNOWLEDGE_TEST_EMBEDDINGS"
FILES, CHUNKS = 10, 2
TEXTS = tree_of(FILES, CHUNKS)
EDITED = {
    "00/000.md": "# Another\n\nwords of its own\n",
    "00/003.md": str(TEXTS["00/003.md"]) * 3,
    "new.md": "# New\n\nnewly written\n",
}
GONE = "01/009.md"


def unit_vector_of(text: str, dimension: int) -> bytes:
    return vector_array_of(text, dimension).astype(np.dtype("<f4")).tobytes()


@dataclass(frozen=True, slots=True)
class Place:
    """A base and the documents that it is made from."""

    base: Base
    docs: Path


def index(place: Place) -> None:
    place.base.index(place.docs, allow_mass_delete=True)


def reindex(place: Place) -> None:
    """Every file cut anew, every text embedded anew: beside the vectors that answer."""
    place.base.index(reindex=True, re_embed=True)


def other_model(place: Place) -> None:
    """The vectors of another model are made beside those that answer, which then go."""
    embeddings = place.base.settings.embeddings
    assert embeddings is not None
    other = replace(place.base.settings, embeddings=replace(embeddings, model="other"))
    Base(other).index(reindex=True)


def rehash(place: Place) -> None:
    place.base.index(rehash=True)


def upgraded(place: Place) -> None:
    upgrade(place.base.settings, UpgradeRequest(worker_processes=0), RunProgress())


def nothing(place: Place) -> None:
    """The base as it was built, over the same files."""


def edit(place: Place) -> None:
    make_tree(place.docs, EDITED)
    (place.docs / GONE).unlink(missing_ok=True)


def grown_old(place: Place) -> None:
    OLD["a column less"](place.base.layout.database)


class Scenario(NamedTuple):
    """What is made of the place first, and the action that meets the fault."""

    prepare: Callable[[Place], None]
    act: Callable[[Place], None]


SCENARIOS = {
    "run-index": Scenario(edit, index),
    "run-reindex": Scenario(nothing, reindex),
    "run-other-model": Scenario(nothing, other_model),
    "run-rehash": Scenario(edit, rehash),
    "run-upgrade": Scenario(nothing, upgraded),
}


def documents_of(base: Base) -> dict[str, tuple[Any, ...]]:
    """By key, all that a query can see of it."""
    found: dict[str, tuple[Any, ...]] = {}
    for row in base.content():
        found[row[0]] = (*found.get(row[0], ()), row)
    return found


@dataclass(slots=True)
class Ground:
    """A template, the copy that is worked on, and what each document may be."""

    scenario: Scenario
    template: Path  # holds home and docs
    place: Place  # in a copy of it
    old: bytes = b""  # of an index to be upgraded: its file, untouched until the new one takes over
    whole: list[dict[str, tuple[Any, ...]]] = field(default_factory=list)  # before, then after

    def fresh(self) -> None:
        where = self.place.docs.parent
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(self.template, where)
        if not self.whole:
            self.whole.append(documents_of(self.place.base))
        self.scenario.prepare(self.place)
        if self.scenario.act is upgraded:
            grown_old(self.place)
            self.old = self.place.base.layout.database.read_bytes()

    def act(self) -> None:
        self.scenario.act(self.place)

    def went_through(self) -> None:
        self.whole.append(documents_of(self.place.base))

    def examine(self) -> list[str]:
        if self.scenario.act is upgraded and self._is_old():
            return []
        return self._examined(self.whole)

    def go_on(self) -> list[str]:
        """The same command again, in a process as young as the first; then nothing is between the states any more."""
        status = run_at("", 0, 0, self.act)
        if status != 0:
            return [f"ended with {status}"]
        left = [name for name in ("restore", "upgrade") if list(self.place.base.layout.home.glob(f"{name}*"))]
        problems = [f"{name} is left" for name in left] + self._examined(self.whole[1:])
        return problems + [f"{key} has no vector" for key in uncovered(self.place.base)]

    def _is_old(self) -> bool:
        """An upgrade decides by one rename: before it, the old file is what it was to the last byte."""
        try:
            is_refused = run_at("", 0, 0, self._read) == FormatError.exit_status
        except KnowledgeError:
            return False
        return is_refused and self.place.base.layout.database.read_bytes() == self.old

    def _read(self) -> None:
        from app.wiring import readable_base

        with readable_base(self.place.base.settings):
            pass

    def _examined(self, whole: list[dict[str, tuple[Any, ...]]]) -> list[str]:
        base = self.place.base
        problems = audit(base.layout.database, vector_of=unit_vector_of)
        problems += [f"{key} has a vector of another text" for key in misplaced(base)]
        found = documents_of(base)
        for key in sorted({key for state in whole for key in state} | found.keys()):
            if found.get(key) not in [state.get(key) for state in whole]:
                problems.append(f"{key} is neither the old nor the new one")
        return problems


def trial_of(name: str, scratch: Path) -> Trial:
    embeddings = EmbeddingsSettings(
        base_url=os.environ[SERVER_VARIABLE], model="m", timeout_s=120.0, batch=8, concurrency=1
    )
    queue = QueueSettings(files_per_job=4)
    where, template = scratch / "copy", scratch / "template"
    base = base_in(where, queue=queue, embeddings=embeddings)
    docs = make_tree(where / "docs", TEXTS)
    base.index(docs)  # in this process: what its children need is imported by then
    shutil.move(where, template)  # the documents of a copy lie where those of the template lay
    place = Place(base, docs)
    ground = Ground(SCENARIOS[name], template, place)
    home = base.layout.home
    return Trial(str(home), home, ground.fresh, ground.act, ground.went_through, ground.examine, ground.go_on)


if __name__ == "__main__":
    main(trial_of, sys.argv[1:])
