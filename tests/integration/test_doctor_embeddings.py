"""The doctor's checks of the vector tier: what is asked, compared and told, and what of it is fatal (S1-14, T25)."""

import asyncio
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from app import doctor_embeddings
from app.doctor import diagnose, exit_status
from app.doctor_embeddings import StoredVectors, check_embeddings, probe_model
from app.present_checks import doctor_text
from app.wiring import writable_base
from domain.checks import CheckResult, CheckState
from domain.errors import ConfigurationError, EmbeddingsUnavailableError, KnowledgeError
from domain.settings import EmbeddingsSettings, Settings
from domain.status import Tier
from domain.vectors import CANARY_TEXTS, PinnedIdentity, VectorIdentity
from embedding.port import Probe
from store.vector_port import NO_VECTORS, VectorCounts, VectorStatus
from tests.support.bases import build_base, settings_of
from tests.support.embedding_lies import LIES
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.scratch import scratch_directory

SETTINGS = EmbeddingsSettings(base_url="http://127.0.0.1:1/v1", model="all-minilm")
NO_COUNTS = VectorCounts(0, 0, 0, 0, 0, "none")


def unit(*numbers: float) -> bytes:
    vector = np.asarray(numbers, dtype=np.float64)
    return (vector / np.linalg.norm(vector)).astype("<f4").tobytes()


VECTORS = (unit(1, 0.2, 0), unit(0, 1, 0.2), unit(0.2, 0, 1))
ANSWER = Probe("all-minilm", 3, True, VECTORS)
IDENTITY = VectorIdentity("all-minilm", "all-minilm", 3, True, "", "")
PINNED = PinnedIdentity(1, IDENTITY, VECTORS, "active")
STORED = StoredVectors(VectorStatus(PINNED), VectorCounts(8, 9, 0, 0, 8 * 12, "exact"), 5)


def checked(
    settings: EmbeddingsSettings = SETTINGS,
    stored: StoredVectors | None = STORED,
    answer: Probe | KnowledgeError = ANSWER,
) -> dict[str, CheckResult]:
    def probe(asked: EmbeddingsSettings) -> Probe:
        assert asked is settings
        if isinstance(answer, KnowledgeError):
            raise answer
        return answer

    results = list(check_embeddings(settings, stored, probe))
    named = {result.name.removeprefix("embeddings_"): result for result in results}
    assert len(named) == len(results)
    for result in results:
        assert result.detail
        assert result.state is not CheckState.FAIL or result.hint
    return named


def failing(results: dict[str, CheckResult], *, fatal: bool) -> set[str]:
    return {name for name, row in results.items() if row.state is CheckState.FAIL and row.is_fatal is fatal}


def left_out(results: dict[str, CheckResult]) -> set[str]:
    return {name for name, row in results.items() if row.state is CheckState.NOT_RUN}


def test_a_tier_in_order() -> None:
    """S1-14: model, dimension, and whether the raw output is normalised."""
    results = checked()
    assert {row.state for row in results.values()} == {CheckState.PASS}
    assert list(results) == [
        "key",
        "encryption",
        "reachable",
        "model",
        "dimension",
        "normalised",
        "canary",
        "identity",
        "prefixes",
        "coverage",
    ]
    assert results["model"].detail == "all-minilm"
    assert results["dimension"].detail == "3"
    assert "of unit length" in results["normalised"].detail
    assert "all of 5 documents" in results["coverage"].detail


def test_raw_vectors_of_other_lengths_and_another_name_are_said() -> None:
    pinned = PINNED._replace(identity=IDENTITY._replace(normalised=False, served_model="minilm.gguf"))
    answer = Probe("minilm.gguf", 3, False, VECTORS)
    results = checked(stored=STORED._replace(status=VectorStatus(pinned)), answer=answer)
    assert results["model"].detail == "all-minilm; the server calls it minilm.gguf"
    assert "not of unit length" in results["normalised"].detail
    assert not failing(results, fatal=True) | failing(results, fatal=False)


