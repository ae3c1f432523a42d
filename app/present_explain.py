"""`explain` in words and as JSON: what is known of a file, and where a query finds it."""

from collections.abc import Iterator

from app.discovery import Located
from app.explaining import Explanation, NextStep
from app.explaining_query import Cause, LaneTrace, QueryTrace, TermTrace
from app.present import (
    Json,
    ago,
    count,
    drop_reason_words,
    index_line,
    note_lines,
    search_status_words,
    size,
    standing_notes,
    tier_line,
    utc,
)
from app.present_failures import left_words
from app.present_reasons import reason_words
from app.present_safe import name, one_line
from domain.files import Reason
from domain.settings import Settings
from domain.status import SearchStatus, Standing, Tier
from retrieval.search import LANE_LIMIT
from scheduler.path_rules import LeftOut, RuleKind

_LABEL_CHARS = 11
MAX_TERM_CHARS = 80  # of a word that is told back
_STATES = {
    "indexed": "in the index",
    "stale": "in the index, as it was before its last check failed",
    "skipped": "not in the index: skipped",
    "failed": "not in the index: its last check failed",
    "not_indexed": "not in the index: no run has met it yet",
    "absent": "there is no such file, here or in the index",
    "outside": "not in the index: outside of every root",
    "folder": "a folder",
}
_VECTORS = {"none": "none", "pending": "still to be made", "ready": "ready"}
_NEXT = {
    "unchanged": "unchanged: size and times are those of the last check",
    "check": "would read it, and find the same content",
    "add": "would add it",
    "update": "would replace what is stored",
    "embed": "would make its vectors",
    "skip": "would skip it",
    "fail": "would fail to read it",
    "leave": "would not try it",
    "remove": "would remove it from the index",
    "keep": "would leave in the index what is there",
    "walk": "would look at what lies in it",
    "nothing": "nothing",
}
_RULES: dict[RuleKind, str] = {
    "extension": "its name does not end in one of {pattern} (`extensions`)",
    "hidden_folder": "the name of the folder {path} begins with a dot",
    "exclude_dirs": "folders called {pattern} are left out (`exclude_dirs`): {path}",
    "index_folder": "an index lies in {path}",
    "include": "no pattern of `include` names it: {pattern}",
    "exclude": "the pattern {pattern} of `exclude` leaves out {path}",
    "ignore_file": "the pattern {pattern} in {source} leaves out {path}",
    "name": "the name of {path} is not UTF-8",
    "symlink": "{path} is a symbolic link, which is not followed",
    "not_a_file": "{path} is not a regular file",
    "named_files": "its root is of single files, and this is none of them",
}


def explain_text(
    explained: Explanation, trace: QueryTrace | None, tier: Tier, located: Located, settings: Settings, now_ns: int
) -> str:
    lines = [tier_line(tier), index_line(located, settings), *note_lines(explained.standing)]
    lines.append(name(explained.key or explained.target or explained.file))
    lines += [f"  {label:<{_LABEL_CHARS}}{words}" for label, words in _rows(explained, settings, now_ns)]
    if trace is not None:
        lines += ["", *_query_lines(trace)]
    return "\n".join(lines) + "\n"


def explain_json(explained: Explanation, trace: QueryTrace | None, tier: Tier, settings: Settings) -> Json:
    document, stored, failure, run = explained.document, explained.trace, explained.failure, explained.run
    value: Json = {
        "tier": tier_line(tier),
        "status": explained.standing.value,
        "note": "; ".join(standing_notes(explained.standing)) or None,
        "exit_status": explained.exit_status,
        "path": explained.key or None,
        "file": explained.file or None,
        "root": explained.root.name if explained.root is not None else None,
        "state": explained.state,
        "reason": explained.reason.value if explained.reason is not None else None,
        "rule": _rule_json(explained.left_out),
        "why": _why(explained, settings) or None,
        "size_bytes": explained.stat.size_bytes if explained.stat is not None else None,
        "chunks": document.chunk_count if document is not None else None,
        "document_sha256": document.file_hash.hex() if document is not None else None,
        "vectors": stored.vector_state if document is not None and stored is not None else None,
        "indexed_at": utc(document.indexed_ns) if document is not None else None,
        "checked_at": utc(stored.checked_ns) if stored is not None else None,
        "generation": stored.generation if stored is not None else None,
        "run_id": run.id if run is not None else None,
        "failure": None,
        "documents_below": explained.below.documents if explained.below is not None else None,
        "next_run": {
            "action": explained.next.action,
            "reason": explained.next.reason.value if explained.next.reason is not None else None,
            "detail": explained.next.detail or None,
            "chunks": explained.next.chunks,
        },
    }
    if failure is not None:
        value["failure"] = {
            "reason": failure.reason,
            "detail": failure.detail,
            "tries": failure.tries,
            "first_at": utc(failure.first_ns),
            "last_at": utc(failure.last_ns),
            "standing": failure.standing,
            "next_at": utc(failure.next_ns) if failure.next_ns else None,
        }
    if trace is not None:
        value["query"] = _query_json(trace)
    return value


