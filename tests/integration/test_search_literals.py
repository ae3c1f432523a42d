"""The literal lane: text with punctuation and quoted text, wherever it stands."""

from pathlib import Path

import pytest

from domain.status import SearchNote
from retrieval import literal
from retrieval.answer import SearchAnswer, SearchRequest
from retrieval.search import search
from store import literal as literal_reads
from tests.support.stores import build_store, open_snapshot

IDENTIFIERS = (
    "C++",
    "foo_bar.baz",
    "--dry-run",
    "ERR-1042",
    "jane.doe@example.org",
    "src/net/tcp_input.c",
    "std::vector<int>",
    ".gitignore",
    "10.0.0.1",
    "v1.2.3-rc.1",
    "obj->field",
    "https://example.org/a?b=c#d",
    "$HOME/.config",
    "O'Reilly",
    "f(x)=y",
    "#include",
    "na\u00efve-caf\u00e9",
    "%SystemRoot%",
    "100%",
    "KB5005565",
)


def texts() -> dict[str, str]:
    """Each identifier in one chunk, its words spread over many others that rank well for them."""
    made = {}
    for number, identifier in enumerate(IDENTIFIERS):
        made[f"d/exact{number:02}.md"] = f"# Notes {number}\n\n{'filler words ' * 30} {identifier} {'more ' * 30}\n"
        words = " ".join("".join(c if c.isalnum() else " " for c in identifier).split())
        for copy in range(6):
            made[f"d/decoy{number:02}_{copy}.md"] = f"# {words}\n\n{words} {words[::-1]} {copy}, {words}.\n"
    return made


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_store(tmp_path_factory.mktemp("literals") / "home", texts())


