"""What ranks the answers of a base as it stands: the tier that every surface shows (S1-16)."""

from domain.errors import KnowledgeError, NotBuiltError
from domain.settings import Settings
from domain.status import DegradeCause, Tier
from store.vector_port import NO_VECTORS, VectorStatus


def base_tier(settings: Settings, status: VectorStatus, *, has_documents: bool) -> Tier:
    """The tier of a base whose vectors stand so."""
    if settings.embeddings is None:
        return Tier.LEXICAL
    from retrieval.query_vector import WantedVectors, standing_tier

    return standing_tier(WantedVectors.of(settings.embeddings), status, has_documents=has_documents)


def tier_now(settings: Settings, *, finishes_restores: bool = True) -> Tier:
    """The same, asked of the store; a store that cannot be read is said to be so. Never raises for it."""
    if settings.embeddings is None:
        return Tier.LEXICAL
    from app.wiring import readable_base

    try:
        with readable_base(settings, finishes_restores=finishes_restores) as base:
            snapshot = base.store.reader()
            return base_tier(settings, snapshot.vector_status(), has_documents=snapshot.has_documents())
    except NotBuiltError:
        return base_tier(settings, NO_VECTORS, has_documents=False)
    except KnowledgeError as error:
        return Tier.degraded(DegradeCause.INDEX_META, error.message)
