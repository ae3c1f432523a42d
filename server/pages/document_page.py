"""A document as it was indexed: its text with the cited passage marked, and its outline beside it."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from app.consistency import standing_of
from app.present import ago, count, size
from app.present_documents import shown_notes
from app.present_safe import display, name, one_line
from app.showing import KnownPlaces, ShowRequest, show
from domain.citations import Citation
from domain.errors import KnowledgeError, UsageError
from domain.keys import is_plain_text
from domain.markdown.frontmatter import frontmatter_end, metadata_of
from domain.markdown.source import BOM, with_line_feeds
from domain.status import Standing
from server.http.parts import HttpParts
from server.http.reading import opened
from server.pages.document_link import document_link
from server.pages.layout import Visit, answered, error_parts, notices, page, visit_of
from server.pages.markup import NOTHING, Html, joined, tag
from server.pages.outline import Heading, outline
from store.port import StoredChunk, StoredDocument, Visibility

SHOWN_CHUNKS = 40  # of a long document; the others are behind links
CHUNKS_BEFORE = 4
SHOWN_BYTES = 20_000  # of their texts: the page with all it asks for stays below 60 kB
SHOWN_HEADINGS = 120  # around that of the cited passage
_NOWHERE = KnownPlaces((), (), Path("/"), "")  # what is asked for is a key: no path of this machine is meant


class Asked(NamedTuple):
    path: str
    ordinal: int | None
    query: str


class Found(NamedTuple):
    document: StoredDocument
    chunks: Sequence[StoredChunk]  # all of them
    standing: Standing


async def document_page(parts: HttpParts, request: Request) -> Response:
    visit = visit_of(parts, request, "/")
    try:
        asked = _asked_of(request)
        found = await parts.in_thread(_look, parts, request, asked)
    except KnowledgeError as error:
        return answered(page(visit, "Document", tag("h1", "Document"), error_parts(visit, error)), error.http_status)
    title = one_line(found.document.title, 80) or name(found.document.key)
    return answered(
        page(
            visit, title, _body(visit, asked, found), body_class="wide" if len(list(outline(found.chunks))) > 1 else ""
        )
    )


def _asked_of(request: Request) -> Asked:
    given = request.query_params
    chunk = given.get("chunk", "")
    if chunk and not (chunk.isascii() and chunk.isdigit() and len(chunk) < 10):
        raise UsageError(f"{chunk[:40]!r} is no number of a chunk", hint="it is a number from 0 up")
    if not given.get("path"):
        raise UsageError("the address names no document", hint="search, and follow a hit")
    return Asked(given["path"], int(chunk) if chunk else None, given.get("q", ""))


def _look(parts: HttpParts, request: Request, asked: Asked) -> Found:
    target = asked.path if asked.ordinal is None else Citation(asked.path, asked.ordinal).format()
    with opened(parts, request) as base, base.store.snapshot() as snapshot:
        shown = show(snapshot, ShowRequest(target), _NOWHERE, partial(standing_of, base))
        chunks = snapshot.chunks(shown.document.key, visibility=Visibility.everything())
        return Found(shown.document, chunks, standing_of(base))


def _body(visit: Visit, asked: Asked, found: Found) -> Html:
    document = found.document
    headings = list(outline(found.chunks))
    shown = _window(found.chunks, asked.ordinal or 0)
    return joined(
        _way_back(visit, asked),
        tag("h1", one_line(document.title) or name(document.key)),
        tag("p", name(document.key), class_="path"),
        _facts(document),
        notices([note.removeprefix("note: ") for note in shown_notes(found.standing)], "warn"),
        tag(
            "div",
            _outline(visit, asked, headings, shown),
            tag("div", _about(found), _elsewhere(visit, asked, found, shown), class_="text"),
            class_="document" if len(headings) > 1 else "document plain",
        ),
    )


def _way_back(visit: Visit, asked: Asked) -> Html:
    if not asked.query:
        return NOTHING
    return tag(
        "p", tag("a", f"Hits for {one_line(asked.query, 60)}", href=visit.link("/", q=asked.query)), class_="back"
    )


def _facts(document: StoredDocument) -> Html:
    now_ns = time.time_ns()
    facts = (
        count(document.chunk_count, "passage"),
        size(document.size_bytes),
        f"modified {ago(document.mtime_ns, now_ns)}",
        f"indexed {ago(document.indexed_ns, now_ns)}",
    )
    return tag("p", [tag("span", fact) for fact in facts], class_="facts")


def _window(chunks: Sequence[StoredChunk], cited: int) -> Sequence[StoredChunk]:
    """The chunks that one page shows: the cited one with what is around it, within a number of bytes."""
    first = max(0, cited - CHUNKS_BEFORE)
    shown: list[StoredChunk] = []
    taken_bytes = 0
    for chunk in chunks[first : first + SHOWN_CHUNKS]:
        taken_bytes += len(chunk.lead.encode()) + len(chunk.body.encode())
        if taken_bytes > SHOWN_BYTES and chunk.ordinal > cited:
            break
        shown.append(chunk)
    return shown


def _outline(visit: Visit, asked: Asked, headings: Sequence[Heading], shown: Sequence[StoredChunk]) -> Html:
    if len(headings) < 2:
        return NOTHING
    here = {chunk.ordinal for chunk in shown}
    above = [number for number, heading in enumerate(headings) if heading.ordinal <= (asked.ordinal or 0)]
    current = above[-1] if above and asked.ordinal is not None else None
    entries = []
    first = max(0, min((current or 0) - SHOWN_HEADINGS // 2, len(headings) - SHOWN_HEADINGS))
    last = first + SHOWN_HEADINGS
    if first:
        entries.append(tag("li", f"{count(first, 'heading')} before these"))
    for number, heading in enumerate(headings[first:last], first):
        is_here = heading.ordinal in here
        link = f"#c{heading.ordinal}" if is_here else document_link(visit, asked.path, heading.ordinal, asked.query)
        marked = "true" if number == current else None
        text = tag("a", one_line(heading.text, 120) or "(no heading)", href=link, aria_current=marked)
        entries.append(tag("li", text, class_=f"depth{min(heading.depth, 4)}"))
    if len(headings) > last:
        entries.append(tag("li", f"{count(len(headings) - last, 'heading')} behind these"))
    return tag("nav", tag("h2", "Outline"), tag("ol", entries), class_="outline", aria_label="Outline")


def _about(found: Found) -> Html:
    """The frontmatter, where there is one."""
    if not found.chunks or is_plain_text(found.document.key):
        return NOTHING
    rows = [(key, _plain(value)) for key, value in metadata_of(found.chunks[0].lead).items() if key != "title"]
    if not rows:
        return NOTHING
    terms = [joined(tag("dt", one_line(key, 80)), tag("dd", one_line(value, 400))) for key, value in rows]
    return tag("details", tag("summary", "About this document"), tag("dl", terms), class_="why")


def _elsewhere(visit: Visit, asked: Asked, found: Found, shown: Sequence[StoredChunk]) -> Html:
    if not shown:
        return tag("p", "This document holds no text.", class_="empty")
    first, last = shown[0].ordinal, shown[-1].ordinal
    link = partial(document_link, visit, asked.path, query=asked.query)
    earlier = tag("a", f"Earlier passages ({first:,})", href=link(max(0, first - 1)))
    rest = len(found.chunks) - last - 1
    later = tag("a", f"Later passages ({rest:,})", href=link(last + 1))
    return joined(
        tag("p", earlier, class_="more") if first else NOTHING,
        list(_passages(asked, shown)),
        tag("p", later, class_="more") if rest else NOTHING,
    )


def _passages(asked: Asked, shown: Sequence[StoredChunk]) -> Iterator[Html]:
    for chunk in shown:
        is_cited = chunk.ordinal == asked.ordinal
        where = f"lines {chunk.start_line:,}-{chunk.end_line:,}"
        yield tag(
            "section",
            tag(
                "p",
                tag("a", f"#{chunk.ordinal}", href=f"#c{chunk.ordinal}", aria_label=f"Passage {chunk.ordinal}"),
                tag("span", where),
                tag("strong", "the cited passage") if is_cited else NOTHING,
                class_="facts",
            ),
            tag("pre", display(_text_of(chunk))),
            id=f"c{chunk.ordinal}",
            class_="passage cited" if is_cited else "passage",
            tabindex="-1" if is_cited else None,
        )


def _text_of(chunk: StoredChunk) -> str:
    """With what stands before it, a heading above all; not the frontmatter, which is shown by itself."""
    lead = chunk.lead
    if chunk.ordinal == 0 and not is_plain_text(chunk.key):
        lead = with_line_feeds(lead).removeprefix(BOM)
        lead = lead[frontmatter_end(lead) :]
    return f"{lead}{chunk.body}".strip("\r\n")


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