def _rows(explained: Explanation, settings: Settings, now_ns: int) -> Iterator[tuple[str, str]]:
    stored, document, failure = explained.trace, explained.document, explained.failure
    if explained.file:
        there = "" if explained.stat is not None or explained.state == "outside" else " (not there now)"
        yield "file", f"{name(explained.file)}{there}"
    below = explained.below
    held = f" with {count(below.documents, 'document')} and {below.skipped:,} skipped" if below is not None else ""
    yield "state", f"{_state_words(explained)}{held}"
    if why := _why(explained, settings):
        yield "why", why
    if document is not None:
        yield "indexed", f"{utc(document.indexed_ns)} ({ago(document.indexed_ns, now_ns)})"
    if stored is not None:
        yield "checked", _checked_words(explained, now_ns)
    if document is not None and stored is not None:
        yield "chunks", f"{document.chunk_count:,}, vectors: {_VECTORS.get(stored.vector_state, stored.vector_state)}"
        yield "sha256", document.file_hash.hex()
    if failure is not None:
        tries = f"{count(failure.tries, 'try', 'tries')}, the first {ago(failure.first_ns, now_ns)}"
        yield "failed", f"{tries}, the last {ago(failure.last_ns, now_ns)}"
    yield "next run", _next_words(explained.next, explained, settings, now_ns)


def _state_words(explained: Explanation) -> str:
    if explained.state == "not_indexed" and explained.standing in (Standing.INCONSISTENT, Standing.OUTDATED):
        return "not in the index as it is now"  # a run may have met it
    return _STATES[explained.state]


def _checked_words(explained: Explanation, now_ns: int) -> str:
    stored = explained.trace
    if stored is None:
        return ""
    run = f"run {explained.run.id}, generation" if explained.run is not None else "generation"
    return f"{utc(stored.checked_ns)} ({ago(stored.checked_ns, now_ns)}), in {run} {stored.generation}"


def _why(explained: Explanation, settings: Settings) -> str:
    """Why it is not in the index, or not as it is now; "" where there is nothing to explain."""
    if explained.state == "outside":
        if settings.configured and settings.roots:
            return "no root of the configuration holds it: add its folder to `paths`"
        return "no root holds it: `knowledge index FOLDER` makes one"
    if explained.left_out is not None:
        return rule_words(explained.left_out)
    if explained.is_left_root and explained.root is not None:
        left = f"its root {name(explained.root.name)} is no longer in the configuration"
        return f"{left}; it answers until `knowledge rm --root {name(explained.root.name)}`"
    if explained.reason is None:
        return ""
    words = reason_words(explained.reason.value)
    if explained.failure is not None and explained.failure.detail:
        return f"{words} ({one_line(explained.failure.detail, 200)})"
    return words + _size_words(explained.reason, explained, settings)


def _size_words(reason: Reason, explained: Explanation, settings: Settings) -> str:
    if reason is not Reason.TOO_LARGE or explained.stat is None:
        return ""
    return f": {size(explained.stat.size_bytes)}, the limit is {size(settings.max_file_bytes)}"


def rule_words(left_out: LeftOut) -> str:
    """The rule, what it says, where it stands, and what it leaves out."""
    path = name(left_out.path) or "the root itself"
    return _RULES[left_out.kind].format(path=path, pattern=name(left_out.pattern), source=name(left_out.source))


def _rule_json(left_out: LeftOut | None) -> Json | None:
    if left_out is None:
        return None
    return {
        "kind": left_out.kind,
        "pattern": left_out.pattern or None,
        "source": left_out.source or None,
        "leaves_out": left_out.path or None,
    }


