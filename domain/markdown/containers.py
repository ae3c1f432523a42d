"""The state of a scan between two lines: which quotes and list items are open, and whether a paragraph is."""

from collections.abc import Iterator

from domain.markdown.openers import skip_blanks
from domain.markdown.source import LINE_TAIL, next_line

QUOTE = 0  # in the stack of containers; a list item is the width that its lines are indented by


class Containers:
    """The open containers of a text whose lines are gone over in order."""

    __slots__ = ("behind", "floor", "hollow", "opened", "paragraph", "stack", "start", "text")

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.start = start
        self.stack: list[int] = []  # open containers, outermost first
        self.paragraph = False  # the line before belongs to an open paragraph
        self.floor = start  # no open paragraph began before this offset
        self.behind = start  # the offset behind the line that is looked at
        self.hollow = -1  # the offset behind a list item that began without content
        self.opened = (-1, 0)  # offset of a paragraph's first line, and its position in it

    def pass_over(self, at: int, stop: int) -> None:
        """Go over lines that are empty or begin with an ordinary character at the margin."""
        text = self.text
        while at < stop:
            behind = next_line(text, at)
            if behind == at + 1 or text[at:behind] == "\r\n":
                self.blank(at, 0)
            elif not self.paragraph:
                self.stack.clear()
                self.paragraph = not text.endswith(("\n\n", "\n\r\n"), at, stop)
                return
            at = behind

    def blank(self, at: int, depth: int) -> int:
        """A line without text ends the paragraph, quotes that it is not in, and an item without content."""
        self.paragraph = False
        self.floor = at + 1
        stack = self.stack
        if stack and self.hollow == at:
            stack.pop()
        if QUOTE in stack[depth:]:
            del stack[stack.index(QUOTE, depth) :]
        return 0

    def close(self, floor: int, depth: int) -> int:
        """End the paragraph and the containers beyond `depth`; the next one begins at `floor` or later."""
        self.paragraph = False
        self.floor = floor
        if self.stack:
            del self.stack[depth:]
        return 0

    def descend(self, line: str, pos: int, col: int) -> tuple[int, int, int, int]:
        """Position, column, base column and depth behind the open containers that a line is in."""
        base = depth = 0
        for container in self.stack:
            if container:
                if col - base < container:
                    break
                base += container
            elif line[pos : pos + 1] == ">" and col - base < 4:
                pos, col, base = behind_quote(line, pos, col)
            else:
                break
            depth += 1
        return pos, col, base, depth

    def inside(self, line: str) -> tuple[int, int] | None:
        """Position and indentation of a line that lies in all open containers, else None.

        The position of a line without text is its length.
        """
        pos, col = skip_blanks(line, 0, 0)
        if not self.stack:
            return pos, col
        if pos == len(line):
            return None if QUOTE in self.stack else (pos, 0)
        pos, col, base, depth = self.descend(line, pos, col)
        return (pos, col - base) if depth == len(self.stack) else None

    def lines_inside(self) -> Iterator[tuple[str, int, int, int]]:
        """The lines behind the one that is looked at that lie in all open containers: each without its tail,
        the offset behind it, its position and its indentation."""
        text, at = self.text, self.behind
        while at < len(text):
            behind = next_line(text, at)
            line = text[at:behind].rstrip(LINE_TAIL)
            place = self.inside(line)
            if place is None:
                return
            yield line, behind, *place
            at = behind

    def line_before(self, at: int) -> int:
        """The offset of the line before the one at `at`, at least that of the first line scanned."""
        return max(self.start, self.text.rfind("\n", self.start, at - 1) + 1)


def behind_quote(line: str, pos: int, col: int) -> tuple[int, int, int]:
    """Position, column and base column behind a `>` and the one blank that belongs to it."""
    base = col + 1
    stop, stop_col = skip_blanks(line, pos + 1, base)
    return stop, stop_col, base + 1 if stop > pos + 1 else base
