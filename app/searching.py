"""A search over an open store, by words and by meaning: the use case behind every surface."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from app.tracing import traced_search
from domain.errors import EmbeddingsChangedError
from domain.settings import EmbeddingsSettings
from domain.vectors import PinnedIdentity
from retrieval.answer import SearchAnswer, SearchRequest
from retrieval.query_vector import Meaning, WantedVectors, embed_query, plan_meaning
from retrieval.search import search
from store.sqlite import SqliteStore

if TYPE_CHECKING:
    from app.query_embedder import QueryEmbedder

MAX_TRIES = 3  # another set of vectors may begin to answer while a query is embedded: a rare thing, never twice


def answer(store: SqliteStore, request: SearchRequest, meaning: Meaning | None) -> SearchAnswer:
    """Search one state of the store; no transaction is open while the query is embedded.

    Raises what retrieval.query_vector and retrieval.search say.
    """
    find = partial(_answer, store, request, meaning)
    return traced_search(find, request.mode, with_meaning=meaning is not None)


def _answer(store: SqliteStore, request: SearchRequest, meaning: Meaning | None) -> SearchAnswer:
    wanted = meaning.wanted if meaning is not None else None
    for _ in range(MAX_TRIES):
        with store.snapshot() as snapshot:
            plan = plan_meaning(snapshot, request, wanted)
        query = embed_query(plan, request, meaning)
        with store.snapshot() as snapshot:
            if query.vector:
                status = snapshot.vector_status()
                if status.active is None or plan.identity is None or status.active.id != plan.identity.id:
                    continue
                query = query._replace(status=status if wanted is None else wanted.concerning(status))
            return search(snapshot, request, query)
    raise EmbeddingsChangedError("the vectors of the index were exchanged during the search", hint="search again")


@contextmanager
def query_meaning(settings: EmbeddingsSettings | None) -> Iterator[Meaning | None]:
    """The meaning of the queries of one command; None where no embeddings are configured. What embeds is made for the
    first query that needs it: nothing of it is imported for words alone."""
    if settings is None:
        yield None
        return
    made: list[QueryEmbedder] = []

    def embed(pinned: PinnedIdentity, text: str) -> bytes:
        from app.query_embedder import QueryEmbedder

        if not made:
            made.append(QueryEmbedder(settings))
        return made[0].embed(pinned, text)

    try:
        yield Meaning(WantedVectors.of(settings), embed)
    finally:
        for embedder in made:
            embedder.close()
