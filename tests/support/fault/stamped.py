"""Documents that say themselves what they should be: a text is a pure function of its key and of the stamp in it.

So whoever reads one can tell, without asking anybody, whether it is whole and of one piece.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence

from store.port import Snapshot, StoredDocument, Visibility

PAIR = ("docs/pair-left.md", "docs/pair-right.md")  # in every group: never of two stamps at one moment
_STAMP = re.compile(r"stamp s(\d+)\b")
EVERYTHING = Visibility.everything()


def text_of(key: str, stamp: int) -> str:
    """One to five sections by key and stamp, each with both."""
    parts = 1 + hashlib.sha256(f"{key} {stamp}".encode()).digest()[0] % 5
    sections = [
        f"## Part {part} of {parts}\n\nRivers of {key} under stamp s{stamp}, part {part}. " + "They run on. " * part
        for part in range(parts)
    ]
    return f"# {key} stamp s{stamp}\n\n" + "\n\n".join(sections) + "\n"


def stamp_in(text: str) -> int:
    """-1 where there is none."""
    found = _STAMP.search(text)
    return int(found[1]) if found else -1


def stamps_of(snapshot: Snapshot) -> tuple[dict[str, int], list[str]]:
    """Every document's stamp by key, and what is wrong with any of them."""
    stamps: dict[str, int] = {}
    problems: list[str] = []
    for row in snapshot.documents("", visibility=EVERYTHING):
        stamps[row.key], found = read_document(snapshot, row)
        problems += found
    return stamps, problems + unlike_pair(stamps)


def unlike_pair(stamps: Mapping[str, int]) -> list[str]:
    found = {stamps.get(key) for key in PAIR}
    return [f"a group was seen in part: the pair is of {sorted(map(str, found))}"] if len(found) > 1 else []


def read_document(snapshot: Snapshot, row: StoredDocument) -> tuple[int, list[str]]:
    """A document's stamp, and how it is torn: its text, its hash, its chunks."""
    text = snapshot.text(row.key, visibility=EVERYTHING) or ""
    stamp = stamp_in(text)
    problems = [f"{row.key}: its text is of no one stamp"] * (text != text_of(row.key, stamp))
    problems += [f"{row.key}: its hash is of another text"] * (hashlib.sha256(text.encode()).digest() != row.file_hash)
    chunks = snapshot.chunks(row.key, visibility=EVERYTHING)
    if [chunk.ordinal for chunk in chunks] != list(range(row.chunk_count)):
        problems.append(f"{row.key}: {row.chunk_count} chunks said, {[chunk.ordinal for chunk in chunks]} there")
    problems += torn_chunks(row.key, stamp, [chunk.body for chunk in chunks])
    return stamp, problems


def torn_chunks(key: str, stamp: int, bodies: Sequence[str]) -> list[str]:
    return [f"{key}: a chunk is not of stamp {stamp}" for body in bodies if body not in text_of(key, stamp)]
