"""Flipped bits and cut ends in the files of a base, one at a time, and what comes of each: run as a program of its own.

    python -m tests.support.broken_files SEED knowledge.db:FLIPS:CUTS knowledge.db-wal:FLIPS:CUTS foreign:0:0 ...

A base with words and vectors is broken as it lies when nobody has it open; its logs are those of a moment when a writer
had. Each broken copy is read as every command reads it, searched, verified and, some of them, written to. `foreign` are
logs of other stores and of other days. Prints a JSON object, the fields of Told by file. A crash ends the program with
a signal, a hang after HANG_S with a traceback.
"""

import faulthandler
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from app import maintenance
from app.showing import KnownPlaces, ShownChunk, ShowRequest, show
from app.wiring import ReadableBase, readable_base, writable_base
from domain.errors import FormatError, IntegrityError, KnowledgeError
from domain.settings import Settings
from domain.status import Tier
from retrieval.answer import SearchRequest
from retrieval.search import search
from retrieval.vector import QueryVector
from store.port import Visibility
from tests.support.bases import TEXTS, build_base, index_into, write_files
from tests.support.scratch import scratch_directory
from tests.support.vector_stores import embed_base, vector_of

FILES = ("knowledge.db", "state.db", "knowledge.db-wal", "state.db-wal")
WORDS = ("fox", "rivers", "日本", "nothing", "café", "beta alpha epsilon")
HANG_S = 120.0
WRITTEN_EVERY = 8  # a document is removed from every so many-th broken base that can be read
REFUSALS = (FormatError.exit_status, IntegrityError.exit_status)
EVERYTHING = Visibility.everything()
NOWHERE = KnownPlaces((), (), Path("/"), "")
OTHERS = {f"other/{n}.md": f"# Other {n}\n\n" + f"rivers {n}\n\n" * 90 for n in range(30)}
MORE = {f"more/{n}.md": f"# More {n}\n\n" + f"Words of file {n} about rivers and foxes.\n\n" * 12 for n in range(12)}

Answers = dict[str, Any]


@dataclass
class Told:
    """What came of the broken files; lists name the offset of each."""

    tried: int = 0
    right: int = 0  # answered as if nothing were broken
    older: int = 0  # answered as the index was at an earlier commit: the end of a log is not there any more
    refused: int = 0  # with 12 or 13
    found: int = 0  # answered with other bytes, which `verify` finds
    written: int = 0
    statuses: dict[str, int] = field(default_factory=dict)  # of refusals
    silent: list[str] = field(default_factory=list)  # answered with other bytes, and `verify` is content
    wrong_citations: list[str] = field(default_factory=list)  # a hit whose citation is not where its text is
    unexpected: list[str] = field(default_factory=list)  # another error than one of ours, or with another status


class WrongCitationError(Exception):
    """A hit's citation does not resolve, or to another text than the hit's."""


def answers_of(settings: Settings) -> Answers:
    """What readers are told: every document, searches by word and by meaning, and the records of runs."""
    with readable_base(settings) as base:
        with base.store.snapshot() as snapshot:
            documents = snapshot.documents("", visibility=EVERYTHING)
            told: Answers = {
                row.key: (row.title, snapshot.text(row.key, visibility=EVERYTHING), row.chunk_count)
                for row in documents
            }
            told |= {f"chunks of {row.key}": _chunks(snapshot, row.key) for row in documents}
            told["counts"] = snapshot.counts(visibility=EVERYTHING)
        told |= {word: _hits(base, SearchRequest(word, top_k=20, mode="lexical", full=True)) for word in WORDS}
        told["by meaning"] = _by_meaning(base)
        told["roots"] = [tuple(root) for root in map(repr, base.state.roots())]
        told["runs"] = [(run.id, run.state, run.counts) for run in base.state.runs()]
        told["failures"] = [failure.key for failure in base.state.failures()]
    return {name: json.loads(json.dumps(value)) for name, value in told.items()}


def _chunks(snapshot: Any, key: str) -> list[tuple[int, str, str]]:
    return [(chunk.ordinal, chunk.heading_path, chunk.body) for chunk in snapshot.chunks(key, visibility=EVERYTHING)]


