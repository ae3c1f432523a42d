"""Searches over small stores whose model knows which words mean the same (fake_embedder.GROUPS)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from app.query_embedder import QueryEmbedder
from app.searching import answer
from domain.settings import EmbeddingsSettings
from domain.vectors import CANARY_TEXTS, PinnedIdentity, VectorIdentity, sent_hash
from embedding.port import Expected
from retrieval.answer import SearchAnswer, SearchRequest
from retrieval.query_vector import Stopped
from store.documents import SqliteStoreWriter
from store.sqlite import SqliteStore
from store.write_port import NewVector, VectorLinks, WriteGroup
from tests.support.fake_embedder import GROUPS, FakeEmbedder
from tests.support.stores import BASE_ID, document_write
from tests.support.vector_stores import sent_texts, writing

DIMENSION = 256
IDENTITY = VectorIdentity("fake-model", "fake-model", DIMENSION, True, "q: ", "d: ")
SETTINGS = EmbeddingsSettings(model="fake-model", query_prefix="q: ", document_prefix="d: ")
TEXTS = {
    "d/oven.md": "# Baking\n\nThe loaf rests overnight.\n",
    "d/wheels.md": "# Garage\n\nAn automobile with a flat tyre.\n",
    "d/noon.md": "# Practice\n\nThe physician sees patients at noon.\n",
    "d/letters.md": "# Letters\n\nOur dwelling stands beside the river.\n",
    "d/again.md": "# Garage\n\nAn automobile with a flat tyre.\n",
}


class MeaningBase:
    """A store, the model that its vectors were made with, and searches over it."""

    def __init__(self, home: Path, settings: EmbeddingsSettings | None = SETTINGS) -> None:
        self.home = home
        self.settings = settings
        self.fake = FakeEmbedder(DIMENSION, groups=GROUPS)
        self.made: list[tuple[EmbeddingsSettings, Expected]] = []

    def pin(self, identity: VectorIdentity = IDENTITY) -> PinnedIdentity:
        with writing(self.home) as writer:
            return writer.pin_identity(identity, tuple(map(self.fake.vector_of, CANARY_TEXTS)), afresh=False)

    def put(self, texts: Mapping[str, str], pinned: PinnedIdentity) -> None:
        with writing(self.home) as writer:
            self.write(writer, texts, pinned)
            writer.close_generation(1, complete=True)

    def write(self, writer: SqliteStoreWriter, texts: Mapping[str, str], pinned: PinnedIdentity) -> None:
        prefix = pinned.identity.document_prefix
        for key, text in texts.items():
            write = document_write(key, text)
            sent = sent_texts(write, pinned.identity)
            vectors = [self.fake.vector_of(one.removeprefix(prefix)) for one in sent]
            hashes = tuple(map(sent_hash, sent))
            new = [NewVector(pinned.id, *pair) for pair in zip(hashes, (1,) * len(sent), vectors, strict=True)]
            write = replace(write, links=(VectorLinks(pinned.id, hashes, True),), new_vectors=tuple(new))
            (applied,) = writer.apply(WriteGroup(documents=[write])).results
            assert applied.verdict == "applied"

    def make(self, settings: EmbeddingsSettings, expected: Expected) -> FakeEmbedder:
        self.made.append((settings, expected))
        return self.fake

    def ask(self, query: str, *, stopped: Stopped | None = None, **options: Any) -> SearchAnswer:
        embedder = QueryEmbedder(self.settings, make=self.make) if self.settings is not None else None
        try:
            meaning = embedder.meaning(stopped) if embedder is not None else None
            with self.opened() as store:
                return answer(store, SearchRequest(query, **options), meaning)
        finally:
            if embedder is not None:
                embedder.close()

    @contextmanager
    def opened(self) -> Iterator[SqliteStore]:
        store = SqliteStore(self.home / "knowledge.db", base_id=BASE_ID)
        try:
            yield store
        finally:
            store.close()


def paths(found: SearchAnswer) -> list[str]:
    return [hit.path for hit in found.results]
