"""The vectors of a page before it is handed over: each text once, known ones never, a refusal with its own document."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np
import pytest
from msgspec.structs import replace

from domain.errors import EmbeddingsChangedError, EmbeddingsUnavailableError
from domain.files import FileStat, Reason
from domain.vectors import CANARY_TEXTS, PinnedIdentity, VectorIdentity, sent_hash
from embedding.failures import Rejected, Unreachable
from embedding.port import EmbeddedText, Probe
from store.vector_port import ChunkText, DocumentTexts, VectorSnapshot
from store.write_port import ChunkRow, DocumentWrite
from workers.checking import FinishedPage, TextCounts
from workers.embedding import PageEmbedder, VectorTarget, Waits, linked

DIMENSION = 4


def vector_of(text: str) -> bytes:
    raw = np.frombuffer(sent_hash(text), "<u4").astype(np.float64) - 2.0**31
    return bytes((raw / np.linalg.norm(raw)).astype("<f4").tobytes())


CANARY = tuple(map(vector_of, CANARY_TEXTS))
IDENTITY = VectorIdentity("model", "model-served", DIMENSION, True, "", "passage: ")
TARGET = PinnedIdentity(7, IDENTITY, CANARY, "active")
BESIDE = PinnedIdentity(3, IDENTITY._replace(document_prefix=""), CANARY, "active")


class Model:
    """An embedder whose vector is a function of the text; refuses texts that hold a word."""

    def __init__(self, refused_word: str = "\0", probe: Probe | None = None) -> None:
        self.sent: list[str] = []
        self.probes = 0
        self.refused_word = refused_word
        self.answer = probe or Probe("model-served", DIMENSION, True, CANARY)

    async def probe(self, texts: Sequence[str]) -> Probe:
        assert tuple(texts) == CANARY_TEXTS
        self.probes += 1
        return self.answer

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[EmbeddedText]:
        self.sent += texts
        return [
            EmbeddedText(b"", refusal="said no") if self.refused_word in text
            else EmbeddedText(vector_of(text), parts=2 if "long" in text else 1)
            for text in texts
        ]  # fmt: skip

    async def embed_query(self, text: str) -> bytes:
        raise AssertionError("a page asks no query")

    async def aclose(self) -> None:
        return None


class Stored:
    """What a store knows: hashes of texts under the target, and documents."""

    def __init__(self, known: Sequence[str] = (), documents: Sequence[DocumentTexts] = ()) -> None:
        self.known = frozenset(map(sent_hash, known))
        self.documents = documents

    def known_vectors(self, identity: int, sent_hashes: Sequence[bytes]) -> frozenset[bytes]:
        assert identity == TARGET.id
        return self.known.intersection(sent_hashes)

    def texts_of(self, keys: Sequence[str]) -> Sequence[DocumentTexts]:
        return [document for document in self.documents if document.key in keys]


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=1) as threads:
        yield threads


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    yield Model()


class Told:
    """What the workers of a run know of its server."""

    def __init__(self, *, verified: bool = False) -> None:
        self.verified = verified

    async def is_verified(self) -> bool:
        return self.verified

    async def say_verified(self) -> None:
        self.verified = True


def pages(
    model: Model,
    executor: ThreadPoolExecutor,
    stored: Stored | None = None,
    vectors: VectorTarget | None = None,
    told: Told | None = None,
) -> PageEmbedder:
    snapshot = cast(VectorSnapshot, stored or Stored())
    return PageEmbedder(vectors or VectorTarget(TARGET), model, lambda: snapshot, executor, told or Told())


def document(key: str, *bodies: str, lead: str = "") -> DocumentWrite:
    chunks: list[ChunkRow] = [
        (ordinal, 0, 1, 1, b"h", "names", "Head", lead, body) for ordinal, body in enumerate(bodies)
    ]
    stat = FileStat(1, 1, 1, 1, 1)
    return DocumentWrite(key, "docs", stat, 1, 1, 1, b"f" * 32, b"c" * 32, "T", "[]", "", chunks, 1)


def page(*documents: DocumentWrite) -> FinishedPage:
    return FinishedPage(1, 1, "docs", documents=documents)


def sent(body: str) -> str:
    return f"passage: Head\n\n{body}"


class Away(Model):
    """A model whose server is away, or refuses, the first times that it is probed."""

    def __init__(self, failures: int, cause: Exception) -> None:
        super().__init__()
        self.failures = failures
        self.cause = cause

    async def probe(self, texts: Sequence[str]) -> Probe:
        answer = await super().probe(texts)
        if self.probes <= self.failures:
            raise EmbeddingsUnavailableError("does not answer", hint="start it") from self.cause
        return answer


async def test_a_server_that_is_away_before_the_first_text_is_waited_for_where_nobody_attends(
    executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2: as one that goes away later; a command line says it at once (P17), and a refusal is no outage."""
    monkeypatch.setattr("workers.embedding.PROBE_AGAIN_S", 0.0)
    told: list[str] = []

    def patient(model: Model) -> PageEmbedder:
        snapshot = cast(VectorSnapshot, Stored())
        return PageEmbedder(VectorTarget(TARGET), model, lambda: snapshot, executor, Told(), Waits(60.0, told.append))

    model = Away(2, Unreachable("connection", "connection refused"))
    done = await patient(model).embed_page(page(document("docs/a", "one")))
    assert done.texts == TextCounts(embedded=1) and model.probes == 3
    assert told == ["does not answer", "does not answer", ""]
    with pytest.raises(EmbeddingsUnavailableError):
        await pages(Away(1, Unreachable("connection", "refused")), executor).embed_page(page(document("docs/a", "x")))
    with pytest.raises(EmbeddingsUnavailableError):
        await patient(Away(1, Rejected("status 401", status=401))).embed_page(page(document("docs/a", "one")))


