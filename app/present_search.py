"""The answer to a search, as text and as the JSON object that every surface gives."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from app.present import (
    Json,
    age_seconds,
    ago,
    count,
    degraded_note_words,
    drop_reason_words,
    search_note_words,
    search_status_words,
    tier_line,
    utc,
)
from app.present_safe import display, name, one_line, segment
from domain.errors import KnowledgeError
from domain.status import DropReason, SearchStatus, Tier
from retrieval.answer import SearchAnswer, SearchHit, VectorFacts

Mark = Callable[[str], str]
Link = Callable[["SearchHit", str], str]
"""Of a hit and its citation as it is shown: the same, as a link to the hit's file."""
_INDENT = "   "
MAX_TERM_CHARS = 80  # of a term that is told back


class IndexState(NamedTuple):
    """What an answer says of the index behind it."""

    home: str
    documents: int
    failed: int
    run_in_progress: Json | None


def search_text(
    answer: SearchAnswer, home: str, urls: Mapping[str, str], now_ns: int, mark: Mark, link: Link | None = None
) -> str:
    """The tier line, what is to be said, the hits, and which index they are from."""
    lines = [tier_line(answer.tier)]
    lines += [f"note: {note}" for note in search_notes(answer)]
    for hit in answer.results:
        lines += ["", *_hit_lines(hit, urls.get(hit.citation, ""), mark, link)]
    lines += ["", f"index: {name(home)}, last full run {ago(answer.identity.complete_ns, now_ns)}"]
    return "\n".join(lines) + "\n"


def search_json(answer: SearchAnswer, index: IndexState, urls: Mapping[str, str], now_ns: int) -> Json:
    complete_ns = answer.identity.complete_ns
    return {
        "tier": tier_line(answer.tier),
        "status": answer.status.value,
        "mode": answer.mode,
        "note": "; ".join(search_notes(answer)) or None,
        "dropped_terms": [{"term": dropped.term, "reason": dropped.reason.value} for dropped in answer.dropped_terms],
        "did_you_mean": [{"term": meant.term, "suggestions": list(meant.suggestions)} for meant in answer.did_you_mean],
        "index": {
            "commit_seq": answer.identity.commit_seq,
            "complete_at": utc(complete_ns),
            "age_seconds": age_seconds(complete_ns, now_ns),
            "documents": index.documents,
            "pending_vectors": answer.vectors.pending_chunks,
            "failed": index.failed,
            "run_in_progress": index.run_in_progress,
        },
        "vector_search": answer.vectors.method,
        "dropped_below_similarity": answer.vectors.dropped_below_similarity,
        "results": [_hit_json(hit, urls.get(hit.citation)) for hit in answer.results],
    }


def not_built_json(error: KnowledgeError, tier: Tier = Tier.LEXICAL) -> Json:
    """The same object where there is no index to ask (S1-35)."""
    return {
        "tier": tier_line(tier),
        "status": SearchStatus.INDEX_NOT_BUILT.value,
        "mode": "lexical",
        "note": f"{error.message}; {error.hint}",
        "dropped_terms": [],
        "did_you_mean": [],
        "index": None,
        "vector_search": "none",
        "dropped_below_similarity": 0,
        "results": [],
        "error": {"code": error.code, "message": error.message, "hint": error.hint},
    }


def search_notes(answer: SearchAnswer) -> Iterator[str]:
    """Every sentence that belongs to the answer, the status first."""
    if words := search_status_words(answer.status, has_results=bool(answer.results)):
        yield words
    if answer.tier.cause is not None:
        yield degraded_note_words(answer.tier.cause)
    for note in answer.notes:
        yield search_note_words(note)
    yield from _vector_notes(answer.vectors)
    if answer.dropped_terms:
        terms: dict[DropReason, list[str]] = {}
        for term in answer.dropped_terms:
            terms.setdefault(term.reason, []).append(_term(term.term))
        told = [f"{', '.join(names)} ({drop_reason_words(reason)})" for reason, names in terms.items()]
        yield f"not searched for: {', '.join(told)}"
    for meant in answer.did_you_mean:
        if meant.suggestions:
            yield f"{_term(meant.term)} is nowhere; did you mean {' or '.join(map(name, meant.suggestions))}?"
        else:
            yield f"{_term(meant.term)} is nowhere"


def _vector_notes(vectors: VectorFacts) -> Iterator[str]:
    if vectors.dropped_below_similarity:
        yield f"less similar than was asked for, and left out: {count(vectors.dropped_below_similarity, 'passage')}"
    if vectors.pending_chunks:
        without = f"{count(vectors.pending_chunks, 'chunk')} of {count(vectors.pending_documents, 'document')}"
        yield f"found by words only, for want of vectors: {without}; the next run makes them"
    if vectors.building:
        yield f"new vectors (model {one_line(vectors.building)}) are being made; they answer once they are complete"


def _term(term: str) -> str:
    """A part of the query as it is told back: the beginning says which one it is."""
    return name(term if len(term) <= MAX_TERM_CHARS else f"{term[:MAX_TERM_CHARS]}...")


def _hit_lines(hit: SearchHit, url: str, mark: Mark, link: Link | None) -> Iterator[str]:
    citation = mark(name(hit.citation))
    yield f"{hit.rank}. {citation if link is None else link(hit, citation)}  {one_line(hit.title)}"
    where = f"lines {hit.start_line}-{hit.end_line} · score {hit.score:.4f}"
    if hit.similarity is not None:
        where += f" · similarity {hit.similarity:.2f}"
    breadcrumb = one_line(hit.heading_path)
    yield f"{_INDENT}{breadcrumb} · {where}" if breadcrumb else f"{_INDENT}{where}"
    if hit.content is not None:
        yield from (f"{_INDENT}{line}".rstrip() for line in display(hit.content).splitlines())
    elif hit.snippet:
        yield f"{_INDENT}{_marked(hit, mark)}"
    if hit.also_in:
        yield f"{_INDENT}also in {', '.join(map(name, hit.also_in))}"
    if url:
        yield f"{_INDENT}{name(url)}"


def _marked(hit: SearchHit, mark: Mark) -> str:
    """The snippet with its matches marked; each piece is cleaned by itself, so that the offsets hold."""
    pieces: list[str] = []
    at = 0
    for first, end in hit.matches:
        pieces += [segment(hit.snippet[at:first]), mark(segment(hit.snippet[first:end]))]
        at = end
    return "".join([*pieces, segment(hit.snippet[at:])])


def _hit_json(hit: SearchHit, url: str | None) -> Json:
    lanes = hit.lanes
    return {
        "rank": hit.rank,
        "citation": hit.citation,
        "path": hit.path,
        "ordinal": hit.ordinal,
        "title": hit.title,
        "heading_path": hit.heading_path,
        "start_line": hit.start_line,
        "end_line": hit.end_line,
        "snippet": hit.snippet,
        "matches": [list(match) for match in hit.matches],
        "matched_in": list(hit.matched_in),
        "content": hit.content,
        "score": round(hit.score, 6),
        "similarity": round(hit.similarity, 4) if hit.similarity is not None else None,
        "lanes": {
            "words": lanes.words,
            "literal": lanes.literal,
            "substring": lanes.substring,
            "vector": lanes.vector,
        },
        "also_in": list(hit.also_in),
        "url": url,
        "document_sha256": hit.document_sha256,
        "indexed_at": utc(hit.indexed_ns),
        "modified_at": utc(hit.modified_ns),
    }
