"""Durations and sizes as people write them: `30s`, `1h30m`, `512KiB`, `1MB`, or a plain number."""

import math
import re

_DURATION_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE_UNITS_BYTES = {
    "b": 1,
    "kb": 1000,
    "kib": 1024,
    "mb": 1000**2,
    "mib": 1024**2,
    "gb": 1000**3,
    "gib": 1024**3,
}
_MAX_WRITTEN_CHARS = 40  # longer than any sensible value; keeps the patterns below cheap
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_DURATION_PART = re.compile(rf"({_NUMBER})\s*(ms|min|[smhd])\s*")
_SIZE = re.compile(rf"({_NUMBER})\s*([A-Za-z]+)")

DURATION_WORDS = "a duration such as 30s, 10m, 1h30m or plain seconds"
SIZE_WORDS = "a size such as 512KiB, 1MB or plain bytes"


def parse_duration_s(value: str | int | float) -> float:
    """Seconds; plain numbers are seconds. Raises ValueError: not a duration, negative or not finite."""
    seconds = _written_duration_s(value.strip()) if isinstance(value, str) else _plain_number(value, DURATION_WORDS)
    if seconds < 0:
        raise ValueError(f"must not be negative: {DURATION_WORDS}")
    return seconds


def parse_size_bytes(value: str | int | float) -> int:
    """Whole bytes; KB is 1000, KiB 1024. Raises ValueError: not a size, negative or not whole."""
    size = _written_size_bytes(value.strip()) if isinstance(value, str) else _plain_number(value, SIZE_WORDS)
    if size < 0:
        raise ValueError(f"must not be negative: {SIZE_WORDS}")
    if size != int(size):
        raise ValueError("must be a whole number of bytes")
    return int(size)


def _plain_number(value: str | int | float, words: str) -> float:
    """The value as a finite number (text too); a boolean is none although Python counts it as one."""
    if isinstance(value, bool):
        raise ValueError(f"must be {words}")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"must be {words}") from None
    if not math.isfinite(number):
        raise ValueError(f"must be {words}")
    return number


def _written_duration_s(text: str) -> float:
    if not text or len(text) > _MAX_WRITTEN_CHARS:
        raise ValueError(f"must be {DURATION_WORDS}")
    seconds, position = 0.0, 0
    while part := _DURATION_PART.match(text, position):
        seconds += float(part[1]) * _DURATION_UNITS_S[part[2]]
        position = part.end()
    if position == 0 or position < len(text):
        negative = text.startswith("-")
        return -1.0 if negative and _DURATION_PART.match(text, 1) else _plain_number(text, DURATION_WORDS)
    return seconds


def _written_size_bytes(text: str) -> float:
    if not text or len(text) > _MAX_WRITTEN_CHARS:
        raise ValueError(f"must be {SIZE_WORDS}")
    written = _SIZE.fullmatch(text.removeprefix("-"))
    if written is None:
        return _plain_number(text, SIZE_WORDS)
    unit = _SIZE_UNITS_BYTES.get(written[2].lower())
    if unit is None:
        raise ValueError(f"has an unknown unit: must be {SIZE_WORDS}")
    size = float(written[1]) * unit
    return -size if text.startswith("-") else size
