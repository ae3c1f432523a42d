"""What a failed exchange is called, for people. Nothing is ever decided by these words (S0-39)."""

import json
import socket
import ssl
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

EXCERPT_CHARS = 200
_RUN_CHARS = 12  # an excerpt that repeats twice as many characters of a text always holds a whole aligned run
_KEY_RUN_CHARS = 6
_NO_ADDRESS = "to what is no address"


def connection_words(error: BaseException) -> str:
    """Why there was no connection or why it ended; found in the kinds of the causes, not in their texts."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its certificate is not valid here"
        if isinstance(cause, ssl.SSLError):
            return "no TLS connection"
        if isinstance(cause, socket.gaierror):
            return "its name is not known"
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        if isinstance(cause, ConnectionResetError | BrokenPipeError):
            return "connection reset"
        if isinstance(cause, OSError) and cause.errno is not None:
            return f"no connection ({cause.strerror})"
    return "the connection ended without an answer"


def excerpt(body: bytes, texts: Sequence[str], key: str) -> str:
    """The beginning of an error body, printable and on one line; "" where it repeats what was sent, or the key."""
    shown = printable(body.decode("utf-8", "replace").replace("\ufffd", " "))[:EXCERPT_CHARS]
    if key and _shares_a_run(shown, key, _KEY_RUN_CHARS):
        return ""
    if any(_repeats(shown, text) for text in texts):
        return ""
    return shown


def redirect_words(location: str | None, texts: Sequence[str], key: str) -> str:
    """Where a redirect points to: scheme, host and path, without what may be a secret; or that it tells none."""
    if not location:
        return "it does not say where to"
    try:
        parts = urlsplit(location)
        host = f"{parts.hostname}:{parts.port}" if parts.port is not None else parts.hostname or ""
    except ValueError:
        return _NO_ADDRESS
    if parts.scheme and not host:
        return _NO_ADDRESS
    address = f"{parts.scheme}:" if parts.scheme else ""
    address += f"//{host}{parts.path}" if host else parts.path
    shown = excerpt(address.encode("utf-8", "replace"), texts, key)
    return f"to {shown}" if shown else _NO_ADDRESS


def printable(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _repeats(shown: str, text: str) -> bool:
    """Whether something of the text is in there: as it is, or as JSON spells it."""
    flat = " ".join(text.split())
    runs = [shown[start : start + _RUN_CHARS] for start in range(0, len(shown) - _RUN_CHARS + 1, _RUN_CHARS)]
    for spelt in (flat.lower(), json.dumps(flat)[1:-1].lower()):
        if len(spelt) < 2 * _RUN_CHARS:
            if len(spelt) > 3 and spelt in shown.lower():
                return True
        elif any(run.lower() in spelt for run in runs):
            return True
    return False


def _shares_a_run(shown: str, key: str, chars: int) -> bool:
    chars = min(chars, len(key))
    return any(key[start : start + chars] in shown for start in range(len(key) - chars + 1))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inner or error.__cause__ or error.__context__
