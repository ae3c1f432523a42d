"""`knowledge eval run`: how well the answers to a collection's queries are ranked, in each mode.

Documents are ranked by their best chunk. What stands first is what a search gives; where its candidates are of fewer
than 50 documents, those of a deeper search follow, so that recall is that of the ranking and not of a limit.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from app.evaluation_collection import Question, questions_of, read_documents, read_judged
from app.evaluation_scratch import ScratchBase, scratch_base
from app.index_request import EmbeddingNotice
from app.progress import RunProgress
from app.wiring import readable_base
from domain.errors import EmbeddingsUnavailableError
from domain.settings import EmbeddingsSettings, Settings
from domain.status import Tier, TierKind
from retrieval.answer import SearchAnswer, SearchRequest
from retrieval.metrics import RECALL_DEPTH, ndcg, recall, reciprocal_rank
from retrieval.search import search
from retrieval.vector import WORDS_ALONE, QueryVector
from store.sqlite import SqliteStore
from store.vector_port import NO_VECTORS, VectorStatus

TIMED_HITS = 10
FIRST_HITS = 50  # what the lanes hold of a usual search (S0-34)
DEEPER_HITS = (100, 400)

EvaluatedMode = Literal["lexical", "vector", "hybrid"]
Ask = Callable[[SearchRequest], SearchAnswer]
Announce = Callable[[str, int], None]
"""Told the mode (or `embedding`), and how many queries are about to be asked in it."""


class QueryScore(NamedTuple):
    """Of one query. `found`: the first of its documents, best first."""

    id: str
    ndcg_10: float
    recall_50: float
    reciprocal_rank: float
    milliseconds: float
    found: tuple[str, ...]


class Probe(NamedTuple):
    """A query as it is asked. `milliseconds` is what its vector took."""

    question: Question
    vector: bytes = b""
    milliseconds: float = 0.0
    status: VectorStatus = NO_VECTORS

    def meaning(self, mode: EvaluatedMode) -> QueryVector:
        active = self.status.active
        if mode == "lexical" or not self.vector or active is None:
            return WORDS_ALONE
        return QueryVector(Tier(TierKind(mode), active.identity.model, active.identity.dimension), self.vector)


class ModeScores(Struct, frozen=True):
    """Of all queries in one mode; there is at least one."""

    mode: EvaluatedMode
    queries: tuple[QueryScore, ...]

    @property
    def ndcg_10(self) -> float:
        return fmean(query.ndcg_10 for query in self.queries)

    @property
    def recall_50(self) -> float:
        return fmean(query.recall_50 for query in self.queries)

    @property
    def mrr(self) -> float:
        return fmean(query.reciprocal_rank for query in self.queries)

    @property
    def p50_ms(self) -> float:
        return median(query.milliseconds for query in self.queries)


class Evaluation(Struct, frozen=True):
    """What was measured, and on how much."""

    collection: Path
    documents: int
    documents_indexed: int  # the others have no text, or are larger than is read
    chunks: int
    queries_without_relevant: int  # left out
    judgements_of_unknown: int  # left out
    modes: tuple[ModeScores, ...]


def evaluate(
    settings: Settings,
    collection: Path,
    *,
    embeddings: EmbeddingsSettings | None,
    progress: RunProgress,
    announce: Announce = lambda mode, queries: None,
    announce_embedding: Callable[[EmbeddingNotice], None] = lambda notice: None,
) -> Evaluation:
    """Index the collection into a base of its own, and ask every query that has a relevant document.

    `embeddings` None: words only; `announce_embedding` is told before the first text goes to a server.

    Raises UsageError for a collection that cannot be read, EmbeddingsUnavailableError where a query cannot be embedded,
    and what a run of `index` raises.
    """
    judged = read_judged(collection)
    with scratch_base(settings, embeddings, read_documents(collection), progress, announce_embedding) as scratch:
        questions = questions_of(judged, frozenset(scratch.ids.values()))
        with readable_base(scratch.settings) as base:
            modes = _measured(base.store, scratch, questions.asked, announce)
        return Evaluation(
            collection=collection,
            documents=len(scratch.ids),
            documents_indexed=scratch.report.documents,
            chunks=scratch.report.chunks,
            queries_without_relevant=questions.without_relevant,
            judgements_of_unknown=questions.of_unknown,
            modes=modes,
        )


def _measured(
    store: SqliteStore, scratch: ScratchBase, questions: Sequence[Question], announce: Announce
) -> tuple[ModeScores, ...]:
    announce("lexical", len(questions))
    words = [Probe(question) for question in questions]
    modes = [_in_mode(store, scratch, "lexical", words)]
    if (wanted := scratch.settings.embeddings) is not None:
        announce("embedding", len(questions))
        probes = _embedded(store, wanted, questions)
        for mode in ("vector", "hybrid"):
            announce(mode, len(questions))
            modes.append(_in_mode(store, scratch, mode, probes))
    return tuple(modes)


def _embedded(store: SqliteStore, wanted: EmbeddingsSettings, questions: Sequence[Question]) -> list[Probe]:
    """Each query with its vector, made once for both modes."""
    from app.evaluation_vectors import query_embedder

    with store.snapshot() as snapshot:
        status = snapshot.vector_status()
    if status.active is None:
        raise EmbeddingsUnavailableError("no document of the collection got a vector", hint="see `knowledge doctor`")
    probes = []
    with query_embedder(wanted, status.active) as embed:
        for question in questions:
            began = time.perf_counter()
            vector = embed(question.text)
            probes.append(Probe(question, vector, (time.perf_counter() - began) * 1000, status))
    return probes


def _in_mode(store: SqliteStore, scratch: ScratchBase, mode: EvaluatedMode, probes: Sequence[Probe]) -> ModeScores:
    wanted = scratch.settings.embeddings
    min_similarity = wanted.min_similarity if wanted is not None else -1.0

    def asking(probe: Probe) -> Ask:
        meaning = probe.meaning(mode)

        def ask(request: SearchRequest) -> SearchAnswer:
            with store.snapshot() as snapshot:
                return search(snapshot, replace(request, min_similarity=min_similarity), meaning)

        return ask

    # where a query has no vector, words rank alone in `hybrid`, as in a search; in `vector` there is nothing to find
    scores = [
        _not_asked(probe.question)
        if mode == "vector" and not probe.vector
        else score_query(probe.question, asking(probe), scratch.ids, probe.milliseconds)
        for probe in probes
    ]
    return ModeScores(mode, tuple(scores))


def _not_asked(question: Question) -> QueryScore:
    return QueryScore(question.id, 0.0, 0.0, 0.0, 0.0, ())


def score_query(question: Question, ask: Ask, ids: Mapping[str, str], embedding_ms: float = 0.0) -> QueryScore:
    """`ids`: the collection's id of each document, by its key."""
    began = time.perf_counter()
    ask(SearchRequest(question.text, top_k=TIMED_HITS))
    milliseconds = (time.perf_counter() - began) * 1000 + embedding_ms
    ranked = [ids[key] for key in rank_documents(question.text, ask)]
    return QueryScore(
        question.id,
        ndcg(ranked, question.gains),
        recall(ranked, question.gains),
        reciprocal_rank(ranked, question.gains),
        milliseconds,
        tuple(ranked[:TIMED_HITS]),
    )


def rank_documents(query: str, ask: Ask, wanted: int = RECALL_DEPTH) -> list[str]:
    """Keys of the documents of the best chunks, best first, no key twice."""
    keys: dict[str, None] = {}
    for depth in (FIRST_HITS, *DEEPER_HITS):
        hits = ask(SearchRequest(query, depth=depth, all_chunks=True)).results
        keys.update(dict.fromkeys(hit.path for hit in hits))
        if len(keys) >= wanted or len(hits) < depth:
            break
    return list(keys)[:wanted]
