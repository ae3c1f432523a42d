"""`knowledge eval recall`: whether a search by meaning finds what a comparison with every vector finds.

Over the base itself, which is only read. Queries are vectors drawn from the store, whose own text is left out of what
is to be found, or queries from a file, embedded as a search does it.
"""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from app.wiring import readable_base
from domain.errors import SemanticNotConfiguredError, UsageError
from domain.settings import EmbeddingsSettings, Settings
from domain.vectors import PinnedIdentity
from retrieval.metrics import recall_of_nearest
from store import driver
from store.connection import open_reader
from store.port import Visibility
from store.vector_port import VectorFind, VectorMethod
from store.vector_recall import linked_ids, linked_pages, vectors_of, vectors_of_chunks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

DEPTH = 10
CANDIDATES = 50  # what the lane of a search asks for (S0-34)
DEFAULT_SAMPLES = 200
MAX_SAMPLES = 10_000
TIMED_EXACT = 5  # a comparison with every vector reads them all from the disk
SEED = 20_263  # the same vectors for the same store

Source = Literal["stored vectors", "queries"]
Find = Callable[[bytes], VectorFind]


class Probe(NamedTuple):
    """A vector to look for neighbours of. `own`: the id of that vector in the store, which is no neighbour; 0: none."""

    vector: bytes
    own: int = 0


class RecallScores(Struct, frozen=True):
    """Of all probes of one source; there is at least one."""

    source: Source
    recalls: tuple[float, ...]
    method: VectorMethod
    milliseconds: tuple[float, ...]
    exact_milliseconds: tuple[float, ...]  # of the first few

    @property
    def recall_10(self) -> float:
        return fmean(self.recalls)

    @property
    def p50_ms(self) -> float:
        return median(self.milliseconds)

    @property
    def exact_p50_ms(self) -> float:
        return median(self.exact_milliseconds)


class RecallReport(Struct, frozen=True):
    model: str
    dimension: int
    vectors: int  # that stand for a chunk
    scores: tuple[RecallScores, ...]


def measure_recall(settings: Settings, *, samples: int = DEFAULT_SAMPLES, queries: Sequence[str] = ()) -> RecallReport:
    """Raises NotBuiltError, SemanticNotConfiguredError (no vectors), UsageError, and for queries
    EmbeddingsUnavailableError and EmbeddingsChangedError."""
    if not 1 <= samples <= MAX_SAMPLES:
        raise UsageError(f"--samples takes a number from 1 to {MAX_SAMPLES:,}, not {samples}")
    with readable_base(settings) as base, closing(open_reader(base.layout.database)) as connection:
        with base.store.snapshot() as snapshot:
            active = snapshot.vector_status().active
        ids = linked_ids(connection, active.id) if active is not None else []
        if active is None or not ids:
            raise SemanticNotConfiguredError(
                "the index holds no vectors", hint="configure `embeddings`, then run `knowledge index`"
            )

        def find(vector: bytes) -> VectorFind:
            with base.store.snapshot() as snapshot:
                return snapshot.nearest(vector, limit=CANDIDATES, scope=None, visibility=Visibility.everything())

        drawn = random.Random(SEED).sample(ids, min(samples, len(ids)))
        stored = [Probe(vector, own) for own, vector in vectors_of(connection, drawn).items()]
        scores = [measure(connection, active, "stored vectors", stored, find)]
        if queries:
            asked = [Probe(vector) for vector in _embedded(settings.embeddings, active, queries)]
            scores.append(measure(connection, active, "queries", asked, find))
    return RecallReport(active.identity.model, active.identity.dimension, len(ids), tuple(scores))


def read_queries(path: Path) -> tuple[str, ...]:
    """A query a line, with or without an id and a tab before it. Raises UsageError."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', '') or 'it is not UTF-8'}") from None
    queries = tuple(text for line in lines if (text := line.rpartition("\t")[2].strip()))
    if not queries:
        raise UsageError(f"{path} holds no query", hint="a query a line, with or without an id and a tab before it")
    return queries


def measure(
    connection: driver.Connection, active: PinnedIdentity, source: Source, probes: Sequence[Probe], find: Find
) -> RecallScores:
    """Ask for the neighbours of each probe, and compare with the true ones."""
    truth = exact_nearest(connection, active, probes)
    found: list[list[float]] = []
    milliseconds: list[float] = []
    method: VectorMethod = "none"
    find(probes[0].vector)  # what is read once in a process is not the search
    for probe in probes:
        began = time.perf_counter()
        answer = find(probe.vector)
        milliseconds.append((time.perf_counter() - began) * 1000)
        method = answer.method
        found.append(_similarities(connection, active.id, answer, probe.own))
    exact = []
    for probe in probes[:TIMED_EXACT]:
        began = time.perf_counter()
        exact_nearest(connection, active, [probe])
        exact.append((time.perf_counter() - began) * 1000)
    recalls = [recall_of_nearest(mine, nearest, DEPTH) for mine, nearest in zip(found, truth, strict=True)]
    return RecallScores(source, tuple(recalls), method, tuple(milliseconds), tuple(exact))


def exact_nearest(connection: driver.Connection, active: PinnedIdentity, probes: Sequence[Probe]) -> list[list[float]]:
    """For each probe the similarities of the `DEPTH` nearest vectors but its own, best first: all are compared.

    One page of vectors is in memory at a time.
    """
    import numpy as np

    dimension = active.identity.dimension
    asked = np.frombuffer(b"".join([probe.vector for probe in probes]), dtype="<f4").reshape(-1, dimension)
    own = np.array([probe.own for probe in probes])[:, None]
    best = np.full((len(probes), DEPTH), -np.inf, dtype=np.float32)
    for ids, floats in linked_pages(connection, active.id, dimension):
        similarities = _cosines(asked, np.frombuffer(floats, dtype="<f4").reshape(-1, dimension))
        similarities[own == np.array(ids)[None, :]] = -np.inf
        both = np.concatenate([best, similarities], axis=1)
        best = np.partition(both, both.shape[1] - DEPTH, axis=1)[:, -DEPTH:]
    best = -np.sort(-best, axis=1)
    return [[float(one) for one in row if one > -np.inf] for row in best]


def _cosines(asked: "Matrix", vectors: "Matrix") -> "Matrix":
    """(probes, vectors). One without a direction is near to nothing."""
    import numpy as np

    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(asked, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)[None, :]
        cosines = (asked @ vectors.T) / lengths
    return np.where(np.isfinite(cosines), cosines, -np.inf).astype(np.float32)


def _similarities(connection: driver.Connection, identity: int, answer: VectorFind, own: int) -> list[float]:
    """Of the vectors found but the probe's own, each once though several chunks have it."""
    vector_of = vectors_of_chunks(connection, identity, [hit.chunk for hit in answer.hits])
    similarities: dict[int, float] = {}
    for hit in answer.hits:
        if (vector := vector_of.get(hit.chunk, own)) != own:
            similarities.setdefault(vector, hit.similarity)
    return list(similarities.values())


def _embedded(wanted: EmbeddingsSettings | None, active: PinnedIdentity, queries: Sequence[str]) -> list[bytes]:
    if wanted is None:
        raise SemanticNotConfiguredError(
            "no embeddings are configured, so the queries have no vectors",
            hint="configure `embeddings`, or leave --queries out",
        )
    from app.evaluation_vectors import query_embedder

    with query_embedder(wanted, active) as embed:
        vectors = [vector for query in queries if (vector := embed(query))]
    if not vectors:
        raise UsageError("no query has a vector", hint="the local model knows English words only")
    return vectors
