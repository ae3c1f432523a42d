"""Line ends. A line ends at LF, CRLF or a lone CR and nowhere else; offsets are Python characters."""

BOM = "\ufeff"
BLANKS = " \t"
LINE_TAIL = " \t\r\n"  # what may stand behind a line's words


def with_line_feeds(text: str) -> str:
    """The text with each lone CR as LF, so that every line ends in LF; same length, same offsets.

    A CR before its LF stays and reads as a blank at the line's end.
    """
    if "\r" not in text or text.count("\r") == text.count("\r\n"):
        return text
    return "\r\n".join([part.replace("\r", "\n") for part in text.split("\r\n")])


def next_line(text: str, at: int) -> int:
    """The offset behind the LF that ends the line around `at`, or the text's length."""
    return text.find("\n", at) + 1 or len(text)


def count_lines(text: str) -> int:
    """The number, from 1, of the line in which a text ends."""
    ends = text.count("\n")
    return 1 + (ends + text.count("\r") - text.count("\r\n") if "\r" in text else ends)
