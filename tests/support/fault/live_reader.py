"""Readers beside a writer that is being killed: forked, each with its own connections, until they are told to stop."""

import json
import os
import random
import select
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.searching import answer
from app.wiring import ReadableBase, readable_base
from domain.errors import KnowledgeError
from domain.settings import Settings
from retrieval.answer import SearchRequest
from tests.support.fault.stamped import EVERYTHING, PAIR, read_document, stamp_in, torn_chunks, unlike_pair

MOST_READS_AN_OPENING = 20
LONGEST_PAUSE_S = 0.03  # closed: whoever opens next may be the first
QUERY = SearchRequest("rivers stamp", top_k=5, full=True)


@dataclass(slots=True)
class Readings:
    documents: int = 0  # read whole
    hits: int = 0
    searches: int = 0
    openings: int = 0
    torn: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)  # by code


class Reader(NamedTuple):
    pid: int
    stop: int  # closed: it ends
    told: int  # its readings come out of here at its end


def start_readers(settings: Settings, count: int, seed: int) -> list[Reader]:
    """In processes of their own. The caller has no database open, and no thread."""
    readers: list[Reader] = []
    for number in range(count):
        stop, stopped = os.pipe()
        out, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            for descriptor in (stopped, out, *(reader.stop for reader in readers)):
                os.close(descriptor)
            _end_with(_read_until(settings, stop, random.Random(seed + number)), told)
        os.close(stop)
        os.close(told)
        readers.append(Reader(pid, stopped, out))
    return readers


def stop_readers(readers: Sequence[Reader]) -> Readings:
    """What they have read, together."""
    total = Readings()
    for reader in readers:
        os.close(reader.stop)
    for reader in readers:
        with os.fdopen(reader.told, "rb") as told:
            raw = told.read()
        status = os.waitstatus_to_exitcode(os.waitpid(reader.pid, 0)[1])
        if status != 0 or not raw:
            total.torn.append(f"a reader ended with {status}")
            continue
        own = json.loads(raw)
        for name in ("documents", "hits", "searches", "openings", "torn"):
            setattr(total, name, getattr(total, name) + own[name])
        total.errors.update(own["errors"])
    return total


def _end_with(readings: Readings, told: int) -> None:
    fields = ("documents", "hits", "searches", "openings", "torn", "errors")
    with os.fdopen(told, "wb") as out:
        out.write(json.dumps({name: getattr(readings, name) for name in fields}).encode())
    os._exit(0)


def _read_until(settings: Settings, stop: int, rng: random.Random) -> Readings:
    """Once at least; closed in between for a moment of random length."""
    readings, is_stopped = Readings(), False
    while not is_stopped:
        try:
            with readable_base(settings) as base:
                readings.openings += 1
                for _ in range(rng.randrange(1, MOST_READS_AN_OPENING)):
                    _read(base, readings, rng)
        except KnowledgeError as error:
            readings.errors[error.code] += 1
        except Exception as error:  # noqa: BLE001 - it is what a user would have been shown
            readings.errors[repr(error)] += 1
        is_stopped = bool(select.select([stop], [], [], rng.random() * LONGEST_PAUSE_S)[0])
    return readings


def _read(base: ReadableBase, readings: Readings, rng: random.Random) -> None:
    """The pair and one more document of one state; then a search, whose hits are of one state too."""
    with base.store.snapshot() as snapshot:
        rows = {row.key: row for row in snapshot.documents("", visibility=EVERYTHING)}
        keys = {*PAIR, rng.choice(sorted(rows))} if rows else set()
        found = {key: read_document(snapshot, rows[key]) for key in keys & rows.keys()}
    readings.documents += len(found)
    for _, problems in found.values():
        readings.torn += problems
    readings.torn += unlike_pair({key: found[key][0] if key in found else -1 for key in PAIR})
    hits = answer(base.store, QUERY, None).results
    readings.searches += 1
    readings.hits += len(hits)
    for hit in hits:
        text = hit.content or ""
        readings.torn += torn_chunks(hit.path, stamp_in(text), [text])
