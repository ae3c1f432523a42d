"""`words`: the vocabulary as a table, a word a line, a number, and as JSON."""

import unicodedata
from collections.abc import Iterator, Sequence

from app.discovery import Located
from app.present import Json, count, index_line, no_documents_error, standing_notes, tier_line
from app.present_safe import name
from domain.errors import KnowledgeError
from domain.settings import Settings
from domain.status import SearchStatus, Standing, Tier
from retrieval.vocabulary import Word, WordsAnswer, WordsRequest

MAX_WORD_CHARS = 15  # of a word or stem in the table; everywhere else they are whole
_FIELDS = {"body": "in bodies", "heading": "in headings", "names": "in names (titles, paths, tags)"}
_ORDERS = {"count": "the most common first", "word": "in alphabetical order"}
_GAP = "  "
_STANDINGS = {
    SearchStatus.OK: Standing.COMPLETE,
    SearchStatus.INDEX_EMPTY: Standing.EMPTY,
    SearchStatus.INDEX_INCOMPLETE: Standing.INCOMPLETE,
    SearchStatus.INDEX_INCONSISTENT: Standing.INCONSISTENT,
    SearchStatus.INDEX_OUTDATED: Standing.OUTDATED,
}


def words_text(answer: WordsAnswer, request: WordsRequest, tier: Tier, located: Located, settings: Settings) -> str:
    """The tier line, which index, how many words, and a table; long words are elided in it."""
    lines = [tier_line(tier), index_line(located, settings), *words_notes(answer, request)]
    lines.append(_summary(answer, request))
    if answer.words:
        lines += ["", *_table(answer.words)]
    return "\n".join(lines) + "\n"


def words_notes(answer: WordsAnswer, request: WordsRequest) -> list[str]:
    """What is to be said of the index, as lines; beside a bare list or number they go to standard error."""
    return [f"note: {note}" for note in _notes(answer, request)]


def _notes(answer: WordsAnswer, request: WordsRequest) -> list[str]:
    notes = standing_notes(_STANDINGS[answer.status])
    written = unicodedata.normalize("NFC", request.pattern)
    bare = "".join(map(_without_accent, written))
    if not answer.matched and answer.has_documents and bare != written:
        notes.append(f"words stand in the index without accents: try {name(bare)}")
    return notes


def _without_accent(character: str) -> str:
    """As the tokenizer of the index has it, which takes accents from Latin letters only."""
    letter = unicodedata.normalize("NFD", character)[0]
    return letter if letter.isascii() else character


def word_lines(answer: WordsAnswer) -> str:
    """A word a line, whole, and nothing else."""
    return "".join(f"{name(word.word)}\n" for word in answer.words)


def count_line(answer: WordsAnswer) -> str:
    return f"{answer.matched}\n"


def words_json(answer: WordsAnswer, request: WordsRequest, tier: Tier, *, with_words: bool) -> Json:
    value: Json = {
        "tier": tier_line(tier),
        "status": answer.status.value,
        "pattern": request.pattern or None,
        "field": request.field,
        "matched": answer.matched,
        "note": "; ".join(_notes(answer, request)) or None,
    }
    if (error := words_error(answer)) is not None:
        value["error"] = {"code": error.code, "message": error.message, "hint": error.hint}
    if with_words:
        value["sort"] = request.sort
        value["words"] = [
            {
                "word": word.word,
                "stem": word.stem,
                "chunks": word.chunks,
                "chunks_any_form": word.chunks_any_form,
            }
            for word in answer.words
        ]
    return value


def words_error(answer: WordsAnswer) -> KnowledgeError | None:
    """The error that an answer is where no document is indexed, and no word would be misread (S0-56)."""
    return None if answer.has_documents else no_documents_error(_STANDINGS[answer.status])


def words_not_built_json(error: KnowledgeError, request: WordsRequest, tier: Tier) -> Json:
    """The same object where there is no index to ask (S0-56)."""
    return {
        "tier": tier_line(tier),
        "status": SearchStatus.INDEX_NOT_BUILT.value,
        "pattern": request.pattern or None,
        "field": request.field,
        "matched": None,
        "note": f"{error.message}; {error.hint}",
        "error": {"code": error.code, "message": error.message, "hint": error.hint},
    }


def _summary(answer: WordsAnswer, request: WordsRequest) -> str:
    if not answer.matched:
        is_asked = bool(request.pattern or request.min_chunks or request.max_chunks)
        return "no word is like this" if is_asked and answer.has_documents else "no words"
    shown = len(answer.words)
    told = [f"the first {shown:,} of {answer.matched:,} words" if shown < answer.matched else count(shown, "word")]
    if shown > 1:
        told.append(_ORDERS[request.sort])
    where = f" {_FIELDS[request.field]}" if request.field else ""
    told.append(f"with the number of chunks that hold {'each' if shown > 1 else 'it'}{where}")
    return ", ".join(told)


def _table(words: Sequence[Word]) -> Iterator[str]:
    """Word, stem, as written, and, where it was counted, any form."""
    rows = [["word", "stem", "as written"], *([_elided(w.word), _elided(w.stem), f"{w.chunks:,}"] for w in words)]
    if words[0].chunks_any_form is not None:
        rows[0].append("any form")
        for row, word in zip(rows[1:], words, strict=True):
            row.append(f"{word.chunks_any_form:,}")
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            f"{cell}{' ' * (width - _width(cell))}" if at < 2 else f"{' ' * (width - _width(cell))}{cell}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield _GAP.join(cells)


def _elided(word: str) -> str:
    return name(word if len(word) <= MAX_WORD_CHARS else f"{word[: MAX_WORD_CHARS - 1]}…")


def _width(text: str) -> int:
    """Columns of a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)
