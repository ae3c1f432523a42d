"""`index` with a vector tier, over a real queue and HTTP server: what is sent, what is stored, what is reused."""

from contextlib import closing
from pathlib import Path

import pytest

from app.index_request import EmbeddingNotice, IndexRequest
from app.indexing import run_index
from app.progress import RunProgress
from domain.errors import ConfigurationError, EmbeddingsChangedError, EmbeddingsUnavailableError
from domain.settings import EmbeddingsSettings
from domain.vectors import CANARY_TEXTS
from store import driver
from tests.support.embedding_server import EmbeddingServer, embedding_server, vector_of
from tests.support.runs import Base
from tests.support.trees import make_tree
from tests.support.vector_runs import (
    DIMENSION,
    assert_whole,
    base_with,
    misplaced,
    states,
    texts_of,
    tree_of,
    uncovered,
    with_embeddings,
)

pytestmark = pytest.mark.redis

FILES = 20
CHUNKS = FILES * 3


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", tree_of(FILES))


@pytest.mark.parametrize("worker_processes", [0, 1, 2])
def test_every_chunk_gets_the_vector_of_its_own_text(
    vector_base: Base, docs: Path, embedder: EmbeddingServer, worker_processes: int
) -> None:
    """P6, S0-29, C-02: in this process, and with processes of its own for the workers."""
    report = vector_base.index(docs, worker_processes=worker_processes)
    assert (report.state, report.counts, report.exit_status) == ("done", {"added": FILES}, 0)
    assert report.vectors is not None
    assert (report.vectors.embedded, report.vectors.reused, report.vectors.pending_documents) == (CHUNKS, 0, 0)
    assert len(texts_of(embedder)) == CHUNKS
    assert states(vector_base) == {"ready": FILES}
    assert max(len(request.texts) for request in embedder.requests) <= 8
    assert embedder.max_in_flight <= 4
    assert_whole(vector_base)


