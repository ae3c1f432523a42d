"""The complete set of documents that hold words, as an agent is answered: as many as there is room for (S0-78)."""

from app.mcp_cursor import Cursor, digest
from app.present import Json, count
from app.present_match import document_line, match_json, match_not_built_json, term_line
from app.present_mcp import Told, ToolAnswer, framed, said_first
from app.present_mcp_search import Page
from app.present_safe import name, one_line
from domain.errors import KnowledgeError
from retrieval.match_answer import MatchAnswer, MatchRequest


def enumerate_tool_answer(answer: MatchAnswer, request: MatchRequest, now_ns: int, page: Page) -> ToolAnswer:
    """`answer` holds the documents from the first one on; those before the page's cursor are left out here."""
    head = match_json(answer, request, now_ns)
    start = page.cursor.offset if page.cursor is not None else 0
    state = digest(answer.identity.store_uuid, answer.identity.commit_seq)
    documents, rows = answer.documents[start:], head.pop("documents")[start:]
    end = start + len(documents)
    left = max(0, answer.matched - end)
    notes = [head["note"]]
    if page.cursor is not None and page.cursor.state != state:
        notes.append("the index has changed since the documents before: some may come twice, or not at all")
    if left:
        notes.append(f"{count(left, 'document')} more; go on with the cursor")
    head |= {
        "note": "; ".join(notes),
        "returned": len(rows),
        "truncated": left > 0,
        "next_cursor": Cursor(page.about, end, state).format() if left and documents else None,
    }
    terms = head.pop("terms")
    body = {"terms": terms, "documents": [_row(row) for row in rows]}
    lines = [document_line(document) for document in documents]
    if answer.terms:
        lines += ["", "terms:", *(f"  {term_line(term)}" for term in answer.terms)]
    return framed(Told(head, _lines(head), body, "\n".join(lines).lstrip("\n")))


def enumerate_not_built_answer(error: KnowledgeError) -> ToolAnswer:
    """A result that names the fix, no failure."""
    head = match_not_built_json(error) | {"next_cursor": None}
    body = {"terms": head.pop("terms"), "documents": head.pop("documents")}
    return framed(Told(head, _lines(head), body, ""))


def _lines(head: Json) -> list[str]:
    lines = said_first(head)
    if head["matched"] is not None:
        lines.append(
            f"matched: {head['matched']:,} of {count(head['indexed_documents'], 'document')}; {head['returned']:,} here"
        )
    return lines


def _row(row: Json) -> Json:
    """Paths and citations as they can be given back, the title on one line."""
    return row | {"path": name(row["path"]), "citation": name(row["citation"]), "title": one_line(row["title"])}
