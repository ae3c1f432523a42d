"""Vectors in the store: written with their documents or after them, linked whole or not at all, switched, collected."""

import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from domain.files import Outcome, Reason
from domain.layout import BaseLayout
from domain.vectors import PinnedIdentity
from store.connection import RowRefusedError
from store.documents import SqliteStoreWriter
from store.vector_port import NO_VECTORS
from store.vector_schema import VECTOR_OBJECTS
from store.write_port import RemoveWrite, WriteGroup
from tests.support.audit import audit
from tests.support.scratch import scratch_directory
from tests.support.stores import document_write
from tests.support.vector_stores import (
    DIMENSION,
    IDENTITY,
    OTHER,
    canary_of,
    cover,
    embedded,
    pin,
    put,
    put_words,
    states,
    vector_of,
    vectors_write,
    writing,
)
from workers.writer.groups import apply_halving

TEXTS = {
    "docs/a.md": "# Alpha\n\nThe quick brown fox.\n\n## Deeper\n\nJumps over the dog.\n",
    "docs/b.md": "# Beta\n\nLazy dogs sleep.\n",
    "docs/c.md": "# Gamma\n\nRivers run.\n\n## More\n\nAnd mountains stand.\n",
}
ROOT = Path(__file__).parents[2]
SAME = "# Same\n\nOne body in two files.\n"


@pytest.fixture
def home() -> Iterator[Path]:
    with scratch_directory() as path:
        yield path / "home"


@pytest.fixture
def writer(home: Path) -> Iterator[SqliteStoreWriter]:
    with writing(home) as opened:
        yield opened


def rows(writer: SqliteStoreWriter, sql: str, *arguments: object) -> list[tuple[object, ...]]:
    return list(writer.connection.execute(sql, arguments).fetchall())


def count(writer: SqliteStoreWriter, table: str) -> int:
    return int(rows(writer, f"SELECT count(*) FROM {table}")[0][0])  # type: ignore[call-overload, no-any-return]  # noqa: S608


def problems(home: Path) -> list[str]:
    """What the audit says, with every vector compared with that of its text."""
    return audit(BaseLayout(home).database, vector_of=vector_of)


def test_there_is_no_vector_table_before_an_identity_is_pinned(home: Path, writer: SqliteStoreWriter) -> None:
    """S0-04: words alone know nothing of vectors."""
    put_words(writer, TEXTS)
    names = {row[0] for row in rows(writer, "SELECT name FROM sqlite_schema")}
    assert not names & VECTOR_OBJECTS
    assert writer.vector_status() == NO_VECTORS
    assert writer.collect_vectors(keep_unused=0) == 0
    assert set(states(writer).values()) == {"none"}
    assert problems(home) == []


def test_the_first_identity_of_an_empty_store_answers_at_once(home: Path, writer: SqliteStoreWriter) -> None:
    before = writer.identity().commit_seq
    pinned = pin(writer)
    assert (pinned.state, pinned.identity, pinned.canary) == ("active", IDENTITY, canary_of(IDENTITY))
    assert writer.vector_status().active == pinned
    assert writer.vector_status().target == pinned
    assert writer.identity().commit_seq == before + 1
    assert pin(writer) == pinned  # again: the same one, and nothing is written
    assert writer.identity().commit_seq == before + 1
    assert problems(home) == []


def test_a_canary_of_another_length_is_not_pinned(writer: SqliteStoreWriter) -> None:
    with pytest.raises(ValueError, match="canary"):
        writer.pin_identity(IDENTITY, canary_of(OTHER))
    assert writer.vector_status() == NO_VECTORS


def test_documents_are_stored_with_their_vectors(home: Path, writer: SqliteStoreWriter) -> None:
    """R4, R18, P6: one row a text, a link a chunk, the state ready; every vector is that of its text."""
    pinned = pin(writer)
    assert put(writer, TEXTS, pinned) == ["applied"] * 3
    assert set(states(writer).values()) == {"ready"}
    assert count(writer, "vector_links") == count(writer, "chunks")
    status = writer.vector_status()
    assert (status.pending_documents, status.pending_chunks) == (0, 0)
    assert problems(home) == []