def test_host_model_and_number_of_texts_are_told_before_any_text_is_sent(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """Issue item 0: and the first request holds fixed texts only."""
    told: list[tuple[EmbeddingNotice, int]] = []
    request = IndexRequest(paths=(docs,), worker_processes=0)
    run_index(
        vector_base.settings,
        request,
        RunProgress(),
        announce=lambda notice: told.append((notice, len(embedder.requests))),
    )
    ((notice, requests_before),) = told
    assert (notice.host, notice.model, notice.files) == (embedder.host, "m", FILES)
    assert notice.texts > 0 and requests_before == 0
    assert embedder.requests[0].texts == CANARY_TEXTS
    told.clear()
    run_index(vector_base.settings, request, RunProgress(), announce=lambda notice: told.append((notice, 0)))
    assert told == []


def test_what_did_not_change_is_not_sent_again(vector_base: Base, docs: Path, embedder: EmbeddingServer) -> None:
    """R19: a moved file (also one without heading and text), a restored one and a file's other chunks cost no call,
    not even a probe."""
    (docs / "bare.md").write_text("---\ntags: [lonely]\n---\n", "utf-8")
    vector_base.index(docs)
    vector_base.settle()
    before = len(embedder.requests)
    vector_base.index(docs)
    first = docs / "00" / "000.md"
    text = first.read_text("utf-8")
    (docs / "moved").mkdir()
    first.rename(docs / "moved" / "else.md")
    (docs / "00" / "001.md").unlink()
    (docs / "bare.md").rename(docs / "moved" / "renamed.md")
    moved = vector_base.index(docs)
    assert moved.counts["moved"] == 2
    assert moved.vectors is not None and moved.vectors.reused == 4
    restored = docs / "00" / "000.md"
    restored.write_text(text, "utf-8")
    vector_base.index(docs)
    assert len(embedder.requests) == before
    restored.write_text(text.replace("text 1 of file 0", "another text"), "utf-8")
    vector_base.settle()
    edited = vector_base.index(docs)
    assert edited.vectors is not None
    assert (edited.vectors.embedded, edited.vectors.reused) == (1, 2)
    assert embedder.requests[before].texts == CANARY_TEXTS
    assert len(texts_of(embedder)) == CHUNKS + 2
    assert_whole(vector_base)


def test_the_server_must_answer_at_first(tmp_path: Path, docs: Path) -> None:
    """S1-19, P17: loud, exit 15, and nothing is stored."""
    with embedding_server(dimension=DIMENSION) as server, base_with(tmp_path, server) as base:
        server.take_down()
        with pytest.raises(EmbeddingsUnavailableError) as failed:
            base.index(docs)
        assert failed.value.exit_status == 15
        assert server.host in failed.value.message
        assert base.stored_keys() == []
        server.bring_up()
        base.index(docs)
        base.settle()
        changed = docs / "00" / "000.md"
        changed.write_text("# New\n\nnew words\n", "utf-8")
        before = base.content()
        server.take_down()
        for worker_processes in (0, 1):
            with pytest.raises(EmbeddingsUnavailableError):
                base.index(docs, worker_processes=worker_processes)
            assert base.last_run()[:2] == ("failed", "embeddings_unavailable")
        assert base.content() == before
        assert_whole(base)


def test_no_write_transaction_is_open_while_texts_are_embedded(tmp_path: Path) -> None:
    """S0-25, P26: whoever wants the write lock while the server works on a request gets it at once."""
    docs = make_tree(tmp_path / "docs", tree_of(3))
    could_write: list[bool] = []
    database = tmp_path / "home" / "knowledge.db"

    def try_to_write(text: str) -> list[float]:
        if text not in CANARY_TEXTS:
            with closing(driver.connect(str(database), uri=False, timeout_s=0.0)) as connection:
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    could_write.append(True)
                except driver.OperationalError:
                    could_write.append(False)
        return vector_of(text, DIMENSION)

    with (
        embedding_server(dimension=DIMENSION, vector_for=try_to_write) as server,
        base_with(tmp_path, server, batch=2) as base,
    ):
        assert base.index(docs).state == "done"
        assert could_write == [True] * 9
        assert_whole(base)


def test_an_outage_in_the_middle_is_waited_out(tmp_path: Path, docs: Path) -> None:
    """R18: state `waiting` with its cause, no more than a request a second meanwhile, and on by itself."""
    with (
        embedding_server(dimension=DIMENSION, down_after=3, down_for_s=3.0, delay_s=0.05) as server,
        base_with(tmp_path, server) as base,
    ):
        progress = _Recorded()
        report = base.index(docs, progress=progress)
        assert report.state == "done"
        assert any(cause for cause in progress.causes) and progress.causes[-1] == ""
        assert states(base) == {"ready": FILES}
        assert_whole(base)


class _Recorded(RunProgress):
    """Remembers every cause that a run waited for."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if (name == "hold_up" and value != "") or (name == "hold_up" and self.causes):
            self.causes.append(str(value))

    @property
    def causes(self) -> list[str]:
        found: list[str] = _CAUSES.setdefault(id(self), [])
        return found


_CAUSES: dict[int, list[str]] = {}


def test_an_outage_beyond_its_limit_ends_the_run(tmp_path: Path, docs: Path) -> None:
    """R18: exit 15; what is committed stays, whole, and the next run does the rest."""
    with (
        embedding_server(dimension=DIMENSION, down_after=6, down_for_s=600) as server,
        base_with(tmp_path, server, outage_limit_s=1.0) as base,
    ):
        with pytest.raises(EmbeddingsUnavailableError):
            base.index(docs)
        assert uncovered(base) == [] and misplaced(base) == []
        assert len(base.stored_keys()) < FILES
        sent = len(texts_of(server))
        server.behaviour.down_after = None
        server.bring_up()
        report = base.index(docs)
        assert report.state == "done"
        assert len(base.stored_keys()) == FILES
        assert sent < CHUNKS
        assert_whole(base)


def test_a_refused_text_fails_its_document_alone(vector_base: Base, docs: Path, embedder: EmbeddingServer) -> None:
    """R21, C-06: recorded with its reason, exit 3, and tried again when its time has come, or when asked."""
    embedder.behaviour.poison = "matter 62"  # of file 2, the first of its chunks
    report = vector_base.index(docs)
    assert (report.state, report.exit_status) == ("partial", 3)
    assert report.counts == {"added": FILES - 1, "failed": 1}
    assert vector_base.failures() == {"docs/00/002.md": "embedding_refused"}
    assert_whole(vector_base)
    embedder.behaviour.poison = ""
    waiting = vector_base.index(docs)
    assert (waiting.state, list(waiting.not_tried)) == ("partial", [("embedding_refused", "open")])
    again = vector_base.index(docs, rehash=True)
    assert (again.state, again.counts["added"], vector_base.failures()) == ("done", 1, {})
    assert_whole(vector_base)


def test_a_text_too_long_for_the_model_is_embedded_in_parts(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """Issue item 2: marked and counted, never lost."""
    long_text = " ".join(f"Sentence number {number} says something." for number in range(30))
    (docs / "long.md").write_text(f"# Long\n\n{long_text}\n", "utf-8")
    embedder.behaviour.max_chars = 400
    report = vector_base.index(docs)
    assert report.state == "done" and report.vectors is not None
    assert report.vectors.from_parts == 1
    assert vector_base.rows("SELECT count(*) FROM embeddings WHERE parts > 1") == [(1,)]
    assert_whole(vector_base)


def test_a_server_that_fails_or_lies_misplaces_nothing_and_loses_nothing(tmp_path: Path) -> None:
    """P6: 30% of the answers, in every way that the server knows; all in after three passes at most."""
    docs = make_tree(tmp_path / "docs", tree_of(60))
    with (
        embedding_server(dimension=DIMENSION, lie_rate=0.3, seed=11) as server,
        base_with(tmp_path, server, batch=16) as base,
    ):
        for number in range(3):
            try:
                base.index(docs, rehash=number > 0)  # files that failed are tried again now, not when their time comes
            except (EmbeddingsChangedError, EmbeddingsUnavailableError):
                continue  # it lied to the probe
            assert misplaced(base) == [] and uncovered(base) == []
        assert len(base.stored_keys()) == 60
        assert_whole(base)


def test_words_first_lets_words_be_found_at_once(vector_base: Base, docs: Path, embedder: EmbeddingServer) -> None:
    """R31: with the embedder away, words are there and vectors pending; the next run makes them."""
    words_first = with_embeddings(vector_base, embedder, commit="words_first", outage_limit_s=0.5)
    embedder.behaviour.down_after, embedder.behaviour.down_for_s = 3, 600
    with pytest.raises(EmbeddingsUnavailableError):
        words_first.index(docs)
    assert len(words_first.found("text")) == FILES
    assert states(vector_base)["pending"] > 0
    embedder.behaviour.down_after = None
    embedder.bring_up()
    report = words_first.index(docs)
    assert report.counts == {"unchanged": FILES, "embedded": report.counts["embedded"]}
    assert states(vector_base) == {"ready": FILES}
    assert_whole(vector_base)


@pytest.mark.parametrize("worker_processes", [0, 1])
def test_words_first_embeds_in_the_same_run(
    vector_base: Base, docs: Path, embedder: EmbeddingServer, worker_processes: int
) -> None:
    """R31."""
    report = with_embeddings(vector_base, embedder, commit="words_first").index(docs, worker_processes=worker_processes)
    assert report.counts == {"added": FILES, "embedded": FILES}
    assert report.vectors is not None and report.vectors.embedded == CHUNKS
    assert states(vector_base) == {"ready": FILES}
    assert_whole(vector_base)


def test_a_run_without_embeddings_leaves_what_it_changes_pending(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """R18: pending is said, and made up for when embeddings are configured again."""
    vector_base.index(docs)
    vector_base.settle()
    (docs / "00" / "000.md").write_text("# New\n\nnew words\n", "utf-8")
    with_embeddings(vector_base, None).index(docs)
    assert states(vector_base) == {"pending": 1, "ready": FILES - 1}
    report = vector_base.index(docs)
    assert report.counts == {"unchanged": FILES, "embedded": 1}
    assert_whole(vector_base)


def test_a_key_that_is_not_set_is_told_before_anything(
    vector_base: Base, docs: Path, embedder: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1-26."""
    monkeypatch.delenv("KNOWLEDGE_TEST_KEY", raising=False)
    keyed = with_embeddings(vector_base, embedder, api_key_env="KNOWLEDGE_TEST_KEY")
    with pytest.raises(ConfigurationError, match="KNOWLEDGE_TEST_KEY"):
        keyed.index(docs)
    assert embedder.requests == []
    monkeypatch.setenv("KNOWLEDGE_TEST_KEY", "canary-3f9")
    embedder.behaviour.key = "canary-3f9"
    assert keyed.index(docs, worker_processes=1).state == "done"
    stored = vector_base.layout.database.read_bytes() + vector_base.layout.state.read_bytes()
    assert b"canary-3f9" not in stored


def test_a_lexical_base_knows_nothing_of_vectors(tmp_path: Path, docs: Path) -> None:
    """S0-04: no vector table without embeddings."""
    from tests.support.runs import base_in

    base = base_in(tmp_path)
    base.index(docs)
    assert base.rows("SELECT name FROM sqlite_schema WHERE name LIKE '%vector%' OR name LIKE 'embed%'") == []
    assert states(base) == {"none": FILES}
    assert EmbeddingsSettings().commit == "together"
