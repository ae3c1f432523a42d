"""The answer to an enumeration: as text, as paths, as a number, and as the JSON object that every surface gives."""

from collections.abc import Iterator

from app.present import (
    Json,
    age_seconds,
    ago,
    count,
    drop_reason_words,
    no_documents_error,
    standing_notes,
    standing_words,
    utc,
)
from app.present_safe import name, one_line
from domain.errors import KnowledgeError, QueryEmptyError
from domain.status import DropReason, MatchStatus, NoMatchCause, Standing
from retrieval.match_answer import MatchAnswer, MatchedDocument, MatchRequest, TermReading, TermReport

MAX_TERM_CHARS = 80  # of a term that is told back
_ORDERS = {"matches": "most matches first", "path": "by path"}


def match_tier_line() -> str:
    """Whatever ranks a search: this is no ranking (S0-42)."""
    return "tier: lexical (FTS5) - the complete set, never ranked"


def match_text(answer: MatchAnswer, request: MatchRequest, home: str, now_ns: int, *, explain: bool) -> str:
    """The tier line, what is to be said, how many match, and the documents; with `explain`, what is known of each term.
    It is told of an empty answer in any case."""
    lines = [match_tier_line(), *(f"note: {note}" for note in match_notes(answer, request))]
    if answer.compiled:
        lines += [f"asked: {name(answer.compiled)}", _summary(answer, request)]
    if answer.documents:
        lines += ["", *map(document_line, answer.documents)]
    if answer.terms and (explain or answer.no_match_cause is not None):
        lines += ["", "terms:", *(f"  {term_line(term)}" for term in answer.terms)]
    lines += ["", f"index: {name(home)}, last full run {ago(answer.identity.complete_ns, now_ns)}"]
    return "\n".join(lines) + "\n"


def path_lines(answer: MatchAnswer) -> str:
    """A path a line, as `show` takes it, and nothing else."""
    return "".join(f"{name(document.path)}\n" for document in answer.documents)


def count_line(answer: MatchAnswer) -> str:
    return f"{answer.matched}\n"


def match_json(answer: MatchAnswer, request: MatchRequest, now_ns: int, *, with_documents: bool = True) -> Json:
    """`documents`, `returned` and `truncated` are left out where only numbers were asked for. An answer that a machine
    must not take for an empty set carries the error as well (see `match_error`)."""
    value: Json = {
        "tier": match_tier_line(),
        "status": answer.status.value,
        "compiled": answer.compiled or None,
        "matched": answer.matched,
        "indexed_documents": answer.indexed_documents,
        "note": "; ".join(match_notes(answer, request)),
        "no_match_cause": answer.no_match_cause.value if answer.no_match_cause is not None else None,
        "index": {
            "commit_seq": answer.identity.commit_seq,
            "complete_at": utc(answer.identity.complete_ns),
            "age_seconds": age_seconds(answer.identity.complete_ns, now_ns),
        },
        "terms": list(map(_term_json, answer.terms)),
    }
    if with_documents:
        value["returned"] = len(answer.documents)
        value["truncated"] = answer.is_truncated
        value["documents"] = list(map(matched_document_json, answer.documents))
    if (error := match_error(answer)) is not None:
        value["error"] = _error_json(error)
    return value


def match_not_built_json(error: KnowledgeError) -> Json:
    """The same object where there is no index to ask (S0-56)."""
    return {
        "tier": match_tier_line(),
        "status": MatchStatus.INDEX_NOT_BUILT.value,
        "compiled": None,
        "matched": None,
        "indexed_documents": None,
        "note": f"{error.message}; {error.hint}",
        "no_match_cause": None,
        "index": None,
        "terms": [],
        "returned": 0,
        "truncated": False,
        "documents": [],
        "error": _error_json(error),
    }


def match_error(answer: MatchAnswer) -> KnowledgeError | None:
    """The error that an answer is where an empty set would be misread (S0-56): no document in the index, nothing to
    look for in the query."""
    if answer.status is MatchStatus.INDEX_INCONSISTENT:
        return no_documents_error(Standing.INCONSISTENT)
    if answer.status is MatchStatus.CORPUS_EMPTY:
        return no_documents_error(Standing.INCOMPLETE if answer.identity.complete_ns is None else Standing.EMPTY)
    if answer.status is MatchStatus.QUERY_EMPTY:
        dropped = _dropped(answer)
        return QueryEmptyError(
            f"the query holds nothing to look for{f': {dropped}' if dropped else ''}",
            hint='name a word of two characters or more; a single one goes in quotes: "C"',
        )
    return None


def index_notes(answer: MatchAnswer) -> list[str]:
    """What is to be said of the index, as lines: beside a bare list or number they go to standard error."""
    return [f"note: {note}" for note in _index_notes(answer)]


def _index_notes(answer: MatchAnswer) -> Iterator[str]:
    if answer.status is MatchStatus.INDEX_INCOMPLETE:
        yield f"{standing_words(Standing.INCOMPLETE)}: the set is complete only for what is indexed so far"
    if answer.status is MatchStatus.INDEX_OUTDATED:
        yield from standing_notes(Standing.OUTDATED)
        yield "the set is complete only for what the index holds"


