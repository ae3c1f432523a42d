"""A document's text cut into chunks: at headings, then packed by size. Pure; bodies are exact slices."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from domain.documents import Chunk, CutDocument
from domain.markdown.borders import cut_lines, cut_prose, utf8_size
from domain.markdown.frontmatter import frontmatter_end, parse_frontmatter
from domain.markdown.scanner import scan
from domain.markdown.scripts import is_spaceless
from domain.markdown.source import BOM, LINE_TAIL, with_line_feeds
from domain.markdown.spans import LINES_PER_LOOK, Deadline, Span
from domain.markdown.titles import document_names, document_title

TARGET_BYTES = 1_200  # a block that would make its chunk larger begins the next one
MAX_BYTES = 1_500  # a larger block of prose is cut
WHOLE_BYTES = 64 * 1024  # a larger fence or table is cut, at line ends
MAX_BREADCRUMB_CHARS = 1_000
REPEATED_HEADING_CHARS = 120  # kept of each ancestor where the breadcrumb would be too long
SEPARATOR = " > "
FRONTMATTER_UNPARSED = "frontmatter_unparsed"
BLOCK_CUT_AT_CAP = "block_cut_at_cap"
# Possessive throughout: neither can backtrack.
_BLANK_LINES = re.compile(r"(?:[ \t]*+\r?+\n)*+")
_BETWEEN_BLOCKS = re.compile(r"\n(?:[ \t]*+\r?+\n)++")
_start = attrgetter("start")


def cut(text: str, key: str, *, markdown: bool, deadline: Deadline | None = None) -> CutDocument:
    """Cut a document; `key` is its root's name and its path, with `/` between.

    `markdown` False: blocks between blank lines only, and no frontmatter. `deadline` is called every 1,000
    lines and raises when the time is over. Lead and body of all chunks in order, then the tail, are the text.
    """
    source = with_line_feeds(text)
    start = end = 1 if source.startswith(BOM) else 0
    metadata: Mapping[str, object] | None = {}
    spans: list[Span] = []
    if markdown:
        end = frontmatter_end(source, start)
        if end > start:
            metadata = parse_frontmatter(source[start:end])
        skim_chars = TARGET_BYTES if source.isascii() else TARGET_BYTES // 4  # such a section is never packed
        spans = scan(source, end, deadline, skim_chars=skim_chars)
    cutter = _Cutter(text, source, spans)
    cutter.cut(end, deadline)
    warnings = (FRONTMATTER_UNPARSED,) if metadata is None else ()
    metadata = metadata or {}
    title = document_title(key, metadata, cutter.headings[0].text if cutter.headings else "")
    return CutDocument(
        title=title,
        names=document_names(key, title, metadata),
        chunks=tuple(cutter.chunks),
        tail=text[cutter.at :],
        metadata=metadata,
        content_start=end,
        warnings=(*warnings, BLOCK_CUT_AT_CAP) if cutter.cut_at_cap else warnings,
    )


class _Cutter:
    """Collects the chunks of one text. Offsets are characters and hold for the text and for its source,
    which has the same characters but for lone CRs."""

    def __init__(self, text: str, source: str, spans: Sequence[Span]) -> None:
        self.text = text
        self.source = source
        self.is_ascii = text.isascii()
        self.headings = [span for span in spans if span.kind == "heading"]
        self.whole = [span for span in spans if span.kind == "fence" or span.kind == "table"]
        self.chunks: list[Chunk] = []
        self.at = 0  # the end of the last body
        self.line = 1  # the number of the line that it ends in
        self.breadcrumb = ""
        self.spaceless = False  # the breadcrumb is
        self.cut_at_cap = False

    def cut(self, start: int, deadline: Deadline | None) -> None:
        """Cut the text from `start` on."""
        headings = self.headings
        self._section(start, headings[0].start if headings else len(self.text))
        path: list[Span] = []
        for number, heading in enumerate(headings, 1):
            if deadline and number % LINES_PER_LOOK == 0:
                deadline()
            following = headings[number] if number < len(headings) else None
            self._enter(path, heading)
            if not self._section(heading.stop, following.start if following else len(self.text)):
                self._add_heading(heading, following)
        if not self.chunks:
            self.chunks.append(Chunk("", self.text, "", 1, 1, False))
            self.at = len(self.text)

    def _enter(self, path: list[Span], heading: Span) -> None:
        """Make `heading` the last of the path from the top, and the breadcrumb that path."""
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
        breadcrumb = heading.text if len(path) == 1 else SEPARATOR.join([span.text for span in path])
        if len(breadcrumb) > MAX_BREADCRUMB_CHARS:
            shortened = [span.text[:REPEATED_HEADING_CHARS] for span in path[:-1]]
            breadcrumb = SEPARATOR.join([*shortened, heading.text])
        self.breadcrumb = breadcrumb
        self.spaceless = not self.is_ascii and is_spaceless(breadcrumb)

    def _add_heading(self, heading: Span, following: Span | None) -> None:
        """A chunk for a heading without a body: one that has no sub-headings whose chunks it is found by, or
        that is so long that their breadcrumbs might not hold it whole."""
        has_children = following is not None and following.level > heading.level
        if not has_children or len(heading.text) > REPEATED_HEADING_CHARS:
            end = heading.start + len(self.source[heading.start : heading.stop].rstrip(LINE_TAIL))
            self._add(end, end, heading.start)

    def _section(self, start: int, stop: int) -> bool:
        """Cut the text below a heading; False where it has none."""
        body = self.source[start:stop].rstrip(LINE_TAIL)
        if not body:
            return False
        if body[0] in LINE_TAIL:
            found = _BLANK_LINES.match(body)
            blank = found.end() if found else 0
            start += blank
            body = body[blank:]
        end = start + len(body)
        if len(body) <= TARGET_BYTES and (self.is_ascii or utf8_size(body) <= TARGET_BYTES):
            self._add(start, end)
        else:
            self._pack(start, end)
        return True

    def _add(self, start: int, end: int, shown_from: int = -1) -> None:
        """Add a chunk whose body is text[start:end]; its first line is that of `shown_from`, else of `start`."""
        text, source, at = self.text, self.source, self.at
        if shown_from < 0:
            shown_from = start
        first = self.line + source.count("\n", at, shown_from)
        self.line = last = first + source.count("\n", shown_from, end)
        body = text[start:end]
        spaceless = self.spaceless or (not self.is_ascii and is_spaceless(body))
        self.chunks.append(Chunk(self.breadcrumb, text[at:start], body, first, last, spaceless))
        self.at = end

    def _size(self, start: int, end: int) -> int:
        return end - start if self.is_ascii else utf8_size(self.text[start:end])

    def _pack(self, start: int, end: int) -> None:
        """Put as many blocks into each chunk as the target holds; cut those that are too large."""
        open_start = open_end = start
        for block_start, block_end, whole in self._blocks(start, end):
            if open_start < open_end:
                if self._size(open_start, block_end) <= TARGET_BYTES:
                    open_end = block_end
                    continue
                self._add(open_start, open_end)
            open_start, open_end = block_start, block_end
            if self._size(block_start, block_end) > (WHOLE_BYTES if whole else MAX_BYTES):
                self._cut_block(block_start, block_end, whole)
                open_start = block_end
        if open_start < open_end:
            self._add(open_start, open_end)

    def _cut_block(self, start: int, end: int, whole: bool) -> None:
        if whole:
            self.cut_at_cap = True
            pieces = cut_lines(self.source, start, end, WHOLE_BYTES)
        else:
            pieces = cut_prose(self.source, start, end, TARGET_BYTES)
        for piece_start, piece_end in pieces:
            self._add(piece_start, piece_end)

    def _blocks(self, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """The blocks of a section, and whether each is kept whole: fences and tables are."""
        at = start
        for index in range(bisect_left(self.whole, start, key=_start), len(self.whole)):
            span = self.whole[index]
            if span.start >= end:
                break
            yield from self._runs(at, span.start)
            at = min(span.stop, end)
            yield span.start, self._text_end(span.start, at), True
        yield from self._runs(at, end)

    def _runs(self, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """The runs of lines with text."""
        found = _BLANK_LINES.match(self.source, start, end)
        at = found.end() if found else start
        for between in _BETWEEN_BLOCKS.finditer(self.source, at, end):
            yield at, self._text_end(at, between.start()), False
            at = between.end()
        if self._text_end(at, end) > at:
            yield at, self._text_end(at, end), False

    def _text_end(self, start: int, end: int) -> int:
        return start + len(self.source[start:end].rstrip(LINE_TAIL))
