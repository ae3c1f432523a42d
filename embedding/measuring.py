"""The numbers of one request to an embeddings server."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from domain.errors import EmbeddingsChangedError
from domain.measures import EMBEDDING_BATCH, EMBEDDING_REQUESTS, EMBEDDING_SECONDS
from domain.telemetry import Telemetry
from embedding.failures import Rejected, Unreachable


@contextmanager
def measured(telemetry: Telemetry, texts: int) -> Iterator[None]:
    """Around one request: how long it takes, of how many texts, how it ends. What it raises passes."""
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
        telemetry.count(EMBEDDING_REQUESTS, 1, outcome)
        telemetry.observe(EMBEDDING_SECONDS, time.monotonic() - began_s)
        telemetry.observe(EMBEDDING_BATCH, texts)
