"""Rules for values of one kind: sizes, durations, names of variables. No text here ever holds a secret."""

import re
from collections.abc import Iterator

from app.config_origins import Problem
from domain.units import parse_duration_s, parse_size_bytes

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN_BEGINNINGS = (
    "sk-",
    "sk_",
    "pk-",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "hf_",
    "gsk_",
    "xox",
    "aiza",
    "eyj",
)
_MIN_SECRET_CHARS = 20


def looks_like_a_secret(name: str) -> bool:
    """Whether a value that should be the NAME of a variable is rather what such a variable holds."""
    return not _VARIABLE_NAME.fullmatch(name) or _is_like_a_key(name)


def _is_like_a_key(text: str) -> bool:
    if text.lower().startswith(_TOKEN_BEGINNINGS):
        return True
    digits = sum(char.isdigit() for char in text)
    mixed = text.upper() != text and text.lower() != text and digits > 1
    return len(text) >= _MIN_SECRET_CHARS and (mixed or digits * 4 > len(text))


def variable_name_problems(name: str, key: str) -> Iterator[Problem]:
    """The value is never echoed: it may be the secret itself."""
    if name and looks_like_a_secret(name):
        text = "must be the NAME of an environment variable; it looks like a secret (not shown here)"
        hint = "Put the secret in a variable and its name here; replace a secret that was written into a file."
        yield Problem(key, text, hint)


def secret_file_problems(name: str, key: str) -> Iterator[Problem]:
    """Of what should be the path of a file with a secret. The value is never echoed: it may be the secret itself."""
    if name and not set(name) & set("/\\.") and _is_like_a_key(name):
        text = "must be the path of a file; it looks like a secret (not shown here)"
        hint = "Put the secret in a file and its path here; replace a secret that was written into a configuration."
        yield Problem(key, text, hint)


def size_problems(
    value: str | int | float, key: str, *, at_least: int, at_most: int | None = None
) -> Iterator[Problem]:
    """Limits in bytes."""
    try:
        size = parse_size_bytes(value)
    except ValueError as error:
        yield Problem(key, str(error))
        return
    if size < at_least:
        yield Problem(key, "must be at least 1 byte" if at_least == 1 else f"must be at least {at_least:,} bytes")
    elif at_most is not None and size > at_most:
        yield Problem(key, f"must be at most {at_most:,} bytes")


def duration_problems(
    value: str | int | float, key: str, *, zero: bool = True, at_most_s: float | None = None
) -> Iterator[Problem]:
    """`zero`: whether no time at all makes sense."""
    try:
        seconds = parse_duration_s(value)
    except ValueError as error:
        yield Problem(key, str(error))
        return
    if seconds == 0 and not zero:
        yield Problem(key, "must be more than nothing")
    elif at_most_s is not None and seconds > at_most_s:
        yield Problem(key, f"must be at most {at_most_s / 3600:g} h")


def size_or_zero(value: str | int | float) -> int:
    """0 for a size that is told as a problem elsewhere."""
    try:
        return parse_size_bytes(value)
    except ValueError:
        return 0


def duration_or_zero(value: str | int | float) -> float:
    """Seconds; 0.0 for a duration that is told as a problem elsewhere."""
    try:
        return parse_duration_s(value)
    except ValueError:
        return 0.0
