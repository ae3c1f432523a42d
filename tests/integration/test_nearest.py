"""The vector lane's read: the chunks nearest to a vector, compared one by one or through packed signs."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from domain.errors import EmbeddingsChangedError, IntegrityError
from store import driver, nearest, vector_memory
from store.port import Scope, Visibility
from store.sqlite import SqliteStore
from store.vector_port import VectorFind
from tests.support.stores import BASE_ID, build_store, open_snapshot
from tests.support.vectors import Vectors, add, changing, clustered, link, pack, pin, unit

DIMENSION = 100  # no whole number of words of 64 bits
EVERYTHING = Visibility.everything()


@pytest.fixture(autouse=True)
def no_memory_of_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(vector_memory, "memory", vector_memory.VectorMemory())
    yield


@pytest.fixture
def through_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small stores are looked at as large ones are."""
    monkeypatch.setattr(nearest, "MOST_EXACT_WARM", -1)


def store_of(tmp_path: Path, vectors: Vectors, *, block: int = 64) -> Path:
    """A store without documents whose chunks 1.. have these vectors, in this order."""
    database = build_store(tmp_path / "home", {})
    with changing(database) as connection:
        pin(connection, vectors.shape[1])
        ids = add(connection, vectors, block=block)
        link(connection, dict(enumerate(ids, 1)))
    return database


def find(
    database: Path,
    query: Vectors,
    *,
    limit: int = 10,
    scope: Scope | None = None,
    visibility: Visibility = EVERYTHING,
) -> VectorFind:
    with open_snapshot(database) as snapshot:
        return snapshot.nearest(query.astype("<f4").tobytes(), limit=limit, scope=scope, visibility=visibility)


def chunks(found: VectorFind) -> list[int]:
    return [hit.chunk for hit in found.hits]


def expected(vectors: Vectors, query: Vectors, limit: int, among: "list[int] | None" = None) -> list[int]:
    """Chunks by a comparison with every vector."""
    similarities = vectors @ query
    order = sorted(range(len(vectors)), key=lambda at: (-similarities[at], at))
    return [at + 1 for at in order if among is None or at + 1 in among][:limit]


def test_few_vectors_are_all_compared(tmp_path: Path) -> None:
    """S2-42, S2-47: by cosine, over every stored vector."""
    vectors = clustered(300, DIMENSION)
    database = store_of(tmp_path, vectors)
    query = unit(vectors[17] + 0.01)
    found = find(database, query)
    assert found.method == "exact"
    assert chunks(found) == expected(vectors, query, 10)
    assert [hit.similarity for hit in found.hits] == pytest.approx(sorted(vectors @ query, reverse=True)[:10], abs=1e-5)


def test_without_extensions_the_answer_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clustered(300, DIMENSION)
    database = store_of(tmp_path, vectors)
    query = unit(vectors[17] + 0.01)
    with_them = find(database, query)
    monkeypatch.setattr(driver, "_vector_library", lambda: None)
    without = find(database, query)
    assert chunks(without) == chunks(with_them)
    assert [hit.similarity for hit in without.hits] == pytest.approx([hit.similarity for hit in with_them.hits])


def test_the_connection_loads_no_other_extension_afterwards(tmp_path: Path) -> None:
    database = store_of(tmp_path, clustered(5, DIMENSION))
    with open_snapshot(database) as snapshot:
        snapshot.nearest(bytes(4 * DIMENSION), limit=1, scope=None, visibility=EVERYTHING)
        with pytest.raises(driver.Error):
            snapshot._connection.load_extension("vec0")
        with pytest.raises(driver.Error):
            snapshot._connection.execute("SELECT load_extension('vec0')")


@pytest.mark.usefixtures("through_signs")
@pytest.mark.parametrize("dimension", [64, 100, 384])
def test_many_vectors_are_found_through_their_signs(tmp_path: Path, dimension: int) -> None:
    vectors = clustered(9_000, dimension)
    database = store_of(tmp_path, vectors, block=1024)
    right = 0
    for at in range(0, 9_000, 450):
        query = unit(vectors[at] + 0.2 * clustered(1, dimension, seed=at)[0])
        found = find(database, query)
        assert found.method == "bits"
        assert [hit.similarity for hit in found.hits] == pytest.approx(
            [float(vectors[hit.chunk - 1] @ query) for hit in found.hits], abs=1e-5
        )
        right += len(set(chunks(found)) & set(expected(vectors, query, 10)))
    assert right >= 0.98 * 200


