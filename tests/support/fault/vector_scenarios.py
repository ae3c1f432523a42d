"""Actions on the vector tables under faults, run as
`python -m tests.support.fault.vector_scenarios SCENARIO:MODE:EVERY:OFFSET ...`.

As tests.support.fault.scenarios does it, one level lower: the store alone, with the writer's own calls.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import closing
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
from tests.support.fault.injector import count_calls, run_at
from tests.support.fault.scenarios import KILLED, MODES, Tally
from tests.support.scratch import scratch_directory
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
    "apply": Scenario(answering, apply),
    "cover": Scenario(pinned_words, cover),
    "pin": Scenario(words, pin_first),
    "pin_beside": Scenario(answering, pin_beside),
    "activate": Scenario(built, activate),
    "collect": Scenario(littered, collect),
    "rebuild": Scenario(built, rebuild),
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


def main(name: str, mode: str, every: int, offset: int) -> Tally:
    scenario, tally = SCENARIOS[name], Tally()
    with scratch_directory() as scratch:
        template, home = scratch / "template", scratch / "copy" / "home"
        run(template, scenario.prepare)
        before = visible(template)
        _fresh(template, home)
        tally.calls = count_calls(str(home), lambda: run(home, scenario.act))
        after = visible(home)
        for at in range(1 + offset, tally.calls + 1, every):
            _fresh(template, home)
            status = run_at(str(home), at, MODES[mode], lambda: run(home, scenario.act), sticky=mode == "enospc")
            tally.points += 1
            tally.statuses[str(status)] = tally.statuses.get(str(status), 0) + 1
            problems = [] if status in (0, KILLED, 14) else [f"ended with {status}"]
            problems += _examine(home, (before, after))
            run(home, scenario.act)
            problems += [f"then {problem}" for problem in _examine(home, (after,))]
            tally.problems += [f"{at}: {problem}" for problem in problems]
    return tally


def _fresh(template: Path, home: Path) -> None:
    shutil.rmtree(home.parent, ignore_errors=True)
    shutil.copytree(template, home)


def _examine(home: Path, whole: tuple[dict[str, Any], ...]) -> list[str]:
    problems = audit(BaseLayout(home).database, vector_of=vector_of)
    try:
        found = visible(home)
    except NotBuiltError as error:
        return [*problems, str(error)]
    return problems + ["neither the old nor the new state"] * (found not in whole)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        scenario, mode, every, offset = argument.split(":")
        tally = main(scenario, mode, int(every), int(offset))
        told = {"calls": tally.calls, "points": tally.points, "statuses": tally.statuses}
        sys.stdout.write(json.dumps({"run": f"{scenario}:{mode}", **told, "problems": tally.problems[:20]}) + "\n")
        sys.stdout.flush()