def test_one_text_has_one_vector(home: Path, writer: SqliteStoreWriter) -> None:
    """S2-27: also where it comes twice in a group, and again later."""
    pinned = pin(writer)
    put(writer, {"docs/x.md": SAME, "docs/y.md": SAME}, pinned)
    put(writer, {"docs/z.md": SAME}, pinned)
    assert count(writer, "embeddings") == 1
    assert count(writer, "vector_links") == 3
    assert problems(home) == []


def test_a_vector_may_come_with_another_document_of_the_group(home: Path, writer: SqliteStoreWriter) -> None:
    pinned = pin(writer)
    first = embedded("docs/x.md", SAME, pinned)
    second = embedded("docs/y.md", SAME, pinned, bring=False)
    assert [a.verdict for a in writer.apply(WriteGroup(documents=[first, second])).results] == ["applied"] * 2
    assert set(states(writer).values()) == {"ready"}
    assert problems(home) == []


def test_a_stale_document_still_brings_its_vectors_for_others(home: Path, writer: SqliteStoreWriter) -> None:
    pinned = pin(writer)
    put(writer, {"docs/x.md": "# Newer\n\nnewer\n"}, pinned, generation=5)
    group = WriteGroup(
        documents=[
            embedded("docs/x.md", SAME, pinned, generation=4),
            embedded("docs/y.md", SAME, pinned, generation=5, bring=False),
        ]
    )
    assert [answer.verdict for answer in writer.apply(group).results] == ["stale", "applied"]
    assert problems(home) == []


def test_a_document_without_all_of_its_required_vectors_is_refused_whole(home: Path, writer: SqliteStoreWriter) -> None:
    """S2-35, P17: nothing of it is committed, and what stood there stands."""
    pinned = pin(writer)
    put(writer, {"docs/a.md": TEXTS["docs/b.md"]}, pinned)
    whole = embedded("docs/a.md", TEXTS["docs/a.md"], pinned, generation=2)
    partial = replace(whole, new_vectors=whole.new_vectors[:-1])
    with pytest.raises(RowRefusedError, match=r"docs/a\.md: 1 of its 2 vectors"):
        writer.apply(WriteGroup(documents=[partial]))
    assert rows(writer, "SELECT body FROM chunks") == [("Lazy dogs sleep.",)]
    assert count(writer, "embeddings") == 1
    assert problems(home) == []


def test_halving_finds_the_document_that_lacks_a_vector(home: Path, writer: SqliteStoreWriter) -> None:
    """S2-35, R24: the others of its group are stored, also those that need a vector which the guilty one brings."""
    pinned = pin(writer)
    first = embedded("docs/0.md", SAME + "\n## Own\n\nown text\n", pinned)
    guilty = replace(first, new_vectors=first.new_vectors[:1])
    others = [embedded(f"docs/{n}.md", SAME, pinned, bring=False) for n in range(1, 8)]
    committed = apply_halving(writer, WriteGroup(documents=[guilty, *others]))
    assert [(failure.key, failure.reason) for failure in committed.refused] == [("docs/0.md", Reason.STORE_REFUSED)]
    assert states(writer) == {write.key: "ready" for write in others}
    assert problems(home) == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda vector: vector[:-4], "bytes"),
        (lambda vector: b"", "bytes"),
        (lambda vector: struct.pack("<f", float("nan")) + vector[4:], "finite"),
        (lambda vector: struct.pack("<f", float("inf")) + vector[4:], "finite"),
        (lambda vector: struct.pack("<f", 3e38) * DIMENSION, "finite"),
        (lambda vector: bytes(len(vector)), "unit length"),
        (lambda vector: (np.frombuffer(vector, "<f4") * np.float32(1.01)).tobytes(), "unit length"),
    ],
)
def test_what_is_no_vector_gets_nowhere_near_the_store(
    home: Path, writer: SqliteStoreWriter, spoil: Callable[[bytes], bytes], words: str
) -> None:
    """Finding 4: not a number, infinite, zero, of another length."""
    pinned = pin(writer)
    good = embedded("docs/a.md", TEXTS["docs/a.md"], pinned)
    bad = replace(good.new_vectors[1], vector=spoil(good.new_vectors[1].vector))
    with pytest.raises(RowRefusedError, match=words):
        writer.apply(WriteGroup(documents=[replace(good, new_vectors=(good.new_vectors[0], bad))]))
    assert count(writer, "embeddings") == count(writer, "documents") == 0
    assert problems(home) == []