@pytest.mark.parametrize("ranges", [((40, 90),), ((3, 3), (50, 60), (4_000, 4_100)), ()])
@pytest.mark.parametrize("signs", [False, True])
def test_a_scope_acts_before_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranges: tuple[tuple[int, int], ...], signs: bool
) -> None:
    """R20: what is outside takes no place."""
    if signs:
        monkeypatch.setattr(nearest, "MOST_EXACT_WARM", -1)
    vectors = clustered(5_000, 32)
    database = store_of(tmp_path, vectors)
    query = vectors[0]
    inside = [chunk for first, last in ranges for chunk in range(first, last + 1)]
    found = find(database, query, limit=30, scope=Scope(ranges))
    assert chunks(found) == expected(vectors, query, 30, inside)
    if ranges:
        assert found.method == ("bits" if signs else "exact")


def test_a_small_scope_of_a_large_store_is_compared_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "MOST_EXACT_WARM", 100)
    vectors = clustered(1_000, 32)
    database = store_of(tmp_path, vectors)
    assert find(database, vectors[0]).method == "bits"
    assert find(database, vectors[0], scope=Scope(((1, 50),))).method == "exact"
    assert find(database, vectors[0], scope=Scope(((1, 500),))).method == "bits"
    with changing(database) as connection:
        connection.execute("DELETE FROM vector_links WHERE chunk BETWEEN 20 AND 480")
    found = find(database, vectors[0], scope=Scope(((1, 500),)))
    assert found.method == "exact"
    assert set(chunks(found)) <= {*range(1, 20), *range(481, 501)}


@pytest.mark.parametrize("signs", [False, True])
def test_copies_count_once_and_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signs: bool) -> None:
    if signs:
        monkeypatch.setattr(nearest, "MOST_EXACT_WARM", -1)
    vectors = unit([[1, 0, 0], [0.9, 0.1, 0], [0, 1, 0]])
    database = build_store(tmp_path / "home", {})
    with changing(database) as connection:
        pin(connection, 3)
        first, second, third = add(connection, vectors)
        link(connection, {5: second, 1: third, 9: first, 2: second, 7: second})
    found = find(database, vectors[0], limit=2)
    assert chunks(found) == [9, 2, 5]  # of three copies, `limit` at most
    assert found.hits[1].similarity == found.hits[2].similarity
    assert chunks(find(database, vectors[0], limit=3)) == [9, 2, 5, 7, 1]
    assert chunks(find(database, vectors[0], limit=1, scope=Scope(((3, 8),)))) == [5]


@pytest.mark.parametrize("signs", [False, True])
def test_vectors_that_stand_for_nothing_take_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signs: bool
) -> None:
    """Those held for files that may come back, and ids that are gone though their signs are still packed."""
    if signs:
        monkeypatch.setattr(nearest, "MOST_EXACT_WARM", -1)
    monkeypatch.setattr(nearest, "LEAST_COMPARED", 4)
    vectors = clustered(400, 16)
    database = store_of(tmp_path, vectors)
    query = vectors[0]
    near = expected(vectors, query, 120)
    with changing(database) as connection:
        for chunk in near[:60]:
            connection.execute("DELETE FROM vector_links WHERE chunk = ?", (chunk,))
        for chunk in near[60:120]:
            connection.execute("DELETE FROM vector_links WHERE chunk = ?", (chunk,))
            connection.execute("DELETE FROM embeddings WHERE id = ?", (chunk,))
    left = [chunk for chunk in range(1, 401) if chunk not in near]
    found = chunks(find(database, query, limit=3))
    assert len(found) == 3
    assert set(found) <= set(left)
    if not signs:
        assert found == expected(vectors, query, 3, left)
    assert len(find(database, query, limit=350).hits) == 280