async def test_every_chunk_is_linked_and_every_new_text_sent_once(model: Model, executor: ThreadPoolExecutor) -> None:
    """S2-27: a text that stands in two documents is sent once, and its vector comes with the first of them."""
    done = await pages(model, executor).embed_page(page(document("docs/a", "one", "two"), document("docs/b", "two")))
    first, second = done.documents
    assert model.sent == [sent("one"), sent("two")]
    assert first.links[0].sent_hashes == (sent_hash(sent("one")), sent_hash(sent("two")))
    assert [new.vector for new in first.new_vectors] == [vector_of(sent("one")), vector_of(sent("two"))]
    assert second.links[0].sent_hashes == (sent_hash(sent("two")),)
    assert second.new_vectors == ()
    assert first.links[0].required and second.links[0].required
    assert done.texts == TextCounts(embedded=2)


async def test_what_is_known_is_not_sent(model: Model, executor: ThreadPoolExecutor) -> None:
    """R19: a moved or restored file costs no call, not even a probe."""
    stored = Stored(known=[sent("one"), sent("two")])
    done = await pages(model, executor, stored).embed_page(page(document("docs/moved", "one", "two")))
    assert (model.sent, model.probes) == ([], 0)
    assert done.documents[0].new_vectors == ()
    assert done.texts == TextCounts(reused=2)


async def test_a_refused_text_fails_its_own_document_alone(executor: ThreadPoolExecutor) -> None:
    """R21, P17: never a document with a part of its vectors."""
    model = Model(refused_word="bad")
    done = await pages(model, executor).embed_page(
        page(document("docs/a", "good"), document("docs/b", "fine", "bad"), document("docs/c", "fine"))
    )
    assert [write.key for write in done.documents] == ["docs/a", "docs/c"]
    assert [(failure.key, failure.reason, failure.detail) for failure in done.failures] == [
        ("docs/b", Reason.EMBEDDING_REFUSED, "said no")
    ]
    assert [new.sent_hash for new in done.documents[1].new_vectors] == [sent_hash(sent("fine"))]


async def test_words_first_sends_nothing_and_keeps_nobody_waiting(model: Model, executor: ThreadPoolExecutor) -> None:
    """R31."""
    vectors = VectorTarget(TARGET, words_first=True)
    stored = Stored(known=[sent("one")])
    done = await pages(model, executor, stored, vectors).embed_page(page(document("docs/a", "one", "two")))
    assert (model.sent, model.probes) == ([], 0)
    assert not done.documents[0].links[0].required
    assert done.texts == TextCounts(pending=2)  # what it has is counted with the rest of it, when that is made
    known = pages(model, executor, Stored(known=[sent("one"), sent("two")]), vectors)
    assert (await known.embed_page(page(document("docs/a", "one", "two")))).texts == TextCounts(reused=2)


async def test_the_identity_that_answers_meanwhile_is_linked_too(model: Model, executor: ThreadPoolExecutor) -> None:
    """Issue item 4: searches go on with the old vectors while the new ones are made."""
    vectors = VectorTarget(TARGET._replace(state="building"), beside=BESIDE)
    done = await pages(model, executor, vectors=vectors).embed_page(page(document("docs/a", "one")))
    target, beside = done.documents[0].links
    assert (target.identity, target.required) == (TARGET.id, True)
    assert (beside.identity, beside.required) == (BESIDE.id, False)
    assert beside.sent_hashes == (sent_hash("Head\n\none"),)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Probe("model-served", 5, True, CANARY), "5 dimensions"),
        (Probe("other", DIMENSION, True, CANARY), "other"),
        (Probe("model-served", DIMENSION, False, CANARY), "unit length"),
        (Probe("model-served", DIMENSION, True, tuple(reversed(CANARY))), "another vector"),
    ],
)
async def test_a_changed_model_is_refused_before_any_text_is_sent(
    answer: Probe, told: str, executor: ThreadPoolExecutor
) -> None:
    """P18, T25: the refusal names --reindex, and one probe is all that was sent."""
    model = Model(probe=answer)
    with pytest.raises(EmbeddingsChangedError, match=told) as refused:
        await pages(model, executor).embed_page(page(document("docs/a", "one")))
    assert "--reindex" in refused.value.hint
    assert (model.sent, model.probes) == ([], 1)