def _hits(base: ReadableBase, request: SearchRequest, query: QueryVector | None = None) -> list[tuple[str, str]]:
    """Citation and text of each hit. Raises WrongCitationError."""
    with base.store.snapshot() as snapshot:
        hits = search(snapshot, request, query or QueryVector()).results
        for hit in hits:
            shown = show(snapshot, ShowRequest(hit.citation), NOWHERE)
            assert isinstance(shown, ShownChunk)
            if shown.chunks[0].body != hit.content:
                raise WrongCitationError(f"{hit.citation} of {request.query}")
        return [(hit.citation, hit.content or "") for hit in hits]


def _by_meaning(base: ReadableBase) -> list[tuple[str, str]]:
    with base.store.snapshot() as snapshot:
        query = QueryVector(Tier.LEXICAL, vector_of("rivers"), snapshot.vector_status())
    return _hits(base, SearchRequest("rivers", top_k=5, mode="vector", full=True), query)


class Files(NamedTuple):
    """The files of a base by name."""

    opened: dict[str, bytes]  # while a writer has it open: the logs hold the last commits
    closed: dict[str, bytes]  # when nobody has: there are no logs

    def around(self, name: str) -> dict[str, bytes]:
        """What stands beside a file that is broken."""
        return self.opened if name.endswith("-wal") else self.closed


def made_base(where: Path, texts: Mapping[str, str] = TEXTS, more: Mapping[str, str] = MORE) -> tuple[Settings, Files]:
    """A base with two runs behind it."""
    settings = build_base(where, texts)
    with writable_base(settings, "test") as base:
        embed_base(base.writer)
    write_files(where / "docs", more)
    with writable_base(settings, "test") as base:
        index_into(base, settings, where / "docs", "docs", sorted({**texts, **more}))
        embed_base(base.writer)
        opened = {name: (settings.home / name).read_bytes() for name in FILES}
    closed = {name: (settings.home / name).read_bytes() for name in FILES if not name.endswith("-wal")}
    return settings, Files(opened, closed)


def put(settings: Settings, files: dict[str, bytes]) -> None:
    """These files, and nothing else, as the base."""
    shutil.rmtree(settings.home)
    settings.home.mkdir(mode=0o700)
    for name, content in files.items():
        path = settings.home / name
        path.touch(mode=0o600)
        path.write_bytes(content)


def broken(content: bytes, seed: int, flips: int, cuts: int) -> Iterator[tuple[str, bytes]]:
    rolls = random.Random(seed)
    for _ in range(flips):
        at, bit = rolls.randrange(len(content)), rolls.randrange(8)
        yield f"bit {bit} of {at}", content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]
    for _ in range(cuts):
        length = rolls.randrange(len(content))
        yield f"cut at {length}", content[:length]


def earlier_answers(settings: Settings, files: dict[str, bytes], name: str) -> list[Answers]:
    """What was answered at each commit that the log holds; [] for a file that is no log."""
    if not name.endswith("-wal"):
        return []
    log = files[name]
    frame = 24 + int.from_bytes(log[8:12], "big")
    found: list[Answers] = []
    for end in range(32, len(log), frame):
        is_commit = end == 32 or log[end - frame + 4 : end - frame + 8] != bytes(4)
        if is_commit:
            put(settings, files | {name: log[:end]})
            found.append(answers_of(settings))
    return found


def try_one(settings: Settings, right: Answers, earlier: list[Answers]) -> tuple[str, int]:
    """The name of what came of it, and the exit status of a refusal."""
    try:
        told = answers_of(settings)
    except WrongCitationError as error:
        return f"wrong citation: {error}", 0
    except KnowledgeError as error:
        return _of_refusal("reading", error)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"reading: {type(error).__name__}: {error}", 0
    try:
        is_found = maintenance.verify(settings, deep=True).exit_status != 0
    except KnowledgeError as error:
        return _of_refusal("verify", error)
    except Exception as error:  # noqa: BLE001
        return f"verify: {type(error).__name__}: {error}", 0
    if told == right:
        return "right", 0
    if told in earlier:
        return "older", 0
    return ("found" if is_found else "silent"), 0


