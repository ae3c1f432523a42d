"""Searches whose meaning is missing, old, late or not wanted: what answers, and what is said of it."""

import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from app.present import tier_line
from app.present_search import IndexState, search_json, search_text
from domain.errors import (
    EmbeddingsChangedError,
    EmbeddingsUnavailableError,
    IntegrityError,
    SemanticNotConfiguredError,
)
from domain.status import DegradeCause, SearchStatus, Tier, TierKind
from domain.vectors import PinnedIdentity
from embedding.port import Expected
from retrieval.query_vector import WantedVectors, standing_tier
from store.sqlite import SqliteSnapshot
from store.vector_port import NO_VECTORS, VectorStatus
from tests.support.meaning import DIMENSION, IDENTITY, SETTINGS, TEXTS, MeaningBase, paths
from tests.support.vector_stores import put_words, writing


@pytest.fixture
def base(tmp_path: Path) -> MeaningBase:
    """Five documents with their vectors."""
    made = MeaningBase(tmp_path / "home")
    made.put(TEXTS, made.pin())
    return made


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_meaning_without_embeddings_is_refused(base: MeaningBase, mode: str) -> None:
    """R6"""
    words_only = MeaningBase(base.home, settings=None)
    with pytest.raises(SemanticNotConfiguredError) as told:
        words_only.ask("car", mode=mode)
    assert (told.value.code, told.value.exit_status) == ("semantic_not_configured", 2)
    assert tier_line(words_only.ask("river").tier) == "tier: lexical (FTS5) - no embeddings configured"


