"""Searches by words and by meaning: what is found, and what ranks it."""

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.present import tier_line
from app.present_search import IndexState, search_json, search_text
from app.query_embedder import QueryEmbedder
from app.searching import answer, query_meaning
from domain.status import SearchNote, SearchStatus
from domain.vectors import PinnedIdentity
from retrieval.answer import SearchAnswer, SearchRequest
from retrieval.query_vector import Meaning, WantedVectors, embed_query, plan_meaning
from retrieval.search import search
from retrieval.vector import QueryVector
from store.port import Visibility
from store.write_port import RemoveWrite, WriteGroup
from tests.support.meaning import SETTINGS, TEXTS, MeaningBase, paths
from tests.support.vector_stores import writing


@pytest.fixture
def base(tmp_path: Path) -> MeaningBase:
    """Five documents with their vectors."""
    made = MeaningBase(tmp_path / "home")
    made.put(TEXTS, made.pin())
    return made


def test_a_paraphrase_that_shares_no_word_is_found(base: MeaningBase) -> None:
    """S1-11, S2-49"""
    found = base.ask("car")
    first = found.results[0]
    assert first.path == "d/wheels.md"
    assert first.also_in == ("d/again.md#0",)
    assert (first.lanes.words, first.lanes.vector, first.matched_in) == (None, 1, ())
    assert first.similarity is not None
    assert first.similarity > max(hit.similarity or 0 for hit in found.results[1:])
    assert found.notes == (SearchNote.NEAREST_BY_MEANING,)
    assert (found.mode, found.status) == ("hybrid", SearchStatus.OK)
    assert tier_line(found.tier) == "tier: hybrid (FTS5 + vectors, RRF) - model=fake-model dim=256"
    assert found.vectors.method == "exact"
    assert base.fake.queries_seen == ["q: car"]
    assert base.ask("car", mode="lexical").results == ()


def test_both_lanes_are_fused(base: MeaningBase) -> None:
    """S1-11, S2-48, S0-35: each lane gives 1 / (60 + rank)."""
    found = base.ask("river car")
    by_path = {hit.path: hit for hit in found.results}
    house, cars = by_path["d/letters.md"], by_path["d/wheels.md"]
    assert house.lanes.words == 1
    assert house.lanes.vector is not None
    assert house.score == pytest.approx(1 / 61 + 1 / (60 + house.lanes.vector))
    assert cars.lanes.vector is not None
    assert cars.score == pytest.approx(1 / (60 + cars.lanes.vector))
    assert found.results[0].path == "d/letters.md"
    assert SearchNote.NEAREST_BY_MEANING not in found.notes


def test_embeddings_take_nothing_from_the_words(base: MeaningBase) -> None:
    """S1-20"""
    words_only = MeaningBase(base.home, settings=None)
    for query in ("automobile", "tyre river", '"flat tyre"', "loaf-rests", "patients nooon", "x", "the"):
        bare = words_only.ask(query, top_k=20)
        asked = base.ask(query, mode="lexical", top_k=20)
        assert (asked.results, asked.did_you_mean, asked.notes) == (bare.results, bare.did_you_mean, bare.notes)
        hybrid = base.ask(query, top_k=20)
        ranks = {hit.citation: hit.lanes for hit in bare.results}
        kept = {hit.citation: replace(hit.lanes, vector=None) for hit in hybrid.results if hit.citation in ranks}
        assert kept == ranks
        assert (hybrid.dropped_terms, hybrid.did_you_mean) == (bare.dropped_terms, bare.did_you_mean)


def test_a_quoted_text_stands_first_whatever_the_meaning(base: MeaningBase) -> None:
    found = base.ask('car "beside the river"')
    assert found.results[0].path == "d/letters.md"


def test_short_words_are_still_searched(tmp_path: Path) -> None:
    """S1-20: the vector lane always finds something; it does not keep a single letter from being looked for."""
    base = MeaningBase(tmp_path / "home")
    base.put({**TEXTS, "d/c.md": "# Languages\n\nPlan c is older.\n"}, base.pin())
    found = base.ask("c", top_k=20)
    assert next(hit for hit in found.results if hit.path == "d/c.md").lanes.words == 1


def test_mode_vector_ranks_by_meaning_alone(base: MeaningBase) -> None:
    """S2-45, S2-47, R5: words are marked, and rank nothing."""
    found = base.ask("car river", mode="vector", top_k=20)
    assert [hit.similarity for hit in found.results] == sorted(
        (hit.similarity for hit in found.results), key=lambda one: -(one or 0)
    )
    assert all(hit.lanes.words is None and hit.lanes.vector is not None for hit in found.results)
    house = next(hit for hit in found.results if hit.path == "d/letters.md")
    assert [house.snippet[start:end] for start, end in house.matches] == ["river"]
    assert (found.mode, found.dropped_terms) == ("vector", ())
    assert tier_line(found.tier) == "tier: vectors - asked for by mode - model=fake-model dim=256"


def test_copies_share_a_rank_of_the_vector_lane(base: MeaningBase) -> None:
    found = base.ask("car", mode="vector", top_k=20, all_chunks=True)
    assert [(hit.path, hit.lanes.vector) for hit in found.results[:2]] == [("d/wheels.md", 1), ("d/again.md", 1)]
    assert found.results[2].lanes.vector == 2


def test_a_filter_acts_inside_the_lane(base: MeaningBase) -> None:
    """R20"""
    found = base.ask("car", path_glob="letters.md")
    assert paths(found) == ["d/letters.md"]
    assert found.results[0].lanes.vector == 1


