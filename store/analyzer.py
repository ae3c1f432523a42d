"""What the full-text tables make of a word: FTS5 itself is asked, through a scratch table in memory.

Splitting, folding and stemming again in Python would drift from unicode61 and porter; a scratch table with
the same tokenizer cannot (https://sqlite.org/fts5.html, sections 4.3 and 6).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from threading import Lock

from store import driver

STEMMED = "porter unicode61"  # the tokenizer of chunks_fts
FOLDED = "unicode61"  # and of chunks_fts_exact
MAX_REMEMBERED = 50_000  # words; a few MB
MAX_WORD_CHARS = 200  # of a longer one only the beginning is looked at

_INSERT = "INSERT INTO scratch (rowid, x) VALUES (?, ?)"
_READ = "SELECT doc, term FROM scratch_terms ORDER BY doc, offset"


class Analyzer:
    """Asks a scratch table; shared by the threads of a process, one at a time."""

    def __init__(self, tokenizer: str) -> None:
        self._lock = Lock()
        self._known: dict[str, tuple[str, ...]] = {}
        self._connection = driver.connect(":memory:", uri=False, timeout_s=0.0)
        self._connection.execute(f"CREATE VIRTUAL TABLE scratch USING fts5(x, content='', tokenize='{tokenizer}')")
        self._connection.execute("CREATE VIRTUAL TABLE scratch_terms USING fts5vocab('scratch', 'instance')")

    def tokens(self, words: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The tokens of each word, in order; () where the tokenizer sees nothing but separators."""
        with self._lock:
            unknown = [word for word in dict.fromkeys(words) if word not in self._known]
            if unknown:
                if len(self._known) + len(unknown) > MAX_REMEMBERED:
                    self._known.clear()
                    unknown = list(dict.fromkeys(words))
                self._known.update(self._ask(unknown))
            return {word: self._known[word] for word in words}

    def _ask(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        rows = [(number, word[:MAX_WORD_CHARS]) for number, word in enumerate(words)]
        found: list[list[str]] = [[] for _ in words]
        self._connection.execute("BEGIN")
        try:
            self._connection.executemany(_INSERT, rows)
            for number, term in self._connection.execute(_READ).fetchall():
                found[number].append(term)
        finally:
            self._connection.execute("ROLLBACK")
        return dict(zip(words, map(tuple, found), strict=True))


@cache
def analyzer(tokenizer: str) -> Analyzer:
    """The process's analyzer for a tokenizer, made at its first use."""
    return Analyzer(tokenizer)
