"""A writer that commits groups of changed documents until it is killed, and says through a pipe how far it is."""

import json
import os
import random
import time
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from app.wiring import WritableBase, writable_base
from domain.settings import Settings
from domain.vectors import PinnedIdentity
from store.run_port import RunRecord
from store.state_port import PageOutcome
from store.write_port import RemoveWrite, WriteGroup
from tests.support.fault.stamped import PAIR, text_of
from tests.support.vector_stores import embedded, pin
from workers.writer.groups import apply_halving

KEYS = tuple(f"docs/{number // 10}/{number}.md" for number in range(60))
MOST_IN_A_GROUP = 12
GROUPS_IN_A_RUN = 6
STAMPS_A_ROUND = 1_000_000

Change = dict[str, int | None]
"""By key, the stamp that a group writes; None: it removes the document."""


class Said(NamedTuple):
    """What came out of a writer's pipe before it died."""

    acknowledged: list[Change]
    announced: Change | None  # the group that it was at: there whole or not at all


def prepare(settings: Settings) -> Change:
    """A base with every document under stamp 0, with vectors."""
    with writable_base(settings, "test") as base:
        pinned = pin(base.writer)
        change: Change = dict.fromkeys((*PAIR, *KEYS), 0)
        base.writer.apply(_group_of(change, pinned, 1))
        base.writer.activate_identity(pinned.id)
        base.writer.close_generation(1, complete=True)
    return change


def write_on(settings: Settings, number: int, seed: str, say: int) -> None:
    """Commit group after group; it is for somebody else to end this."""
    rng = random.Random(seed)
    stamps = count(number * STAMPS_A_ROUND)
    with writable_base(settings, "test") as base:
        pinned = pin(base.writer)
        while True:
            _one_run(base, pinned, rng, stamps, say)


def _one_run(base: WritableBase, pinned: PinnedIdentity, rng: random.Random, stamps: Iterator[int], say: int) -> None:
    run = base.state.begin_run(
        RunRecord(0, 0, "index", "test", ("docs",), "walking", time.time_ns(), None, {}),
        floor_generation=base.writer.highest_generation(),
    )
    for page in range(rng.randrange(1, GROUPS_IN_A_RUN)):
        change = _change(rng, next(stamps))
        _say(say, {"at": change})
        apply_halving(base.writer, _group_of(change, pinned, run.generation))
        _say(say, {"done": len(change)})
        base.state.finish_pages(run.id, [PageOutcome(page, {"updated": len(change)})])
    base.writer.close_generation(run.generation, complete=True)
    base.state.end_run(run.id, "done", {}, "")


def _change(rng: random.Random, stamp: int) -> Change:
    keys = rng.sample(KEYS, rng.randrange(1, MOST_IN_A_GROUP))
    return {**dict.fromkeys(PAIR, stamp), **{key: None if rng.random() < 0.2 else stamp for key in keys}}


def _group_of(change: Change, pinned: PinnedIdentity, generation: int) -> WriteGroup:
    written = {key: stamp for key, stamp in change.items() if stamp is not None}
    return WriteGroup(
        documents=[embedded(key, text_of(key, stamp), pinned, generation=generation) for key, stamp in written.items()],
        removes=[RemoveWrite(key, time.time_ns(), generation) for key, stamp in change.items() if stamp is None],
    )


def _say(say: int, value: object) -> None:
    os.write(say, json.dumps(value).encode() + b"\n")


def heard(lines: list[bytes]) -> Said:
    """What a writer has said; the last line may be cut short by its death."""
    acknowledged: list[Change] = []
    announced: Change | None = None
    for line in lines:
        told = json.loads(line) if line.endswith(b"\n") else {}
        if "at" in told:
            announced = told["at"]
        elif "done" in told and announced is not None:
            acknowledged.append(announced)
            announced = None
    return Said(acknowledged, announced)