def test_a_server_that_is_away_is_not_fatal() -> None:
    """S1-43, S1-44: words are searched all the same."""
    error = EmbeddingsUnavailableError("connection refused", hint="start it")
    results = checked(answer=error)
    assert failing(results, fatal=False) == {"reachable"}
    assert not failing(results, fatal=True)
    assert "connection refused" in results["reachable"].detail
    assert "words are searched all the same" in results["reachable"].detail
    assert left_out(results) == {"model", "dimension", "normalised", "canary"}
    assert results["identity"].state is CheckState.PASS


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ANSWER._replace(served_model="other"), "other"),
        (ANSWER._replace(dimension=4), "4"),
        (ANSWER._replace(normalised=False), "unit length"),
        (ANSWER._replace(vectors=(VECTORS[1], VECTORS[0], VECTORS[2])), "same name"),
        (ANSWER._replace(vectors=(*VECTORS[:2], unit(0.2, 0.06, 1))), "same name"),
    ],
)
def test_another_model_behind_the_name_is_found(answer: Probe, words: str) -> None:
    """T25: the stored vectors of three fixed texts must match within 1e-3."""
    results = checked(answer=answer)
    assert failing(results, fatal=True) == {"canary"}
    assert words in results["canary"].detail
    assert "knowledge index --reindex" in results["canary"].hint


def test_vectors_within_the_tolerance_are_the_same_model() -> None:
    answer = ANSWER._replace(vectors=(unit(1, 0.22, 0.01), *VECTORS[1:]))
    assert checked(answer=answer)["canary"].state is CheckState.PASS


@pytest.mark.parametrize("stored", [None, STORED, StoredVectors(NO_VECTORS, NO_COUNTS, 0)])
def test_a_model_that_gives_every_text_one_vector_is_found(stored: StoredVectors | None) -> None:
    """T25: right shape, wrong content."""
    results = checked(stored=stored, answer=ANSWER._replace(vectors=(VECTORS[0],) * 3))
    assert "same vector" in results["canary"].detail
    assert failing(results, fatal=True) == {"canary"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (replace(SETTINGS, model="bge-m3"), "model is 'bge-m3', the index was made with 'all-minilm'"),
        (replace(SETTINGS, query_prefix="q: "), "query_prefix is 'q: ', the index was made with ''"),
        (replace(SETTINGS, document_prefix="d: "), "document_prefix is 'd: '"),
    ],
)
def test_a_changed_configuration_is_refused_by_name(settings: EmbeddingsSettings, words: str) -> None:
    """S1-15."""
    results = checked(settings, answer=ANSWER._replace(served_model="all-minilm"))
    assert "identity" in failing(results, fatal=True)
    assert words in results["identity"].detail
    assert "knowledge index --reindex" in results["identity"].hint


def test_a_set_that_is_being_made_is_the_one_to_agree_with() -> None:
    new = PinnedIdentity(2, IDENTITY._replace(model="bge-m3", served_model="bge-m3"), VECTORS, "building")
    stored = STORED._replace(status=VectorStatus(PINNED, new, pending_documents=0))
    results = checked(replace(SETTINGS, model="bge-m3"), stored, ANSWER._replace(served_model="bge-m3"))
    assert not failing(results, fatal=True)
    assert "still being made" in results["identity"].detail
    assert not failing(checked(SETTINGS, stored), fatal=True)  # and whoever goes back to the old one is right too
    assert "identity" in failing(checked(replace(SETTINGS, model="third"), stored), fatal=True)


def test_an_index_of_words_only() -> None:
    """S1-12: runs and searches are refused there, and the fix is named."""
    results = checked(stored=StoredVectors(NO_VECTORS, NO_COUNTS, 5))
    assert failing(results, fatal=True) == {"identity"}
    assert left_out(results) == {"canary", "coverage"}
    assert "--reindex" in results["identity"].hint
    assert "--reindex" in results["coverage"].hint


def test_an_empty_index() -> None:
    results = checked(stored=StoredVectors(NO_VECTORS, NO_COUNTS, 0))
    assert left_out(results) == {"canary", "identity", "coverage"}
    assert not failing(results, fatal=True) | failing(results, fatal=False)
    assert results["identity"].hint == "run `knowledge index`"


def test_no_index_yet() -> None:
    assert left_out(checked(stored=None)) == {"canary", "identity", "coverage"}


