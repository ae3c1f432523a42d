"""From a query to its vector, or to the reason why there is none: modes, degradation, refusals (R5, R6).

In three steps, so that no transaction is open while a server is waited for: what the store has is looked at
(`plan_meaning`), the query is embedded (`embed_query`), and the search runs over a snapshot of its own.
"""

from collections.abc import Callable
from typing import NamedTuple

from domain.errors import (
    EmbeddingsChangedError,
    EmbeddingsUnavailableError,
    IntegrityError,
    SemanticNotConfiguredError,
    StorageError,
)
from domain.settings import EmbeddingsSettings
from domain.status import DegradeCause, Tier, TierKind
from domain.vectors import PinnedIdentity, difference_from, query_text
from embedding.port import QueryEmbeddingError, QueryTimeoutError
from retrieval.answer import Mode, SearchRequest
from retrieval.query_text import parse_query
from retrieval.vector import WORDS_ALONE, MeaningSnapshot, QueryVector
from store.vector_port import NO_VECTORS, VectorStatus

REINDEX_HINT = "`knowledge index --reindex` makes the vectors; until then `--mode lexical` searches for words"
_LEXICAL_HINT = "`--mode lexical` searches for words, without the embeddings server"

Embed = Callable[[PinnedIdentity, str], bytes]
"""The vector of a text, prefix and all, as the pinned identity makes them.

Raises QueryTimeoutError, QueryUnreachableError, EmbeddingsUnavailableError; EmbeddingsChangedError, which is no
degradation.
"""
Stopped = Callable[[], DegradeCause | None]
"""Whether whoever asked has stopped waiting: TIMEOUT (their deadline) or CANCELED."""


class WantedVectors(NamedTuple):
    """What the configuration asks of an identity; the rest only a server knows."""

    model: str
    query_prefix: str
    document_prefix: str

    @staticmethod
    def of(settings: EmbeddingsSettings) -> "WantedVectors":
        return WantedVectors(settings.model, settings.query_prefix, settings.document_prefix)

    def difference(self, pinned: PinnedIdentity) -> str:
        """In words; "" where they agree."""
        return difference_from(pinned.identity, self.model, self.query_prefix, self.document_prefix)

    def concerning(self, status: VectorStatus) -> VectorStatus:
        """The same without a set that is half made and was given up: nobody is to wait for it."""
        is_given_up = status.building is not None and self.difference(status.building)
        return status._replace(building=None) if is_given_up else status


class Meaning(NamedTuple):
    """The vector tier as a search is given it; None in its place where no embeddings are configured."""

    wanted: WantedVectors
    embed: Embed
    stopped: Stopped = lambda: None


class MeaningPlan(NamedTuple):
    """What a store lets a query be ranked by. `identity`: what its vector is made for; None: words alone."""

    tier: Tier
    identity: PinnedIdentity | None = None
    status: VectorStatus = NO_VECTORS


def standing_tier(wanted: WantedVectors | None, status: VectorStatus, *, has_documents: bool) -> Tier:
    """What ranks answers where no mode is asked for and the server answers: for status, stats and the like."""
    if wanted is None:
        return Tier.LEXICAL
    change = _change(wanted, status)
    if status.active is not None and not change:
        identity = status.active.identity
        return Tier(TierKind.HYBRID, identity.model, identity.dimension)
    if not has_documents:
        return Tier.degraded(DegradeCause.NO_VECTORS, "the index holds no document")
    if not change:
        return Tier.degraded(DegradeCause.NO_VECTORS, "the first ones are being made")
    return Tier.degraded(DegradeCause.CHANGED, change)


def plan_meaning(snapshot: MeaningSnapshot, request: SearchRequest, wanted: WantedVectors | None) -> MeaningPlan:
    """What this search is to be ranked by, as far as the store decides it.

    Raises SemanticNotConfiguredError; EmbeddingsChangedError where the stored vectors are not those of the
    configuration; EmbeddingsUnavailableError for `vector` where there are none yet; for `vector` what the store raises.
    """
    mode = request.mode
    if wanted is None:
        if mode in ("vector", "hybrid"):
            raise SemanticNotConfiguredError(
                f"mode {mode} searches by meaning, and no embeddings are configured",
                hint="configure `embeddings`, or search for words: --mode lexical",
            )
        return MeaningPlan(Tier.LEXICAL)
    try:
        status = snapshot.vector_status()
    except (IntegrityError, StorageError) as error:
        if mode == "vector":
            raise
        return MeaningPlan(_asked_or(mode, Tier.degraded(DegradeCause.INDEX_META, error.message)))
    status = wanted.concerning(status)
    if mode == "lexical":
        return MeaningPlan(Tier(TierKind.LEXICAL_ASKED), status=status)
    tier = standing_tier(wanted, status, has_documents=snapshot.has_documents())
    if tier.cause is DegradeCause.CHANGED:
        changed = tier.reason if status.active is None else f"the embeddings have changed: {tier.reason}"
        raise EmbeddingsChangedError(changed, hint=REINDEX_HINT)
    if tier.cause is not None and mode == "vector":
        raise EmbeddingsUnavailableError(f"there are no vectors yet: {tier.reason}", hint=_LEXICAL_HINT)
    if mode == "vector":
        tier = Tier(TierKind.VECTOR, tier.model, tier.dimension)
    return MeaningPlan(tier, status.active if tier.cause is None else None, status)


def embed_query(plan: MeaningPlan, request: SearchRequest, meaning: Meaning | None) -> QueryVector:
    """The query's vector, or the degraded tier with the reason. No request is made for words alone, nor for a query
    that holds nothing to search for.

    Raises EmbeddingsUnavailableError for `vector`, EmbeddingsChangedError, UsageError for a query that is no Unicode.
    """
    if plan.identity is None or meaning is None:
        return QueryVector(plan.tier, status=plan.status)
    query = parse_query(request.query)
    if not (query.terms or query.short_terms or query.substrings):
        return QueryVector(plan.tier, status=plan.status)
    cause = meaning.stopped()
    reason = "before the query was embedded"
    if cause is None:
        try:
            text = query_text(plan.identity.identity.query_prefix, request.query)
            return QueryVector(plan.tier, meaning.embed(plan.identity, text), plan.status)
        except QueryEmbeddingError as error:
            step = DegradeCause.TIMEOUT if isinstance(error, QueryTimeoutError) else DegradeCause.EMBEDDINGS
            cause, reason = meaning.stopped() or step, str(error)
        except EmbeddingsUnavailableError as error:
            cause, reason = meaning.stopped() or DegradeCause.EMBEDDINGS, error.message
    if request.mode == "vector":
        raise EmbeddingsUnavailableError(f"the query could not be embedded: {reason}", hint=_LEXICAL_HINT)
    return QueryVector(Tier.degraded(cause, reason), status=plan.status)


def _change(wanted: WantedVectors, status: VectorStatus) -> str:
    """Why the stored vectors are not those that are wanted, in words; "" where they are, or are being made: a set that
    is replaced goes on answering."""
    if status.building is not None and not wanted.difference(status.building):
        return ""
    if status.active is None:
        return "this index holds no vectors, while embeddings are configured"
    return wanted.difference(status.active)


def _asked_or(mode: Mode, degraded: Tier) -> Tier:
    return Tier(TierKind.LEXICAL_ASKED) if mode == "lexical" else degraded


__all__ = ["WORDS_ALONE", "Meaning", "MeaningPlan", "WantedVectors", "embed_query", "plan_meaning", "standing_tier"]
