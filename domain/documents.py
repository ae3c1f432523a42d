"""Values of a document on its way from a file to the store: frozen, slotted, without I/O.

Offsets are Python characters, sizes are UTF-8 bytes, times are nanoseconds since the epoch, lines are
numbered from 1 over the whole file (frontmatter included).
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct


class Chunk(NamedTuple):
    """One chunk of a document, in document order.

    `lead` is the text between the previous body and this one (headings, blank lines, frontmatter); it is
    stored and never searched. Lead and body of all chunks in order, then the document's tail, give back
    the document's text character for character (R13).
    """

    heading_path: str  # ancestors joined by " > "; "" above the first heading
    lead: str
    body: str
    start_line: int  # first line of the body (of the heading, where the body is empty)
    end_line: int  # last line of the body
    spaceless: bool  # holds text written without spaces: goes into the trigram table in mode `auto`


class CutDocument(Struct, frozen=True):
    """A document's text cut into chunks, with what is known of it from its own words."""

    title: str
    names: str  # title, path words, aliases, tags, keywords, description: one line a kind (R30)
    chunks: tuple[Chunk, ...]  # never empty; the ordinal is the index
    tail: str  # what follows the last body
    metadata: Mapping[str, object]  # the parsed frontmatter, JSON values only; {} where there is none
    content_start: int  # the character behind the byte order mark and the frontmatter
    warnings: tuple[str, ...]  # stable codes: frontmatter_unparsed, block_cut_at_cap