def ask(database: Path, query: str, **options: object) -> SearchAnswer:
    with open_snapshot(database) as snapshot:
        return search(snapshot, SearchRequest(query, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", range(len(IDENTIFIERS) - 1))
@pytest.mark.parametrize("around", ["{}", "how is {} used", "filler {} words more"])
def test_an_identifier_is_in_the_first_three(database: Path, number: int, around: str) -> None:
    answer = ask(database, around.format(IDENTIFIERS[number]))
    assert f"d/exact{number:02}.md" in [hit.path for hit in answer.results[:3]]


@pytest.mark.parametrize("query", ["(ERR-1042)", "what is ERR-1042?", "see ERR-1042.", "err-1042"])
def test_punctuation_of_the_sentence_and_case_do_not_hide_it(database: Path, query: str) -> None:
    assert ask(database, query).results[0].path == f"d/exact{IDENTIFIERS.index('ERR-1042'):02}.md"


def test_exact_case_stands_first(tmp_path: Path) -> None:
    made = {"d/a.md": "use err-1042 here", "d/b.md": "use ERR-1042 here", "d/c.md": "use Err-1042 here"}
    found = ask(build_store(tmp_path / "home", made), "ERR-1042")
    assert found.results[0].path == "d/b.md"
    assert [hit.lanes.literal for hit in found.results] == [1, 2, 3]


def test_it_is_found_in_breadcrumb_and_title(tmp_path: Path) -> None:
    made = {
        "d/a.md": "# Fix for ERR-1042\n\nplain words\n",
        "d/b.md": "---\ntitle: About X-99/b\n---\nplain words\n",
        "d/c.md": "1042 is an err, 99 x b",
    }
    database = build_store(tmp_path / "home", made)
    assert ask(database, "ERR-1042").results[0].path == "d/a.md"
    assert ask(database, "ERR-1042").results[0].lanes.literal == 1
    assert ask(database, "X-99/b").results[0].path == "d/b.md"


def test_it_is_marked_in_the_snippet(tmp_path: Path) -> None:
    (hit,) = ask(build_store(tmp_path / "home", {"d/a.md": f"{'x ' * 300} run --dry-run now"}), "--dry-run").results
    assert "--dry-run" in [hit.snippet[start:end] for start, end in hit.matches]


def test_quoted_text_stands_first_and_crosses_line_ends(tmp_path: Path) -> None:
    made = {
        "d/a.md": "lazy dog lazy dog quick brown fox " * 5,
        "d/b.md": f"{'filler ' * 100}\nthe quick\n  brown dog sleeps",
        "d/c.md": "brown dog quick",
    }
    database = build_store(tmp_path / "home", made)
    answer = ask(database, '"quick brown dog" lazy fox')
    assert answer.results[0].path == "d/b.md"
    assert ask(database, '"no such phrase" lazy').results[0].path == "d/a.md"


def test_more_quoted_texts_stand_higher(tmp_path: Path) -> None:
    made = {"d/a.md": "red fox red fox", "d/b.md": f"{'w ' * 200} red fox and blue bird", "d/c.md": "blue bird"}
    assert ask(build_store(tmp_path / "home", made), '"red fox" "blue bird"').results[0].path == "d/b.md"


@pytest.mark.parametrize(
    "query", ["C", "C#", "+ +", "foo_bar.qux", "--", "::", 'C"', "'", "ERR-", "-1042", "a.b.c.d.e", "x\x00y.z"]
)
def test_literals_that_are_nowhere_raise_nothing(database: Path, query: str) -> None:
    ask(database, query)


def test_a_literal_that_is_nowhere_as_written_is_told(database: Path) -> None:
    """The hits hold its words: without a note they would read as places of the literal."""
    assert SearchNote.LITERAL_NOT_FOUND in ask(database, "C+++").notes
    assert SearchNote.LITERAL_NOT_FOUND in ask(database, '"nobody wrote these words"').notes
    assert SearchNote.LITERAL_NOT_FOUND not in ask(database, "C++").notes
    assert SearchNote.LITERAL_NOT_FOUND not in ask(database, "plain words").notes


def test_a_single_letter_that_a_found_literal_holds_is_not_called_dropped(database: Path) -> None:
    assert ask(database, "C++").dropped_terms == ()
    assert [drop.term for drop in ask(database, "C+* filler").dropped_terms] == ["C"]


def test_examined_places_are_bounded_and_this_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {f"d/{number:03}.md": f"ab cd {number}" for number in range(40)} | {"d/zzz.md": "ab-cd"}
    database = build_store(tmp_path / "home", made)
    assert ask(database, "ab-cd").results[0].path == "d/zzz.md"
    monkeypatch.setattr(literal, "MAX_POSTINGS", 20)
    answer = ask(database, "ab-cd")
    assert SearchNote.LITERAL_TRUNCATED in answer.notes
    monkeypatch.setattr(literal, "MAX_POSTINGS", 50_000)
    assert ask(database, "ab-cd").notes == ()


@pytest.mark.parametrize("token", ["+word", "one-word"])
def test_many_candidates_are_all_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setattr(literal_reads, "RANKED_FIRST", 3)
    made = {f"d/{number:03}.md": f"one word word word {number}" for number in range(60)}
    made["d/aaa.md"] = f"{'long ' * 200} {token}"
    answer = ask(build_store(tmp_path / "home", made), token)
    assert answer.results[0].path == "d/aaa.md"


def test_a_common_literal_does_not_crowd_out_the_words(tmp_path: Path) -> None:
    made = {f"d/{number:02}.md": f"std::vector item {number}" for number in range(40)}
    made["d/best.md"] = "memory leak in std::vector growth"
    assert ask(build_store(tmp_path / "home", made), "std::vector memory leak").results[0].path == "d/best.md"


def test_alone_a_common_literal_stands_before_its_words(tmp_path: Path) -> None:
    made = {f"d/{number:02}.md": f"net net net {number}" for number in range(30)}
    made |= {f"d/x{number:02}.md": f"{'filler ' * 50} a .NET thing {number}" for number in range(30)}
    answer = ask(build_store(tmp_path / "home", made), ".NET", top_k=20)
    assert all(hit.path.startswith("d/x") for hit in answer.results)


def test_a_literal_in_a_heading_without_a_body_is_found(tmp_path: Path) -> None:
    made = {"d/a.md": "# Codes\n\n## ERR-1042\n\n## ERR-7\n", "d/b.md": "err text and 1042 numbers"}
    first = ask(build_store(tmp_path / "home", made), "ERR-1042").results[0]
    assert first.path == "d/a.md"
    assert "ERR-1042" in first.snippet