async def test_a_run_probes_once(model: Model, executor: ThreadPoolExecutor) -> None:
    """S0-13."""
    embedder = pages(model, executor)
    for name in "abc":
        await embedder.embed_page(page(document(f"docs/{name}", name)))
    assert model.probes == 1
    verified = pages(model, executor, vectors=VectorTarget(TARGET, verified=True))
    await verified.embed_page(page(document("docs/d", "d")))
    assert model.probes == 1


async def test_stored_documents_get_their_vectors(executor: ThreadPoolExecutor) -> None:
    """R31: vectors follow; a document that is gone meanwhile is no failure."""
    model = Model(refused_word="bad")
    stored = Stored(
        known=[sent("one")],
        documents=[
            DocumentTexts("docs/a", b"a" * 32, (ChunkText("Head", "one", ""), ChunkText("Head", "long", ""))),
            DocumentTexts("docs/b", b"b" * 32, (ChunkText("Head", "bad", ""),)),
        ],
    )
    done = await pages(model, executor, stored).embed_stored(1, 9, "docs", ["docs/a", "docs/b", "docs/gone"], 5)
    (write,) = done.vectors
    assert (write.key, write.file_hash, write.generation) == ("docs/a", b"a" * 32, 5)
    assert write.links.required and write.links.sent_hashes == (sent_hash(sent("one")), sent_hash(sent("long")))
    assert [(new.sent_hash, new.parts) for new in write.new_vectors] == [(sent_hash(sent("long")), 2)]
    assert [failure.key for failure in done.failures] == ["docs/b"]
    assert done.texts == TextCounts(embedded=1, reused=1, from_parts=1)


async def test_a_chunk_without_heading_and_body_is_sent_as_its_lead(model: Model, executor: ThreadPoolExecutor) -> None:
    """A model is never asked about nothing (S0-28), and nothing of the path is sent."""
    frontmatter = document("docs/a", "", lead="---\ntitle: Alpha\n---\n")
    frontmatter = replace(frontmatter, chunks=[(*row[:6], "", *row[7:]) for row in frontmatter.chunks])
    await pages(model, executor).embed_page(page(frontmatter))
    assert model.sent == ["passage: ---\ntitle: Alpha\n---"]


async def test_a_page_without_documents_is_left_as_it_is(model: Model, executor: ThreadPoolExecutor) -> None:
    empty = FinishedPage(1, 1, "docs")
    assert await pages(model, executor).embed_page(empty) is empty


def test_a_file_that_came_back_is_linked_to_what_there_is() -> None:
    (write,) = linked(page(document("docs/a", "one")), TARGET, BESIDE).documents
    assert [(links.identity, links.required) for links in write.links] == [(TARGET.id, False), (BESIDE.id, False)]
    assert write.new_vectors == ()


async def test_the_server_is_asked_once_for_all_workers_of_a_run(executor: ThreadPoolExecutor) -> None:
    """T25, R18: a worker that starts later does not ask a server that may be away by then."""
    told, first, second = Told(), Model(), Model()
    for model in (first, second):
        await pages(model, executor, told=told).embed_page(page(document("docs/a", "one")))
    assert told.verified
    assert (first.probes, second.probes) == (1, 0)
    assert len(second.sent) == 1


async def test_nothing_is_told_of_a_server_that_has_changed(executor: ThreadPoolExecutor) -> None:
    told = Told()
    model = Model(probe=Probe("other", DIMENSION, True, CANARY))
    with pytest.raises(EmbeddingsChangedError):
        await pages(model, executor, told=told).embed_page(page(document("docs/a", "one")))
    assert not told.verified and model.sent == []


class Silent(Model):
    """Is asked, and never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[EmbeddedText]:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("never")


async def test_what_waits_for_the_embedder_ends_with_its_run(executor: ThreadPoolExecutor) -> None:
    """Whoever waits is ended, and whoever comes later; pages that need nothing new are not."""
    model = Silent()
    embedder = pages(model, executor, Stored(known=[sent("one")]))
    waiting = asyncio.create_task(embedder.embed_page(page(document("docs/a", "two"))))
    await model.asked.wait()
    embedder.give_up()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(asyncio.CancelledError):
        await embedder.embed_page(page(document("docs/b", "three")))
    assert (await embedder.embed_page(page(document("docs/c", "one")))).texts == TextCounts(reused=1)


async def test_a_page_that_is_cancelled_asks_no_more(executor: ThreadPoolExecutor) -> None:
    model = Silent()
    waiting = asyncio.create_task(pages(model, executor).embed_page(page(document("docs/a", "two"))))
    await model.asked.wait()
    before = asyncio.all_tasks()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert all(task.done() for task in before - {asyncio.current_task()})