@pytest.mark.parametrize("change", [{"sent_hash": b"short"}, {"parts": 0}])
def test_a_vector_without_a_proper_key_is_refused(
    home: Path, writer: SqliteStoreWriter, change: dict[str, Any]
) -> None:
    pinned = pin(writer)
    write = embedded("docs/b.md", TEXTS["docs/b.md"], pinned)
    with pytest.raises(RowRefusedError):
        writer.apply(WriteGroup(documents=[replace(write, new_vectors=(replace(write.new_vectors[0], **change),))]))
    assert problems(home) == []


def test_links_for_another_number_of_chunks_are_refused(home: Path, writer: SqliteStoreWriter) -> None:
    pinned = pin(writer)
    write = embedded("docs/a.md", TEXTS["docs/a.md"], pinned)
    short = replace(write.links[0], sent_hashes=write.links[0].sent_hashes[:1], required=False)
    with pytest.raises(RowRefusedError, match="1 vectors for 2 chunks"):
        writer.apply(WriteGroup(documents=[replace(write, links=(short,))]))


def test_vectors_of_an_identity_that_is_not_pinned_are_refused(home: Path, writer: SqliteStoreWriter) -> None:
    """Also where there is no vector table at all."""
    unknown = PinnedIdentity(7, IDENTITY, (), "active")
    write = embedded("docs/a.md", TEXTS["docs/a.md"], unknown)
    for _ in range(2):
        with pytest.raises(RowRefusedError, match="pinned no more"):
            writer.apply(WriteGroup(documents=[write]))
        pin(writer)
    optional = replace(write, links=(replace(write.links[0], required=False),))
    writer.apply(WriteGroup(documents=[optional]))
    assert states(writer) == {"docs/a.md": "pending"}
    assert count(writer, "embeddings") == 0
    assert problems(home) == []


def test_words_first_and_vectors_after(home: Path, writer: SqliteStoreWriter) -> None:
    """R31, R18: pending until its vectors come, and counted; then ready, as one visible change."""
    pinned = pin(writer)
    put_words(writer, TEXTS)
    status = writer.vector_status()
    assert (status.pending_documents, status.pending_chunks) == (3, 5)
    assert set(states(writer).values()) == {"pending"}
    before = writer.identity().commit_seq
    result = writer.apply(WriteGroup(vectors=[vectors_write(key, text, pinned) for key, text in TEXTS.items()]))
    assert [(a.verdict, a.outcome) for a in result.results] == [("applied", Outcome.EMBEDDED)] * 3
    assert result.commit_seq == writer.identity().commit_seq == before + 1
    assert writer.vector_status().pending_documents == 0
    assert set(states(writer).values()) == {"ready"}
    assert problems(home) == []


def test_vectors_that_come_twice_have_one_effect(home: Path, writer: SqliteStoreWriter) -> None:
    """P4."""
    pinned = pin(writer)
    put_words(writer, TEXTS)
    for _ in range(2):
        assert cover(writer, TEXTS, pinned) == ["applied"] * 3
    assert count(writer, "vector_links") == count(writer, "chunks")
    assert problems(home) == []


def test_vectors_for_what_has_changed_are_stale(home: Path, writer: SqliteStoreWriter) -> None:
    """P5, P6: another content, a document that is gone, an identity that is given up."""
    pinned = pin(writer)
    put_words(writer, TEXTS)
    put_words(writer, {"docs/a.md": TEXTS["docs/c.md"]}, generation=2)
    writer.apply(WriteGroup(removes=[RemoveWrite("docs/b.md", time.time_ns(), 2)]))
    assert cover(writer, TEXTS, pinned) == ["stale", "stale", "applied"]
    assert states(writer) == {"docs/a.md": "pending", "docs/c.md": "ready"}
    unknown = PinnedIdentity(9, IDENTITY, (), "building")
    assert cover(writer, {"docs/a.md": TEXTS["docs/c.md"]}, unknown) == ["stale"]
    assert problems(home) == []


