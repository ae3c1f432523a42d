"""The modes of a search as people write them (R5)."""

from typing import get_args

from domain.errors import UsageError
from retrieval.answer import LEAST_SIMILARITY, Mode

ALIASES: dict[str, Mode] = {"bm25": "lexical", "keyword": "lexical", "semantic": "vector"}
_MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)} | ALIASES


def parse_mode(text: str) -> Mode:
    """Raises UsageError naming the modes."""
    mode = _MODES.get(text.strip().lower())
    if mode is None:
        raise UsageError(f"there is no mode {text[:80]!r}", hint=f"there are: {', '.join(_MODES)}")
    return mode


def parse_similarity(text: str) -> float:
    """A cosine, from -1 to 1. Raises UsageError."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not LEAST_SIMILARITY <= value <= 1.0:
        raise UsageError(
            f"a similarity is a number from -1 to 1, not {text[:80]!r}",
            hint="1 is the same text, 0 has nothing to do with it",
        )
    return value
