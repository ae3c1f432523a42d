"""The words of the index: which there are, in how many chunks each stands, and what the stemmer makes of it.

Read page by page and never held whole: what is kept is what is shown.
"""

import heapq
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from typing import Literal, NamedTuple

from domain.errors import UsageError
from domain.status import SearchStatus
from retrieval.word_pattern import LimitedPattern
from store.port import StoreIdentity, Visibility, VocabularySnapshot

DEFAULT_LIMIT = 1_000
MOST_WITH_FORMS = 20  # so many words are also counted in all of their forms; that reads the stems' postings
LONGEST_STEMMED_BYTES = 64  # FTS5's porter leaves a longer word as it is (https://sqlite.org/fts5.html, 4.3.3)

Field = Literal["body", "heading", "names"]
Sort = Literal["count", "word"]
Counted = tuple[str, int]

_COLUMNS: dict[str, str] = {"": "", "body": "body", "heading": "heading_path", "names": "names"}


class WordsRequest(NamedTuple):
    """Which words. `pattern` is looked for anywhere in a word, blind to case; "" is in every one."""

    pattern: str = ""
    limit: int = DEFAULT_LIMIT
    min_chunks: int = 0
    max_chunks: int | None = None
    field: Field | None = None  # counts, and words, of this part of the chunks only
    sort: Sort = "count"  # the most common first, or by the word's bytes
    with_stems: bool = True  # False: words and counts alone, `stem` is ""
    visibility: Visibility = Visibility.everything()


class Word(NamedTuple):
    """A word with the number of chunks that hold it as written, and in any form of its stem (None: not counted)."""

    word: str
    stem: str
    chunks: int
    chunks_any_form: int | None = None


class WordsAnswer(NamedTuple):
    """`matched` words there are in all; `words` are the first of them, in the order that was asked for."""

    status: SearchStatus
    identity: StoreIdentity
    matched: int
    words: tuple[Word, ...]
    has_documents: bool = True  # False: an answer of no word says nothing of words


def list_words(snapshot: VocabularySnapshot, request: WordsRequest) -> WordsAnswer:
    """In any thread (see retrieval.word_pattern). Raises UsageError for a pattern that cannot be read or takes too
    long, and for limits that leave nothing."""
    _refuse_contradictions(request)
    column = _COLUMNS[request.field or ""]
    counter = _Counter()
    with _matching(snapshot, request, column) as wanted:
        kept = _first(counter.counting(wanted), request)
    if request.with_stems:
        words = _with_stems(snapshot, kept, column, request.visibility)
    else:
        words = tuple(Word(word, "", chunks) for word, chunks in kept)
    return _answer(snapshot, request, counter.number, words)


def count_words(snapshot: VocabularySnapshot, request: WordsRequest) -> WordsAnswer:
    """The same without the words."""
    _refuse_contradictions(request)
    column = _COLUMNS[request.field or ""]
    with _matching(snapshot, request, column) as wanted:
        matched = sum(1 for _ in wanted)
    return _answer(snapshot, request, matched, ())


def _refuse_contradictions(request: WordsRequest) -> None:
    if request.limit < 1:
        raise UsageError(f"--limit takes a number from 1 up, not {request.limit}", hint="--count says how many")
    if request.min_chunks < 0:
        raise UsageError(f"--min-docs takes a number from 0 up, not {request.min_chunks}")
    if request.max_chunks is not None and request.max_chunks < max(1, request.min_chunks):
        raise UsageError(
            f"no word can be in at least {max(1, request.min_chunks)} and at most {request.max_chunks} chunks",
            hint="give --max-docs a larger number, or leave it out",
        )


@contextmanager
def _matching(snapshot: VocabularySnapshot, request: WordsRequest, column: str) -> Iterator[Iterator[Counted]]:
    """The words that are asked for, to be read inside of the `with`."""
    pages: Iterator[Sequence[Counted]] = snapshot.word_pages(column, visibility=request.visibility)
    with ExitStack() as stack:
        if request.pattern:
            pages = map(stack.enter_context(LimitedPattern(request.pattern)).matching, pages)
        least, most = request.min_chunks, request.max_chunks
        words = chain.from_iterable(pages)
        yield (pair for pair in words if pair[1] >= least and (most is None or pair[1] <= most))


class _Counter:
    """How many have gone past."""

    def __init__(self) -> None:
        self.number = 0

    def counting(self, words: Iterator[Counted]) -> Iterator[Counted]:
        for pair in words:
            self.number += 1
            yield pair


def _first(words: Iterator[Counted], request: WordsRequest) -> list[Counted]:
    """The first of them; all are looked at."""
    if request.sort == "count":
        return heapq.nsmallest(request.limit, words, key=lambda pair: (-pair[1], pair[0]))
    kept = list(islice(words, min(request.limit, sys.maxsize)))
    for _ in words:
        pass
    return kept


def _answer(snapshot: VocabularySnapshot, request: WordsRequest, matched: int, words: tuple[Word, ...]) -> WordsAnswer:
    identity = snapshot.identity()
    has_documents = bool(snapshot.documents("", limit=1, visibility=request.visibility))
    if identity.complete_ns is None:
        status = SearchStatus.INDEX_INCOMPLETE
    else:
        status = SearchStatus.OK if has_documents else SearchStatus.INDEX_EMPTY
    return WordsAnswer(status, identity, matched, words, has_documents)


def _with_stems(
    snapshot: VocabularySnapshot, kept: Sequence[Counted], column: str, visibility: Visibility
) -> tuple[Word, ...]:
    stems = snapshot.stems([word for word, _ in kept if _is_stemmed(word)])
    words = [Word(word, " ".join(stems.get(word, (word,))), chunks) for word, chunks in kept]
    if len(words) <= MOST_WITH_FORMS:
        counts = snapshot.stem_counts_in([word.stem for word in words], column, visibility=visibility)
        words = [word._replace(chunks_any_form=counts.get(word.stem, word.chunks)) for word in words]
    return tuple(words)


def _is_stemmed(word: str) -> bool:
    return len(word.encode()) <= LONGEST_STEMMED_BYTES