def test_what_is_pending_and_what_was_split_is_counted() -> None:
    """R18: documents that are found by their words only."""
    stored = StoredVectors(VectorStatus(PINNED, None, 2, 30), VectorCounts(8, 9, 1234, 0, 96, "exact"), 5000)
    coverage = checked(stored=stored)["coverage"]
    assert coverage.state is CheckState.FAIL
    assert not coverage.is_fatal
    assert "2 of 5,000 documents, 30 chunks" in coverage.detail
    assert "1,234 texts were too long" in coverage.detail


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({"model": "my-model"}, CheckState.NOT_RUN, "not known whether my-model expects prefixes"),
        ({"model": "e5-small"}, CheckState.FAIL, 'set query_prefix: "query: " and document_prefix: "passage: "'),
        (
            {"model": "e5-small", "query_prefix": "query: ", "document_prefix": "passage: "},
            CheckState.PASS,
            "as the model's card",
        ),
        ({"model": "qwen3-embedding"}, CheckState.FAIL, '\\nQuery:"'),
        ({"model": "bge-m3", "query_prefix": "query: "}, CheckState.FAIL, "leave both prefixes empty"),
    ],
)
def test_the_hint_about_prefixes(changes: dict[str, str], state: CheckState, words: str) -> None:
    """S1-28: a hint, never fatal."""
    prefixes = checked(replace(SETTINGS, **changes))["prefixes"]
    assert prefixes.state is state
    assert words in prefixes.detail + prefixes.hint
    assert state is not CheckState.FAIL or not prefixes.is_fatal


@pytest.mark.parametrize(
    ("url", "state"),
    [
        ("http://127.0.0.1:1/v1", CheckState.PASS),
        ("https://e.example.org/v1", CheckState.PASS),
        ("http://embedder/v1", CheckState.FAIL),
    ],
)
def test_an_unencrypted_host_is_a_warning(url: str, state: CheckState) -> None:
    """R17."""
    results = checked(replace(SETTINGS, base_url=url, insecure_hosts=("embedder",)))
    assert results["encryption"].state is state
    assert not failing(results, fatal=True)


def test_a_key_that_is_not_set_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """T29; P19: never what it holds."""
    settings = replace(SETTINGS, api_key_env="MY_KEY")
    monkeypatch.delenv("MY_KEY", raising=False)
    results = checked(settings, answer=EmbeddingsUnavailableError("asked without its key"))
    assert failing(results, fatal=False) == {"key"}
    assert not failing(results, fatal=True)
    assert "MY_KEY is not set" in results["key"].detail
    assert left_out(results) == {"reachable", "model", "dimension", "normalised", "canary"}
    monkeypatch.setenv("MY_KEY", "hunter2")
    results = checked(settings)
    assert results["key"].detail == "in the variable MY_KEY"
    assert "hunter2" not in repr(results)


def test_the_local_model_has_neither_key_nor_address() -> None:
    settings = EmbeddingsSettings(provider="local", model="wordllama-l2-supercat-256")
    results = checked(settings, None, ConfigurationError("it is not installed", hint="pip install ..."))
    assert not {"key", "encryption"} & set(results)
    assert "it is not installed; words" in results["reachable"].detail
    assert results["prefixes"].state is CheckState.PASS


@pytest.fixture
def base() -> Iterator[Settings]:
    with scratch_directory() as path:
        yield build_base(path)


def test_nothing_is_asked_where_nothing_is_configured(base: Settings) -> None:
    """S1-04, S1-43, S1-45."""

    def never(settings: EmbeddingsSettings) -> Probe:
        raise AssertionError("asked")

    results = diagnose(base, probe_embeddings=never)
    assert exit_status(results) == 0
    assert not [row for row in results if row.name.startswith("embeddings")]


def test_a_whole_diagnosis_with_a_server_that_is_away(base: Settings) -> None:
    def away(settings: EmbeddingsSettings) -> Probe:
        raise EmbeddingsUnavailableError("connection refused")

    results = diagnose(settings_of(base.home, embeddings=SETTINGS), probe_embeddings=away)
    assert exit_status(results) == 5  # an index of words: it is to be indexed anew, the server is not the reason
    assert failing({row.name: row for row in results}, fatal=True) == {"embeddings_identity"}
    assert "embeddings reachable" in doctor_text(results, Tier.LEXICAL)
    with scratch_directory() as path:
        empty = build_base(path, {}, embeddings=SETTINGS)
        assert exit_status(diagnose(empty, probe_embeddings=away)) == 0


