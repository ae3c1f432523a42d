"""`explain PATH --query Q`: places in the lanes are those of a search, and go on where a search stops."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.explaining_query import Cause, QueryTrace, explain_query
from app.query_embedder import QueryEmbedder
from app.wiring import readable_base
from domain.settings import Settings
from domain.status import DropReason, TierKind
from retrieval.answer import SearchRequest
from retrieval.search import search
from tests.support.bases import build_base
from tests.support.meaning import SETTINGS, TEXTS, MeaningBase
from tests.support.scratch import scratch_directory

MANY = 130
CROWD = {f"crowd/{number:03}.md": f"# Crowd\n\n{'zebra ' * 3}and lion number{number}\n" for number in range(MANY)}
BASE = CROWD | {
    "last.md": f"# Last\n\none zebra {'among very many other words ' * 40}\n",
    "copy.md": "# Copy\n\ngiraffe in the yard\n",
    "copy2.md": "# Copy\n\ngiraffe in the yard\n",
    "code.md": "# Code\n\ncall foo_bar.baz with care\n\n## Two\n\ngiraffe again\n",
    "cjk.md": "# 東京\n\n東京都は日本の首都である。\n",
    "none.md": "# None\n\nnothing alike\n",
}


@pytest.fixture(scope="module")
def base() -> Iterator[Settings]:
    with scratch_directory() as path:
        yield build_base(path, BASE)


def ask(settings: Settings, key: str, query: str, **options: object) -> QueryTrace:
    with readable_base(settings) as opened:
        return explain_query(opened.store, key, SearchRequest(query, **options), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("query", ["giraffe", "call foo_bar.baz", "首都", "giraffe yard care", "zebra lion number7"])
def test_places_are_those_of_the_search(base: Settings, query: str) -> None:
    """Every hit of a search is explained as that hit, with the places that the hit itself tells of."""
    with readable_base(base) as opened, opened.store.snapshot() as snapshot:
        hits = search(snapshot, SearchRequest(query, top_k=20)).results
    assert hits
    best: dict[str, dict[str, int | None]] = {}
    for hit in hits:
        lanes = best.setdefault(hit.path, {"words": None, "literal": None, "substring": None})
        for lane in lanes:
            rank, known = getattr(hit.lanes, lane), lanes[lane]
            lanes[lane] = rank if known is None or (rank is not None and rank < known) else known
    for path, lanes in best.items():
        told = ask(base, path, query, top_k=20)
        assert (told.cause, told.rank) == (Cause.HIT, next(hit.rank for hit in hits if hit.path == path))
        for lane, rank in lanes.items():
            if rank is not None:
                assert told.lanes[lane].rank == rank


def test_beyond_what_is_shown(base: Settings) -> None:
    told = ask(base, "docs/crowd/020.md", "zebra", top_k=5)
    assert told.cause is Cause.BELOW_TOP_K
    assert told.rank is not None
    assert 5 < told.rank <= 100


def test_beyond_the_lanes(base: Settings) -> None:
    """The lane gives its best 50; this one stands behind all of the crowd."""
    told = ask(base, "docs/last.md", "zebra")
    assert told.lanes["words"].rank == told.lanes["words"].length == MANY + 1
    assert (told.cause, told.rank) == (Cause.BEYOND_LANES, None)


def test_a_copy_names_the_hit(base: Settings) -> None:
    told = ask(base, "docs/copy2.md", "giraffe yard")
    assert (told.cause, told.citation) == (Cause.COPY, "docs/copy.md#0")
    assert ask(base, "docs/copy2.md", "giraffe yard", all_chunks=True).cause is Cause.HIT


def test_none_of_the_words(base: Settings) -> None:
    told = ask(base, "docs/none.md", "giraffe?")
    assert (told.cause, told.lanes["words"].rank) == (Cause.NO_TERM, None)
    assert [(term.term, term.stem, term.chunks, term.in_document) for term in told.terms] == [
        ("giraffe", "giraff", 3, 0)
    ]


def test_words_that_were_left_out(base: Settings) -> None:
    """In more than half of the chunks, beside a rarer word."""
    told = ask(base, "docs/crowd/001.md", "zebra giraffe yard copy care again code two")
    dropped = {term.term: term.dropped for term in told.terms}
    assert dropped["zebra"] in (DropReason.TOO_COMMON, None)
    assert {term.term: term.in_document for term in told.terms}["zebra"] == 1


def test_a_query_of_nothing_and_a_file_that_is_not_there(base: Settings) -> None:
    assert ask(base, "docs/none.md", "?!").cause is Cause.QUERY_EMPTY
    told = ask(base, "docs/nope.md", "giraffe")
    assert (told.cause, told.terms[0].chunks, told.terms[0].in_document) == (Cause.NOT_INDEXED, 3, 0)
    assert ask(base, "", "giraffe").cause is Cause.NOT_INDEXED


def test_the_only_document_of_an_index(tmp_path: Path) -> None:
    """Its chunks are all there are, and no range names them."""
    settings = build_base(tmp_path, {"a.md": "# A\n\nriver\n"})
    told = ask(settings, "docs/a.md", "river")
    assert (told.cause, told.terms[0].in_document, told.lanes["words"].rank) == (Cause.HIT, 1, 1)


@pytest.fixture
def meaning_base(tmp_path: Path) -> MeaningBase:
    made = MeaningBase(tmp_path / "home")
    made.put(TEXTS, made.pin())
    return made


def ask_by_meaning(base: MeaningBase, key: str, query: str, **options: object) -> QueryTrace:
    embedder = QueryEmbedder(SETTINGS, make=base.make)
    try:
        with base.opened() as store:
            return explain_query(store, key, SearchRequest(query, **options), embedder.meaning(None))  # type: ignore[arg-type]
    finally:
        embedder.close()


def test_the_vector_lane(meaning_base: MeaningBase) -> None:
    hit = meaning_base.ask("car").results[0]
    told = ask_by_meaning(meaning_base, "d/wheels.md", "car")
    assert (told.cause, told.rank, told.tier.kind) == (Cause.HIT, 1, TierKind.HYBRID)
    assert (told.lanes["vector"].rank, told.lanes["words"].rank) == (hit.lanes.vector, None)
    assert told.lanes["vector"].similarity == pytest.approx(hit.similarity)
    copy = ask_by_meaning(meaning_base, "d/again.md", "car")
    assert (copy.cause, copy.lanes["vector"].rank) == (Cause.COPY, 1)


def test_by_meaning_alone_no_words_are_ranked(meaning_base: MeaningBase) -> None:
    told = ask_by_meaning(meaning_base, "d/oven.md", "car", mode="vector")
    assert list(told.lanes) == ["vector"]
    assert told.lanes["vector"].rank is not None
    assert told.lanes["vector"].length == len(TEXTS) - 1  # one text stands twice
