"""Any order of writes, switches and collections: no vector on a wrong chunk, no link too many or too few (P6, P7)."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from domain.errors import IntegrityError
from domain.layout import BaseLayout
from domain.vectors import VectorIdentity
from store import rebuilding, vector_blocks
from store.documents import SqliteStoreWriter
from store.write_port import RemoveWrite, WriteGroup
from tests.support.audit import audit
from tests.support.stores import document_write
from tests.support.vector_stores import (
    IDENTITY,
    OTHER,
    cover_stored,
    embedded,
    pin,
    vector_of,
    vectors_write,
    writing,
)

STEPS = 60
WORDS = ("amber", "basalt", "cobalt", "delta", "ember", "fjord")


@dataclass(slots=True)
class Editor:
    """Acts on a store at random; `texts` is what must be stored."""

    writer: SqliteStoreWriter
    source: random.Random
    generation: int = 1
    texts: dict[str, str] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)

    def step(self) -> None:
        acts: list[Callable[[], None]] = [self.write, self.write, self.words, self.remove, self.stale, self.cover_some]
        acts += [self.cover, self.switch, self.collect, self.pin, self.rebuild]
        act = self.source.choice(acts)
        self.history.append(act.__name__)
        self.generation += 1
        act()

    def some(self) -> dict[str, str]:
        """New texts for a few keys: few words and few keys, so that texts and vectors meet again."""
        keys = self.source.sample([f"docs/{number}.md" for number in range(12)], self.source.randrange(1, 6))
        parts = [[self.source.choice(WORDS) for _ in range(self.source.randrange(1, 4))] for _ in keys]
        return {
            key: "".join(f"# {word}\n\n{word} body\n\n" for word in own) for key, own in zip(keys, parts, strict=True)
        }

    def write(self) -> None:
        status, texts = self.writer.vector_status(), self.some()
        if status.target is None:
            self.words()
            return
        beside = (status.active,) if status.active is not None and status.building is not None else ()
        documents = [
            embedded(key, text, status.target, *beside, generation=self.generation) for key, text in texts.items()
        ]
        self.writer.apply(WriteGroup(documents=documents))
        self.texts |= texts

    def words(self) -> None:
        texts = self.some()
        documents = [document_write(key, text, generation=self.generation) for key, text in texts.items()]
        self.writer.apply(WriteGroup(documents=documents))
        self.texts |= texts

    def remove(self) -> None:
        keys = self.source.sample(sorted(self.texts), min(len(self.texts), 3))
        removes = [RemoveWrite(key, time.time_ns(), self.generation) for key in keys]
        self.writer.apply(WriteGroup(removes=removes))
        for key in keys:
            del self.texts[key]

    def stale(self) -> None:
        """Vectors of texts that may not be stored (any more)."""
        target = self.writer.vector_status().target
        if target is not None:
            texts = self.some()
            self.writer.apply(WriteGroup(vectors=[vectors_write(key, text, target) for key, text in texts.items()]))

    def cover_some(self) -> None:
        target = self.writer.vector_status().target
        if target is not None:
            keys = self.source.sample(sorted(self.texts), len(self.texts) // 2)
            self.writer.apply(WriteGroup(vectors=[vectors_write(key, self.texts[key], target) for key in keys]))

    def cover(self) -> None:
        target = self.writer.vector_status().target
        if target is not None:
            cover_stored(self.writer, target)

    def switch(self) -> None:
        building = self.writer.vector_status().building
        if building is not None:
            missing = self.writer.vector_status()
            try:
                self.writer.activate_identity(building.id)
            except IntegrityError:
                assert self.writer.vector_status() == missing

    def collect(self) -> None:
        self.writer.collect_vectors(keep_unused=self.source.choice((0, 3, 100)))

    def pin(self) -> None:
        identity: VectorIdentity = self.source.choice((IDENTITY, IDENTITY, OTHER))
        pin(self.writer, identity, afresh=self.source.random() < 0.2)

    def rebuild(self) -> None:
        path = Path(self.writer.connection.execute("PRAGMA database_list").fetchone()[2])
        rebuilding.rebuild(self.writer.connection, path)


@pytest.mark.parametrize("seed", range(4))
def test_any_order_leaves_the_store_whole(place: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(vector_blocks, "BLOCK_ROWS", 8)
    home = place / "home"
    with writing(home) as writer:
        editor = Editor(writer, random.Random(seed))
        for _ in range(STEPS):
            editor.step()
            assert audit(BaseLayout(home).database, vector_of=vector_of) == [], editor.history
            stored = [row[0] for row in writer.connection.execute("SELECT key FROM documents ORDER BY key").fetchall()]
            assert stored == sorted(editor.texts), editor.history
