"""A test collection as it lies in a folder: documents, queries, and judgements of which document answers which query.

    documents.jsonl   a JSON object a line: `id`, `text` and, if there is one, `title`
    queries.tsv       a query a line: its id, a tab, its text
    qrels.tsv         a judgement a line: the query's id, a tab, the document's id, a tab, a whole number

A number above 0 says that the document is relevant; how far above counts no more, and a document without a judgement
is not relevant. Files are UTF-8; lines of blanks are passed over; the larger of two judgements of one pair holds.
"""

from collections.abc import Collection as Known
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from app.places import exists, is_folder
from app.present_safe import one_line
from domain.errors import UsageError

DOCUMENTS, QUERIES, JUDGEMENTS = "documents.jsonl", "queries.tsv", "qrels.tsv"
_FOLDER_HINT = f"a collection is a folder with {DOCUMENTS}, {QUERIES} and {JUDGEMENTS}"
_SHOWN_CHARS = 60


class CollectionDocument(msgspec.Struct, frozen=True):
    """A line of documents.jsonl; other keys are passed over."""

    id: str | int
    text: str
    title: str = ""


class Judged(Struct, frozen=True):
    """The queries of a collection, and for each what finding a document is worth (1: relevant)."""

    queries: Mapping[str, str]
    gains: Mapping[str, Mapping[str, float]]


class Question(Struct, frozen=True):
    """A query that has a relevant document."""

    id: str
    text: str
    gains: Mapping[str, float]  # by the document's id; 1 for each relevant one


class Questions(Struct, frozen=True):
    asked: tuple[Question, ...]
    without_relevant: int  # queries left out: no document of the collection answers them
    of_unknown: int  # judgements left out: of a query or a document that is not there


def read_judged(folder: Path) -> Judged:
    """Queries and judgements. Raises UsageError naming file and line."""
    if not is_folder(folder):
        raise UsageError(f"there is no folder {folder}", hint=_FOLDER_HINT)
    if missing := [name for name in (DOCUMENTS, QUERIES, JUDGEMENTS) if not exists(folder / name)]:
        raise UsageError(f"there is no {' and no '.join(missing)} in {folder}", hint=_FOLDER_HINT)
    queries: dict[str, str] = {}
    for number, line in _lines(folder / QUERIES):
        name, tab, text = line.partition("\t")
        if not (tab and name.strip() and text.strip()):
            raise _bad_line(folder / QUERIES, number, line, "a query is its id, a tab and its text")
        if name in queries:
            raise _bad_line(folder / QUERIES, number, line, f"the id {_shown(name)!r} stands in an earlier line")
        queries[name] = text
    if not queries:
        raise UsageError(f"{folder / QUERIES} holds no query", hint="a query is its id, a tab and its text")
    gains: dict[str, dict[str, float]] = {}
    for number, line in _lines(folder / JUDGEMENTS):
        query, document, is_relevant = _judgement(folder / JUDGEMENTS, number, line)
        judged = gains.setdefault(query, {})
        judged[document] = max(judged.get(document, 0.0), float(is_relevant))
    return Judged(queries, gains)


def read_documents(folder: Path) -> Iterator[CollectionDocument]:
    """The documents, one line in memory at a time; ids are not compared. Raises UsageError naming file and line."""
    decoder = msgspec.json.Decoder(CollectionDocument)
    for number, line in _lines(folder / DOCUMENTS):
        try:
            document = decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _bad_line(folder / DOCUMENTS, number, line, str(error)) from None
        if document.id == "":
            raise _bad_line(folder / DOCUMENTS, number, line, "the id is empty")
        yield document


def questions_of(judged: Judged, documents: Known[str]) -> Questions:
    """Raises UsageError where nothing is left to ask."""
    asked, unknown = [], sum(len(gains) for query, gains in judged.gains.items() if query not in judged.queries)
    for query, text in judged.queries.items():
        gains = judged.gains.get(query, {})
        known = {name: gain for name, gain in gains.items() if name in documents}
        unknown += len(gains) - len(known)
        if any(gain > 0 for gain in known.values()):
            asked.append(Question(query, text, known))
    if not asked:
        raise UsageError(
            "no query has a relevant document",
            hint=f"{JUDGEMENTS} names queries of {QUERIES} and documents of {DOCUMENTS} by their ids",
        )
    return Questions(tuple(asked), len(judged.queries) - len(asked), unknown)


def _judgement(path: Path, number: int, line: str) -> tuple[str, str, bool]:
    query, document, grade = fields if len(fields := line.split("\t")) == 3 else ("", "", "")
    try:
        is_relevant = int(grade) > 0
    except ValueError:
        is_relevant, query = False, ""
    if not (query and document):
        why = "a judgement is a query's id, a document's id and a whole number, with tabs between"
        raise _bad_line(path, number, line, why)
    return query, document, is_relevant


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    raise UsageError(f"{path}, line {number}: this is not UTF-8") from None
                if line.strip():
                    yield number, line
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def _bad_line(path: Path, number: int, line: str, why: str) -> UsageError:
    return UsageError(f"{path}, line {number}: {why}", hint=f"the line begins: {_shown(line)}")


def _shown(text: str) -> str:
    return one_line(text, _SHOWN_CHARS)
