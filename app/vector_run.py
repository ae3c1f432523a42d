"""The vectors of an index run: which identity they are made for, which documents lack them, and the switch at the end.

Everything that can refuse a run does so before anything is written (S0-13, S1-12, S1-15, S1-19).
"""

from collections.abc import Callable, Sequence

from app.assignment import VectorPlan
from app.outcomes import Outcomes, VectorReport
from app.wiring import RunBase
from domain.errors import EmbeddingsChangedError
from domain.files import Outcome
from domain.settings import EmbeddingsSettings
from domain.vectors import PinnedIdentity, VectorIdentity
from retrieval.query_vector import WantedVectors
from store.run_port import RunRecord
from store.sqlite import SqliteSnapshot
from store.vector_port import VectorStatus
from store.write_port import VectorWriter

COLLECT_AFTER_REPLACED = 1000  # documents in one run
COLLECT_EVERY_RUNS = 64
KEPT_UNUSED = 10_000  # vectors kept for files that may come back, at least

Announce = Callable[[str, str], None]
"""Told the host and the model before the first text of a user is sent there."""


def prepare_vectors(
    writer: VectorWriter,
    wanted: EmbeddingsSettings,
    *,
    has_documents: bool,
    reindex: bool,
    re_embed: bool,
    announce: Announce,
    heed: Callable[[], None] = lambda: None,
) -> VectorPlan:
    """What a run embeds for. `heed` is called while the server is waited for, and may raise.

    Raises EmbeddingsChangedError where the index holds other vectors, or none, and `--reindex` was not asked for;
    EmbeddingsUnavailableError where the server does not answer; ConfigurationError for a key that is not set.
    """
    from app.config import embeddings_key
    from embedding.build import host_shown

    key = embeddings_key(wanted)
    status = writer.vector_status()
    active = status.active
    if active is not None and WantedVectors.of(wanted).difference(active):
        active = None
    if has_documents and not reindex:
        if active is None:
            raise _refusal(status, wanted)
        return VectorPlan(wanted, active)
    from app.vector_probe import probed_identity  # an event loop: a run that finds the same vectors needs none

    announce(host_shown(wanted), wanted.model)
    identity, canary = probed_identity(wanted, key, heed)
    known = [one for one in (status.building, status.active) if one is not None and one.identity == identity]
    is_another = any(not _is_same(one, identity, canary) for one in known)  # under the same name
    pinned = writer.pin_identity(identity, canary, afresh=re_embed or is_another)
    beside = status.active if pinned.state == "building" else None
    return VectorPlan(wanted, pinned, beside, verified=True)


def _is_same(active: PinnedIdentity, identity: VectorIdentity, canary: Sequence[bytes]) -> bool:
    from embedding.canary import canary_difference
    from embedding.port import Probe

    probe = Probe(identity.served_model, identity.dimension, identity.normalised, tuple(canary))
    return not canary_difference(active, probe)


def _refusal(status: VectorStatus, wanted: EmbeddingsSettings) -> EmbeddingsChangedError:
    from embedding.canary import REINDEX_HINT

    if status.building is not None and not WantedVectors.of(wanted).difference(status.building):
        return EmbeddingsChangedError(
            "new vectors for this index are half made",
            hint="run `knowledge index --reindex` to make the rest; nothing is embedded twice",
        )
    if status.active is None:
        return EmbeddingsChangedError(
            "this index holds no vectors, while embeddings are configured",
            hint="run `knowledge index --reindex`: words go on answering until every document has its vectors",
        )
    return EmbeddingsChangedError(
        f"the embeddings have changed: {WantedVectors.of(wanted).difference(status.active)}", hint=REINDEX_HINT
    )


def settle_vectors(
    base: RunBase, snapshot: SqliteSnapshot, plan: VectorPlan, run: RunRecord, outcomes: Outcomes
) -> VectorReport:
    """At the end of a run: let a set that is complete answer, drop what nothing needs, and say how it stands.

    A document whose text was refused does not keep a new set from answering: it stays pending, and is counted.
    """
    is_built = plan.target.state == "building"
    is_activated = is_built and _activate_complete(base, snapshot, plan.target.id, outcomes.refused_keys)
    replaced = outcomes.counts.get(Outcome.UPDATED.value, 0)
    if is_built or replaced >= COLLECT_AFTER_REPLACED or run.generation % COLLECT_EVERY_RUNS == 0:
        base.writer.collect_vectors(keep_unused=kept_unused(snapshot.vector_counts().linked_chunks))
    status = base.writer.vector_status()
    progress = outcomes.progress
    return VectorReport(
        identity=plan.target.identity,
        embedded=progress.embedded,
        reused=progress.reused,
        from_parts=progress.from_parts,
        pending_documents=status.pending_documents,
        pending_chunks=status.pending_chunks,
        activated=is_activated,
        building=is_built and not is_activated,
    )


def _activate_complete(base: RunBase, snapshot: SqliteSnapshot, identity: int, refused_keys: set[str]) -> bool:
    """Let a built set answer where it lacks nothing but documents whose text was refused; says whether it does."""
    lacking = snapshot.keys_without_vectors(identity, after="", limit=len(refused_keys) + 1)
    if not all(document.key in refused_keys for document in lacking):
        return False
    base.writer.activate_identity(identity, uncovered=len(lacking))
    return True


def kept_unused(linked_chunks: int) -> int:
    """How many vectors that no chunk has are kept for files that come back: a quarter of those in use, or more."""
    return max(KEPT_UNUSED, linked_chunks // 4)
