"""`knowledge eval recall`: what a search by meaning finds against a comparison with every vector."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.evaluation_recall import Probe, exact_nearest, measure, measure_recall, read_queries
from app.evaluation_vectors import local_embeddings
from app.present_evaluation import recall_json, recall_text
from cli.main import run
from domain.errors import NotBuiltError, SemanticNotConfiguredError, UsageError
from domain.settings import Settings
from store import driver
from store.connection import open_reader
from store.port import Visibility
from store.sqlite import SqliteStore
from store.vector_port import VectorFind
from store.vector_recall import linked_ids, vectors_of
from tests.support.runs import base_in
from tests.support.scratch import scratch_directory

WORDS = "bread oven lighthouse cliff kettle water stove burner river boat garden fence".split()  # noqa: SIM905
LOCAL = local_embeddings()


@pytest.fixture(scope="module")
def indexed() -> Iterator[Settings]:
    """Forty texts of a few words, two of them the same, with the vectors of the local model."""
    with scratch_directory() as place:
        (place / "docs").mkdir()
        for number in range(40):
            at = 0 if number == 39 else number
            text = f"The {WORDS[at % 12]} and the {WORDS[(at * 5 + at // 12) % 12]} beside the {WORDS[(at * 7) % 12]}."
            (place / "docs" / f"{number}.md").write_text(text, encoding="utf-8")
        base = base_in(place, embeddings=LOCAL)
        base.index(place / "docs")
        yield base.settings


@pytest.fixture
def connection(indexed: Settings) -> Iterator[driver.Connection]:
    with closing(open_reader(indexed.home / "knowledge.db")) as connection:
        yield connection


def test_a_small_index_is_compared_whole_and_all_is_found(indexed: Settings) -> None:
    report = measure_recall(indexed, samples=20, queries=("a hot oven", "boats on the water"))
    stored, asked = report.scores
    assert (stored.source, len(stored.recalls), stored.recall_10, stored.method) == ("stored vectors", 20, 1.0, "exact")
    assert (asked.source, asked.recalls) == ("queries", (1.0, 1.0))
    assert report.vectors == 39  # the copy shares its vector
    assert report.dimension == 256
    text = recall_text(report)
    assert "stored vectors      20     1.0000    1.0  all compared" in text
    assert "nothing is approximate" in text
    assert recall_json(report)["sources"][0]["recall_10"] == 1.0


def test_what_is_not_found_is_counted(indexed: Settings, connection: driver.Connection) -> None:
    """A search that never gives the two nearest of ten others finds eight of them."""
    store = SqliteStore(indexed.home / "knowledge.db", base_id=None)
    with closing(store), store.snapshot() as snapshot:
        active = snapshot.vector_status().active
        assert active is not None
        ids = linked_ids(connection, active.id)
        probes = [Probe(vector, own) for own, vector in vectors_of(connection, ids[5:15]).items()]

        def whole(vector: bytes) -> VectorFind:
            return snapshot.nearest(vector, limit=50, scope=None, visibility=Visibility.everything())

        def blind(vector: bytes) -> VectorFind:
            hits = whole(vector).hits
            own = sum(hit.similarity > 0.9999 for hit in hits)
            return VectorFind([*hits[:own], *hits[own + 2 : own + 10]], "bits")

        assert measure(connection, active, "stored vectors", probes, whole).recalls == (1.0,) * 10
        found = measure(connection, active, "stored vectors", probes, blind)
        assert found.method == "bits"
        assert found.recall_10 == pytest.approx(0.8, abs=0.05)
        nearest = exact_nearest(connection, active, probes)
        assert all(len(row) == 10 and row == sorted(row, reverse=True) for row in nearest)
        assert all(similarity < 0.9999 for row in nearest for similarity in row)  # never the probe itself


@pytest.mark.parametrize("samples", [0, -1, 10_001])
def test_the_number_of_samples_is_bounded(indexed: Settings, samples: int) -> None:
    with pytest.raises(UsageError, match="--samples takes a number from 1 to 10,000"):
        measure_recall(indexed, samples=samples)


def test_without_vectors_there_is_nothing_to_measure(template: Settings, tmp_path: Path) -> None:
    with pytest.raises(SemanticNotConfiguredError, match="holds no vectors"):
        measure_recall(template)
    with pytest.raises(NotBuiltError):
        measure_recall(base_in(tmp_path).settings)


def test_queries_are_lines_with_or_without_an_id(tmp_path: Path) -> None:
    path = tmp_path / "queries"
    path.write_text("\ufeffq1\ta hot oven\n\nboats\r\n", encoding="utf-8")
    assert read_queries(path) == ("a hot oven", "boats")
    path.write_bytes(b"\xff\n")
    for unreadable in (path, tmp_path / "nowhere", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            read_queries(unreadable)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(UsageError, match="holds no query"):
        read_queries(path)


def test_the_command_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["eval", "recall"]) == 10
    assert "there is no index yet at" in capsys.readouterr().err
    assert run(["eval", "recall", "--queries", "nowhere"]) == 2
