"""`--root` and `--path` act inside each lane: a small root loses nothing to a large one."""

from pathlib import Path

import pytest

from domain.errors import UsageError
from domain.status import DropReason
from retrieval.answer import SearchAnswer, SearchRequest
from retrieval.search import search
from store import lexical
from store.port import Scope
from tests.support.stores import build_store, change_store, open_snapshot

QUERIES = ("zebra", "zebra-striped", '"zebra striped"', "\u6591\u9a6c\u7eb9", "\u6591\u9a6c")


def texts() -> dict[str, str]:
    body = "zebra zebra-striped zebra striped \u6591\u9a6c\u7eb9"
    made = {f"big/{number:03}.md": f"{body} {number}" for number in range(300)}
    made |= {f"small/x/{number}.md": f"{'filler ' * 80} {body} {number}" for number in range(3)}
    made |= {f"big/late/{number}.md": f"{'filler ' * 80} {body} b{number}" for number in range(3)}
    return made


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_store(tmp_path_factory.mktemp("scope") / "home", texts())


def ask(database: Path, query: str, **options: object) -> SearchAnswer:
    with open_snapshot(database) as snapshot:
        return search(snapshot, SearchRequest(query, top_k=20, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "options",
    [
        {"root": "small"},
        {"path_glob": "small/**"},
        {"path_glob": "x/*.md"},
        {"root": "small", "path_glob": "*.md"},
        {"root": "big", "path_glob": "late"},
    ],
)
def test_all_hits_of_a_small_part_are_given(database: Path, query: str, options: dict[str, str]) -> None:
    answer = ask(database, query, **options)
    wanted = "big/late/" if options.get("root") == "big" else "small/x/"
    assert sorted(hit.path for hit in answer.results) == [f"{wanted}{number}.md" for number in range(3)]
    assert answer.results[0].rank == 1


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("options", [{"root": "none"}, {"path_glob": "*.txt"}, {"root": "small", "path_glob": "late"}])
def test_an_empty_part_gives_nothing(database: Path, query: str, options: dict[str, str]) -> None:
    assert ask(database, query, **options).results == ()


def test_parts_in_many_pieces(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ask(database, "zebra", path_glob="big/*[05].md")
    assert all(hit.path[-4] in "05" for hit in few.results)
    with open_snapshot(database) as snapshot:
        ids = [number for number, key in snapshot.document_ids("big/") if key[-4] in "05"]
        scope = snapshot.scope_of(ids)
    assert isinstance(scope, Scope)
    assert len(scope.ranges) > lexical.MAX_RANGES_AS_TERMS
    monkeypatch.setattr(lexical, "MAX_RANGES_AS_TERMS", 1_000)
    assert ask(database, "zebra", path_glob="big/*[05].md").results == few.results


def test_every_document_is_no_scope(database: Path) -> None:
    with open_snapshot(database) as snapshot:
        assert snapshot.scope_of([number for number, _ in snapshot.document_ids("")]) is None
    assert ask(database, "zebra", path_glob="*.md") == ask(database, "zebra")


def test_ranges_stay_right_after_changes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    long = "\n\n".join(f"# H{number}\n\nzebra {number} of many" for number in range(10))
    made = {f"{root}/{number}.md": f"{long} {root} {number}" for number in range(6) for root in ("a", "b")}
    database = build_store(home, made, documents_a_group=3)
    for generation, key in enumerate(("a/3.md", "b/0.md", "a/0.md", "b/5.md"), 2):
        change_store(home, texts={key: f"{long} new {key}"}, removed=(f"a/{generation}.md",), generation=generation)
    for root in ("a", "b"):
        with open_snapshot(database) as snapshot:
            scope = snapshot.scope_of([number for number, _ in snapshot.document_ids(f"{root}/")])
            assert scope is not None
            rows = snapshot._connection.execute(
                "SELECT chunks.id, root FROM chunks JOIN documents ON documents.id = document"
            ).fetchall()
        for chunk_id, its_root in rows:
            inside = any(first <= chunk_id <= last for first, last in scope.ranges)
            assert inside is (its_root == root)


def test_a_pattern_that_is_none_is_a_usage_error(database: Path) -> None:
    with pytest.raises(UsageError):
        ask(database, "zebra", path_glob="**/a/**/b/**/c/**/d")


def test_common_terms_are_left_out_only_where_the_others_fill_the_lane(tmp_path: Path) -> None:
    made = {f"big/{number:03}.md": f"common {'rare' if number % 3 == 0 else 'other'} {number}" for number in range(240)}
    made |= {f"small/{number}.md": f"common words {number}" for number in range(4)}
    database = build_store(tmp_path / "home", made)
    everywhere = ask(database, "common rare")
    assert [drop.term for drop in everywhere.dropped_terms] == ["common"]
    assert everywhere.dropped_terms[0].reason is DropReason.TOO_COMMON
    assert all("common" in hit.snippet and len(hit.matches) == 2 for hit in everywhere.results)
    inside = ask(database, "common rare", root="small")
    assert len(inside.results) == 4
    assert inside.dropped_terms == ()
