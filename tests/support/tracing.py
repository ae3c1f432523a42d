"""A tracer that keeps what it was told, and puts itself in the place of the process's."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from opentelemetry.trace import get_current_span

from app.tracing import use_tracer
from domain.tracing import Attribute, SpanName


@dataclass(eq=False)
class KeptSpan:
    name: SpanName
    parent: "KeptSpan | None"
    remote_trace: int  # of the trace that the caller has begun; 0: of none
    attributes: dict[str, Attribute] = field(default_factory=dict)
    error: BaseException | None = None
    is_open: bool = True

    def tell(self, attributes: Mapping[str, Attribute]) -> None:
        assert self.is_open, "told of its end behind it"
        self.attributes.update(attributes)


class KeepingTracer:
    """domain.tracing.Tracer."""

    def __init__(self) -> None:
        self.spans: list[KeptSpan] = []  # in the order of their beginnings
        self._current: ContextVar[KeptSpan | None] = ContextVar("current", default=None)

    @contextmanager
    def span(self, name: SpanName) -> Iterator[KeptSpan]:
        kept = KeptSpan(name, self._current.get(), get_current_span().get_span_context().trace_id)
        self.spans.append(kept)
        token = self._current.set(kept)
        try:
            yield kept
        except BaseException as error:
            kept.error = error
            raise
        finally:
            kept.is_open = False
            self._current.reset(token)

    @property
    def names(self) -> list[SpanName]:
        return [span.name for span in self.spans]

    def taken(self) -> list[KeptSpan]:
        """What there is by now, all of it ended; from here on it begins anew."""
        taken, self.spans = self.spans, []
        assert not any(span.is_open for span in taken)
        return taken


@contextmanager
def kept_traces() -> Iterator[KeepingTracer]:
    tracer = KeepingTracer()
    use_tracer(tracer)
    try:
        yield tracer
    finally:
        use_tracer(None)