def test_less_similar_candidates_are_left_out_and_counted(base: MeaningBase) -> None:
    found = base.ask("car", min_similarity=0.999)
    assert (found.results, found.vectors.dropped_below_similarity) == ((), 5)
    assert search_json(found, IndexState("h", 5, 0, None), {}, 0)["dropped_below_similarity"] == 5
    assert "less similar than was asked for, and left out: 5 passages" in search_text(found, "h", {}, 0, str)
    kept = base.ask("automobile with a flat tyre", min_similarity=0.5)
    assert paths(kept) == ["d/wheels.md"]


def test_words_alone_never_ask_the_model(base: MeaningBase, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1-04"""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("words alone need no network")

    monkeypatch.setattr(base, "make", refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    found = base.ask("automobile", mode="lexical")
    assert paths(found) == ["d/wheels.md"]
    assert tier_line(found.tier) == "tier: lexical (FTS5) - asked for by mode"
    assert base.ask("...").status is SearchStatus.QUERY_EMPTY


def test_a_server_keeps_its_embedder_and_asks_from_many_threads(base: MeaningBase) -> None:
    """S1-53"""
    embedder = QueryEmbedder(SETTINGS, make=base.make)
    try:

        def ask(word: str) -> SearchAnswer:
            with base.opened() as store:
                return answer(store, SearchRequest(word), embedder.meaning())

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(ask, ["car", "bread", "doctor", "home"] * 3))
    finally:
        embedder.close()
    assert [one.results[0].path for one in found[:4]] == ["d/wheels.md", "d/oven.md", "d/noon.md", "d/letters.md"]
    assert len(base.made) == 1
    assert base.fake.is_closed
    embedder.close()


def test_no_transaction_is_open_while_a_server_is_waited_for(base: MeaningBase) -> None:
    """P25: a reader that waits keeps the write-ahead log from being taken in."""
    seen: list[bool] = []
    with base.opened() as store:

        def embed(pinned: PinnedIdentity, text: str) -> bytes:
            seen.append(store._connection.in_transaction)
            return base.fake.vector_of(text)

        answer(store, SearchRequest("car"), Meaning(WantedVectors.of(SETTINGS), embed))
    assert seen == [False]


def test_a_document_that_goes_is_found_no_more(base: MeaningBase) -> None:
    with writing(base.home) as writer:
        writer.apply(WriteGroup(removes=[RemoveWrite("d/wheels.md", 2**62, 5)]))
    found = base.ask("car")
    assert found.results[0].citation == "d/again.md#0"
    assert found.results[0].also_in == ()


def test_hidden_items_stay_hidden(base: MeaningBase) -> None:
    with writing(base.home) as writer:
        writer.connection.execute("UPDATE documents SET item_id = 'i' WHERE key IN ('d/wheels.md', 'd/again.md')")
    hiding = Visibility(hidden_item_ids=frozenset({"i"}))
    assert not {"d/wheels.md", "d/again.md"} & set(paths(base.ask("car", visibility=hiding, top_k=20)))


def test_the_steps_of_a_search_by_themselves(base: MeaningBase) -> None:
    """Retrieval alone, as a measurement uses it: plan, vector, search."""
    calls: list[str] = []

    def embed(pinned: PinnedIdentity, text: str) -> bytes:
        calls.append(text)
        return base.fake.vector_of(text)

    meaning = Meaning(WantedVectors.of(SETTINGS), embed)
    request = SearchRequest("car")
    with base.opened() as store, store.snapshot() as snapshot:
        query = embed_query(plan_meaning(snapshot, request, meaning.wanted), request, meaning)
        assert isinstance(query, QueryVector)
        first, second = search(snapshot, request, query), search(snapshot, request, query)
    assert first == second
    assert calls == ["q: car"]
    assert first.results[0].path == "d/wheels.md"


def test_words_alone_import_nothing_of_the_model(base: MeaningBase) -> None:
    """S1-04: a search in a fresh process must be quick, also where embeddings are configured."""
    program = (
        "import sys; from pathlib import Path\n"
        "from app.searching import answer, query_meaning; from domain.settings import EmbeddingsSettings\n"
        "from retrieval.answer import SearchRequest; from store.sqlite import SqliteStore\n"
        "store = SqliteStore(Path(sys.argv[1]), base_id=None)\n"
        "with query_meaning(EmbeddingsSettings(model='fake-model')) as meaning:\n"
        "    found = answer(store, SearchRequest('automobile', mode='lexical'), meaning)\n"
        "heavy = {'numpy', 'httpx', 'asyncio', 'sqlite_vec'} & set(sys.modules)\n"
        "print([hit.path for hit in found.results], heavy)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(base.home / "knowledge.db")],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("['d/wheels.md'] set()\n", "")


def test_a_command_makes_its_embedder_for_its_query(base: MeaningBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.query_embedder._configured_embedder", base.make)
    with base.opened() as store, query_meaning(SETTINGS) as meaning:
        assert answer(store, SearchRequest("car", mode="lexical"), meaning).results == ()
        assert base.made == []
        assert answer(store, SearchRequest("car"), meaning).results[0].path == "d/wheels.md"
        assert answer(store, SearchRequest("bread"), meaning).results[0].path == "d/oven.md"
        assert len(base.made) == 1
    assert base.fake.is_closed
    with query_meaning(None) as meaning:
        assert meaning is None
