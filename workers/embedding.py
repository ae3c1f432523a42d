"""Vectors for the documents of a page, before it is handed over: no transaction is open meanwhile (S0-25, C-02).

A text that has a vector already is not sent again (R19): what is known is asked of the store by the hash of the text
really sent. A text that is refused fails its own document and no other (R21).
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from domain.errors import EmbeddingsUnavailableError
from domain.files import FileFailure, Reason
from domain.vectors import CANARY_TEXTS, PinnedIdentity, sent_hash, sent_text
from embedding.canary import refuse_changed
from embedding.failures import is_away
from embedding.port import EmbeddedText, Embedder, Probe, Waiting
from store.vector_port import ChunkText, DocumentTexts, VectorSnapshot
from store.write_port import DocumentWrite, NewVector, VectorLinks, VectorsWrite
from workers.checking import FinishedPage, TextCounts

Result = TypeVar("Result")
Texts = dict[bytes, str]
"""Texts to be sent, by their hash, in the order in which they are met."""


class VectorTarget(Struct, frozen=True):
    """Which vectors a run makes. `beside`: the identity that answers while `target` is built."""

    target: PinnedIdentity
    beside: PinnedIdentity | None = None
    words_first: bool = False  # documents are not kept waiting for their vectors (R31)
    verified: bool = False  # this run has seen that the server still answers for the identity


class Verification(Protocol):
    """What the workers of a run tell each other, so that one of them asks for all: a server that goes away later is
    waited for (R18), by workers too that have asked nothing yet. Raises QueueError."""

    async def is_verified(self) -> bool:
        """Whether the server has been seen, in this run, to answer as the identity says."""
        ...

    async def say_verified(self) -> None: ...


class Waits(NamedTuple):
    """How long a server that is away is waited for, and who is told why."""

    limit_s: float
    tell: Waiting


AT_ONCE = Waits(0.0, lambda words: None)  # a command line says it at once (P17)
PROBE_AGAIN_S = 1.0


class PageEmbedder:
    """Brings vectors to the pages of one run. `executor` is the thread on which the store is asked."""

    def __init__(
        self,
        vectors: VectorTarget,
        embedder: Embedder,
        open_snapshot: Callable[[], VectorSnapshot],
        executor: Executor,
        verification: Verification,
        waits: Waits = AT_ONCE,
    ) -> None:
        """`waits`: for a server that is away before the first text of the run is sent."""
        self._waits = waits
        self._vectors = vectors
        self._embedder = embedder
        self._open_snapshot = open_snapshot
        self._executor = executor
        self._snapshot: VectorSnapshot | None = None
        self._verification = verification
        self._is_verified = vectors.verified
        self._verifying = asyncio.Lock()
        self._asking: set[asyncio.Task[Sequence[EmbeddedText]]] = set()
        self._has_given_up = False

    async def embed_page(self, page: FinishedPage) -> FinishedPage:
        """The page with links for its documents and the vectors that the store lacks. With `words_first` nothing is
        sent: a document is linked where everything is known, and stays pending else."""
        if not page.documents:
            return page
        texts = await self._in_thread(_texts_of_documents, page.documents, self._vectors.target)
        known, vectors = await self._vectors_for(texts, send=not self._vectors.words_first)
        return await self._in_thread(_with_vectors, page, texts, known, vectors, self._vectors)

    async def embed_stored(
        self, run: int, number: int, root: str, keys: Sequence[str], generation: int
    ) -> FinishedPage:
        """A page of vectors for documents that are stored without them."""
        stored = await self._in_thread(self._read_texts, keys)
        texts = await self._in_thread(_texts_of_stored, stored, self._vectors.target)
        known, vectors = await self._vectors_for(texts, send=True)
        page = FinishedPage(run, number, root, kind="vectors")
        return await self._in_thread(
            _with_stored, page, stored, texts, known, vectors, self._vectors.target, generation
        )

    def give_up(self) -> None:
        """End whatever waits for the embedder, now and from now on, with CancelledError: its run is over."""
        self._has_given_up = True
        for asking in self._asking:
            asking.cancel()

    async def aclose(self) -> None:
        await self._embedder.aclose()

    async def _vectors_for(self, texts: Texts, *, send: bool) -> tuple[frozenset[bytes], Mapping[bytes, EmbeddedText]]:
        """Which of the texts the store knows, and what became of the others, each sent once."""
        known = await self._in_thread(self._known, list(texts))
        missing = {key: text for key, text in texts.items() if key not in known}
        if not missing or not send:
            return known, {}
        results = await self._asked(list(missing.values()))
        return known, dict(zip(missing, results, strict=True))

    async def _asked(self, texts: Sequence[str]) -> Sequence[EmbeddedText]:
        if self._has_given_up:
            raise asyncio.CancelledError
        asking = asyncio.create_task(self._verify_and_embed(texts))
        self._asking.add(asking)
        try:
            return await asking
        finally:
            self._asking.discard(asking)

    async def _verify_and_embed(self, texts: Sequence[str]) -> Sequence[EmbeddedText]:
        await self._verify()
        return await self._embedder.embed_documents(texts)

    async def _verify(self) -> None:
        """Before the first text of a run is sent: the server still makes the vectors that are pinned (T25)."""
        async with self._verifying:
            if self._is_verified:
                return
            if not await self._verification.is_verified():
                refuse_changed(self._vectors.target, await self._probed())
                await self._verification.say_verified()
            self._is_verified = True

    async def _probed(self) -> Probe:
        """The server's answer to the fixed texts. Raises EmbeddingsUnavailableError."""
        latest_s = time.monotonic() + self._waits.limit_s
        while True:
            try:
                answer = await self._embedder.probe(CANARY_TEXTS)
            except EmbeddingsUnavailableError as error:
                if not is_away(error) or time.monotonic() >= latest_s:
                    raise
                self._waits.tell(error.message)
                await asyncio.sleep(PROBE_AGAIN_S)
            else:
                self._waits.tell("")
                return answer

    def _read_texts(self, keys: Sequence[str]) -> Sequence[DocumentTexts]:
        return self._reader().texts_of(keys)

    def _known(self, hashes: Sequence[bytes]) -> frozenset[bytes]:
        return self._reader().known_vectors(self._vectors.target.id, hashes)

    def _reader(self) -> VectorSnapshot:
        if self._snapshot is None:
            self._snapshot = self._open_snapshot()
        return self._snapshot

    async def _in_thread(self, function: Callable[..., Result], *arguments: object) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)