def test_the_store_is_not_opened_where_that_is_not_safe(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_embeddings, "stored_vectors", lambda layout, base_id: pytest.fail("opened"))
    (base.home / "knowledge.db").unlink()
    (base.home / "knowledge.db").symlink_to(base.home.parent / "elsewhere")
    results = diagnose(settings_of(base.home, embeddings=SETTINGS), probe_embeddings=lambda settings: ANSWER)
    assert exit_status(results) == 5
    assert next(row for row in results if row.name == "embeddings_coverage").state is CheckState.NOT_RUN


class HungEmbedder:
    """Never answers; says whether it was closed."""

    is_closed = False

    async def probe(self, texts: Sequence[str]) -> Probe:
        assert tuple(texts) == CANARY_TEXTS
        await asyncio.Event().wait()
        raise AssertionError

    async def aclose(self) -> None:
        self.is_closed = True


def test_a_server_that_never_answers_does_not_hang_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    hung, asked = HungEmbedder(), []

    def make(settings: EmbeddingsSettings, key: str | None) -> HungEmbedder:
        asked.append(settings)
        return hung

    monkeypatch.setattr("embedding.build.make_embedder", make)
    monkeypatch.setattr(doctor_embeddings, "PROBE_LIMIT_S", 0.05)
    with pytest.raises(EmbeddingsUnavailableError, match=r"127\.0\.0\.1:1 gives no answer within"):
        probe_model(replace(SETTINGS, timeout_s=3600.0))
    assert hung.is_closed
    assert [settings.timeout_s for settings in asked] == [0.05]


@pytest.fixture
def pinned_base(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Settings, EmbeddingServer]]:
    """A base of words whose identity was pinned from a real server with a key, its vectors still to be made."""
    monkeypatch.setenv("MY_KEY", "hunter2")
    with scratch_directory() as path, embedding_server(dimension=8, key="hunter2") as server:
        tier = replace(SETTINGS, base_url=server.url, api_key_env="MY_KEY")
        settings = build_base(path, embeddings=tier)
        answer = probe_model(tier)
        identity = IDENTITY._replace(served_model=answer.served_model, dimension=answer.dimension)
        with writable_base(settings, "test") as held:
            held.writer.pin_identity(identity, answer.vectors)
        yield settings, server


def diagnosed(settings: Settings) -> dict[str, CheckResult]:
    results = diagnose(settings)
    assert "hunter2" not in repr(results)  # P19
    return {row.name.removeprefix("embeddings_"): row for row in results if row.name.startswith("embeddings")}


def test_a_real_server_and_a_real_index(pinned_base: tuple[Settings, EmbeddingServer]) -> None:
    """S1-14, S1-45: one request, of the fixed texts alone."""
    settings, server = pinned_base
    before = len(server.requests)
    results = diagnosed(settings)
    assert not failing(results, fatal=True) | failing(results, fatal=False)
    assert left_out(results) == {"coverage"}  # none of the documents has vectors yet
    assert "none of 5 documents" in results["coverage"].detail
    assert "still being made" in results["identity"].detail
    assert [request.texts for request in server.requests[before:]] == [CANARY_TEXTS]


@pytest.mark.parametrize("change", ["dimension", "model", "normalised", "vectors"])
def test_a_real_server_that_has_changed(pinned_base: tuple[Settings, EmbeddingServer], change: str) -> None:
    """T25, P18."""
    settings, server = pinned_base
    match change:
        case "dimension":
            server.behaviour.dimension = 16
        case "model":
            server.behaviour.model = "another"
        case "normalised":
            server.behaviour.normalised = False
        case _:
            server.behaviour.vector_for = lambda text: [
                float(len(text) % 7),
                1.0,
                0.0,
                float(len(text) % 3),
                *[0.5] * 4,
            ]
    assert failing(diagnosed(settings), fatal=True) == {"canary"}


@pytest.mark.parametrize("trouble", ["down", "key", "redirect", "redirect_malformed", "not_http", "lie"])
def test_a_real_server_in_trouble(
    pinned_base: tuple[Settings, EmbeddingServer], trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, server = pinned_base
    match trouble:
        case "down":
            server.take_down("refuse")
        case "key":
            monkeypatch.setenv("MY_KEY", "hunter2 but wrong")
        case "redirect" | "redirect_malformed" | "not_http":
            server.behaviour.trick = trouble
        case _:
            server.behaviour.lie = next(iter(LIES))
    results = diagnosed(settings)
    assert failing(results, fatal=False) == {"reachable"}
    assert not failing(results, fatal=True)
    assert left_out(results) == {"model", "dimension", "normalised", "canary", "coverage"}
