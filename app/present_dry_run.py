"""What `knowledge index --dry-run` has counted, in words."""

from collections.abc import Iterator

from app.discovery import Located
from app.dry_run import Forecast
from app.present import Json, count, duration, index_line, size, tier_line
from app.present_failures import not_tried_json, not_tried_lines
from app.present_reasons import reason_words
from app.present_safe import name, one_line
from app.tiers import base_tier
from domain.settings import EmbeddingsSettings, Settings


def dry_run_text(forecast: Forecast, located: Located, settings: Settings) -> str:
    return "\n".join(_lines(forecast, located, settings)) + "\n"


def _lines(forecast: Forecast, located: Located, settings: Settings) -> Iterator[str]:
    yield tier_line(base_tier(settings, forecast.vectors, has_documents=forecast.has_documents))
    yield f"would index {count(forecast.met, 'file')} (nothing is written now)"
    for root in forecast.roots:
        yield f"  root {name(root.name)}: {name(root.path)}"
    check = "would cut anew" if forecast.is_reindex else "would check"
    rows = (
        ("would add", forecast.add),
        (check, forecast.check),
        ("unchanged", forecast.unchanged),
        ("would skip", forecast.skip),
        ("would remove", forecast.remove),
    )
    yield from (f"  {label:<14} {number:>11,}" for label, number in rows)
    for reason, (number, first) in sorted(forecast.skips.items()):
        told = name(first) if number == 1 else f"{number:,}, the first is {name(first)}"
        yield f"  skip, {reason_words(reason)}: {told}"
    yield from not_tried_lines(forecast.not_tried, forecast.now_ns)
    for key, said in forecast.problems:
        yield f"  cannot be read: {name(key)} ({one_line(said, 200)})"
    if forecast.extensions:
        told = ", ".join(f"{name(ext)} {number:,}" for ext, number in forecast.extensions.items())
        yield f"to be read, by extension: {told}"
    yield (
        f"about {size(forecast.text_bytes)} of text, {count(forecast.chunks, 'chunk')},"
        f" {size(forecast.index_bytes)} of index, {duration(forecast.minutes * 60)}"
        f"{' without the vectors' if settings.embeddings is not None else ''}"
    )
    if settings.embeddings is not None:
        yield from _embedding_lines(forecast, settings.embeddings)
    short = " - not enough" if forecast.index_bytes > forecast.free_bytes else ""
    yield f"free disk there: {size(forecast.free_bytes)}{short}"
    yield index_line(located, settings)


def _embedding_lines(forecast: Forecast, embeddings: EmbeddingsSettings) -> Iterator[str]:
    """How long a model takes is not known before it is asked, and is not guessed."""
    from embedding.build import host_shown
    from retrieval.query_vector import WantedVectors

    calls = count(embedding_calls(forecast, embeddings), "call")
    yield (
        f"to embed: up to {count(forecast.chunks, 'text')} in about {calls} to {name(host_shown(embeddings))},"
        f" model {name(embeddings.model)}; what has a vector is not sent again"
    )
    active = forecast.vectors.active
    is_another = active is None or bool(WantedVectors.of(embeddings).difference(active))
    if forecast.has_documents and is_another and not forecast.is_reindex:
        yield "this run would be refused: the index does not hold vectors like these; add --reindex"


def embedding_calls(forecast: Forecast, embeddings: EmbeddingsSettings) -> int:
    """Requests with texts that a run would make, at most (S1-39)."""
    return -(-forecast.chunks // embeddings.batch)


def dry_run_json(forecast: Forecast, located: Located, settings: Settings) -> Json:
    return {
        "tier": tier_line(base_tier(settings, forecast.vectors, has_documents=forecast.has_documents)),
        "status": "planned",
        "dry_run": True,
        "home": str(forecast.home),
        "base": located.words(),
        "identity": settings.identity,
        "reindex": forecast.is_reindex,
        "files": forecast.met,
        "counts": {
            "add": forecast.add,
            "check": forecast.check,
            "unchanged": forecast.unchanged,
            "skip": forecast.skip,
            "remove": forecast.remove,
        },
        "roots": [
            {
                "name": root.name,
                "path": root.path,
                "add": root.add,
                "check": root.check,
                "unchanged": root.unchanged,
                "skip": root.skip,
                "remove": root.remove,
            }
            for root in forecast.roots
        ],
        "skipped": [
            {"reason": reason, "count": number, "first": first}
            for reason, (number, first) in sorted(forecast.skips.items())
        ],
        "not_tried": not_tried_json(forecast.not_tried),
        "problems": [{"path": key, "detail": said} for key, said in forecast.problems],
        "extensions": forecast.extensions,
        "text_bytes": forecast.text_bytes,
        "estimated_chunks": forecast.chunks,
        "estimated_index_bytes": forecast.index_bytes,
        "estimated_minutes": round(forecast.minutes, 3),
        "estimated_embedding_calls": (
            None if settings.embeddings is None else embedding_calls(forecast, settings.embeddings)
        ),
        "free_bytes": forecast.free_bytes,
    }