def match_notes(answer: MatchAnswer, request: MatchRequest) -> Iterator[str]:
    """Every sentence that belongs to the answer; the last one is there on every call (S0-53)."""
    if (error := match_error(answer)) is not None:
        yield error.message
    if answer.no_match_cause is not None:
        yield from _no_match_words(answer, request)
    yield from _index_notes(answer)
    if answer.status is not MatchStatus.QUERY_EMPTY and (dropped := _dropped(answer)):
        yield f"not looked for: {dropped}"
    for term in answer.terms:
        if term.reading is TermReading.PART:
            yield f"{_shown(term)} is written without blanks: it is looked for anywhere in the text"
        elif term.reading is TermReading.WHOLE_RUN:
            yield (
                f"{_shown(term)} is written without blanks, and the index has no table for such text"
                " (substring_index: off): it is found only where nothing is written around it"
            )
    yield (
        "every document that holds all terms, in any form of the words, in one chunk or in several;"
        " names (titles, paths, tags) are not looked at: `knowledge search` does"
    )


def _no_match_words(answer: MatchAnswer, request: MatchRequest) -> Iterator[str]:
    """Which of the reasons it was that nothing is left."""
    where = " in the part that was asked about" if request.root or request.path_glob else ""
    match answer.no_match_cause:
        case NoMatchCause.NOWHERE:
            for term in answer.terms:
                if term.not_queried is None and not term.excluded and not term.documents:
                    names = f"; {count(term.only_in_names, 'document')} in names only" if term.only_in_names else ""
                    yield f"{_shown(term)} is nowhere{where}{names}"
        case NoMatchCause.NEVER_TOGETHER:
            yield f"each term is in some document, but no document{where} holds all of them"
        case NoMatchCause.EXCLUDED:
            yield f"each document{where} that holds the terms holds an excluded one as well"
        case NoMatchCause.TOO_FEW:
            yield f"documents hold the terms, but none{where} has {count(request.min_matches, 'match', 'matches')}"


def _dropped(answer: MatchAnswer) -> str:
    told: dict[DropReason, list[str]] = {}
    for term in answer.terms:
        if term.not_queried is not None:
            told.setdefault(term.not_queried, []).append(_shown(term))
    return ", ".join(f"{', '.join(terms)} ({drop_reason_words(reason)})" for reason, terms in told.items())


def _summary(answer: MatchAnswer, request: MatchRequest) -> str:
    matched = f"matched: {answer.matched:,} of {count(answer.indexed_documents, 'document')}"
    if not answer.documents:
        return matched
    if answer.is_truncated:
        first = f"the first {len(answer.documents):,}" if len(answer.documents) > 1 else "the first"
        return f"{matched}; {first}, {_ORDERS[request.sort]} (--all lists every one)"
    return f"{matched}, {_ORDERS[request.sort]}" if answer.matched > 1 else matched


def document_line(document: MatchedDocument) -> str:
    """One document in a line; safe for a terminal."""
    return (
        f"{name(document.citation)}  {one_line(document.title)}"
        f" · {document.body_matches:,} in text, {document.heading_matches:,} in headings"
        f" of {count(document.total_chunks, 'chunk')}"
    )


def term_line(term: TermReport) -> str:
    """What became of a term, in a line; safe for a terminal."""
    surface = f"{'-' if term.excluded else ''}{_shown(term)}"
    if term.not_queried is not None:
        return f"{surface}: not looked for ({drop_reason_words(term.not_queried)})"
    if term.reading is TermReading.PART:
        return f"{surface}: {count(term.documents, 'document')}"
    told = [f"{surface}: {count(term.documents, 'document')} in any form (stem {name(term.stem)})"]
    if term.as_written is not None:
        told.append(f"{term.as_written:,} as written")
    if term.related_forms:
        forms = ", ".join(f"{name(form.word)} ({count(form.chunks, 'chunk')})" for form in term.related_forms)
        told.append(f"other forms: {forms}")
    return "; ".join(told)


def _term_json(term: TermReport) -> Json:
    return {
        "term": term.surface,
        "field": term.field or None,
        "excluded": term.excluded,
        "not_queried": term.not_queried.value if term.not_queried is not None else None,
        "reading": term.reading.value,
        "stem": term.stem,
        "documents": term.documents,
        "as_written": term.as_written,
        "related_forms": [{"word": form.word, "chunks": form.chunks} for form in term.related_forms],
        "only_in_names": term.only_in_names,
    }


def matched_document_json(document: MatchedDocument) -> Json:
    return {
        "path": document.path,
        "citation": document.citation,
        "ordinal": document.ordinal,
        "title": document.title,
        "body_matches": document.body_matches,
        "heading_matches": document.heading_matches,
        "total_chunks": document.total_chunks,
    }


def _error_json(error: KnowledgeError) -> Json:
    return {"code": error.code, "message": error.message, "hint": error.hint}


def _shown(term: TermReport) -> str:
    surface = term.surface
    return name(surface if len(surface) <= MAX_TERM_CHARS else f"{surface[:MAX_TERM_CHARS]}...")
