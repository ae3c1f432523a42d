"""Which vectors of an older index an upgrade may take, and taking them (R4, R19).

The vectors have a layout version of their own: whatever else has changed of an index, what a model was paid for is
taken over where the layout is the one that this program knows, the two tables that hold it have exactly its columns,
and the identity is the one that is asked for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from domain.vectors import CANARY_TEXTS, SENT_HASH_BYTES, PinnedIdentity
from store import driver
from store.connection import immediate
from store.format_gate import expected_vectors
from store.upgrade_source import number_or_none
from store.vector_queries import pinned_identities
from store.vector_schema import VECTORS_LAYOUT, VECTORS_LAYOUT_KEY
from store.vectors import LiveIdentity, are_sound, insert_embeddings
from store.write_port import NewVector

PAGE_BYTES = 4 * 1024 * 1024  # of floats in one transaction: what a writer holds the disk and the memory for
TAKEN_TABLES = ("embeddings", "vector_identities")

LeftReason = Literal["layout", "shape", "identity", "unsound", "re_embed"]
"""Why vectors are not taken: another layout version; tables of another shape; another identity than is asked for;
what is no vector of its identity; the user wants every text embedded anew, or an upgrade that is gone on with has
begun to."""


class LeftVectors(NamedTuple):
    """Vectors that are not taken."""

    reason: LeftReason
    number: int | None  # None: they cannot be counted
    detail: str = ""


class OldVectors(NamedTuple):
    """The vectors of an index of any format: those of one identity may be taken."""

    pinned: PinnedIdentity | None = None
    number: int = 0
    left: tuple[LeftVectors, ...] = ()

    @property
    def total(self) -> int:
        return self.number + sum(left.number or 0 for left in self.left)

    def leaving_all(self, reason: LeftReason) -> "OldVectors":
        """None of them is taken, for this reason."""
        return OldVectors(left=(LeftVectors(reason, self.total),)) if self.total else OldVectors()


class Taken(NamedTuple):
    number: int
    unsound: int

    @property
    def left(self) -> tuple[LeftVectors, ...]:
        return (LeftVectors("unsound", self.unsound),) if self.unsound else ()


def find_vectors(
    connection: driver.Connection, meta: Mapping[str, str], differs: Callable[[PinnedIdentity], str]
) -> OldVectors:
    """What an index holds of vectors. `differs` says in words what of an identity is not as it is asked for, "" where
    it fits; of two that fit, the one that answers is taken."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name IN (?, ?)", TAKEN_TABLES).fetchall()
    objects = dict(rows)
    if not objects:
        return OldVectors()
    total = number_or_none(connection, "SELECT count(*) FROM embeddings")
    layout = meta.get(VECTORS_LAYOUT_KEY, str(VECTORS_LAYOUT))
    if layout != str(VECTORS_LAYOUT):
        return _none("layout", total, f"layout {layout}, this program knows {VECTORS_LAYOUT}")
    changed = [name for name in TAKEN_TABLES if objects.get(name) != expected_vectors()[name]]
    if changed:
        return _none("shape", total, ", ".join(changed))
    pinned = pinned_identities(connection)
    by_use = [identity for identity in (pinned.get("active"), pinned.get("building")) if identity is not None]
    differences = [differs(identity) or _unsound_canary(identity) for identity in by_use]
    chosen = next((identity for identity, words in zip(by_use, differences, strict=True) if not words), None)
    if chosen is None:
        return _none("identity", total, differences[0] if differences else "")
    number = number_or_none(connection, f"SELECT count(*) FROM embeddings WHERE identity = {int(chosen.id)}") or 0  # noqa: S608
    others = (total or 0) - number
    return OldVectors(chosen, number, (LeftVectors("identity", others),) if others else ())


def _none(reason: LeftReason, total: int | None, detail: str) -> OldVectors:
    return OldVectors(left=(LeftVectors(reason, total, detail),) if total != 0 else ())


def _unsound_canary(pinned: PinnedIdentity) -> str:
    size = pinned.identity.dimension * 4
    is_whole = len(pinned.canary) == len(CANARY_TEXTS) and all(len(vector) == size for vector in pinned.canary)
    return "" if is_whole else "its vectors of the fixed texts are damaged"


def take_vectors(
    old: driver.Connection, source: PinnedIdentity, new: driver.Connection, target: LiveIdentity, *, expected: int
) -> Taken:
    """Copy the vectors of an identity into the writing connection of a new store, a page in a transaction; those that
    it has already stay. `expected` of them are there: what cannot be read any more counts as unsound."""
    taken = 0
    for page in _pages(old, source):
        vectors = _sound(page, target)
        with immediate(new):
            insert_embeddings(new, {(target.id, v.sent_hash): ("", v) for v in vectors}, {target.id: target})
        taken += len(vectors)
    return Taken(taken, max(0, expected - taken))


def _pages(old: driver.Connection, source: PinnedIdentity) -> Iterator[Sequence[tuple[Any, ...]]]:
    size = source.identity.dimension * 4
    limit = max(1, PAGE_BYTES // size)
    last = -(2**63)
    while True:
        try:
            rows = old.execute(
                "SELECT id, sent_hash, parts, CASE WHEN length(vector) = ? THEN vector END FROM embeddings"
                " WHERE identity = ? AND id > ? ORDER BY id LIMIT ?",
                (size, source.id, last, limit),
            ).fetchall()
        except driver.Error:  # damaged from here on: the texts are embedded again
            return
        if not rows:
            return
        yield rows
        last = rows[-1][0]


def _sound(page: Sequence[tuple[Any, ...]], target: LiveIdentity) -> Sequence[NewVector]:
    """Of the rows of a page those that are vectors of the identity; of the others the texts are embedded again."""
    vectors = [
        NewVector(target.id, sent_hash, parts, vector)
        for _, sent_hash, parts, vector in page
        if vector is not None and len(sent_hash) == SENT_HASH_BYTES and parts > 0
    ]
    if not vectors:
        return []
    sound = are_sound(b"".join([vector.vector for vector in vectors]), target.dimension)
    return [vector for vector, is_sound in zip(vectors, sound, strict=True) if is_sound]
