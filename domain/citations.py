"""Citations: `<document key>#<ordinal>`, printed and read by one value (S0-38)."""

from msgspec import Struct

from domain.errors import CitationMalformedError

MARK = "#"
MAX_ORDINAL = 2**31 - 1  # far above any document's number of chunks, far below what a store's integers hold
MAX_CITATION_CHARS = 8192  # longer than any path; what is longer is not looked at
_MAX_DIGITS = len(str(MAX_ORDINAL))
_SHOWN_CHARS = 80
_HINT = "a citation is PATH#NUMBER as `search` prints it, for example docs/design.md#3"


class Citation(Struct, frozen=True):
    """One chunk of one document: `key` as stored, `ordinal` from 0."""

    key: str
    ordinal: int

    @staticmethod
    def parse(text: str) -> "Citation":
        """Split at the last `#`, since a path may hold others.

        Raises CitationMalformedError: no `#`, an empty path, an ordinal that is no plain number or out of
        bounds.
        """
        key, mark, digits = text.rpartition(MARK) if len(text) <= MAX_CITATION_CHARS else ("", "", "")
        if not mark or not key:
            raise _malformed(text, "it names no path and number")
        if not (digits.isascii() and digits.isdigit()):
            raise _malformed(text, "what follows the last # is no number from 0 up")
        if len(digits) > _MAX_DIGITS or int(digits) > MAX_ORDINAL:
            raise _malformed(text, "the number is larger than any document has chunks")
        return Citation(key, int(digits))

    def format(self) -> str:
        return f"{self.key}{MARK}{self.ordinal}"

    def __str__(self) -> str:
        return self.format()


def _malformed(text: str, why: str) -> CitationMalformedError:
    shown = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
    return CitationMalformedError(f"{shown!r} is no citation: {why}", hint=_HINT)
