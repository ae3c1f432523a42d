"""The vector lane's read: which chunks stand nearest to a query's vector (S2-47).

Few vectors, or a scope of few chunks, are all compared, by a function of SQLite's vector extension: that needs no
numpy, whose import costs more than the search. Of many, signs packed in memory choose the candidates
(store.vector_memory), and only their rows are read. Either way similarities are those of the stored numbers.
"""

import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from domain.errors import EmbeddingsChangedError, IntegrityError
from store import driver
from store.lexical import lane_filter
from store.port import Scope, Visibility
from store.vector_port import VectorFind, VectorHit, VectorMethod

BYTES_A_NUMBER = 4
MOST_EXACT_COLD = 20_000  # 70 ms with 384 dimensions, which numpy's import and reading the signs cost too
MOST_EXACT_WARM = 2_000  # where numpy is there already
# Candidates whose numbers are read: so many, and one more for each 500 vectors. With 8 times as many of the first step
# recall@10 is 0.99 on the passages of 2,000 and of 40,000 documents, with a model of 256 dimensions (bench/vectors.py).
LEAST_COMPARED, MOST_COMPARED = 300, 1_000
VECTORS_A_COMPARED = 500
COMPARED_A_RESULT = 4  # for each result, at least
LOOKED_UP_A_RESULT = 2  # of these, whose chunks are looked up at first
WIDER = 8  # where too many of them stand for no chunk that may be shown

Ranked = Sequence[tuple[float, int]]
"""Similarity and id of vectors, nearest first."""


class _Compared(NamedTuple):
    ranked: Ranked
    is_all: bool  # there are no others


Compare = Callable[[int], _Compared]
"""About so many of the nearest vectors, whether they stand for chunks or not."""


class _Question(NamedTuple):
    connection: driver.Connection
    identity: int
    dimension: int
    vector: bytes
    limit: int
    scope: Scope | None
    visibility: Visibility


