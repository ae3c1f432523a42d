"""The numbers and the span of one request to an embeddings server."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from domain.errors import EmbeddingsChangedError
from domain.measures import EMBEDDING_BATCH, EMBEDDING_REQUESTS, EMBEDDING_SECONDS
from domain.telemetry import Telemetry
from domain.tracing import UNTRACED, Span, Tracer
from embedding.failures import Rejected, Unreachable


@contextmanager
def measured(telemetry: Telemetry, texts: int, tracer: Tracer = UNTRACED, attempt: int = 1) -> Iterator[None]:
    """Around one request: how long it takes, of how many texts, how it ends. `attempt`: how often these texts were
    sent, this time among them. What it raises passes."""
    with tracer.span("knowledge.embed_batch") as span:
        span.tell({"knowledge.texts": texts, "knowledge.attempt": attempt})
        with _counted(telemetry, texts, span):
            yield


@contextmanager
def _counted(telemetry: Telemetry, texts: int, span: Span) -> Iterator[None]:
    began_s = time.monotonic()
    outcome = "cancelled"
    try:
        yield
        outcome = "ok"
    except Unreachable as failure:
        outcome = failure.kind
        raise
    except Rejected:
        outcome = "rejected"
        raise
    except EmbeddingsChangedError:
        outcome = "changed"
        raise
    finally:
        span.tell({"knowledge.outcome": outcome})
        telemetry.count(EMBEDDING_REQUESTS, 1, outcome)
        telemetry.observe(EMBEDDING_SECONDS, time.monotonic() - began_s)
        telemetry.observe(EMBEDDING_BATCH, texts)
