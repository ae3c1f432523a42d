"""Small stores from {key: text}, made through the real chunker and the real writer."""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal

from domain.files import FileStat
from domain.keys import is_plain_text, root_of
from domain.layout import BaseLayout
from store import files
from store.sqlite import SqliteSnapshot, SqliteStore, open_store_writer
from store.write_port import DocumentWrite, RemoveWrite, WriteGroup
from workers.checking import chunk_rows
from workers.chunker import cut

BASE_ID = "base-of-tests"
SubstringIndex = Literal["auto", "on", "off"]
OpenStore = Callable[[Mapping[str, str]], AbstractContextManager[SqliteSnapshot]]


def document_write(
    key: str, text: str, *, generation: int = 1, substring_index: SubstringIndex = "auto"
) -> DocumentWrite:
    """A document as a worker would hand it over."""
    document = cut(text, key, markdown=not is_plain_text(key))
    raw = text.encode()
    digest = hashlib.sha256(raw).digest()
    return DocumentWrite(
        key=key,
        root=root_of(key),
        stat=FileStat(len(raw), 1_700_000_000_000_000_000, 1, 1, 1),
        checked_ns=1,
        observed_ns=time.time_ns(),
        generation=generation,
        file_hash=digest,
        content_hash=digest,
        title=document.title,
        warnings="[]",
        tail=document.tail,
        chunks=chunk_rows(document, substring_index),
        text_bytes=len(raw),
    )


def build_store(
    home: Path,
    texts: Mapping[str, str],
    *,
    substring_index: SubstringIndex = "auto",
    complete: bool = True,
    documents_a_group: int = 64,
) -> Path:
    """Write the texts, in the mapping's order, into a new store below `home`; the path of its database."""
    layout = BaseLayout(home)
    files.make_home(layout)
    writer = open_store_writer(layout, base_id=BASE_ID, substring_index=substring_index)
    try:
        writes = [document_write(key, text, substring_index=substring_index) for key, text in texts.items()]
        for start in range(0, len(writes), documents_a_group):
            writer.apply(WriteGroup(documents=writes[start : start + documents_a_group]))
        if complete:
            writer.close_generation(1, complete=True)
    finally:
        writer.close()
    return layout.database


def change_store(
    home: Path, *, texts: Mapping[str, str] | None = None, removed: tuple[str, ...] = (), generation: int = 2
) -> None:
    """Put texts under new or old keys, and remove others, in a store that `build_store` made."""
    writer = open_store_writer(BaseLayout(home), base_id=BASE_ID, substring_index="auto")
    try:
        writer.apply(
            WriteGroup(
                documents=[document_write(key, text, generation=generation) for key, text in (texts or {}).items()],
                removes=[RemoveWrite(key, time.time_ns(), generation) for key in removed],
            )
        )
    finally:
        writer.close()


@contextmanager
def open_snapshot(database: Path) -> Iterator[SqliteSnapshot]:
    store = SqliteStore(database, base_id=BASE_ID)
    try:
        with store.snapshot() as snapshot:
            yield snapshot
    finally:
        store.close()