def _of_refusal(step: str, error: KnowledgeError) -> tuple[str, int]:
    if error.exit_status in REFUSALS:
        return "refused", error.exit_status
    return f"{step}: {error.exit_status} {error.code}: {error.message}", error.exit_status


def write_to(settings: Settings) -> str:
    """A removal: carried out or refused in words; "" then."""
    try:
        maintenance.remove_paths(settings, settings.home.parent, ["docs/a.md"])
    except KnowledgeError as error:
        return "" if error.exit_status in REFUSALS else f"writing: {error.exit_status} {error.code}: {error.message}"
    except Exception as error:  # noqa: BLE001
        return f"writing: {type(error).__name__}: {error}"
    return ""


Case = tuple[str, dict[str, bytes]]
"""What is broken, in words, and all files of the base with it."""


def broken_cases(files: Files, name: str, seed: int, flips: int, cuts: int) -> Iterator[Case]:
    beside = files.around(name)
    for where, content in broken(beside[name], seed, flips, cuts):
        yield f"{name}: {where}", beside | {name: content}


def foreign_cases(files: Files, other: Files) -> Iterator[Case]:
    """Logs of another base, and of this one, beside databases that are not theirs, or not any more."""
    for name in ("knowledge.db-wal", "state.db-wal"):
        yield f"{name} of another base", files.closed | {name: other.opened[name]}
        yield f"{name} of another base in the place of its own", files.opened | {name: other.opened[name]}
        yield f"{name} beside what it is written into already", files.closed | {name: files.opened[name]}
    yield "both logs of another base", files.opened | {name: other.opened[name] for name in FILES if "-wal" in name}
    yield (
        "each other's logs",
        files.opened
        | {
            "knowledge.db-wal": files.opened["state.db-wal"],
            "state.db-wal": files.opened["knowledge.db-wal"],
        },
    )


def try_cases(settings: Settings, cases: Iterable[Case], right: Answers, earlier: list[Answers]) -> Told:
    told = Told()
    statuses: Counter[str] = Counter()
    for where, files in cases:
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        put(settings, files)
        outcome, status = try_one(settings, right, earlier)
        told.tried += 1
        if status:
            statuses[str(status)] += 1
        _count(told, outcome, where)
        if told.tried % WRITTEN_EVERY == 0 and outcome in ("right", "older", "found"):
            told.written += 1
            told.unexpected += [f"{where}: {wrong}" for wrong in [write_to(settings)] if wrong]
    faulthandler.cancel_dump_traceback_later()
    told.statuses = dict(statuses)
    return told


def try_all(seed: int, wanted: Sequence[str]) -> dict[str, Told]:
    """`wanted`: NAME:FLIPS:CUTS each."""
    found: dict[str, Told] = {}
    with scratch_directory() as scratch:
        settings, files = made_base(scratch)
        put(settings, files.closed)
        right = answers_of(settings)
        for name, flips, cuts in (item.split(":") for item in wanted):
            if name == "foreign":
                (scratch / "other").mkdir()
                other, other_files = made_base(scratch / "other", OTHERS, {"last.md": "# Last\n"})
                cases = foreign_cases(files, other_files)
                earlier = [answers for log in FILES for answers in earlier_answers(settings, files.opened, log)]
                earlier.append(answers_of(other))  # both of its logs hold all of it: a base that is whole, and is told
            else:
                cases = broken_cases(files, name, seed, int(flips), int(cuts))
                earlier = earlier_answers(settings, files.opened, name)
            found[name] = try_cases(settings, cases, right, earlier)
    return found


def _count(told: Told, outcome: str, where: str) -> None:
    if outcome in ("right", "older", "refused", "found"):
        setattr(told, outcome, getattr(told, outcome) + 1)
    elif outcome == "silent":
        told.silent.append(where)
    elif outcome.startswith("wrong citation"):
        told.wrong_citations.append(f"{where}: {outcome}")
    else:
        told.unexpected.append(f"{where}: {outcome}")


def main(arguments: list[str]) -> None:
    seed, *wanted = arguments
    told = try_all(int(seed), wanted)
    sys.stdout.write(json.dumps({name: asdict(of_file) for name, of_file in told.items()}))


if __name__ == "__main__":
    main(sys.argv[1:])
