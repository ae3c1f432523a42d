"""The two ways in which a request for embeddings fails; the difference decides what is halved (R21).

Their texts are for people: short, on one line, without the key and without a word of a document.
"""

from typing import Literal

UnreachableKind = Literal["timeout", "connection", "busy"]

REFUSING_STATUSES = (401, 403, 404)  # whoever is answered so will be again, whatever is sent
TOO_LONG_STATUSES = (400, 413, 422)


def is_redirect(status: int) -> bool:
    """Whatever it points to, if to anything: it is not gone to, and is answered to every request alike."""
    return 300 <= status < 400


class Unreachable(Exception):  # noqa: N818 - a state of the server, no fault of the request
    """Nobody answered, or "later": the same request may be sent again, never a smaller one."""

    def __init__(self, kind: UnreachableKind, words: str, retry_after_s: float | None = None) -> None:
        super().__init__(words)
        self.kind = kind
        self.words = words
        self.retry_after_s = retry_after_s  # as the server asked; None: it did not


def is_away(error: BaseException) -> bool:
    """Whether an error of ours was made of an Unreachable: the server may be back in a moment."""
    return isinstance(error.__cause__, Unreachable)


class Rejected(Exception):  # noqa: N818 - the counterpart of Unreachable
    """The request was refused, or its answer failed a check: nothing of it is used, smaller ones may succeed."""

    def __init__(self, words: str, *, status: int = 0, count: int = 0, dimension: int | None = None) -> None:
        """`count`: texts in the request. `dimension`: where the only fault is that all vectors have this other one."""
        super().__init__(words)
        self.words = words
        self.status = status  # of HTTP; 0: the answer itself was at fault
        self.dimension = dimension
        self.is_too_long = count == 1 and status in TOO_LONG_STATUSES  # perhaps: the reason is not read
        self.is_refusing = status in REFUSING_STATUSES or is_redirect(status)
