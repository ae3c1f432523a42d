"""Stores with vectors, made through the real writer; the vector of a text is a pure function of it."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from domain.layout import BaseLayout
from domain.vectors import CANARY_TEXTS, PinnedIdentity, VectorIdentity, sent_hash, sent_text
from store import files, vector_queries
from store.documents import SqliteStoreWriter
from store.sqlite import open_store_writer
from store.write_port import DocumentWrite, NewVector, VectorLinks, VectorsWrite, WriteGroup
from tests.support.stores import BASE_ID, document_write

DIMENSION = 24  # no multiple of 64, so that rows of bits are padded
IDENTITY = VectorIdentity("small", "small", DIMENSION, True, "query: ", "{title} | ")
OTHER = IDENTITY._replace(model="large", served_model="large", dimension=70, document_prefix="")


def vector_of(text: str, dimension: int = DIMENSION) -> bytes:
    """Unit length, little-endian float32; another text has another vector."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    values = np.random.default_rng(seed).standard_normal(dimension)
    return (values / np.linalg.norm(values)).astype("<f4").tobytes()


def canary_of(identity: VectorIdentity) -> tuple[bytes, ...]:
    return tuple(vector_of(text, identity.dimension) for text in CANARY_TEXTS)


def pin(writer: SqliteStoreWriter, identity: VectorIdentity = IDENTITY, *, afresh: bool = False) -> PinnedIdentity:
    return writer.pin_identity(identity, canary_of(identity), afresh=afresh)


def sent_texts(write: DocumentWrite, identity: VectorIdentity) -> list[str]:
    """What would be sent for a document's chunks."""
    return [sent_text(identity.document_prefix, row[6], row[8], row[7]) for row in write.chunks]


def links_of(write: DocumentWrite, pinned: PinnedIdentity, *, required: bool = True) -> VectorLinks:
    hashes = tuple(sent_hash(text) for text in sent_texts(write, pinned.identity))
    return VectorLinks(pinned.id, hashes, required)


def new_vectors(write: DocumentWrite, pinned: PinnedIdentity, *, parts: int = 1) -> tuple[NewVector, ...]:
    texts = dict.fromkeys(sent_texts(write, pinned.identity))
    dimension = pinned.identity.dimension
    return tuple(NewVector(pinned.id, sent_hash(text), parts, vector_of(text, dimension)) for text in texts)


def embedded(
    key: str,
    text: str,
    pinned: PinnedIdentity,
    *also: PinnedIdentity,
    generation: int = 1,
    required: bool = True,
    bring: bool = True,
) -> DocumentWrite:
    """A document as a worker hands it over with its vectors; under `also` it is linked where all of them are known."""
    write = document_write(key, text, generation=generation)
    links = (links_of(write, pinned, required=required), *(links_of(write, other, required=False) for other in also))
    return replace(write, links=links, new_vectors=new_vectors(write, pinned) if bring else ())


def vectors_write(key: str, text: str, pinned: PinnedIdentity, *, generation: int = 2) -> VectorsWrite:
    """Vectors for a document that is stored already."""
    write = document_write(key, text)
    return VectorsWrite(key, write.file_hash, generation, links_of(write, pinned), new_vectors(write, pinned))


@contextmanager
def writing(home: Path) -> Iterator[SqliteStoreWriter]:
    """The writer of a store at `home`, made where there is none."""
    layout = BaseLayout(home)
    files.make_home(layout)
    writer = open_store_writer(layout, base_id=BASE_ID, substring_index="auto")
    try:
        yield writer
    finally:
        writer.close()


def put(
    writer: SqliteStoreWriter, texts: Mapping[str, str], pinned: PinnedIdentity, *, generation: int = 1
) -> Sequence[str]:
    """Write documents with their vectors as one group; the verdicts."""
    documents = [embedded(key, text, pinned, generation=generation) for key, text in texts.items()]
    return [answer.verdict for answer in writer.apply(WriteGroup(documents=documents)).results]


def put_words(writer: SqliteStoreWriter, texts: Mapping[str, str], *, generation: int = 1) -> None:
    writer.apply(
        WriteGroup(documents=[document_write(key, text, generation=generation) for key, text in texts.items()])
    )


def cover(writer: SqliteStoreWriter, texts: Mapping[str, str], pinned: PinnedIdentity) -> Sequence[str]:
    """Bring vectors to stored documents; the verdicts."""
    vectors = [vectors_write(key, text, pinned) for key, text in texts.items()]
    return [answer.verdict for answer in writer.apply(WriteGroup(vectors=vectors)).results]


def states(writer: SqliteStoreWriter, keys: Iterable[str] = ()) -> dict[str, str]:
    """vector_state by key."""
    rows = writer.connection.execute("SELECT key, vector_state FROM documents ORDER BY key").fetchall()
    wanted = set(keys)
    return {key: state for key, state in rows if not wanted or key in wanted}


def cover_stored(writer: SqliteStoreWriter, pinned: PinnedIdentity) -> int:
    """Bring vectors to every document that lacks them under an identity, as a run does; how many there were."""
    missing = vector_queries.keys_without_vectors(writer.connection, pinned.id, "", 10_000, "")
    stored = vector_queries.texts_of(writer.connection, [document.key for document in missing])
    dimension, prefix = pinned.identity.dimension, pinned.identity.document_prefix
    writes = []
    for document in stored:
        texts = [sent_text(prefix, *text) for text in document.texts]
        links = VectorLinks(pinned.id, tuple(map(sent_hash, texts)), True)
        vectors = tuple(NewVector(pinned.id, sent_hash(text), 1, vector_of(text, dimension)) for text in texts)
        writes.append(VectorsWrite(document.key, document.file_hash, 1, links, vectors))
    writer.apply(WriteGroup(vectors=writes))
    return len(writes)


def embed_base(
    writer: SqliteStoreWriter, identity: VectorIdentity = IDENTITY, *, afresh: bool = False
) -> PinnedIdentity:
    """Pin, cover, switch."""
    pinned = pin(writer, identity, afresh=afresh)
    cover_stored(writer, pinned)
    writer.activate_identity(pinned.id)
    return pinned