def chunk_texts(write: DocumentWrite) -> Iterable[ChunkText]:
    """What the texts to be sent for a document are made from, by ordinal."""
    for _, _, _, _, _, _, heading_path, lead, body in write.chunks:
        yield ChunkText(heading_path, body, lead)


def sent_texts(texts: Iterable[ChunkText], identity: PinnedIdentity) -> list[str]:
    """The texts really sent, by ordinal."""
    prefix = identity.identity.document_prefix
    return [sent_text(prefix, text.heading_path, text.body, text.lead) for text in texts]


def links_of(texts: Iterable[ChunkText], identity: PinnedIdentity, *, required: bool) -> VectorLinks:
    return VectorLinks(identity.id, tuple(map(sent_hash, sent_texts(texts, identity))), required)


def linked(page: FinishedPage, target: PinnedIdentity, beside: PinnedIdentity | None) -> FinishedPage:
    """The page with its documents linked to what vectors there are; a document that lacks one stays pending."""
    return _with_vectors(page, {}, frozenset(), {}, VectorTarget(target, beside, words_first=True))


def _collect(documents: Iterable[Iterable[ChunkText]], identity: PinnedIdentity) -> Texts:
    return {sent_hash(text): text for texts in documents for text in sent_texts(texts, identity)}


def _texts_of_documents(documents: Sequence[DocumentWrite], identity: PinnedIdentity) -> Texts:
    return _collect(map(chunk_texts, documents), identity)


