"""The traces of this process: whether anybody wants them, and the spans of what is asked of an index (S0-84).

They are wanted where the standard variables of OpenTelemetry say so; without them nothing of it is imported.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from app.config import process_environ
from domain.status import Tier, TierKind
from domain.tracing import UNTRACED, Span, Tracer

if TYPE_CHECKING:
    from retrieval.answer import Mode, SearchAnswer
    from retrieval.match_answer import MatchAnswer

EXPORTERS_VARIABLE = "OTEL_TRACES_EXPORTER"
ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
OFF_VARIABLE = "OTEL_SDK_DISABLED"

_tracers: list[Tracer] = []  # that of the process, as soon as it was asked for


def asks_for_traces(environ: Mapping[str, str]) -> bool:
    """Whether an exporter is named, or where a collector listens; and tracing is not switched off."""
    if environ.get(OFF_VARIABLE, "").strip().lower() == "true":
        return False
    if exporters := environ.get(EXPORTERS_VARIABLE, "").strip().lower():
        return exporters != "none"
    return any(environ.get(name, "").strip() for name in ENDPOINT_VARIABLES)


def process_tracer() -> Tracer:
    """One for the life of the process. Raises nothing: who cannot be traced is answered all the same."""
    if not _tracers:
        _make(process_environ())
    return _tracers[0]


def use_tracer(tracer: Tracer | None) -> None:
    """In the place of what the environment asks for; None: what it asks for, looked at anew."""
    _tracers[:] = [] if tracer is None else [tracer]


def end_tracing() -> None:
    """For a process that is about to end without its usual clearing up: send what was traced, and wait a little."""
    if _tracers and _tracers[0] is not UNTRACED:
        from app.tracing_export import send_last

        send_last()


def continued_trace(headers: Mapping[str, str]) -> AbstractContextManager[object]:
    """While it is open, spans belong to the trace that the caller of a request has begun (W3C traceparent)."""
    if "traceparent" not in headers or process_tracer() is UNTRACED:
        return UNTRACED
    from app.tracing_export import within_remote_trace

    return within_remote_trace(headers["traceparent"], headers.get("tracestate", ""))


def traced_search(find: "Callable[[], SearchAnswer]", mode: "Mode", *, with_meaning: bool) -> "SearchAnswer":
    """A search inside of its span. `with_meaning`: whether embeddings are configured."""
    with process_tracer().span("knowledge.search") as span:
        configured = TierKind.HYBRID if with_meaning else TierKind.LEXICAL
        span.tell({"knowledge.mode": mode, "knowledge.tier.configured": configured.value})
        found = find()
        span.tell({"knowledge.hits": len(found.results), "knowledge.tier.effective": _effective(found.tier).value})
        span.tell({"knowledge.degraded": found.tier.kind is TierKind.DEGRADED})
        if found.tier.cause is not None:
            span.tell({"knowledge.degraded.reason": found.tier.cause.value})
        return found


def enumeration_span() -> AbstractContextManager[Span]:
    """Around an enumeration, which knows no tier; to be told of its end by `tell_enumerated`."""
    return process_tracer().span("knowledge.enumerate")


def tell_enumerated(span: Span, answer: "MatchAnswer", returned: int) -> None:
    """`returned`: documents that are handed over, of those that match."""
    span.tell(
        {"knowledge.status": answer.status.value, "knowledge.matched": answer.matched, "knowledge.returned": returned}
    )


def _effective(tier: Tier) -> TierKind:
    """What ranked: words, where meaning was not wanted this time or not to be had."""
    return tier.kind if tier.kind in (TierKind.HYBRID, TierKind.VECTOR) else TierKind.LEXICAL


def _make(environ: Mapping[str, str]) -> None:
    if not asks_for_traces(environ):
        _tracers.append(UNTRACED)
        return
    from app.tracing_export import MAKING, exporting_tracer

    with MAKING:
        if not _tracers:
            _tracers.append(exporting_tracer(environ))