@pytest.mark.parametrize("signs", [False, True])
def test_hidden_items_are_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signs: bool) -> None:
    if signs:
        monkeypatch.setattr(nearest, "MOST_EXACT_WARM", -1)
    database = build_store(tmp_path / "home", {"d/a.md": "one", "d/b.md": "two", "d/c.md": "three"})
    with changing(database) as connection:
        rows = connection.execute("SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document ORDER BY d.key")
        a, b, c = [row[0] for row in rows.fetchall()]
        connection.execute("UPDATE documents SET item_id = 'secret' WHERE key = 'd/b.md'")
        pin(connection, 3)
        link(connection, dict(zip((a, b, c), add(connection, unit([[1, 0, 0], [1, 0.1, 0], [0, 1, 0]])), strict=True)))
    hiding = Visibility(hidden_item_ids=frozenset({"secret"}))
    query = unit([[1, 0.1, 0]])[0]
    assert chunks(find(database, query, limit=2)) == [b, a]
    assert chunks(find(database, query, limit=2, visibility=hiding)) == [a, c]


@pytest.mark.parametrize("signs", [False, True])
def test_damaged_vectors_and_those_without_direction_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signs: bool
) -> None:
    """S2-42"""
    if signs:
        monkeypatch.setattr(nearest, "MOST_EXACT_WARM", -1)
    database = store_of(tmp_path, clustered(5, 8))
    with changing(database) as connection:
        connection.execute("UPDATE embeddings SET vector = zeroblob(32) WHERE id = 1")
        connection.execute("UPDATE embeddings SET vector = zeroblob(7) WHERE id = 2")
        connection.execute(
            "UPDATE embeddings SET vector = ? WHERE id = 3", (np.full(8, np.nan, dtype="<f4").tobytes(),)
        )
    assert set(chunks(find(database, clustered(1, 8)[0]))) == {4, 5}


@pytest.mark.usefixtures("through_signs")
def test_packed_vectors_that_do_not_fit_together_are_told(tmp_path: Path) -> None:
    database = store_of(tmp_path, clustered(5, 8))
    with changing(database) as connection:
        connection.execute("UPDATE vector_blocks SET bits = x'00'")
    with pytest.raises(IntegrityError):
        find(database, clustered(1, 8)[0])


@pytest.mark.parametrize("size", [0, 4, 4 * DIMENSION - 4, 4 * DIMENSION + 1])
def test_another_dimension_is_an_error(tmp_path: Path, size: int) -> None:
    """S0-41"""
    database = store_of(tmp_path, clustered(5, DIMENSION))
    with open_snapshot(database) as snapshot, pytest.raises(EmbeddingsChangedError) as told:
        snapshot.nearest(bytes(size), limit=1, scope=None, visibility=EVERYTHING)
    assert "--mode lexical" in told.value.hint


def test_a_store_without_vectors_has_none(tmp_path: Path) -> None:
    database = build_store(tmp_path / "home", {"d/a.md": "text"})
    assert find(database, unit([[1, 0]])[0]) == VectorFind((), "none")
    with changing(database) as connection:
        pin(connection, 2, state="building")
    assert find(database, unit([[1, 0]])[0]) == VectorFind((), "none")


@pytest.mark.usefixtures("through_signs")
def test_a_commit_is_followed_without_reading_old_blocks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clustered(300, 32)
    database = store_of(tmp_path, vectors[:100], block=64)
    read: list[int] = []
    blocks = vector_memory._blocks

    def counted(connection: driver.Connection, identity: int, first: int) -> "Iterator[tuple[int, bytes, bytes]]":
        for block in blocks(connection, identity, first):
            read.append(block[0])
            yield block

    monkeypatch.setattr(vector_memory, "_blocks", counted)
    assert chunks(find(database, vectors[0])) == expected(vectors[:100], vectors[0], 10)
    assert read == [1, 2]
    find(database, vectors[1])
    assert read == [1, 2]
    for start, end in ((100, 110), (110, 110), (110, 300)):
        with changing(database) as connection:
            ids = add(connection, vectors[start:end], block=64)
            link(connection, dict(enumerate(ids, start + 1)))
        read.clear()
        for at in (0, end - 1):
            assert chunks(find(database, vectors[at])) == expected(vectors[:end], vectors[at], 10)
        assert 1 not in read
        assert read