def _texts_of_stored(documents: Sequence[DocumentTexts], identity: PinnedIdentity) -> Texts:
    return _collect((document.texts for document in documents), identity)


class _Supply:
    """The new vectors of a page, each handed out once: with the first document that needs it."""

    def __init__(self, identity: int, known: frozenset[bytes], made: Mapping[bytes, EmbeddedText]) -> None:
        self._identity = identity
        self._known = known
        self._made = made
        self._given: set[bytes] = set()

    def refusal(self, hashes: Iterable[bytes]) -> str:
        """Why one of these texts has no vector; "" where each has one or will be made later."""
        return next((self._made[key].refusal for key in hashes if key in self._made and not self._made[key].vector), "")

    def take(self, hashes: Iterable[bytes]) -> tuple[NewVector, ...]:
        wanted = dict.fromkeys(key for key in hashes if key in self._made and key not in self._given)
        self._given.update(wanted)
        return tuple(NewVector(self._identity, key, self._made[key].parts, self._made[key].vector) for key in wanted)


def _counts(texts: Texts, known: Collection[bytes], made: Mapping[bytes, EmbeddedText]) -> TextCounts:
    embedded = [result for result in made.values() if result.vector]
    return TextCounts(
        embedded=len(embedded),
        reused=len(known),
        from_parts=sum(result.parts > 1 for result in embedded),
        pending=len(texts) - len(known) - len(made),
    )


def _of_documents_known_whole(documents: Iterable[DocumentWrite], known: frozenset[bytes]) -> set[bytes]:
    """The known texts of documents that lack none. What the others know is counted when they get the rest."""
    whole = (write.links[0].sent_hashes for write in documents if known.issuperset(write.links[0].sent_hashes))
    return {key for hashes in whole for key in hashes}


def _with_vectors(
    page: FinishedPage,
    texts: Texts,
    known: frozenset[bytes],
    made: Mapping[bytes, EmbeddedText],
    vectors: VectorTarget,
) -> FinishedPage:
    supply = _Supply(vectors.target.id, known, made)
    documents: list[DocumentWrite] = []
    failures = list(page.failures)
    for write in page.documents:
        links = links_of(chunk_texts(write), vectors.target, required=not vectors.words_first)
        if refusal := supply.refusal(links.sent_hashes):
            failures.append(FileFailure(write.key, Reason.EMBEDDING_REFUSED, refusal, write.stat))
            continue
        beside = () if vectors.beside is None else (links_of(chunk_texts(write), vectors.beside, required=False),)
        documents.append(replace(write, links=(links, *beside), new_vectors=supply.take(links.sent_hashes)))
    used = _of_documents_known_whole(documents, known) if vectors.words_first else known
    return replace(page, documents=tuple(documents), failures=tuple(failures), texts=_counts(texts, used, made))


def _with_stored(
    page: FinishedPage,
    stored: Sequence[DocumentTexts],
    texts: Texts,
    known: frozenset[bytes],
    made: Mapping[bytes, EmbeddedText],
    identity: PinnedIdentity,
    generation: int,
) -> FinishedPage:
    supply = _Supply(identity.id, known, made)
    writes: list[VectorsWrite] = []
    failures: list[FileFailure] = []
    for document in stored:
        links = links_of(document.texts, identity, required=True)
        if refusal := supply.refusal(links.sent_hashes):
            failures.append(FileFailure(document.key, Reason.EMBEDDING_REFUSED, refusal))
        else:
            new = supply.take(links.sent_hashes)
            writes.append(VectorsWrite(document.key, document.file_hash, generation, links, new))
    return replace(page, vectors=tuple(writes), failures=tuple(failures), texts=_counts(texts, known, made))
