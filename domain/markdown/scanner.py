"""The one line scanner: Markdown in, spans of what is more than ordinary text out.

CommonMark's block rules (0.31) with GitHub's tables, in one pass and linear time. Only lines whose first
character can begin something are looked at, and blocks (fences, HTML, tables, indented code) are walked in
one go, so the state between two lines is small: the open quotes and list items, and whether a paragraph is
open.
"""

import re
from collections.abc import Callable
from itertools import islice

from domain.markdown.containers import QUOTE, Containers, behind_quote
from domain.markdown.headings import heading_text
from domain.markdown.openers import (
    UNTIL_BLANK,
    atx_heading,
    begins_block,
    closes_fence,
    delimiter_columns,
    fence_opener,
    header_columns,
    html_opener,
    is_definition,
    is_rule,
    is_underline,
    list_marker,
    skip_blanks,
)
from domain.markdown.source import LINE_TAIL, next_line
from domain.markdown.spans import LINES_PER_LOOK, Deadline, Kind, Span

MAX_DEPTH = 100  # quotes and list items in each other; what begins deeper is text
# None of these can backtrack over more than a line: each is a line end, a class or a possessive run.
_LOOKED_AT = re.compile(r"\n[#`~<=\-|:*_+>0-9 \t]")  # a line whose first character may begin something
# At the margin, a heading or an opening fence: whatever was open before it ends there.
_RESET = re.compile(r"\n(?:(#{1,6}+)(?![^ \t\r\n])([^\n]*+)\n?+|```[^`\n]*+(?:\n|\Z)|~~~[^\n]*+(?:\n|\Z))")
# A line that may be a heading, or may begin HTML that goes on beyond such a line; fences are looked for apart.
_MAY_HIDE = re.compile(r"\n {0,3}+(?:[#<=]|-++[ \t]*+\r?+(?:\n|\Z))")
_LINE_ENDS = ("\n", "\r", "")
_BLANK_LINE = re.compile(r"\n[ \t]*+\r?+(?:\n|\Z)")  # possessive: cannot either


def scan(text: str, start: int = 0, deadline: Deadline | None = None, *, skim_chars: int = 0) -> list[Span]:
    """The spans of the text from offset `start` on (behind the frontmatter), in order; they never overlap.

    Every line must end in LF (`with_line_feeds`). Headings in quotes and list items are left out, and so are
    headings without words: neither cuts. `skim_chars`: where up to so many characters between two headings
    hold no further heading, what else they hold may be left out.
    """
    scanner = _Scanner(text, start)
    scanner.run(deadline or _never, skim_chars)
    return scanner.spans


def _never() -> None:
    pass


