"""P14, P15: the product's own check and an independent audit agree on every drift; a rebuild embeds nothing.

Each drift is made in a copy of one sound index with words and vectors. Both opinions are asked then, and again after a
rebuild; the embeddings server counts what it is asked in between.
"""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from app import maintenance
from domain.errors import IntegrityError
from tests.support import drifts
from tests.support.audit import audit
from tests.support.bases import TEXTS
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.figures import Figure, NoteFigure
from tests.support.runs import Base, base_in
from tests.support.scratch import scratch_directory
from tests.support.trees import make_tree
from tests.support.vector_runs import DIMENSION, misplaced, settings_for, texts_of

pytestmark = pytest.mark.redis

MENDED_BY_REBUILD = (*drifts.OF_FULL_TEXT, *drifts.OF_VECTORS)
EVERY_DRIFT = (*drifts.EVERY_DRIFT, *drifts.OF_VECTORS)


class Opinions(NamedTuple):
    """What the two say of an index."""

    status: int  # the exit status of `verify --deep`
    problems: list[str]  # of the audit

    @property
    def agree(self) -> bool:
        return (self.status == 0) == (not self.problems) and self.status in (0, IntegrityError.exit_status)


@dataclass
class Tally:
    disagreements: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    unmended: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    requests_of_rebuilds: int = 0
    rebuilt: int = 0


@dataclass(frozen=True)
class Template:
    """A sound index with vectors, and the files that it is of."""

    base: Base
    docs: Path
    server: EmbeddingServer

    def copy(self, place: Path) -> Base:
        shutil.copytree(self.base.layout.home, place / "home")
        return base_in(place, embeddings=self.base.settings.embeddings)


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    with scratch_directory() as place, embedding_server(dimension=DIMENSION) as server:
        base = base_in(place, embeddings=settings_for(server))
        docs = make_tree(place / "docs", dict(TEXTS))
        base.index(docs)
        yield Template(base, docs, server)


def opinions(base: Base) -> Opinions:
    return Opinions(maintenance.verify(base.settings, deep=True).exit_status, audit(base.layout.database))


def try_drift(template: Template, drift: drifts.Drift, tally: Tally) -> None:
    with scratch_directory() as place:
        base = template.copy(place)
        drifts.apply_drift(base.layout.database, drift)
        broken = opinions(base)
        if not broken.agree:
            tally.disagreements.append(f"{drift.__name__}: {broken}")
        if broken.status == 0:
            tally.unseen.append(drift.__name__)
        before = len(template.server.requests)
        try:
            maintenance.rebuild(base.settings)
            tally.rebuilt += 1
        except IntegrityError:
            tally.refused.append(drift.__name__)  # there is no telling which index this is
        rebuilt = opinions(base)
        tally.requests_of_rebuilds += len(template.server.requests) - before
        if not rebuilt.agree:
            tally.disagreements.append(f"{drift.__name__}, after a rebuild: {rebuilt}")
        if drift in MENDED_BY_REBUILD and rebuilt.status:
            tally.unmended.append(f"{drift.__name__}: {rebuilt}")


def test_both_opinions_agree_and_a_rebuild_embeds_nothing(template: Template, note_figure: NoteFigure) -> None:
    """P14, P15, S0-68..70."""
    began_s = time.monotonic()
    assert opinions(template.base) == Opinions(0, [])
    tally = Tally()
    for drift in EVERY_DRIFT:
        try_drift(template, drift, tally)
    note_figure(
        Figure(
            name="drifts-agreed",
            promises=("P14", "P15"),
            what="drifts of an index that its own check and an independent audit were asked of",
            tried=len(EVERY_DRIFT),
            of=len(EVERY_DRIFT),
            bad=len(tally.disagreements) + len(tally.unseen) + len(tally.unmended) + bool(tally.requests_of_rebuilds),
            asked=11,
            seconds=time.monotonic() - began_s,
            detail=f"{tally.rebuilt} rebuilds made {tally.requests_of_rebuilds} embedding calls;"
            f" {len(MENDED_BY_REBUILD)} drifts of full text and vectors mended by them",
        )
    )
    assert tally.disagreements == []
    assert tally.unseen == []
    assert tally.unmended == []
    assert tally.requests_of_rebuilds == 0
    assert tally.refused == ["lost_identity"]
    assert tally.rebuilt == len(EVERY_DRIFT) - 1


@pytest.mark.parametrize(
    ("drift", "texts"), [(drifts.lost_embedding, 1), (drifts.swapped_vectors, 2), (drifts.lost_link, 0)]
)
def test_the_next_run_embeds_what_a_rebuild_had_to_drop(template: Template, drift: drifts.Drift, texts: int) -> None:
    """P15: that, and no text more; afterwards every vector is the one of its text."""
    with scratch_directory() as place:
        base = template.copy(place)
        drifts.apply_drift(base.layout.database, drift)
        maintenance.rebuild(base.settings)
        ((pending,),) = base.rows("SELECT count(*) FROM documents WHERE vector_state = 'pending'")
        assert pending > 0
        template.server.requests.clear()
        base.index(template.docs)
        assert len(texts_of(template.server)) == texts
        assert (opinions(base), misplaced(base)) == (Opinions(0, []), [])
