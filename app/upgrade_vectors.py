"""The vectors of an upgrade: which of the old index fit the configuration, and what the new one begins with."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from app.assignment import VectorPlan
from app.upgrade_report import TakenVectors
from app.vector_run import Announce, prepare_vectors
from app.wiring import WritableBase
from domain.settings import Settings
from domain.vectors import PinnedIdentity
from retrieval.query_vector import WantedVectors
from store.connection import open_reader, translated
from store.upgrade_vectors import OldVectors, find_vectors, take_vectors
from store.vectors import live_identities


def found_vectors(old: Path, meta: Mapping[str, str], settings: Settings, *, re_embed: bool) -> OldVectors:
    """What the index at `old` holds of vectors, and which of them fit."""
    with closing(open_reader(old)) as connection, translated(old):
        found = find_vectors(connection, meta, _difference(settings))
    return found.leaving_all("re_embed") if re_embed else found


def _difference(settings: Settings) -> Callable[[PinnedIdentity], str]:
    """Without embeddings in the configuration the set that answers is kept: they were paid for, and may come back."""
    wanted = settings.embeddings
    if wanted is None:
        return lambda pinned: "" if pinned.state == "active" else "it was never complete"
    return WantedVectors.of(wanted).difference


def take_over(old: Path, found: OldVectors, base: WritableBase) -> TakenVectors:
    """Put the vectors that fit into the new index. One that is gone on with has a set of its own already: where that
    is not the old index's, it stays."""
    if found.pinned is None:
        return TakenVectors(0, found.left)
    writer = base.writer
    active = writer.vector_status().active
    if active is None and not writer.has_documents():
        active = writer.pin_identity(found.pinned.identity, found.pinned.canary)
    if active is None or (active.identity, active.canary) != (found.pinned.identity, found.pinned.canary):
        return TakenVectors(0, found.leaving_all("re_embed").left)
    target = live_identities(writer.connection)[active.id]
    with closing(open_reader(old)) as connection, translated(base.layout.database):
        taken = take_vectors(connection, found.pinned, writer.connection, target, expected=found.number)
    return TakenVectors(taken.number, (*taken.left, *found.left))


def vector_plan(base: WritableBase, settings: Settings, announce: Announce) -> VectorPlan | None:
    """What the run embeds for. A set that the new index begins with is like one that it has always had: nothing is
    asked of a server before there is a text that has no vector."""
    if settings.embeddings is None:
        return None
    has_set = base.writer.has_documents() or base.writer.vector_status().active is not None
    return prepare_vectors(
        base.writer,
        settings.embeddings,
        has_documents=has_set,
        reindex=False,
        re_embed=False,
        announce=announce,
    )
