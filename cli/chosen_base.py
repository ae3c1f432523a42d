"""The base that a command means: its settings, and its index open for reading."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.config import AbsentRoots, Loaded, load_with_sources, locate, process_environ, require_enabled
from app.present import not_built_message
from cli import terminal
from domain.errors import NotBuiltError, UsageError

if TYPE_CHECKING:
    from app.wiring import ReadableBase


def working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working directory is no longer there", hint="change to another one") from None


def chosen(config: Path | str | None, *, absent_roots: AbsentRoots = "note") -> Loaded:
    """The settings in effect. Raises UsageError, ConfigurationError and their kinds."""
    cwd, environ = working_directory(), process_environ()
    located = locate(cwd, config=None if config is None else Path(config), environ=environ)
    ask = terminal.ask if terminal.can_ask() else None
    loaded = load_with_sources(located, environ, cwd=cwd, ask=ask, absent_roots=absent_roots)
    require_enabled(loaded.settings)
    return loaded


def tell_notes(loaded: Loaded) -> None:
    """What is odd about the configuration, on the side."""
    later = loaded.later_note()
    for note in (*loaded.notes, *([later] if later else [])):
        terminal.tell(f"note: {note}\n")


@contextmanager
def opened(loaded: Loaded) -> "Iterator[ReadableBase]":
    """The index for reading. Raises NotBuiltError naming the places that were looked at."""
    from app.wiring import readable_base

    with naming_places(loaded), readable_base(loaded.settings) as base:
        yield base


@contextmanager
def naming_places(loaded: Loaded) -> Iterator[None]:
    """Where there is no index, the error says where one was looked for."""
    try:
        yield
    except NotBuiltError:
        from app.consistency import absence_of

        message, hint = not_built_message(loaded.located, loaded.settings, absence_of(loaded.settings))
        raise NotBuiltError(message, hint=hint) from None
