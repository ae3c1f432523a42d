"""The port of the traces: which spans there are, and who takes them. By default nobody does, and nothing is kept.

There are three spans and no more (S0-84). What they are told is numbers and words out of closed sets: never a text, a
query, a path, an address or what an error says.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, Protocol

SpanName = Literal["knowledge.search", "knowledge.enumerate", "knowledge.embed_batch"]
Attribute = str | int | bool


class Span(Protocol):
    """Something that goes on. Its beginning and end are taken by who opens it."""

    def tell(self, attributes: Mapping[str, Attribute]) -> None:
        """What is known of it by now; names begin with `knowledge.`. Raises nothing, waits for nothing."""
        ...


class Tracer(Protocol):
    """Opens spans, in any thread or task; one that is opened inside of another belongs to it."""

    def span(self, name: SpanName) -> AbstractContextManager[Span]:
        """Around what is traced. What is raised inside passes, and marks the span as failed, without its words."""
        ...


class Untraced:
    """Nobody takes anything: one object is the tracer, its spans, and what is around them."""

    def span(self, name: SpanName) -> "Untraced":
        return self

    def tell(self, attributes: Mapping[str, Attribute]) -> None:
        return

    def __enter__(self) -> "Untraced":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


UNTRACED = Untraced()
