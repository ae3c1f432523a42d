"""The doctor's look at the vector tier, where one is configured (S1-14, S1-28, S1-43 to S1-45, T25).

The server is asked once, for the vectors of three fixed texts; no document is sent. What fails here is fatal only
where searches would answer wrongly or not at all: without a server, words are searched all the same.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import combinations
from typing import NamedTuple

import msgspec

from app.config import embeddings_key
from app.present import count
from domain.checks import CheckResult, CheckState, failed, not_run, passed
from domain.errors import EmbeddingsUnavailableError, KnowledgeError
from domain.layout import BaseLayout
from domain.settings import EmbeddingsSettings
from domain.vectors import CANARY_TEXTS, CANARY_TOLERANCE, PinnedIdentity
from embedding.addresses import is_loopback, parse_base_url
from embedding.known_models import NO_PREFIXES, Prefixes, expected_prefixes
from embedding.port import Probe
from retrieval.query_vector import WantedVectors
from store.port import Visibility
from store.sqlite import SqliteStore
from store.vector_port import VectorCounts, VectorStatus

EmbeddingsProbe = Callable[[EmbeddingsSettings], Probe]
"""Asks a model for the vectors of the canary texts. Raises KnowledgeError."""

PROBE_LIMIT_S = 10.0  # a doctor that waits is no help
_WORDS_ALL_THE_SAME = "words are searched all the same"
_OF_THE_ANSWER = ("embeddings_model", "embeddings_dimension", "embeddings_normalised", "embeddings_canary")


class StoredVectors(NamedTuple):
    """What an index holds of vectors."""

    status: VectorStatus
    counts: VectorCounts
    documents: int


def stored_vectors(layout: BaseLayout, base_id: str | None) -> StoredVectors | None:
    """None where the index cannot be read; the checks of the store say why."""
    with suppress(KnowledgeError):
        store = SqliteStore(layout.database, base_id=base_id)
        try:
            with store.snapshot() as snapshot:
                documents = snapshot.counts(visibility=Visibility.everything()).documents
                return StoredVectors(snapshot.vector_status(), snapshot.vector_counts(), documents)
        finally:
            store.close()
    return None


def probe_model(settings: EmbeddingsSettings) -> Probe:
    """Raises EmbeddingsUnavailableError, ConfigurationError."""
    from embedding.build import make_embedder

    capped = msgspec.structs.replace(settings, timeout_s=min(settings.timeout_s, PROBE_LIMIT_S))

    async def ask() -> Probe:
        embedder = make_embedder(capped, embeddings_key(capped))
        try:
            async with asyncio.timeout(PROBE_LIMIT_S):
                return await embedder.probe(CANARY_TEXTS)
        finally:
            await embedder.aclose()

    try:
        return asyncio.run(ask())
    except TimeoutError:
        raise EmbeddingsUnavailableError(f"{_shown(settings)} gives no answer within {PROBE_LIMIT_S:g} s") from None


def check_embeddings(
    settings: EmbeddingsSettings, stored: StoredVectors | None, probe: EmbeddingsProbe
) -> Iterator[CheckResult]:
    """Every check of the tier, each passed, failed or not run."""
    has_key = True
    if settings.provider == "openai":
        yield (key := _check_key(settings))
        yield _check_encryption(settings)
        has_key = key.state is CheckState.PASS
    pinned = _pinned(settings, stored)
    if has_key:
        yield from _check_answer(settings, pinned, probe)
    else:
        yield from (
            not_run(name, "nothing is sent without the key") for name in ("embeddings_reachable", *_OF_THE_ANSWER)
        )
    yield _check_identity(settings, pinned, stored)
    yield _check_prefixes(settings)
    yield _check_coverage(stored)


def _check_key(settings: EmbeddingsSettings) -> CheckResult:
    try:
        key = embeddings_key(settings)
    except KnowledgeError as error:
        return failed("embeddings_key", error.message, error.hint, is_fatal=False)
    if key is None:
        return passed("embeddings_key", "none is configured, none is sent")
    return passed("embeddings_key", f"in the variable {settings.api_key_env}")


def _check_encryption(settings: EmbeddingsSettings) -> CheckResult:
    """R17: http beyond this machine is permitted host by host, and never forgotten."""
    address = parse_base_url(settings.base_url)
    host = address.shown_host
    if is_loopback(address.host):
        return passed("embeddings_encryption", f"{host} is this machine")
    if address.scheme == "https":
        return passed("embeddings_encryption", "https")
    return failed(
        "embeddings_encryption",
        f"texts, queries and the key go to {host} unencrypted (insecure_hosts)",
        "keep it to a private network, or give that server https",
        is_fatal=False,
    )


def _check_answer(
    settings: EmbeddingsSettings, pinned: PinnedIdentity | None, probe: EmbeddingsProbe
) -> Iterator[CheckResult]:
    try:
        answer = probe(settings)
    except KnowledgeError as error:
        detail = f"{error.message.rstrip('.')}; {_WORDS_ALL_THE_SAME}"
        hint = error.hint or "start the server, or correct embeddings.base_url"
        yield failed("embeddings_reachable", detail, hint, is_fatal=False)
        yield from (not_run(name, "the model does not answer") for name in _OF_THE_ANSWER)
        return
    yield passed("embeddings_reachable", f"{_shown(settings)} answers")
    named = "" if answer.served_model == settings.model else f"; the server calls it {answer.served_model}"
    yield passed("embeddings_model", f"{settings.model}{named}")
    yield passed("embeddings_dimension", str(answer.dimension))
    unit = "of unit length" if answer.normalised else "not of unit length; they are brought to it before they are kept"
    yield passed("embeddings_normalised", f"raw vectors are {unit}")
    yield _check_canary(answer, pinned)


def _shown(settings: EmbeddingsSettings) -> str:
    return "the local model" if settings.provider == "local" else parse_base_url(settings.base_url).shown_host


def _check_canary(answer: Probe, pinned: PinnedIdentity | None) -> CheckResult:
    """Whether the model tells texts apart, and is the one that the stored vectors were made with."""
    from embedding.canary import REINDEX_HINT, canary_difference

    if _are_alike(answer.vectors):
        detail = "different texts get the same vector: nothing can be found by meaning with this model"
        return failed("embeddings_canary", detail, "choose a model that is made for embeddings")
    if pinned is None:
        return not_run("embeddings_canary", "there are no stored vectors yet to compare with")
    difference = canary_difference(pinned, answer)
    if difference:
        return failed("embeddings_canary", difference, REINDEX_HINT)
    return passed("embeddings_canary", f"{len(CANARY_TEXTS)} fixed texts get the vectors of the index")


def _are_alike(vectors: tuple[bytes, ...]) -> bool:
    import numpy as np

    units = [np.frombuffer(vector, dtype="<f4") for vector in vectors]
    return all(float(np.dot(one, other)) > 1.0 - CANARY_TOLERANCE for one, other in combinations(units, 2))


def _pinned(settings: EmbeddingsSettings, stored: StoredVectors | None) -> PinnedIdentity | None:
    """The identity that these settings go on with; where there is none, the one that they have left."""
    if stored is None:
        return None
    known = [pinned for pinned in (stored.status.active, stored.status.building) if pinned is not None]
    return next((pinned for pinned in known if not _changes(settings, pinned)), stored.status.target)


def _changes(settings: EmbeddingsSettings, pinned: PinnedIdentity) -> str:
    return WantedVectors.of(settings).difference(pinned)


def _check_identity(
    settings: EmbeddingsSettings, pinned: PinnedIdentity | None, stored: StoredVectors | None
) -> CheckResult:
    """What the configuration says against what the vectors were made with (S1-15)."""
    from embedding.canary import REINDEX_HINT

    if stored is None:
        return not_run("embeddings_identity", "the index cannot be read, or there is none yet")
    if pinned is None and stored.documents:
        detail = "this index holds no vectors, while embeddings are configured: searches and runs are refused"
        return failed("embeddings_identity", detail, "run `knowledge index --reindex` once")
    if pinned is None:
        return not_run("embeddings_identity", "the index is empty, and holds no vectors yet", "run `knowledge index`")
    if changes := _changes(settings, pinned):
        return failed("embeddings_identity", changes, REINDEX_HINT)
    detail = f"{pinned.identity.model}, {pinned.identity.dimension} dimensions"
    return passed("embeddings_identity", detail + ("; still being made" if pinned.state == "building" else ""))


def _check_prefixes(settings: EmbeddingsSettings) -> CheckResult:
    """A hint (S1-28): it is the model's card that knows."""
    name, set_ = "embeddings_prefixes", Prefixes(settings.query_prefix, settings.document_prefix)
    expected = expected_prefixes(settings.model)
    if expected is None:
        detail = f"not known whether {settings.model} expects prefixes"
        return not_run(name, detail, "look at the model's card; the keys are query_prefix and document_prefix")
    if set_ == expected:
        words = "as the model's card has them" if expected != NO_PREFIXES else "the model expects none, none are set"
        return passed(name, words)
    if expected == NO_PREFIXES:
        detail, hint = f"{settings.model} expects no prefixes; hits may be worse with them", "leave both prefixes empty"
    else:
        query, document = (json.dumps(prefix, ensure_ascii=False) for prefix in expected)  # as YAML takes them
        detail = f"the card of {settings.model} has other prefixes than the configuration; hits may be worse without"
        hint = f"set query_prefix: {query} and document_prefix: {document}"
    return failed(name, detail, f"{hint}; then run `knowledge index --reindex`", is_fatal=False)


def _check_coverage(stored: StoredVectors | None) -> CheckResult:
    """R18: how much is found by its words only."""
    name = "embeddings_coverage"
    if stored is None:
        return not_run(name, "the index cannot be read, or there is none yet")
    if stored.status.active is None:
        hint = "run `knowledge index --reindex`" if stored.documents else "run `knowledge index`"
        return not_run(name, f"none of {stored.documents:,} documents has vectors yet", hint)
    parts = stored.counts.from_parts
    split = f"; {parts:,} texts were too long for the model and embedded in parts" if parts else ""
    if pending := stored.status.pending_documents:
        detail = (
            f"found by their words only: {pending:,} of {stored.documents:,} documents, "
            f"{count(stored.status.pending_chunks, 'chunk')}{split}"
        )
        return failed(name, detail, "run `knowledge index`", is_fatal=False)
    return passed(name, f"all of {stored.documents:,} documents{split}")