def _next_words(step: NextStep, explained: Explanation, settings: Settings, now_ns: int) -> str:
    words = _NEXT[step.action]
    if step.action == "leave" and explained.failure is not None:
        return f"{words}: {left_words(explained.failure, now_ns)}"
    if explained.is_left_root:
        return f"{words}: its root is no longer in the configuration"
    if step.chunks is not None:
        return f"{words}: {count(step.chunks, 'chunk')}"
    detail = f" ({one_line(step.detail, 200)})" if step.detail else ""
    if step.reason is not None and (detail or (step.reason is not explained.reason and step.action != "nothing")):
        words += f": {reason_words(step.reason.value)}{_size_words(step.reason, explained, settings)}{detail}"
    return f"{words}; unusually many removals at once are held" if step.action == "remove" else words


def _query_lines(trace: QueryTrace) -> Iterator[str]:
    yield f"query: {one_line(trace.query, 200)}"
    yield f"  {tier_line(trace.tier)}"
    yield f"  {cause_words(trace)}"
    for term in trace.terms:
        yield f"  word {_term_words(term)}"
    for lane, found in trace.lanes.items():
        yield f"  lane {lane}: {_lane_words(found)}"


def cause_words(trace: QueryTrace) -> str:
    """Why the document stands where it does, in one sentence."""
    match trace.cause:
        case Cause.NOT_INDEXED:
            return "it is not in the index, so no query finds it"
        case Cause.QUERY_EMPTY:
            return search_status_words(SearchStatus.QUERY_EMPTY, has_results=False)
        case Cause.HIT:
            return f"it is hit {trace.rank}: {name(trace.citation)}"
        case Cause.COPY:
            return f"its text is that of hit {trace.rank}, {name(trace.citation)}, which names it as a copy"
        case Cause.BELOW_TOP_K:
            return f"it is hit {trace.rank}, and {trace.top_k} are shown"
        case Cause.BELOW_OTHERS:
            return "a lane names it, and a hundred hits stand above it"
        case Cause.BEYOND_LANES:
            return (
                f"it is found, but its best place in any lane is {_best(trace)}: of each the first {LANE_LIMIT} count"
            )
        case Cause.LEFT_OUT_TERMS:
            return "it holds only words of the query that were not searched for"
        case Cause.NO_TERM:
            return "it holds none of the words of the query"


def _best(trace: QueryTrace) -> str:
    return f"{min(lane.rank for lane in trace.lanes.values() if lane.rank is not None):,}"


def _term_words(term: TermTrace) -> str:
    stem = f" (stem {_short(term.stem)})" if term.stem and term.stem != term.term else ""
    held = f"in {term.in_document:,} of its chunks, in {count(term.chunks, 'chunk')} of the index"
    dropped = f"; not searched for: {drop_reason_words(term.dropped)}" if term.dropped is not None else ""
    return f"{_short(term.term)}{stem}: {held}{dropped}"


def _short(term: str) -> str:
    return name(term if len(term) <= MAX_TERM_CHARS else f"{term[:MAX_TERM_CHARS]}...")


def _lane_words(lane: LaneTrace) -> str:
    of = f"{lane.length:,}{' or more' if lane.is_cut else ''}"
    near = f", similarity {lane.similarity:.2f}" if lane.similarity is not None else ""
    if lane.rank is None:
        return (f"not among the first {of}" if lane.is_cut else f"not among its {of}") + near
    return f"place {lane.rank:,} of {of}{near}"


def _query_json(trace: QueryTrace) -> Json:
    return {
        "query": trace.query,
        "tier": tier_line(trace.tier),
        "cause": trace.cause.value,
        "sentence": cause_words(trace),
        "rank": trace.rank,
        "citation": trace.citation or None,
        "top_k": trace.top_k,
        "terms": [
            {
                "term": term.term,
                "stem": term.stem,
                "chunks": term.chunks,
                "chunks_in_document": term.in_document,
                "dropped": term.dropped.value if term.dropped is not None else None,
            }
            for term in trace.terms
        ],
        "lanes": {
            lane: {
                "rank": found.rank,
                "length": found.length,
                "is_cut": found.is_cut,
                "similarity": round(found.similarity, 4) if found.similarity is not None else None,
            }
            for lane, found in trace.lanes.items()
        },
    }
