"""Actions on the vector tables under faults, run as
`python -m tests.support.fault.vector_scenarios NAME:WAY:SAMPLE ...`.

As tests.support.fault.scenarios does it, one level lower: the store alone, with the writer's own calls.
"""

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from domain.errors import NotBuiltError
from domain.layout import BaseLayout
from store import rebuilding
from store.connection import open_reader
from store.documents import SqliteStoreWriter
from store.sqlite import SqliteStore
from store.write_port import RemoveWrite, WriteGroup
from tests.support.audit import audit
from tests.support.fault.points import Trial, main
from tests.support.stores import BASE_ID
from tests.support.vector_stores import (
    OTHER,
    cover_stored,
    embed_base,
    embedded,
    pin,
    put_words,
    vector_of,
    writing,
)

TEXTS = {f"docs/{n}.md": f"# N{n}\n\nbody of {n}\n\n## Deeper\n\nmore of {n}\n" for n in range(8)}
CHANGED = {"docs/0.md": TEXTS["docs/1.md"], "docs/new.md": "# New\n\nnewly written\n", "docs/2.md": "# Short\n\nless\n"}

Step = Callable[[SqliteStoreWriter], object]


def words(writer: SqliteStoreWriter) -> None:
    put_words(writer, TEXTS)


def pinned_words(writer: SqliteStoreWriter) -> None:
    words(writer)
    pin(writer)


def answering(writer: SqliteStoreWriter) -> None:
    words(writer)
    embed_base(writer)


def built(writer: SqliteStoreWriter) -> None:
    """Another set is whole, and does not answer yet."""
    answering(writer)
    cover_stored(writer, pin(writer, OTHER))


def littered(writer: SqliteStoreWriter) -> None:
    """A retired set, and vectors that no chunk has."""
    built(writer)
    activate(writer)
    writer.apply(WriteGroup(removes=[RemoveWrite(key, time.time_ns(), 2) for key in list(TEXTS)[:3]]))


def apply(writer: SqliteStoreWriter) -> None:
    active = pin(writer)
    documents = [embedded(key, text, active, generation=3) for key, text in CHANGED.items()]
    writer.apply(WriteGroup(documents=documents, removes=[RemoveWrite("docs/7.md", 2**62, 3)]))


def cover(writer: SqliteStoreWriter) -> None:
    cover_stored(writer, pin(writer))


def pin_first(writer: SqliteStoreWriter) -> None:
    pin(writer)


def pin_beside(writer: SqliteStoreWriter) -> None:
    pin(writer, OTHER)


def activate(writer: SqliteStoreWriter) -> None:
    target = writer.vector_status().target
    writer.activate_identity(target.id if target is not None else 0)


def collect(writer: SqliteStoreWriter) -> None:
    writer.collect_vectors(keep_unused=0)


def rebuild(writer: SqliteStoreWriter) -> None:
    path = Path(writer.connection.execute("PRAGMA database_list").fetchone()[2])
    rebuilding.rebuild(writer.connection, path)


class Scenario(NamedTuple):
    """What the store is made of first, and the action that meets the fault."""

    prepare: Step
    act: Step


SCENARIOS = {
    "vectors-index": Scenario(answering, apply),
    "vectors-cover": Scenario(pinned_words, cover),
    "vectors-pin": Scenario(words, pin_first),
    "vectors-pin-beside": Scenario(answering, pin_beside),
    "vectors-activate": Scenario(built, activate),
    "vectors-collect": Scenario(littered, collect),
    "vectors-rebuild": Scenario(built, rebuild),
}


def run(home: Path, step: Step) -> None:
    with writing(home) as writer:
        step(writer)


def visible(home: Path) -> dict[str, Any]:
    """What a reader can tell: the sets, and for every document its chunks, its state and the vectors that answer."""
    path = BaseLayout(home).database
    with closing(SqliteStore(path, base_id=BASE_ID)) as store:
        status = store.reader().vector_status()
    with closing(open_reader(path)) as connection:
        rows = connection.execute(
            "SELECT key, vector_state, body, chunks.id FROM documents JOIN chunks ON document = documents.id"
            " ORDER BY key, ordinal"
        ).fetchall()
        vectors: dict[int, bytes] = {}
        if status.active is not None:
            linked = "SELECT chunk, vector FROM vector_links JOIN embeddings ON embeddings.id = embedding"
            vectors = dict(
                connection.execute(f"{linked} WHERE embeddings.identity = ?", (status.active.id,)).fetchall()
            )
    rows = [(key, state, body, vectors.get(chunk)) for key, state, body, chunk in rows]
    return {"rows": rows, "active": status.active, "building": status.building}


@dataclass(slots=True)
class Ground:
    """A template, the copy that is worked on, and the states between which there is nothing."""

    scenario: Scenario
    template: Path
    home: Path  # of the copy
    whole: list[dict[str, Any]] = field(default_factory=list)  # before, then after

    def fresh(self) -> None:
        shutil.rmtree(self.home.parent, ignore_errors=True)
        shutil.copytree(self.template, self.home)

    def act(self) -> None:
        run(self.home, self.scenario.act)

    def went_through(self) -> None:
        self.whole.append(visible(self.home))

    def examine(self) -> list[str]:
        return _examined(self.home, self.whole)

    def go_on(self) -> list[str]:
        self.act()
        return _examined(self.home, self.whole[1:])


def _examined(home: Path, whole: Sequence[dict[str, Any]]) -> list[str]:
    problems = audit(BaseLayout(home).database, vector_of=vector_of)
    try:
        found = visible(home)
    except NotBuiltError as error:
        return [*problems, str(error)]
    return problems + ["neither the old nor the new state"] * (found not in whole)


def trial_of(name: str, scratch: Path) -> Trial:
    ground = Ground(SCENARIOS[name], scratch / "template", scratch / "copy" / "home")
    run(ground.template, ground.scenario.prepare)
    ground.whole.append(visible(ground.template))
    home = ground.home
    return Trial(str(home), home, ground.fresh, ground.act, ground.went_through, ground.examine, ground.go_on)


if __name__ == "__main__":
    main(trial_of, sys.argv[1:])
