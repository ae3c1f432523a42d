"""The vectors of an upgrade: what a model was paid for is taken over where it fits, and what does not fit is told."""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from app.index_request import EmbeddingNotice
from app.progress import RunProgress
from app.upgrade_report import UpgradeReport, UpgradeRequest, UpgradeStatus
from app.upgrading import upgrade
from domain.errors import EmbeddingsChangedError, EmbeddingsUnavailableError, FormatError
from domain.settings import QueueSettings
from store import upgrade_vectors
from tests.support.embedding_server import EmbeddingServer
from tests.support.old_stores import FOREIGN_LAYOUT, NO_LAYOUT_ROW, OLD, OTHER_VECTOR_SHAPE, MakeOld, by, rows_of
from tests.support.runs import Base, nothing_left
from tests.support.trees import make_tree
from tests.support.vector_runs import assert_whole, base_with, states, texts_of, tree_of, with_embeddings

FILES, CHUNKS = 6, 3
TEXTS = FILES * CHUNKS
CORES = ("only its number", "a column less", "a table less", "no full text", "documents of another name")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", tree_of(FILES, CHUNKS))


@pytest.fixture
def indexed(vector_base: Base, docs: Path, embedder: EmbeddingServer) -> Base:
    vector_base.index(docs)
    embedder.requests.clear()
    return vector_base


def upgraded(base: Base, notices: list[EmbeddingNotice] | None = None, **request: Any) -> UpgradeReport:
    told: list[EmbeddingNotice] = [] if notices is None else notices
    wanted = UpgradeRequest(worker_processes=0, **request)
    with nothing_left(base):
        return upgrade(base.settings, wanted, RunProgress(), told.append)


def left_of(report: UpgradeReport) -> list[tuple[str, int | None]]:
    return [(left.reason, left.number) for left in report.vectors.left]


@pytest.mark.parametrize("kind", CORES)
def test_nothing_is_embedded_where_nothing_has_changed(indexed: Base, embedder: EmbeddingServer, kind: str) -> None:
    """Whatever else of the index is another: each vector is taken over, and no request is made, not even a probe."""
    OLD[kind](indexed.layout.database)
    report = upgraded(indexed)
    assert embedder.requests == []
    assert report.vectors == (TEXTS, ())
    assert report.index is not None
    assert report.index.vectors is not None
    assert (report.index.vectors.embedded, report.index.vectors.reused) == (0, TEXTS)
    assert states(indexed) == {"ready": FILES}
    assert_whole(indexed)
    assert indexed.index().counts == {"unchanged": FILES}


def test_the_layout_is_pinned_with_the_tables(indexed: Base, embedder: EmbeddingServer) -> None:
    """A store that was made before there was such a row has layout 1, and opens as before."""
    assert indexed.rows("SELECT value FROM meta WHERE key = 'vectors_layout'") == [("1",)]
    indexed.execute("DELETE FROM meta WHERE key = 'vectors_layout'")
    assert indexed.index().counts == {"unchanged": FILES}
    NO_LAYOUT_ROW(indexed.layout.database)
    assert upgraded(indexed).vectors == (TEXTS, ())
    assert embedder.requests == []
    assert indexed.rows("SELECT value FROM meta WHERE key = 'vectors_layout'") == [("1",)]


def test_a_server_that_is_away_is_not_missed(indexed: Base, embedder: EmbeddingServer) -> None:
    embedder.take_down()
    OLD["a table less"](indexed.layout.database)
    assert upgraded(indexed).status is UpgradeStatus.UPGRADED
    assert_whole(indexed)


def test_only_what_is_new_is_embedded(indexed: Base, docs: Path, embedder: EmbeddingServer) -> None:
    make_tree(docs, {"00/001.md": "# Other\n\nquite another text\n", "new.md": "# New\n\nnew words\n"})
    OLD["only its number"](indexed.layout.database)
    upgraded(indexed)
    assert sorted(texts_of(embedder)) == ["New\n\nnew words", "Other\n\nquite another text"]
    assert_whole(indexed)