@pytest.mark.parametrize(
    ("turn", "cause", "line"),
    [
        ({"unavailable": "connection refused"}, DegradeCause.EMBEDDINGS,
         "tier: hybrid -> DEGRADED to lexical (embeddings unreachable: connection refused)"),
        ({"query_times_out": True}, DegradeCause.TIMEOUT,
         "tier: hybrid -> DEGRADED to lexical (embeddings server timed out: no answer within 30 s)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["auto", "hybrid"])
def test_a_query_that_cannot_be_embedded_is_answered_by_words(
    base: MeaningBase, mode: str, turn: dict[str, Any], cause: DegradeCause, line: str
) -> None:
    """S0-39, S1-17, S1-18, R6"""
    for knob, value in turn.items():
        setattr(base.fake, knob, value)
    found = base.ask("automobile river", mode=mode)
    assert (found.tier.cause, tier_line(found.tier), found.mode) == (cause, line, "lexical")
    assert set(paths(found)) == {"d/wheels.md", "d/letters.md"}
    assert all(hit.similarity is None and hit.lanes.vector is None for hit in found.results)
    assert found.vectors.method == "none"
    text = search_text(found, "h", {}, 0, str)
    assert text.startswith(f"{line}\nnote: only words were searched: ")
    with pytest.raises(EmbeddingsUnavailableError) as told:
        base.ask("automobile", mode="vector")
    assert told.value.exit_status == 15
    assert "--mode lexical" in told.value.hint


@pytest.mark.parametrize("cause", [DegradeCause.CANCELED, DegradeCause.TIMEOUT])
def test_whoever_has_gone_comes_before_the_step_that_failed(base: MeaningBase, cause: DegradeCause) -> None:
    """S0-40"""
    base.fake.unavailable = "connection refused"
    found = base.ask("automobile", stopped=lambda: cause if base.fake.queries_seen else None)
    assert found.tier.cause is cause
    seen = len(base.fake.queries_seen)
    assert base.ask("automobile", stopped=lambda: cause).tier.cause is cause
    assert len(base.fake.queries_seen) == seen  # nothing is sent for nobody
    assert "DEGRADED to lexical (canceled" in tier_line(Tier.degraded(DegradeCause.CANCELED, "x"))


def test_a_wait_ends_with_the_patience_of_whoever_asked(base: MeaningBase) -> None:
    """S0-40: a slow server keeps nobody who has gone."""
    base.fake.delay_s = 100.0
    is_over = threading.Event()

    def stopped() -> DegradeCause | None:
        if base.fake.queries_seen:
            is_over.set()
        return DegradeCause.CANCELED if is_over.is_set() else None

    found = base.ask("automobile", stopped=stopped)
    assert found.tier.cause is DegradeCause.CANCELED
    assert paths(found) == ["d/wheels.md"]


@pytest.mark.parametrize("mode", ["auto", "hybrid", "vector"])
def test_another_dimension_is_an_error(base: MeaningBase, mode: str) -> None:
    """S0-41"""
    base.fake.dimension = 16
    with pytest.raises(EmbeddingsChangedError) as told:
        base.ask("automobile", mode=mode)
    assert told.value.exit_status == 15


def test_a_model_that_says_it_is_another_is_an_error(base: MeaningBase, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(text: str) -> bytes:
        raise EmbeddingsChangedError("the server answers as 'other'")

    monkeypatch.setattr(base.fake, "embed_query", refuse)
    with pytest.raises(EmbeddingsChangedError):
        base.ask("automobile")
    assert paths(base.ask("automobile", mode="lexical")) == ["d/wheels.md"]


@pytest.mark.parametrize("mode", ["auto", "hybrid", "vector"])
@pytest.mark.parametrize("changed", [{"model": "other"}, {"query_prefix": ""}, {"document_prefix": "text: "}])
def test_vectors_of_another_configuration_do_not_answer(base: MeaningBase, mode: str, changed: dict[str, str]) -> None:
    base.settings = replace(SETTINGS, **changed)
    with pytest.raises(EmbeddingsChangedError) as told:
        base.ask("automobile", mode=mode)
    assert next(iter(changed)) in told.value.message
    assert "--reindex" in told.value.hint
    assert "--mode lexical" in told.value.hint
    assert base.fake.queries_seen == []
    assert paths(base.ask("automobile", mode="lexical")) == ["d/wheels.md"]


def test_an_index_of_words_alone_asks_for_its_vectors(tmp_path: Path) -> None:
    base = MeaningBase(tmp_path / "home")
    with writing(base.home) as writer:
        put_words(writer, TEXTS)
        writer.close_generation(1, complete=True)
    for mode in ("auto", "hybrid", "vector"):
        with pytest.raises(EmbeddingsChangedError, match="holds no vectors"):
            base.ask("automobile", mode=mode)
    assert paths(base.ask("automobile", mode="lexical")) == ["d/wheels.md"]


def test_the_first_vectors_are_being_made(tmp_path: Path) -> None:
    base = MeaningBase(tmp_path / "home")
    with writing(base.home) as writer:
        put_words(writer, TEXTS)
        writer.close_generation(1, complete=True)
        assert writer.pin_identity(IDENTITY, (), afresh=False).state == "building"
    found = base.ask("automobile")
    assert paths(found) == ["d/wheels.md"]
    assert tier_line(found.tier) == (
        "tier: hybrid -> DEGRADED to lexical (no vectors yet: the first ones are being made)"
    )
    assert found.vectors.building == "fake-model"
    with pytest.raises(EmbeddingsUnavailableError):
        base.ask("automobile", mode="vector")
    assert base.fake.queries_seen == []


def test_an_empty_index_is_told_as_empty(tmp_path: Path) -> None:
    base = MeaningBase(tmp_path / "home")
    with writing(base.home) as writer:
        writer.close_generation(1, complete=True)
    found = base.ask("automobile")
    assert (found.status, found.tier.cause) == (SearchStatus.INDEX_EMPTY, DegradeCause.NO_VECTORS)
    base.pin()
    found = base.ask("automobile")
    assert (found.status, found.tier.kind) == (SearchStatus.INDEX_EMPTY, TierKind.HYBRID)


def test_while_a_new_set_is_made_the_old_one_answers(base: MeaningBase) -> None:
    """R19: with the old set's model and prefix."""
    base.settings = replace(SETTINGS, model="large", query_prefix="")
    base.pin(IDENTITY._replace(model="large", served_model="large", query_prefix=""))
    found = base.ask("car")
    assert found.results[0].path == "d/wheels.md"
    assert base.fake.queries_seen == ["q: car"]
    assert base.made == [(replace(SETTINGS, model="fake-model", query_prefix=""), Expected(DIMENSION, "fake-model"))]
    assert tier_line(found.tier) == "tier: hybrid (FTS5 + vectors, RRF) - model=fake-model dim=256"
    assert "new vectors (model large) are being made" in search_text(found, "h", {}, 0, str)


@pytest.mark.parametrize("gone", ["another dimension", "another model under every name"])
def test_while_a_new_set_is_made_words_answer_where_the_old_model_is_gone(base: MeaningBase, gone: str) -> None:
    """R19, R6: many servers have one model and answer with it, whatever the name that is asked for."""
    base.settings = replace(SETTINGS, model="large")
    base.pin(IDENTITY._replace(model="large", served_model="large"))
    if gone == "another dimension":
        base.fake.dimension = 16
    else:
        base.fake.groups = ()
    found = base.ask("automobile")
    assert (found.tier.kind, found.tier.cause) == (TierKind.DEGRADED, DegradeCause.EMBEDDINGS)
    assert "does not have fake-model any more" in found.tier.reason
    assert paths(found) == ["d/wheels.md"]
    with pytest.raises(EmbeddingsUnavailableError, match="any more"):
        base.ask("automobile", mode="vector")
    assert base.fake.queries_seen == []


def test_a_half_made_set_of_another_configuration_is_not_promised(base: MeaningBase) -> None:
    """The configuration went back to what answers: nobody makes the other set."""
    base.pin(IDENTITY._replace(model="large", served_model="large"))
    found = base.ask("car")
    assert found.tier.kind is TierKind.HYBRID
    assert "are being made" not in search_text(found, "h", {}, 0, str)


def test_what_is_pending_is_told(base: MeaningBase) -> None:
    """R31, R18"""
    with writing(base.home) as writer:
        put_words(writer, {"d/new.md": "# New\n\nA vehicle of words.\n\n## More\n\nText.\n"}, generation=2)
    for mode in ("auto", "lexical", "vector"):
        found = base.ask("vehicle", mode=mode)
        assert (found.vectors.pending_documents, found.vectors.pending_chunks) == (1, 2)
        assert search_json(found, IndexState("h", 6, 0, None), {}, 0)["index"]["pending_vectors"] == 2
        told = search_text(found, "h", {}, 0, str)
        assert "found by words only, for want of vectors: 2 chunks of 1 document" in told
    assert base.ask("vehicle").results[0].path in {"d/new.md", "d/wheels.md"}
    assert "d/new.md" not in paths(base.ask("vehicle", mode="vector", top_k=20))


def test_metadata_that_cannot_be_read_degrades(base: MeaningBase, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-39: index_meta"""

    def damaged(self: SqliteSnapshot) -> VectorStatus:
        raise IntegrityError("the file is damaged")

    monkeypatch.setattr(SqliteSnapshot, "vector_status", damaged)
    found = base.ask("automobile")
    assert tier_line(found.tier) == (
        "tier: hybrid -> DEGRADED to lexical (index metadata unreadable: the file is damaged)"
    )
    assert paths(found) == ["d/wheels.md"]
    assert base.ask("automobile", mode="lexical").tier.kind is TierKind.LEXICAL_ASKED
    with pytest.raises(IntegrityError):
        base.ask("automobile", mode="vector")


def test_a_set_that_begins_to_answer_during_a_search_is_asked_anew(base: MeaningBase) -> None:
    other = IDENTITY._replace(model="large", served_model="large", query_prefix="")
    pinned = base.pin(other)
    base.settings = replace(SETTINGS, model="large", query_prefix="")
    real = base.fake.vector_of

    def switching(text: str) -> bytes:
        if text == "q: car":
            with writing(base.home) as writer:
                base.write(writer, {key: f"{text} Anew.\n" for key, text in TEXTS.items()}, pinned)
                writer.activate_identity(pinned.id)
        return real(text)

    base.fake.vector_of = switching  # type: ignore[method-assign]
    found = base.ask("car")
    assert base.fake.queries_seen == ["q: car", "car"]
    assert found.tier == Tier(TierKind.HYBRID, "large", DIMENSION)
    assert found.results[0].path == "d/wheels.md"


def test_the_tier_that_stands_is_that_of_the_next_search() -> None:
    """S1-16: for status, stats and every other surface that does not search."""
    wanted = WantedVectors.of(SETTINGS)
    active = PinnedIdentity(1, IDENTITY, (), "active")
    building = PinnedIdentity(2, IDENTITY, (), "building")
    other = PinnedIdentity(1, IDENTITY._replace(model="old"), (), "active")
    hybrid = Tier(TierKind.HYBRID, "fake-model", DIMENSION)
    assert standing_tier(None, VectorStatus(active), has_documents=True) is Tier.LEXICAL
    assert standing_tier(wanted, VectorStatus(active), has_documents=True) == hybrid
    assert standing_tier(wanted, VectorStatus(other, building), has_documents=True) == replace(hybrid, model="old")
    causes: list[tuple[VectorStatus, bool, DegradeCause]] = [
        (VectorStatus(other), True, DegradeCause.CHANGED),
        (NO_VECTORS, True, DegradeCause.CHANGED),
        (NO_VECTORS, False, DegradeCause.NO_VECTORS),
        (VectorStatus(other), False, DegradeCause.NO_VECTORS),
        (VectorStatus(None, building), True, DegradeCause.NO_VECTORS),
    ]
    for status, has_documents, cause in causes:
        assert standing_tier(wanted, status, has_documents=has_documents).cause is cause
