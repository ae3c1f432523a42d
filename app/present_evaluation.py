"""`knowledge eval` in words and as JSON."""

from collections.abc import Iterator

from app.evaluation import Evaluation, ModeScores, QueryScore
from app.evaluation_recall import RecallReport, RecallScores
from app.present import Json, count
from app.present_safe import name
from store.vector_port import VectorMethod

_COLUMNS = ("mode", "queries", "nDCG@10", "recall@50", "MRR", "p50 ms")
_RECALL_COLUMNS = ("neighbours of", "number", "recall@10", "worst", "method", "p50 ms", "exact p50 ms")
_METHODS: dict[VectorMethod, str] = {"none": "none", "exact": "all compared", "bits": "bits first"}
_DIGITS = 4


def asking_line(mode: str, queries: int) -> str:
    """What is being done, for the side."""
    what = "embedding" if mode == "embedding" else "asking"
    return f"{what} {count(queries, 'query', 'queries')}{'' if what == mode else f', {mode}'}\n"


def evaluation_text(evaluation: Evaluation) -> str:
    indexed, every = evaluation.documents_indexed, evaluation.documents
    documents = count(every, "document") if indexed == every else f"{indexed:,} of {count(every, 'document')}"
    lines = [f"collection: {name(str(evaluation.collection))} ({documents}, {count(evaluation.chunks, 'chunk')})", ""]
    lines += _table([_COLUMNS, *map(_row, evaluation.modes)])
    notes = list(_notes(evaluation))
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _row(scores: ModeScores) -> tuple[str, ...]:
    figures = (f"{figure:.{_DIGITS}f}" for figure in (scores.ndcg_10, scores.recall_50, scores.mrr))
    return (scores.mode, f"{len(scores.queries):,}", *figures, f"{scores.p50_ms:.2f}")


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells])


def _notes(evaluation: Evaluation) -> Iterator[str]:
    if left_out := evaluation.documents - evaluation.documents_indexed:
        yield f"note: not indexed, so never found: {count(left_out, 'document')} (no text, or far too large)"
    if left_out := evaluation.queries_without_relevant:
        yield f"note: left out: {count(left_out, 'query', 'queries')} without a relevant document"
    if left_out := evaluation.judgements_of_unknown:
        yield f"note: left out: {count(left_out, 'judgement')} of a query or a document that is not there"


def evaluation_json(evaluation: Evaluation) -> Json:
    return {
        "status": "ok",
        "collection": str(evaluation.collection),
        "documents": evaluation.documents,
        "documents_indexed": evaluation.documents_indexed,
        "chunks": evaluation.chunks,
        "queries_without_relevant": evaluation.queries_without_relevant,
        "judgements_of_unknown": evaluation.judgements_of_unknown,
        "modes": [_mode_json(scores) for scores in evaluation.modes],
    }


def _mode_json(scores: ModeScores) -> Json:
    return {
        "mode": scores.mode,
        "queries": len(scores.queries),
        "ndcg_10": scores.ndcg_10,
        "recall_50": scores.recall_50,
        "mrr": scores.mrr,
        "p50_ms": round(scores.p50_ms, 3),
        "per_query": [_query_json(query) for query in scores.queries],
    }


def _query_json(query: QueryScore) -> Json:
    return {
        "id": query.id,
        "ndcg_10": query.ndcg_10,
        "recall_50": query.recall_50,
        "reciprocal_rank": query.reciprocal_rank,
        "milliseconds": round(query.milliseconds, 3),
        "found": list(query.found),
    }


def recall_text(report: RecallReport) -> str:
    lines = [f"{count(report.vectors, 'vector')} of {report.dimension} dimensions, model {name(report.model)}", ""]
    lines += _table([_RECALL_COLUMNS, *map(_recall_row, report.scores)])
    if all(scores.method == "exact" for scores in report.scores):
        lines += ["", "note: the index is so small that a search compares every vector: nothing is approximate"]
    return "\n".join(lines) + "\n"


def _recall_row(scores: RecallScores) -> tuple[str, ...]:
    return (
        scores.source,
        f"{len(scores.recalls):,}",
        f"{scores.recall_10:.{_DIGITS}f}",
        f"{min(scores.recalls):.1f}",
        _METHODS[scores.method],
        f"{scores.p50_ms:.2f}",
        f"{scores.exact_p50_ms:.2f}",
    )


def recall_json(report: RecallReport) -> Json:
    return {
        "status": "ok",
        "model": report.model,
        "dimension": report.dimension,
        "vectors": report.vectors,
        "sources": [
            {
                "source": scores.source,
                "number": len(scores.recalls),
                "recall_10": scores.recall_10,
                "worst": min(scores.recalls),
                "method": scores.method,
                "p50_ms": round(scores.p50_ms, 3),
                "exact_p50_ms": round(scores.exact_p50_ms, 3),
            }
            for scores in report.scores
        ],
    }
