"""A search as an agent is answered: hits with their whole text, until the budget is used up (S0-76, S0-77)."""

from collections.abc import Mapping
from typing import NamedTuple

from app.mcp_cursor import Cursor, digest
from app.present import Json, count, duration
from app.present_mcp import (
    FRAME_CHARS,
    LEAST_BUDGET_CHARS,
    SHOWN_SHA256_CHARS,
    Told,
    ToolAnswer,
    fitting,
    framed,
    said_first,
    size_of,
)
from app.present_safe import display, name, one_line, segment
from app.present_search import IndexState, not_built_json, search_json
from domain.errors import KnowledgeError
from domain.status import Tier
from retrieval.answer import SearchAnswer, SearchHit


class Page(NamedTuple):
    """What part of an answer is wanted."""

    about: str  # the call, as cursors name it
    budget_chars: int
    cursor: Cursor | None


class _Hits(NamedTuple):
    rows: list[Json]
    texts: list[str]
    end: int  # hits of the answer up to here are given


def search_tool_answer(
    answer: SearchAnswer, index: IndexState, urls: Mapping[str, str], now_ns: int, page: Page
) -> ToolAnswer:
    head = search_json(answer, index, urls, now_ns)
    rows = head.pop("results")
    state = digest(answer.identity.store_uuid, answer.identity.commit_seq, len(answer.results))
    start = page.cursor.offset if page.cursor is not None else 0
    hits = _hits(answer, rows, start, page.budget_chars - size_of(head, "") - FRAME_CHARS)
    left = len(rows) - hits.end
    notes = [head["note"]] if head["note"] else []
    if page.cursor is not None and page.cursor.state != state:
        notes.append("the index has changed since the hits before: some may come twice, or not at all")
    if left > 0:
        notes.append(f"{count(left, 'hit')} left out for want of room; go on with the cursor")
    head["note"] = "; ".join(notes) or None
    head["truncated"] = left > 0 or any(row["content_truncated"] for row in hits.rows)
    head["next_cursor"] = Cursor(page.about, hits.end, state).format() if left > 0 else None
    return framed(Told(head, _lines(head), {"results": hits.rows}, "\n\n".join(hits.texts)))


def not_built_tool_answer(error: KnowledgeError, tier: Tier) -> ToolAnswer:
    """S1-35: a result that names the fix, no failure."""
    head = not_built_json(error, tier) | {"truncated": False, "next_cursor": None}
    results = head.pop("results")
    return framed(Told(head, _lines(head), {"results": results}, ""))


def _lines(head: Json) -> list[str]:
    lines = said_first(head)
    if index := head["index"]:
        age_s = index["age_seconds"]
        last = "never" if age_s is None else f"{duration(age_s)} ago"
        lines.append(f"index: {count(index['documents'], 'document')}, last full run {last}")
    return lines


def _hits(answer: SearchAnswer, rows: list[Json], start: int, budget_chars: int) -> _Hits:
    """Hits from `start` on that fit. The first is always given; one longer than all room is cut, which it says."""
    found = _Hits([], [], min(start, len(rows)))
    used = 0
    for hit, row in zip(answer.results[start:], rows[start:], strict=True):
        whole = hit.content or ""
        room = budget_chars - size_of(_row(hit, row, ""), _text(hit, "", row["url"]))
        kept = whole if found.rows else fitting(whole, max(room, LEAST_BUDGET_CHARS))
        safe, text = _row(hit, row, kept), _text(hit, kept, row["url"])
        cost = size_of(safe, text)
        if found.rows and used + cost > budget_chars:
            break
        used += cost
        found.rows.append(safe)
        found.texts.append(text)
        found = found._replace(end=found.end + 1)
    return found


def _row(hit: SearchHit, row: Json, content: str) -> Json:
    """The hit's object, its texts made safe; the offsets of matches follow the snippet's."""
    snippet, matches = _safe_snippet(hit)
    kept = {key: value for key, value in row.items() if key != "score"}
    return kept | {
        "citation": name(hit.citation),
        "path": name(hit.path),
        "title": one_line(hit.title),
        "heading_path": one_line(hit.heading_path),
        "snippet": snippet,
        "matches": matches,
        "also_in": [name(citation) for citation in hit.also_in],
        "content": display(content),
        "content_truncated": len(content) < len(hit.content or ""),
    }


def _safe_snippet(hit: SearchHit) -> tuple[str, list[list[int]]]:
    """Each piece is cleaned by itself, so that the offsets hold."""
    made, at = "", 0
    matches: list[list[int]] = []
    for first, end in hit.matches:
        made += segment(hit.snippet[at:first])
        matched = segment(hit.snippet[first:end])
        matches.append([len(made), len(made) + len(matched)])
        made, at = made + matched, end
    return made + segment(hit.snippet[at:]), matches


def _text(hit: SearchHit, content: str, url: str | None) -> str:
    where = f"lines {hit.start_line}-{hit.end_line} · document_sha256 {hit.document_sha256[:SHOWN_SHA256_CHARS]}"
    breadcrumb = one_line(hit.heading_path)
    lines = [
        f"{hit.rank}. {name(hit.citation)}  {one_line(hit.title)}",
        f"{breadcrumb} · {where}" if breadcrumb else where,
    ]
    if hit.also_in:
        lines.append(f"also in {', '.join(map(name, hit.also_in))}")
    if url:
        lines.append(name(url))
    cut = ["(cut: knowledge_read gives the document by lines)"] if len(content) < len(hit.content or "") else []
    return "\n".join([*lines, "", display(content).rstrip("\n"), *cut])