def test_vectors_beside_a_replacement_in_one_group_are_stale(home: Path, writer: SqliteStoreWriter) -> None:
    """P6: two pages of a run may meet in a group; as many chunks do not make it the same document."""
    pinned = pin(writer)
    put_words(writer, {"docs/a.md": TEXTS["docs/a.md"], "docs/b.md": TEXTS["docs/b.md"]})
    group = WriteGroup(
        documents=[document_write("docs/a.md", TEXTS["docs/c.md"], generation=2)],
        removes=[RemoveWrite("docs/b.md", time.time_ns(), 2)],
        vectors=[vectors_write(key, TEXTS[key], pinned) for key in ("docs/a.md", "docs/b.md")],
    )
    assert [answer.verdict for answer in writer.apply(group).results] == ["applied", "applied", "stale", "stale"]
    assert states(writer) == {"docs/a.md": "pending"}
    assert problems(home) == []


def test_vectors_without_all_of_them_are_refused(home: Path, writer: SqliteStoreWriter) -> None:
    pinned = pin(writer)
    put_words(writer, TEXTS)
    write = vectors_write("docs/a.md", TEXTS["docs/a.md"], pinned)
    optional = replace(write.links, required=False)
    with pytest.raises(RowRefusedError, match="2 of its 2"):
        writer.apply(WriteGroup(vectors=[replace(write, new_vectors=(), links=optional)]))
    assert states(writer, ["docs/a.md"]) == {"docs/a.md": "pending"}
    assert problems(home) == []


def test_a_document_is_linked_at_once_where_all_is_known(home: Path, writer: SqliteStoreWriter) -> None:
    """R19, R31: a restored file finds its vectors again; one that lacks a vector has none of them."""
    pinned = pin(writer)
    put(writer, TEXTS, pinned)
    writer.apply(WriteGroup(removes=[RemoveWrite("docs/a.md", time.time_ns(), 2)]))
    assert count(writer, "embeddings") == 5
    again = embedded("docs/a.md", TEXTS["docs/a.md"], pinned, generation=3, required=False, bring=False)
    partly = embedded("docs/d.md", TEXTS["docs/a.md"] + "\n## New\n\nnew words\n", pinned, required=False, bring=False)
    writer.apply(WriteGroup(documents=[again, partly]))
    assert states(writer, ["docs/a.md", "docs/d.md"]) == {"docs/a.md": "ready", "docs/d.md": "pending"}
    assert problems(home) == []


def test_a_shrinking_file_leaves_no_link(home: Path, writer: SqliteStoreWriter) -> None:
    """S0-27, P7; and its vectors stay, for a file that comes back."""
    pinned = pin(writer)
    put(writer, TEXTS, pinned)
    put(writer, {"docs/a.md": TEXTS["docs/b.md"]}, pinned, generation=2)
    assert count(writer, "vector_links") == count(writer, "chunks") == 4
    assert count(writer, "embeddings") == 5
    assert problems(home) == []


def test_ids_of_vectors_are_never_used_again(home: Path, writer: SqliteStoreWriter) -> None:
    """A reader follows what is new behind the last id that it has seen."""
    pinned = pin(writer)
    put(writer, {"docs/b.md": TEXTS["docs/b.md"]}, pinned)
    last = rows(writer, "SELECT max(id) FROM embeddings")
    writer.apply(WriteGroup(removes=[RemoveWrite("docs/b.md", time.time_ns(), 2)]))
    assert writer.collect_vectors(keep_unused=0) == 1
    assert count(writer, "embeddings") == count(writer, "vector_blocks") == 0
    put(writer, {"docs/b.md": TEXTS["docs/b.md"]}, pinned, generation=3)
    assert rows(writer, "SELECT max(id) FROM embeddings") > last
    assert problems(home) == []


def test_words_alone_never_load_numpy(home: Path) -> None:
    """S0-04: it takes a tenth of a second, which a search for words does not have."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from store.rebuilding import rebuild\n"
        "from tests.support.stores import build_store, change_store, open_snapshot\n"
        "path = build_store(Path(sys.argv[1]), {'docs/a.md': '# A\\n\\nwords\\n'})\n"
        "change_store(Path(sys.argv[1]), removed=('docs/a.md',))\n"
        "with open_snapshot(path) as snapshot:\n"
        "    snapshot.vector_status(), snapshot.vector_counts()\n"
        "sys.exit('numpy' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
