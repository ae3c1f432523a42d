"""The substring lane: text written without blanks between words."""

from pathlib import Path

import pytest

from domain.status import SearchNote
from retrieval.answer import SearchAnswer, SearchRequest
from retrieval.search import search
from tests.support.stores import SubstringIndex, build_store, open_snapshot

TEXTS = {
    "d/zh.md": "# \u5b89\u88c5\n\n\u5982\u4f55\u5b89\u88c5\u9a71\u52a8\u7a0b\u5e8f\uff0c\u4f60\u597d\u4e16\u754c",
    "d/ja.md": "\u65e5\u672c\u8a9e\u306e\u6587\u66f8\u3092\u8aad\u3080\u3002",
    "d/th.md": "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e04\u0e23\u0e31\u0e1a\u0e17\u0e38\u0e01\u0e04\u0e19",
    "d/ko.md": "\ud504\ub85c\uadf8\ub7a8\uc744 \uc124\uce58\ud558\uc138\uc694",
    "d/en.md": "plain english with metadata",
}


def ask(database: Path, query: str, **options: object) -> SearchAnswer:
    with open_snapshot(database) as snapshot:
        return search(snapshot, SearchRequest(query, **options))  # type: ignore[arg-type]


def found(tmp_path: Path, query: str, substring_index: SubstringIndex = "auto") -> list[str]:
    database = build_store(tmp_path / "home", TEXTS, substring_index=substring_index)
    return [hit.path for hit in ask(database, query).results]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("\u9a71\u52a8\u7a0b\u5e8f", "d/zh.md"),
        ("\u9a71\u52a8", "d/zh.md"),
        ("\u9a71", "d/zh.md"),
        ("\u4e16\u754c", "d/zh.md"),  # at the very end of the text
        ("\u754c", "d/zh.md"),
        ("\u672c\u8a9e", "d/ja.md"),
        ("\u6587\u66f8\u3092\u8aad", "d/ja.md"),
        ("\u0e04\u0e23\u0e31\u0e1a", "d/th.md"),
        ("\uc124\uce58", "d/ko.md"),
        ("\ud504\ub85c\uadf8\ub7a8", "d/ko.md"),
        ("english \u4e16\u754c", "d/zh.md"),
        ('"\u4f60\u597d\u4e16\u754c"', "d/zh.md"),
    ],
)
def test_parts_of_runs_are_found_by_default(tmp_path: Path, query: str, path: str) -> None:
    assert path in found(tmp_path, query)


def test_pieces_are_and_ed(tmp_path: Path) -> None:
    assert found(tmp_path, "\u5b89\u88c5\u9a71 \u4e16\u754c") == ["d/zh.md"]
    assert found(tmp_path / "b", "\u4f60\u597d \u4e16\u754c") == ["d/zh.md"]


def test_a_question_that_stands_nowhere_whole_is_relaxed(tmp_path: Path) -> None:
    database = build_store(tmp_path / "home", TEXTS)
    answer = ask(database, "\u8bf7\u95ee\u5982\u4f55\u5b89\u88c5\u5462")
    assert answer.results[0].path == "d/zh.md"
    assert answer.notes == (SearchNote.SUBSTRING_RELAXED,)
    assert answer.results[0].matches
    assert ask(database, "\u9a71\u52a8 \u65e5\u672c").notes == (SearchNote.SUBSTRING_RELAXED,)


def test_nothing_where_nothing_is(tmp_path: Path) -> None:
    database = build_store(tmp_path / "home", TEXTS)
    for query in ("\u732b", "\u732b\u72d7", "\u732b\u72d7\u9c7c"):
        answer = ask(database, query)
        assert answer.results == ()
        assert answer.did_you_mean == ()


def test_matches_are_marked(tmp_path: Path) -> None:
    (hit,) = ask(build_store(tmp_path / "home", TEXTS), "\u9a71\u52a8").results
    assert [hit.snippet[start:end] for start, end in hit.matches] == ["\u9a71\u52a8"]
    assert hit.lanes.substring == 1


def test_without_the_index_whole_runs_are_still_found(tmp_path: Path) -> None:
    assert found(tmp_path, "\u4f60\u597d\u4e16\u754c", "off") == ["d/zh.md"]
    assert found(tmp_path / "b", "\u9a71\u52a8", "off") == []


def test_a_read_only_connection_stays_one(tmp_path: Path) -> None:
    database = build_store(tmp_path / "home", TEXTS)
    with open_snapshot(database) as snapshot:
        search(snapshot, SearchRequest("\u4e16"))
        assert snapshot._connection.execute("PRAGMA query_only").fetchone() == (1,)


def test_with_the_substring_index_on_parts_of_ordinary_words_are_found(tmp_path: Path) -> None:
    """R1: `on` puts every chunk into the trigram table; without it a part of a word is no word."""
    texts = {"d/a.md": "the keyboard driver", "d/b.md": "a board of directors", "d/c.md": "nothing like it"}
    on = build_store(tmp_path / "on", texts, substring_index="on")
    automatic = build_store(tmp_path / "auto", texts)
    assert [hit.path for hit in ask(on, "eyboar").results] == ["d/a.md"]
    assert ask(automatic, "eyboar").results == ()
    found = ask(on, "board").results
    assert {hit.path for hit in found} == {"d/a.md", "d/b.md"}
    assert found[0].path == "d/b.md"  # a whole word stands in two lanes
    assert ask(on, "boarx keyz").results == ()  # all parts or none: nothing is relaxed for ordinary words
