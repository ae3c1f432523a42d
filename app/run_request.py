"""What a run is asked for, as state.db keeps it beside a run that a service is to begin."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, get_args

from msgspec import Struct

from app.config_schema import MAX_REQUESTS_PER_MINUTE, MAX_WORKERS
from domain.errors import UsageError
from scheduler.windows import parse_window
from scheduler.zones import zone_of
from store.run_port import RunKind

_DIGEST = re.compile(r"[0-9a-f]{0,128}")
_HINT = "it was written by another version of this program, or by hand: cancel the run and ask for it again"


class RunRequest(Struct, frozen=True):
    """Everything that whoever begins a run has to know of it, beside its settings."""

    kind: RunKind = "index"
    paths: tuple[str, ...] = ()  # absolute; () = the roots
    roots: tuple[str, ...] = ()  # names; () = all of them
    reindex: bool = False
    re_embed: bool = False  # with `reindex`: no vector is reused
    rehash: bool = False
    deep: bool = False  # with the kind `verify`: every text is read, too
    allow_mass_delete: bool = False
    requests_per_minute: int = 0  # to the embeddings server; 0: as configured
    workers: int = 0  # that may have files of it in hand at a time; 0: as many as there are
    window: str = ""  # "HH:MM-HH:MM"; "": any time
    timezone: str = "UTC"  # of the window
    approve: int = 0  # the run whose held removals are applied; 0: none
    digest: str = ""  # of the list that was approved

    def to_json(self) -> dict[str, object]:
        """Every field by its name; lists for tuples."""
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> "RunRequest":
        """What `to_json` gave; a key that is not there has its default. Raises UsageError for a key that is not
        known, and for a value of another type or out of its bounds."""
        known = {name: getattr(_DEFAULT, name) for name in cls.__struct_fields__}
        taken: dict[str, Any] = {}
        for key, given in value.items():
            if key not in known:
                raise _unfit(f"the key {str(key)[:80]!r} is not known")
            taken[key] = _as_type_of(known[key], given, key)
        request = cls(**taken)
        _require_bounds(request)
        return request


_DEFAULT = RunRequest()


def _as_type_of(default: object, given: object, key: str) -> object:
    """The value where it is of the default's type: a boolean is no number, a list holds texts."""
    if isinstance(default, tuple):
        if isinstance(given, list | tuple) and all(isinstance(item, str) for item in given):
            return tuple(given)
        raise _unfit(f"{key} must be a list of texts")
    if type(given) is not type(default):
        raise _unfit(f"{key} must be of the type {type(default).__name__}, not {type(given).__name__}")
    return given


def _require_bounds(request: RunRequest) -> None:
    if request.kind not in get_args(RunKind):
        raise _unfit(f"kind must be one of {', '.join(get_args(RunKind))}, not {request.kind[:80]!r}")
    for path in request.paths:
        if not PurePath(path).is_absolute() or "\0" in path:
            raise _unfit(f"paths must be absolute, not {path[:200]!r}")
    for key, number, at_most in (
        ("requests_per_minute", request.requests_per_minute, MAX_REQUESTS_PER_MINUTE),
        ("workers", request.workers, MAX_WORKERS),
        ("approve", request.approve, 2**63 - 1),
    ):
        if not 0 <= number <= at_most:
            raise _unfit(f"{key} must be from 0 to {at_most}, not {number}")
    _require_window(request)
    if not _DIGEST.fullmatch(request.digest):
        raise _unfit("digest must be hexadecimal")


def _require_window(request: RunRequest) -> None:
    try:
        zone_of(request.timezone)
        if request.window:
            parse_window(request.window)
    except ValueError as error:
        what = f"{request.window[:80]!r} ({request.timezone[:80]!r})"
        raise _unfit(f"the window {what} {error}") from None


def _unfit(words: str) -> UsageError:
    return UsageError(f"the request of a run cannot be read: {words}", hint=_HINT)
