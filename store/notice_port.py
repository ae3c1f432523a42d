"""The seam of notices: what somebody was told last of each subject, and who keeps that (state.db)."""

from collections.abc import Collection, Mapping
from typing import Protocol

from msgspec import Struct


class ToldState(Struct, frozen=True):
    """The state of a subject as it was told, or seen and not worth telling."""

    state: str
    told_ns: int  # nanoseconds since the epoch


class NoticeLedgerPort(Protocol):
    """Authority over what was told. Synchronous, each call one short transaction."""

    def told_states(self) -> Mapping[str, ToldState]:
        """By subject."""
        ...

    def remember_told(self, states: Mapping[str, str], now_ns: int) -> None:
        """A subject's state, and since when; one that it has already keeps its time."""
        ...

    def forget_told(self, subjects: Collection[str]) -> None: ...