class _Scanner(Containers):
    """The state between two lines.

    Handlers get a line without its tail, its offset, the position and column of its first character that is
    no blank or marker, the column at which its innermost container begins, and how many of the open
    containers it lies in. They answer the offset of the next line to look at, or 0: the following one.
    """

    __slots__ = ("spans",)

    def __init__(self, text: str, start: int) -> None:
        super().__init__(text, start)
        self.spans: list[Span] = []

    def run(self, deadline: Deadline, skim_chars: int) -> None:
        """Go from one heading or fence at the margin to the next: whatever is open ends there, so that the
        lines between two of them can be looked at by themselves."""
        spans = self.spans
        following = self._first_line()
        next_look = LINES_PER_LOOK
        for match in _RESET.finditer(self.text, max(0, following - 1)):
            at = match.start() + 1
            if at > following and self._is_worth_a_look(following, at, skim_chars):
                following = self._between(following, at, deadline)
            if at < following:
                continue
            reset = self._margin_heading if match.lastindex else self._margin_fence
            following = reset(at, match)
            if len(spans) >= next_look:
                deadline()
                next_look += LINES_PER_LOOK
        if self._is_worth_a_look(following, len(self.text), skim_chars):
            self._between(following, len(self.text), deadline)

    def _is_worth_a_look(self, start: int, stop: int, skim_chars: int) -> bool:
        """Whether more than ordinary text, lists and tables may be between, or too much of those."""
        text = self.text
        return (
            stop - start > skim_chars
            or _MAY_HIDE.search(text, max(0, start - 1), stop) is not None
            or text.find("```", start, stop) >= 0
            or text.find("~~~", start, stop) >= 0
        )

    def _margin_heading(self, at: int, match: re.Match[str]) -> int:
        stop = match.end()
        hashes, raw = match.groups()
        words = heading_text(raw)
        if words:
            self.spans.append(Span("heading", at, stop, len(hashes), words))
        self.paragraph = False
        self.floor = stop
        self.stack.clear()
        return stop

    def _margin_fence(self, at: int, match: re.Match[str]) -> int:
        self.behind = match.end()
        self.stack.clear()
        return self._leaf("fence", at, self._margin_stop(fence_opener(match[0].rstrip(LINE_TAIL), 1)))

    def _first_line(self) -> int:
        """Look at the first line where no line end stands before it; the offset of the next line to look at."""
        start = self.start
        if start and self.text[start - 1] == "\n":
            return start
        if self.text[start : start + 1] in _AT_MARGIN:
            return self._step(start, start)
        self.paragraph = self.text[start : start + 1] not in ("", "\n", "\r")
        return next_line(self.text, start)

    def _between(self, following: int, stop: int, deadline: Deadline) -> int:
        """Look at the lines from `following` up to `stop`; answers the offset of the next line to look at."""
        step = self._step
        matches = _LOOKED_AT.finditer(self.text, max(0, following - 1), stop)
        while batch := list(islice(matches, LINES_PER_LOOK)):
            for match in batch:
                at = match.start() + 1
                if at >= following:
                    following = step(at, following)
            if len(batch) == LINES_PER_LOOK:
                deadline()
        return following

    def _step(self, at: int, following: int) -> int:
        """Look at the line at `at`, having looked at all before `following`."""
        text = self.text
        if at > following:
            if self.stack:
                self.pass_over(following, at)
            else:
                self.paragraph = at - following > 2 and text[at - 2] != "\n" and text[at - 3 : at - 1] != "\n\r"
                if at - following <= 2:
                    self.paragraph = text[following:at].strip("\r\n") != ""
        self.behind = behind = text.find("\n", at) + 1 or len(text)
        return _AT_MARGIN[text[at]](self, text[at:behind].rstrip(LINE_TAIL), at, 0, 0, 0, 0) or behind

    # Lines that begin with a blank or `>`: which containers are they in?

    def _contained(self, line: str, at: int, *_: int) -> int:
        pos, col = skip_blanks(line, 0, 0)
        if pos == len(line):
            return self.blank(at, 0)
        if self.paragraph and line[pos] not in _IN_CONTAINER:
            return 0
        pos, col, base, depth = self.descend(line, pos, col)
        if pos == len(line):
            return self.blank(at, depth)
        return self._dispatch(line, at, pos, col, base, depth)

    def _dispatch(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        if col - base >= 4:
            return 0 if self.paragraph else self._code(at, depth)
        handler = _IN_CONTAINER.get(line[pos], _Scanner._text)
        return handler(self, line, at, pos, col, base, depth)

    # What may begin at the first character

    def _text(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        """A line of a paragraph; an open one goes on, even outside of its containers."""
        if not self.paragraph:
            self.close(at, depth)
            self.paragraph = True
            self.opened = (at, pos)
        return 0

    def _heading(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        found = atx_heading(line, pos)
        if found is None:
            return self._text(line, at, pos, col, base, depth)
        if not depth:
            text = heading_text(found[1])
            if text:
                self.spans.append(Span("heading", at, self.behind, found[0], text))
        return self.close(at + 1, depth)

    def _equals(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        if self.paragraph and depth == len(self.stack) and is_underline(line, pos):
            return self._setext(line, at, pos, 1)
        return self._text(line, at, pos, col, base, depth)

    def _dash(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        if line[pos + 1 : pos + 2] != " " and self._begins_table(line, at, pos, depth):
            return self._table(at)
        if line[pos:].strip("- \t"):
            return self._item(line, at, pos, col, base, depth)
        if self.paragraph and depth == len(self.stack) and is_underline(line, pos):
            return self._setext(line, at, pos, 2)
        return self._rule(line, at, pos, col, base, depth)

    def _setext(self, line: str, at: int, pos: int, level: int) -> int:
        """The paragraph before the line at `at` becomes a heading, but for link definitions at its top."""
        if self.stack:
            return self.close(at + 1, len(self.stack))
        first = self.line_before(at)
        while first > self.floor:
            before = self.line_before(first)
            if before < self.floor or not self.text[before:first].strip(LINE_TAIL):
                break
            first = before
        while first < at and is_definition(self.text[first : next_line(self.text, first)].strip()):
            first = next_line(self.text, first)
        if first == at:  # nothing but definitions: the line stands for itself
            self.close(at, 0)
            return self._rule(line, at, pos, pos, 0, 0)
        text = heading_text(self.text[first:at])
        if text:
            self.spans.append(Span("heading", first, self.behind, level, text))
        return self.close(at + 1, 0)

    def _rule(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        if is_rule(line, pos):
            return self.close(at + 1, depth)
        return self._item(line, at, pos, col, base, depth)

    def _item(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        """A list item, with whatever begins behind its marker on the same line."""
        end = list_marker(line, pos)
        if end < 0 or len(self.stack) >= MAX_DEPTH:
            return self._text(line, at, pos, col, base, depth)
        marker_end = col + end - pos
        rest, rest_col = skip_blanks(line, end, marker_end)
        empty = rest == len(line)
        if self.paragraph and depth == len(self.stack):
            ordered_late = line[pos] not in "-+*" and int(line[pos : end - 1]) != 1
            if empty or ordered_late:
                return 0
        self.close(at + 1 if empty else at, depth)
        blanks = rest_col - marker_end
        width = marker_end - base + (1 if empty or blanks > 4 else blanks)
        self.stack.append(width)
        if empty:
            self.hollow = self.behind
            return 0
        return self._dispatch(line, at, rest, rest_col, base + width, depth + 1)

    def _quote(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        if len(self.stack) >= MAX_DEPTH:
            return self._text(line, at, pos, col, base, depth)
        pos, col, base = behind_quote(line, pos, col)
        empty = pos == len(line)
        self.close(at + 1 if empty else at, depth)
        self.stack.append(QUOTE)
        return 0 if empty else self._dispatch(line, at, pos, col, base, depth + 1)

    # Blocks that are walked in one go

    def _leaf(self, kind: Kind, first: int, stop: int) -> int:
        self.spans.append(Span(kind, first, stop, len(self.stack), ""))
        self.close(stop, len(self.stack))
        return stop

    def _code(self, at: int, depth: int) -> int:
        del self.stack[depth:]
        stop = self.behind
        for line, behind, pos, indent in self.lines_inside():
            if pos == len(line):
                continue
            if indent < 4:
                break
            stop = behind
        return self._leaf("code", at, stop)

    def _fence(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        opener = fence_opener(line, pos)
        if not opener:
            return self._text(line, at, pos, col, base, depth)
        del self.stack[depth:]
        return self._leaf("fence", at, self._fence_stop(opener) if self.stack else self._margin_stop(opener))

    def _fence_stop(self, opener: str) -> int:
        stop = self.behind
        for line, behind, pos, indent in self.lines_inside():
            stop = behind
            if indent < 4 and closes_fence(line, pos, opener):
                break
        return stop

    def _margin_stop(self, opener: str) -> int:
        """The end of a fence that lies in no container: its closing line is looked for, the rest is not."""
        text, at = self.text, self.behind
        found = text.find(f"\n{opener}", at - 1)
        behind = found + 1 + len(opener)
        if found >= 0 and text[behind : behind + 1] in _LINE_ENDS and text.find(f" {opener}", at, found) < 0:
            return next_line(text, behind)
        while (found := text.find(opener, at)) >= 0:
            line = found
            while line > at and text[line - 1] == " " and found - line < 3:
                line -= 1
            at = next_line(text, found)
            if text[line - 1] == "\n" and closes_fence(text[found:at].rstrip(LINE_TAIL), 0, opener):
                return at
        return len(text)

    def _html(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        ends = html_opener(line, pos, whole_tag=not self.paragraph)
        if ends is None:
            return self._text(line, at, pos, col, base, depth)
        del self.stack[depth:]
        if ends is UNTIL_BLANK:
            return self._leaf("html", at, self._blank_stop())
        return self._leaf("html", at, self._mark_stop(line[pos:], ends))

    def _blank_stop(self) -> int:
        if not self.stack:
            found = _BLANK_LINE.search(self.text, self.behind - 1)
            return found.start() + 1 if found else len(self.text)
        stop = self.behind
        for line, behind, pos, _ in self.lines_inside():
            if pos == len(line):
                break
            stop = behind
        return stop

    def _mark_stop(self, line: str, ends: tuple[str, ...]) -> int:
        stop = self.behind
        if _holds_any(line, ends):
            return stop
        for following, behind, _, _ in self.lines_inside():
            stop = behind
            if _holds_any(following, ends):
                break
        return stop

    def _bar(self, line: str, at: int, pos: int, col: int, base: int, depth: int) -> int:
        if self._begins_table(line, at, pos, depth):
            return self._table(at)
        return self._text(line, at, pos, col, base, depth)

    def _begins_table(self, line: str, at: int, pos: int, depth: int) -> bool:
        """Whether the line is the delimiter row under a header row: the open paragraph's last line."""
        if not self.paragraph or depth != len(self.stack):
            return False
        columns = delimiter_columns(line, pos)
        if not columns:
            return False
        first = self.line_before(at)
        header = self.text[first:at].rstrip(LINE_TAIL)
        if self.opened[0] == first:
            return header_columns(header[self.opened[1] :]) == columns
        place = self.inside(header)
        return place is not None and place[1] < 4 and header_columns(header[place[0] :]) == columns

    def _table(self, at: int) -> int:
        stop = self.behind
        for line, behind, pos, indent in self.lines_inside():
            if pos == len(line) or indent >= 4 or (line[pos] != "|" and begins_block(line, pos)):
                break
            stop = behind
        return self._leaf("table", self.line_before(at), stop)


def _holds_any(line: str, marks: tuple[str, ...]) -> bool:
    lowered = line.lower()
    return any(mark in lowered for mark in marks)


_Handler = Callable[[_Scanner, str, int, int, int, int, int], int]
_IN_CONTAINER: dict[str, _Handler] = {
    "#": _Scanner._heading,
    "`": _Scanner._fence,
    "~": _Scanner._fence,
    "<": _Scanner._html,
    "=": _Scanner._equals,
    "-": _Scanner._dash,
    "|": _Scanner._bar,
    ":": _Scanner._bar,
    "*": _Scanner._rule,
    "_": _Scanner._rule,
    "+": _Scanner._item,
    ">": _Scanner._quote,
    **dict.fromkeys("0123456789", _Scanner._item),
}
_AT_MARGIN: dict[str, _Handler] = _IN_CONTAINER | dict.fromkeys(" \t>", _Scanner._contained)