@pytest.mark.usefixtures("through_signs")
def test_blocks_that_were_written_anew_are_read_anew(tmp_path: Path) -> None:
    vectors = clustered(200, 32)
    database = store_of(tmp_path, vectors, block=64)
    find(database, vectors[0])
    for doomed, kept in (("id <= 100", slice(100, 200)), ("id > 150", slice(100, 150))):
        with changing(database) as connection:
            doomed_ids = f"SELECT id FROM embeddings WHERE {doomed}"  # noqa: S608
            connection.execute(f"DELETE FROM vector_links WHERE embedding IN ({doomed_ids})")  # noqa: S608
            connection.execute(f"DELETE FROM embeddings WHERE {doomed}")  # noqa: S608
            connection.execute("DELETE FROM vector_blocks")
            pack(connection, list(range(kept.start + 1, kept.stop + 1)), vectors[kept], block=50)
        among = list(range(kept.start + 1, kept.stop + 1))
        assert chunks(find(database, vectors[120])) == expected(vectors, vectors[120], 10, among)


@pytest.mark.usefixtures("through_signs")
def test_another_identity_answers_as_soon_as_it_is_active(tmp_path: Path) -> None:
    vectors = clustered(50, 32)
    database = store_of(tmp_path, vectors)
    find(database, vectors[0])
    other = clustered(50, 48, seed=9)
    with changing(database) as connection:
        pin(connection, 48, identity=2, state="building")
        link(connection, dict(enumerate(add(connection, other, identity=2), 1)), identity=2)
    assert chunks(find(database, vectors[3])) == expected(vectors, vectors[3], 10)
    with changing(database) as connection:
        connection.execute("UPDATE vector_identities SET state = 'retired' WHERE id = 1")
        connection.execute("UPDATE vector_identities SET state = 'active' WHERE id = 2")
    assert chunks(find(database, other[3])) == expected(other, other[3], 10)


@pytest.mark.usefixtures("through_signs")
def test_a_scope_follows_a_chunk_that_gets_another_text(tmp_path: Path) -> None:
    vectors = clustered(100, 32)
    database = store_of(tmp_path, vectors)
    scope = Scope(((1, 10),))
    assert chunks(find(database, vectors[0], limit=1, scope=scope)) == [1]
    with changing(database) as connection:
        link(connection, {1: 60, 60: 1})
    assert chunks(find(database, vectors[59], limit=1, scope=scope)) == [1]
    assert chunks(find(database, vectors[0], limit=1)) == [60]


@pytest.mark.usefixtures("through_signs")
def test_threads_may_ask_while_vectors_are_added(tmp_path: Path) -> None:
    vectors = clustered(2_000, 32)
    database = store_of(tmp_path, vectors[:500], block=64)

    def ask(number: int) -> None:
        store = SqliteStore(database, base_id=BASE_ID)
        try:
            for at in range(number, 500, 50):
                with store.snapshot() as snapshot:
                    scope = Scope(((1, 400),)) if at % 2 else None
                    found = snapshot.nearest(vectors[at].tobytes(), limit=1, scope=scope, visibility=EVERYTHING)
                assert found.method == "bits"
                if scope is None or at < 400:
                    assert chunks(found) == [at + 1]
        finally:
            store.close()

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, number) for number in range(4)]
        for start in range(500, 2_000, 100):
            with changing(database) as connection:
                ids = add(connection, vectors[start : start + 100], block=64)
                link(connection, dict(enumerate(ids, start + 1)))
        for one in asked:
            one.result()
    assert chunks(find(database, vectors[1_999], limit=1)) == [2_000]


def test_a_small_store_is_searched_without_numpy(tmp_path: Path) -> None:
    """A search in a fresh process must be quick."""
    vectors = clustered(50, 8)
    database = store_of(tmp_path, vectors)
    program = (
        "import sys; from pathlib import Path\n"
        "from store.port import Visibility; from store.sqlite import SqliteStore\n"
        "store = SqliteStore(Path(sys.argv[1]), base_id=None)\n"
        "with store.snapshot() as snapshot:\n"
        "    found = snapshot.nearest(bytes.fromhex(sys.argv[2]), limit=3, scope=None, visibility=Visibility())\n"
        "print([hit.chunk for hit in found.hits], 'numpy' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(database), vectors[0].tobytes().hex()],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == f"{expected(vectors, vectors[0], 3)} False\n"


@pytest.mark.parametrize(("vectors", "method"), [(0, "none"), (2_000, "exact"), (2_001, "bits")])
def test_the_method_that_stats_tell_is_that_of_a_search(vectors: int, method: str) -> None:
    """What has embedded a query has numpy."""
    assert nearest.usual_method(vectors) == method