def nearest(
    connection: driver.Connection, vector: bytes, limit: int, scope: Scope | None, visibility: Visibility
) -> VectorFind:
    """Raises EmbeddingsChangedError where the query has another dimension than the stored vectors (S0-41)."""
    active = _active(connection)
    if active is None or limit < 1:
        return VectorFind()
    identity, dimension = active
    if len(vector) != dimension * BYTES_A_NUMBER:
        raise EmbeddingsChangedError(
            f"the query has a vector of {len(vector) // BYTES_A_NUMBER} dimensions, the index one of {dimension}",
            hint="`knowledge index --reindex` makes the vectors anew; `--mode lexical` searches without them",
        )
    question = _Question(connection, identity, dimension, vector, limit, scope, visibility)
    if _are_few(question):
        return _widened(question, _compare_all(question), "exact")
    held, compare = _compare_candidates(question)
    return _widened(question, compare, "bits", min(LEAST_COMPARED + held // VECTORS_A_COMPARED, MOST_COMPARED))


def usual_method(vectors: int) -> VectorMethod:
    """How a search finds the nearest of so many vectors: whatever has embedded its query has numpy."""
    if not vectors:
        return "none"
    return "exact" if vectors <= MOST_EXACT_WARM else "bits"


def _active(connection: driver.Connection) -> tuple[int, int] | None:
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vector_identities'").fetchone() is None:
        return None
    row: tuple[int, int] | None = connection.execute(
        "SELECT id, dimension FROM vector_identities WHERE state = 'active'"
    ).fetchone()
    return row


def _are_few(question: _Question) -> bool:
    """Whether comparing every vector costs less than what is needed to choose candidates."""
    most = MOST_EXACT_WARM if "numpy" in sys.modules else MOST_EXACT_COLD
    connection, scope = question.connection, question.scope
    if scope is not None:
        if sum(last - first + 1 for first, last in scope.ranges) <= most:
            return True
        (count,) = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM json_each(?) AS span CROSS JOIN vector_links AS l ON l.identity = ?"
            " AND l.chunk BETWEEN json_extract(span.value, '$[0]') AND json_extract(span.value, '$[1]') LIMIT ?)",
            (json.dumps(scope.ranges), question.identity, most + 1),
        ).fetchone()
        if count <= most:
            return True
    (held,) = connection.execute(
        "SELECT coalesce(sum(count), 0) FROM vector_blocks WHERE identity = ?", (question.identity,)
    ).fetchone()
    return bool(held <= most)


def _widened(question: _Question, compare: Compare, method: VectorMethod, least: int = 0) -> VectorFind:
    """The first `limit` texts that stand for chunks; asked for more while too few of the vectors do."""
    wanted = max(least, COMPARED_A_RESULT * question.limit)
    while True:
        compared = compare(wanted)
        hits, texts = _with_chunks(question, compared.ranked[: LOOKED_UP_A_RESULT * question.limit])
        if texts < question.limit:
            hits, texts = _with_chunks(question, compared.ranked)
        if texts >= question.limit or compared.is_all:
            return VectorFind(hits, method)
        wanted *= WIDER


def _with_chunks(question: _Question, ranked: Ranked) -> tuple[list[VectorHit], int]:
    """Chunks of the vectors, by similarity and id; of the copies of one text `limit` at most. And of how many texts."""
    clause, parameters = lane_filter(question.scope, question.visibility, "l.chunk")
    rows = question.connection.execute(
        "SELECT embedding, chunk FROM (SELECT l.embedding, l.chunk,"  # noqa: S608
        " row_number() OVER (PARTITION BY l.embedding ORDER BY l.chunk) AS copy FROM json_each(?) AS wanted"
        f" CROSS JOIN vector_links AS l ON l.embedding = wanted.value WHERE l.identity = ?{clause}) WHERE copy <= ?",
        (str([embedding for _, embedding in ranked]), question.identity, *parameters, question.limit),
    ).fetchall()
    chunks: dict[int, list[int]] = {}
    for embedding, chunk in rows:
        chunks.setdefault(embedding, []).append(chunk)
    present = [(-similarity, chunks[embedding]) for similarity, embedding in ranked if embedding in chunks]
    present.sort()
    texts = present[: question.limit]
    return [VectorHit(chunk, -similarity) for similarity, ids in texts for chunk in ids], len(texts)


def _compare_all(question: _Question) -> Compare:
    if driver.load_vector_functions(question.connection):
        return lambda wanted: _compare_in_sql(question, wanted)
    return lambda wanted: _Compared(_compare_rows(question, _all_rows(question)), is_all=True)


def _compare_in_sql(question: _Question, wanted: int) -> _Compared:
    """Vectors without a direction have no distance, and damaged ones no length: both are left out (S2-42)."""
    condition, parameters = _chosen(question)
    rows = question.connection.execute(
        "SELECT vec_distance_cosine(e.vector, ?) AS distance, e.id FROM embeddings AS e"  # noqa: S608
        f" WHERE {condition} AND length(e.vector) = ? ORDER BY distance NULLS LAST, e.id LIMIT ?",
        (question.vector, *parameters, len(question.vector), wanted),
    ).fetchall()
    ranked = [(_bounded(1.0 - distance), embedding) for distance, embedding in rows if distance is not None]
    return _Compared(ranked, is_all=len(ranked) < wanted)


def _all_rows(question: _Question) -> list[tuple[int, bytes]]:
    condition, parameters = _chosen(question)
    return question.connection.execute(
        f"SELECT e.id, e.vector FROM embeddings AS e WHERE {condition} AND length(e.vector) = ?",  # noqa: S608
        (*parameters, len(question.vector)),
    ).fetchall()


def _chosen(question: _Question) -> tuple[str, tuple[object, ...]]:
    """A condition on embeddings (as `e`) and its parameters: of the scope's chunks, or all of the identity."""
    if question.scope is None:
        return "+e.identity = ?", (question.identity,)  # the table in its own order, by no index
    clause, parameters = lane_filter(question.scope, Visibility.everything(), "l.chunk")
    inside = f"e.id IN (SELECT l.embedding FROM vector_links AS l WHERE l.identity = ?{clause})"  # noqa: S608
    return inside, (question.identity, *parameters)


def _compare_candidates(question: _Question) -> tuple[int, Compare]:
    """How many vectors there are, and the comparison."""
    import numpy as np

    from store.vector_memory import memory

    connection, identity = question.connection, question.identity
    meta = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('store_uuid', 'commit_seq')").fetchall())
    state = (meta["store_uuid"], int(meta["commit_seq"]))
    try:
        packed = memory.packed(connection, state, identity, question.dimension)
    except ValueError as error:  # numbers of bytes that do not fit together
        raise IntegrityError(
            f"the packed vectors of the index are damaged ({error})", hint="see `knowledge verify`"
        ) from error
    scope = question.scope
    mask = memory.mask(connection, state, identity, packed, scope) if scope is not None else None
    query = np.frombuffer(question.vector, dtype="<f4")

    def compare(wanted: int) -> _Compared:
        ids = packed.candidates(query, wanted, mask)
        return _Compared(_compare_rows(question, _rows(question, ids)), is_all=len(ids) < wanted)

    return len(packed.ids), compare


def _rows(question: _Question, ids: list[int]) -> list[tuple[int, bytes]]:
    """Those of the vectors that are still there."""
    ids.sort()
    return question.connection.execute(
        "SELECT e.id, e.vector FROM json_each(?) AS wanted CROSS JOIN embeddings AS e ON e.id = wanted.value"
        " WHERE e.identity = ? AND length(e.vector) = ?",
        (str(ids), question.identity, len(question.vector)),
    ).fetchall()


def _compare_rows(question: _Question, rows: list[tuple[int, bytes]]) -> Ranked:
    """Cosines of rows of vectors, nearest first; those without a direction are left out."""
    import numpy as np

    vectors = np.frombuffer(b"".join([vector for _, vector in rows]), dtype="<f4").reshape(-1, question.dimension)
    query = np.frombuffer(question.vector, dtype="<f4")
    with np.errstate(all="ignore"):  # damaged numbers: what is made of them is left out
        similarities = (vectors @ query) / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(query))
    pairs = zip(similarities.tolist(), rows, strict=True)
    ranked = [(_bounded(similarity), row[0]) for similarity, row in pairs if math.isfinite(similarity)]
    ranked.sort(key=lambda one: (-one[0], one[1]))
    return ranked


def _bounded(similarity: float) -> float:
    return max(-1.0, min(1.0, similarity))
