"""The streams of this process: the one place that writes to them, and what is known of the terminal behind."""

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_LINK, _LINK_ENDS = "\x1b]8;;", "\x1b\\"
_LINKING_KINDS = ("xterm-kitty", "xterm-ghostty", "foot", "alacritty", "wezterm")
_LINKING_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"})
_LINKING_VARIABLES = ("KONSOLE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID")
_VTE_WITH_LINKS = 5000
_WITHOUT_LINKS = ("screen", "tmux", "linux")  # whatever the terminal around them has


def prepare() -> None:
    """What an encoding cannot hold (LANG=C) is escaped; what is closed swallows all. No output fails for either."""
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def write(text: str) -> None:
    sys.stdout.write(text)


def write_json(text: str) -> None:
    """JSON, or a piece of it; where the stream's encoding is not UTF-8, in ASCII with JSON's own escapes."""
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8" and not text.isascii():
        import json

        text = "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text)
    sys.stdout.write(text)


def write_exactly(text: str) -> None:
    """The text in UTF-8 byte for byte: no encoding of the terminal's, no translation of newlines."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))


def tell(text: str) -> None:
    """What is no result: progress, notes, errors. Where nobody takes it, the command goes on, and ends with its own
    status."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def tell_all(lines: Iterable[str]) -> None:
    """Lines of notes beside a bare result, which is for a machine."""
    for line in lines:
        tell(f"{line}\n")


def flush() -> None:
    sys.stdout.flush()
    with suppress(OSError):
        sys.stderr.flush()


def close_quietly() -> None:
    """The last of a command: where nobody takes what is left to write, nothing more is said about it."""
    for stream in (sys.stdout, sys.stderr):
        if _is_broken(stream):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _is_broken(stream: TextIO) -> bool:
    try:
        stream.flush()
    except (OSError, ValueError):
        return True
    return False


def writes_to_terminal() -> bool:
    return sys.stdout.isatty()


def tells_a_terminal() -> bool:
    return sys.stderr.isatty()


def width() -> int:
    """Columns of the terminal behind standard error; 80 where nobody knows."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> bool:
    """A question with yes or no; anything but a yes is a no."""
    tell(f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def may_style(environ: Mapping[str, str]) -> bool:
    """Whether escape sequences may be written (https://no-color.org)."""
    return writes_to_terminal() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def may_link(environ: Mapping[str, str]) -> bool:
    """Whether links (OSC 8) may be written: where escape sequences may, to a terminal that is known to have links.

    FORCE_HYPERLINK is what other programs go by as well: 0 for never, anything else for a terminal that is not known.
    """
    if not may_style(environ):
        return False
    if forced := environ.get("FORCE_HYPERLINK"):
        return forced != "0"
    kind = environ.get("TERM", "")
    if kind.startswith(_WITHOUT_LINKS):
        return False
    return (
        kind.startswith(_LINKING_KINDS)
        or environ.get("TERM_PROGRAM") in _LINKING_PROGRAMS
        or _number(environ.get("VTE_VERSION")) >= _VTE_WITH_LINKS
        or any(environ.get(name) for name in _LINKING_VARIABLES)
    )


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0


def may_redraw(environ: Mapping[str, str]) -> bool:
    """Whether a line on standard error can be drawn over."""
    return tells_a_terminal() and environ.get("TERM") != "dumb"


def linked(text: str, path: Path) -> str:
    """The text as a link to a file of this machine; nothing in the path can end the address, or act on a terminal."""
    import socket
    from urllib.parse import quote

    address = f"file://{quote(socket.gethostname(), safe='')}{quote(os.fsencode(path))}"
    return f"{_LINK}{address}{_LINK_ENDS}{text}{_LINK}{_LINK_ENDS}"


def bold(text: str) -> str:
    return f"{_BOLD}{text}{_PLAIN}"


def unstyled(text: str) -> str:
    return text
