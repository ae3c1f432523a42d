"""The embedder over a server that speaks OpenAI's /embeddings: what callers need, made of single requests."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from domain.errors import EmbeddingsChangedError, EmbeddingsUnavailableError
from domain.markdown.borders import utf8_size
from domain.settings import EmbeddingsSettings
from domain.telemetry import SILENCE, Telemetry
from embedding.asking import embed_each
from embedding.batching import Answer, Batcher, BatchLimits
from embedding.canary import REINDEX_HINT
from embedding.failures import Rejected, Unreachable
from embedding.port import EmbeddedText, Expected, Probe, QueryTimeoutError, QueryUnreachableError
from embedding.splitting import Part, halves, joined
from embedding.unit_vectors import unit_vectors

SERVER_FAULT = 500
QUERIES_KEPT = 128  # vectors of the latest queries: paging through hits asks the same again and again
START_HINT = "start it, or correct embeddings.base_url; `knowledge doctor` tries it again"
REFUSED_HINT = "correct embeddings.base_url or embeddings.model; `knowledge doctor` tries it again"
KEY_STATUSES = (401, 403)


class WholeAnswer(Answer, Protocol):
    """Of one request: the vectors as an array (texts, dimension), as they came, in the order of the texts."""

    @property
    def served_model(self) -> str: ...

    @property
    def normalised(self) -> bool: ...


class Client(Protocol):
    """What is used of embedding.client.EmbeddingClient."""

    async def request(self, texts: Sequence[str]) -> WholeAnswer: ...

    async def request_once(self, texts: Sequence[str]) -> WholeAnswer: ...

    async def aclose(self) -> None: ...


class OpenAIEmbedder:
    """An embedding.port.Embedder; what it learns of the server is held for its life, which is that of a run."""

    def __init__(
        self,
        client: Client,
        settings: EmbeddingsSettings,
        *,
        server: str,
        expected: Expected | None = None,
        telemetry: Telemetry = SILENCE,
    ) -> None:
        """`server`: as people are told of it, without a secret."""
        self._client = client
        self._server = server
        self._expected = expected
        self._document_prefix = settings.document_prefix
        self._key_variable = settings.api_key_env
        self._limits = BatchLimits(settings.batch, settings.max_batch_bytes)
        self._batcher = Batcher(
            client.request, self._limits, lanes=settings.concurrency, server=server, telemetry=telemetry
        )
        self._queries: OrderedDict[str, bytes] = OrderedDict()

    async def probe(self, texts: Sequence[str]) -> Probe:
        try:
            answer = await self._client.request_once(texts)
        except (Unreachable, Rejected) as failed:
            if isinstance(failed, Rejected):
                self._refuse_another_dimension(failed)
            how = "does not answer" if isinstance(failed, Unreachable) else "does not answer as it should"
            raise EmbeddingsUnavailableError(
                f"the embedding server at {self._server} {how}: {failed.words}",
                hint=self._hint(failed),
            ) from failed
        vectors = tuple(unit_vectors(answer.vectors))
        return Probe(answer.served_model, answer.vectors.shape[1], answer.normalised, vectors)

    def _hint(self, failed: Unreachable | Rejected) -> str:
        if isinstance(failed, Unreachable):
            return START_HINT
        if failed.status not in KEY_STATUSES:
            return REFUSED_HINT
        if self._key_variable:
            return f"the variable {self._key_variable} (embeddings.api_key_env) does not hold a key that it takes"
        return "it wants a key: name the variable that holds it in embeddings.api_key_env"

    async def embed_documents(self, texts: Sequence[str]) -> list[EmbeddedText]:
        """See the port."""
        return await embed_each(texts, self._document_prefix, self._ask)

    async def _ask(self, texts: Sequence[str]) -> list[EmbeddedText]:
        answers = await self._batcher.embed(texts)
        results = dict(enumerate(map(_whole, answers)))
        too_long = {at: texts[at] for at, answer in enumerate(answers) if _is_too_long(answer)}
        results |= await self._embed_too_long(too_long, results)
        return [results[at] for at in range(len(texts))]

    async def _embed_too_long(self, texts: dict[int, str], refused: dict[int, EmbeddedText]) -> dict[int, EmbeddedText]:
        """Texts that were refused, perhaps for their length: in parts of a size that is taken, of all texts together;
        a part that is refused still, by itself in smaller ones."""
        in_parts: dict[int, list[Part]] = {}
        taught: set[int] = set()
        for at, text in texts.items():
            if not self._limits.part_bytes and await self._finds_part_bytes(text):
                taught.add(at)
            if self._limits.part_bytes:
                in_parts[at] = halves(text, self._document_prefix, at_most_bytes=self._limits.part_bytes)
        answers = iter(await self._batcher.embed([part.text for parts in in_parts.values() for part in parts]))
        results = {}
        for at, parts in in_parts.items():
            mine = [next(answers) for _ in parts]
            self._limits.parts_refused(sum(map(_is_too_long, mine)), len(mine))
            results[at] = await self._joined(parts, mine) if parts else refused[at]
            if results[at].vector:
                self._limits.taken_in_parts(utf8_size(texts[at]))
            elif at in taught:  # its length was not what was wrong with it
                self._limits.part_bytes = 0
        return results

    async def _finds_part_bytes(self, text: str) -> bool:
        """Whether a part of the text is taken: its beginning is asked about alone, half as much each time. A text of
        which none is has another fault than its length, and costs no more than this."""
        beginning = text
        while parts := halves(beginning, self._document_prefix):
            beginning = parts[0].text
            (answer,) = await self._batcher.embed([beginning])
            if not isinstance(answer, Rejected):
                self._limits.part_bytes = utf8_size(beginning)
                return True
            if not _is_too_long(answer):
                return False
        return False

    async def _joined(self, parts: Sequence[Part], answers: Sequence[bytes | Rejected]) -> EmbeddedText:
        """One after the other, and no further than to a part that is refused for good: it decides."""
        embedded: list[EmbeddedText] = []
        for part, answer in zip(parts, answers, strict=True):
            each = _whole(answer)
            smaller = halves(part.text, self._document_prefix) if _is_too_long(answer) else []
            if smaller:
                each = await self._joined(smaller, await self._batcher.embed([one.text for one in smaller]))
            if each.refusal:
                return each
            embedded.append(each)
        return joined(parts, embedded)

    async def embed_query(self, text: str) -> bytes:
        """See the port. The vectors of the latest QUERIES_KEPT queries are kept."""
        if text in self._queries:
            self._queries.move_to_end(text)
            return self._queries[text]
        try:
            answer = await self._client.request_once([text])
        except Unreachable as unreachable:
            kind = QueryTimeoutError if unreachable.kind == "timeout" else QueryUnreachableError
            raise kind(unreachable.words) from unreachable
        except Rejected as rejected:
            self._refuse_another_dimension(rejected)
            raise QueryUnreachableError(rejected.words) from rejected
        (vector,) = unit_vectors(answer.vectors)
        self._queries[text] = vector
        if len(self._queries) > QUERIES_KEPT:
            self._queries.popitem(last=False)
        return vector

    def _refuse_another_dimension(self, rejected: Rejected) -> None:
        if self._expected and rejected.dimension is not None and rejected.dimension != self._expected.dimension:
            raise EmbeddingsChangedError(
                f"the embedding server at {self._server} makes vectors of {rejected.dimension} dimensions, "
                f"those of the index have {self._expected.dimension}",
                hint=REINDEX_HINT,
            ) from rejected

    async def aclose(self) -> None:
        await self._client.aclose()


def _is_too_long(answer: bytes | Rejected) -> bool:
    """Perhaps: the reason of a refusal is not read. Some servers say with a 500 that a text is longer than their model
    takes (llama.cpp does); such a one was tried twice before it comes here."""
    return isinstance(answer, Rejected) and (answer.is_too_long or answer.status == SERVER_FAULT)


def _whole(answer: bytes | Rejected) -> EmbeddedText:
    if isinstance(answer, Rejected):
        return EmbeddedText(b"", refusal=f"the model refused it: {answer.words}")
    return EmbeddedText(answer)