@pytest.mark.parametrize(("make_old", "reason"), [(FOREIGN_LAYOUT, "layout"), (OTHER_VECTOR_SHAPE, "shape")])
def test_vectors_of_another_layout(indexed: Base, embedder: EmbeddingServer, make_old: MakeOld, reason: str) -> None:
    """None is taken, and it is said why; where the texts go is told before the first one goes."""
    make_old(indexed.layout.database)
    notices: list[EmbeddingNotice] = []
    report = upgraded(indexed, notices)
    assert (report.vectors.number, left_of(report)) == (0, [(reason, TEXTS)])
    assert len(texts_of(embedder)) == TEXTS
    assert [(notice.host, notice.files) for notice in notices] == [(embedder.host, FILES)]
    assert_whole(indexed)


@pytest.mark.parametrize("change", [{"model": "another"}, {"document_prefix": "passage: "}])
def test_another_identity(indexed: Base, embedder: EmbeddingServer, change: dict[str, str]) -> None:
    OLD["only its number"](indexed.layout.database)
    other = with_embeddings(indexed, embedder, **change)
    assert left_of(upgraded(other, dry_run=True)) == [("identity", TEXTS)]
    assert embedder.requests == []
    report = upgraded(other)
    assert left_of(report) == [("identity", TEXTS)]
    assert next(iter(change)) in report.vectors.left[0].detail
    assert len(texts_of(embedder)) == TEXTS
    assert_whole(other)


def test_without_embeddings_in_the_configuration(indexed: Base, embedder: EmbeddingServer) -> None:
    """The set that answered is kept: when the configuration has embeddings again, nothing is embedded twice."""
    OLD["a column less"](indexed.layout.database)
    report = upgraded(with_embeddings(indexed, None))
    assert report.vectors == (TEXTS, ())
    assert indexed.rows("SELECT count(*) FROM embeddings") == [(TEXTS,)]
    assert indexed.index().state == "done"
    assert texts_of(embedder) == []
    assert_whole(indexed)


def test_a_set_that_was_being_built(indexed: Base, embedder: EmbeddingServer) -> None:
    """One that fits is taken, also where it was never complete."""
    other = with_embeddings(indexed, embedder, model="another")
    embedder.behaviour.poison, embedder.behaviour.poison_status = "text 1 of file 3", 400
    other.index(reindex=True)
    other.execute("UPDATE vector_identities SET state = 'building'")
    embedder.behaviour.poison = ""
    embedder.requests.clear()
    OLD["only its number"](other.layout.database)
    report = upgraded(other)
    made = report.vectors.number
    assert 0 < made < TEXTS
    assert len(texts_of(embedder)) == TEXTS - made
    assert_whole(other)


def test_vectors_that_are_none(indexed: Base, embedder: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another length, not finite, not of unit length: these texts are embedded again, the others are not."""
    monkeypatch.setattr(upgrade_vectors, "PAGE_BYTES", 400)  # a few at a time
    size = len(indexed.rows("SELECT vector FROM embeddings LIMIT 1")[0][0])
    bad = [b"x", np.full(size // 4, np.nan, "<f4").tobytes(), np.ones(size // 4, "<f4").tobytes()]
    for number, vector in zip((2, 7, 18), bad, strict=True):
        indexed.execute("UPDATE embeddings SET vector = ? WHERE id = ?", vector, number)
    OLD["only its number"](indexed.layout.database)
    report = upgraded(indexed)
    assert (report.vectors.number, left_of(report)) == (TEXTS - 3, [("unsound", 3)])
    assert len(texts_of(embedder)) == 3
    assert_whole(indexed)


def answers_as_another(server: EmbeddingServer) -> None:
    """The same name and dimension, other vectors."""
    dimension = server.behaviour.dimension

    def other_vector(text: str) -> list[float]:
        values = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(dimension)
        found: list[float] = (values / np.linalg.norm(values)).tolist()
        return found

    server.behaviour.vector_for = other_vector


def vectors_in(path: Path) -> set[bytes]:
    return {row[0] for row in rows_of(path, "SELECT vector FROM embeddings")}


def test_another_model_under_the_same_name(indexed: Base, docs: Path, embedder: EmbeddingServer) -> None:
    """T25: seen at the first text that has to be embedded; the old index stands, and `--re-embed` makes all anew."""
    OLD["only its number"](indexed.layout.database)
    make_tree(docs, {"new.md": "# New\n\nnew words\n"})
    answers_as_another(embedder)
    before = indexed.layout.database.read_bytes()
    with pytest.raises(EmbeddingsChangedError) as caught:
        upgraded(indexed)
    assert "knowledge upgrade --re-embed" in caught.value.hint
    assert indexed.layout.database.read_bytes() == before
    assert indexed.last_run()[:2] == ("failed", "embeddings_changed")
    embedder.requests.clear()
    report = upgraded(indexed, re_embed=True)
    assert left_of(report) == [("re_embed", TEXTS)]
    assert len(texts_of(embedder)) == TEXTS + 1
    assert states(indexed) == {"ready": FILES + 1}


def test_a_re_embedding_that_was_cut_short_is_gone_on_with(indexed: Base, embedder: EmbeddingServer) -> None:
    """What it has made stays, and the old set is not mixed into it."""
    OLD["only its number"](indexed.layout.database)
    old = vectors_in(indexed.layout.database)
    answers_as_another(embedder)
    assert indexed.settings.embeddings is not None
    slow = replace(indexed.settings.embeddings, batch=1, concurrency=1, outage_limit_s=2.0)
    base = Base(replace(indexed.settings, embeddings=slow, queue=QueueSettings(files_per_job=1)))
    # three texts go before (the probe); of 14 more, six files of three texts cannot all lack one
    embedder.behaviour.down_after, embedder.behaviour.down_for_s = 17, 600.0
    with pytest.raises(EmbeddingsUnavailableError) as caught:
        upgraded(base, re_embed=True)
    assert caught.value.hint.endswith("; the old index is as it was; run `knowledge upgrade` again: it goes on")
    made = vectors_in(base.layout.upgrading.database)
    assert 0 < len(made) < TEXTS
    embedder.behaviour.down_after = None
    embedder.bring_up()
    report = upgraded(base)
    assert (report.is_continued, left_of(report)) == (True, [("re_embed", TEXTS)])
    now = vectors_in(base.layout.database)
    assert made <= now
    assert len(now) == TEXTS
    assert not old & now
    assert states(base) == {"ready": FILES}


def test_words_do_not_wait_where_they_need_not(tmp_path: Path, docs: Path, embedder: EmbeddingServer) -> None:
    """R31, `words_first`: the switch is made, the rest is told as a run tells it."""
    with base_with(tmp_path, embedder, commit="words_first", outage_limit_s=0.2) as base:
        base.index(docs)
        make_tree(docs, {"new.md": "# New\n\nnew words\n"})
        OLD["only its number"](base.layout.database)
        embedder.take_down()
        with pytest.raises(EmbeddingsUnavailableError) as caught:
            upgraded(base)
        assert "; the upgrade is done, and words are searched" in caught.value.hint
        assert states(base) == {"ready": FILES, "pending": 1}
        embedder.bring_up()
        base.index()
        assert_whole(base)


def test_a_newer_layout_in_an_index_of_this_format(indexed: Base) -> None:
    """Its vectors mean something that this program does not know."""
    by("UPDATE meta SET value = '2' WHERE key = 'vectors_layout'", version=None)(indexed.layout.database)
    with pytest.raises(FormatError, match="layout '2'") as caught:
        upgraded(indexed)
    assert "upgrade this program" in caught.value.hint
