"""Searches over small stores: what is found, in which order, and how it is shown."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.present_search import MAX_TERM_CHARS, search_text
from domain.status import SearchNote, SearchStatus
from retrieval.answer import SearchAnswer, SearchHit, SearchRequest
from retrieval.search import search
from store.port import Visibility
from store.sqlite import SqliteSnapshot
from tests.support.stores import SubstringIndex, build_store, change_store, open_snapshot


def ask(database: Path, query: str, **options: object) -> SearchAnswer:
    with open_snapshot(database) as snapshot:
        return search(snapshot, SearchRequest(query, **options))  # type: ignore[arg-type]


def asked(
    tmp_path: Path,
    texts: Mapping[str, str],
    query: str,
    substring_index: SubstringIndex = "auto",
    **options: object,
) -> SearchAnswer:
    return ask(build_store(tmp_path / "home", texts, substring_index=substring_index), query, **options)


def paths(answer: SearchAnswer) -> list[str]:
    return [hit.path for hit in answer.results]


def marked(hit: SearchHit) -> list[str]:
    return [hit.snippet[start:end] for start, end in hit.matches]


def test_terms_are_or_ed_and_stemmed(tmp_path: Path) -> None:
    texts = {"d/a.md": "The server was running.", "d/b.md": "A quiet client.", "d/c.md": "Nothing of it."}
    answer = asked(tmp_path, texts, "runs client", top_k=20)
    assert answer.status is SearchStatus.OK
    assert set(paths(answer)) == {"d/a.md", "d/b.md"}
    assert {word for hit in answer.results for word in marked(hit)} == {"running", "client"}


def test_a_hit_carries_what_a_surface_shows(tmp_path: Path) -> None:
    text = "# Guide\n\nHello.\n\n## Install\n\nUse the zebra\ninstaller.\n"
    (hit,) = asked(tmp_path, {"d/guide.md": text}, "zebra", full=True).results
    assert (hit.rank, hit.citation, hit.path, hit.ordinal, hit.root) == (1, "d/guide.md#1", "d/guide.md", 1, "d")
    assert (hit.title, hit.heading_path, hit.start_line, hit.end_line) == ("Guide", "Guide > Install", 7, 8)
    assert (hit.snippet, hit.matches, hit.matched_in) == ("Use the zebra installer.", ((8, 13),), ("body",))
    assert hit.content == "Use the zebra\ninstaller."
    assert hit.lanes.words == 1
    assert hit.lanes.literal is None
    assert hit.score == pytest.approx(1 / 61)
    assert len(hit.document_sha256) == 64
    assert hit.indexed_ns > 0
    assert hit.modified_ns > 0


def test_content_only_where_it_is_asked_for(tmp_path: Path) -> None:
    (hit,) = asked(tmp_path, {"d/a.md": "zebra"}, "zebra").results
    assert hit.content is None


def test_a_heading_outranks_an_equal_body(tmp_path: Path) -> None:
    filler = {f"d/f{number}.md": f"# Other\n\nfiller text number {number}\n" for number in range(20)}
    texts = {"d/z-body.md": "# Plain\n\nzebra words here\n", "d/a-heading.md": "# Zebra\n\nplain words here\n"}
    answer = asked(tmp_path, filler | texts, "zebra")
    assert paths(answer) == ["d/a-heading.md", "d/z-body.md"]
    assert set(answer.results[0].matched_in) == {"heading_path", "names"}


def test_body_and_breadcrumb_never_join_to_a_phrase(tmp_path: Path) -> None:
    answer = asked(tmp_path, {"d/a.md": "# red\n\napple pie\n", "d/b.md": "# x\n\nred apple\n"}, '"red apple"')
    assert answer.results[0].path == "d/b.md"
    assert answer.results[0].lanes.literal == 1
    assert all(hit.lanes.literal is None for hit in answer.results[1:])


def test_names_are_searched(tmp_path: Path) -> None:
    texts = {
        "d/tax-returns_2024.md": "plain text",
        "d/b.md": "---\ntitle: The Quokka Handbook\ntags: [marsupial]\n---\nplain text",
        "d/c.md": "nothing",
    }
    database = build_store(tmp_path / "home", texts)
    assert paths(ask(database, "returns 2024")) == ["d/tax-returns_2024.md"]
    assert paths(ask(database, "quokka")) == paths(ask(database, "marsupial")) == ["d/b.md"]
    assert ask(database, "quokka").results[0].matched_in == ("names",)


def test_chunks_without_a_body_stand_after_every_hit_that_has_one(tmp_path: Path) -> None:
    headings = "# Top\n\n" + "".join(f"## Zebra {number}\n\n" for number in range(120))
    bodies = {f"d/b{number}.md": f"# Other\n\n{'filler ' * 60} zebra {number}\n" for number in range(8)}
    answer = asked(tmp_path, {"d/a.md": headings, **bodies}, "zebra", top_k=12)
    assert [bool(hit.path == "d/a.md") for hit in answer.results] == [False] * 8 + [True] * 4
    assert answer.results[-1].matched_in == ("heading_path",)
    assert "Zebra" in marked(answer.results[-1])


def test_copies_are_one_hit_and_the_count_is_filled_up(tmp_path: Path) -> None:
    copies = {f"d/copy{number:03}.md": "The same zebra text." for number in range(70)}
    others = {f"e/other{number}.md": f"{'filler ' * 40} zebra number {number}" for number in range(6)}
    database = build_store(tmp_path / "home", copies | others)
    answer = ask(database, "zebra", top_k=5)
    assert [hit.rank for hit in answer.results] == [1, 2, 3, 4, 5]
    assert answer.results[0].path == "d/copy000.md"
    assert answer.results[0].also_in == tuple(f"d/copy{number:03}.md#0" for number in range(1, 70))
    assert all(hit.path.startswith("e/") and not hit.also_in for hit in answer.results[1:])
    every = ask(database, "zebra", top_k=5, all_chunks=True)
    assert paths(every) == [f"d/copy{number:03}.md" for number in range(5)]


@pytest.mark.parametrize(("wanted", "count"), [(0, 1), (-1, 1), (1, 1), (20, 20), (21, 20), (10**9, 20), (None, 5)])
def test_the_count_is_brought_into_its_bounds(tmp_path: Path, wanted: int | None, count: int) -> None:
    texts = {f"d/{number}.md": f"zebra {number} text" for number in range(30)}
    assert len(asked(tmp_path, texts, "zebra", top_k=wanted).results) == count


def test_equal_scores_go_to_the_earlier_chunk(tmp_path: Path) -> None:
    texts = {f"d/{number:03}.md": f"zebra w{number:03}" for number in range(80)}
    answer = asked(tmp_path, texts, "zebra", top_k=20)
    assert paths(answer) == sorted(texts)[:20]


def test_a_missing_term_gets_the_nearest_words(tmp_path: Path) -> None:
    texts = {"d/a.md": "kernel drivers", "d/b.md": "kernels and drivers", "d/c.md": "unrelated"}
    answer = asked(tmp_path, texts, "kernal drvers xyzzy1")
    assert [(entry.term, entry.suggestions) for entry in answer.did_you_mean] == [
        ("kernal", ("kernel", "kernels")),
        ("drvers", ("drivers",)),
        ("xyzzy1", ()),  # nowhere, and nothing is near
    ]
    assert answer.results == ()
    assert answer.status is SearchStatus.OK


@pytest.mark.parametrize("typo", ["ekrnel", "jernel", "ernel", "xkernel", "krenel", "kernela", "kerne"])
def test_typos_everywhere_in_a_word_are_met(tmp_path: Path, typo: str) -> None:
    (entry,) = asked(tmp_path, {"d/a.md": "The Kernel."}, typo).did_you_mean
    assert entry.suggestions == ("kernel",)


def test_statuses(tmp_path: Path) -> None:
    empty = build_store(tmp_path / "empty", {})
    running = build_store(tmp_path / "running", {"d/a.md": "zebra"}, complete=False)
    full = build_store(tmp_path / "full", {"d/a.md": "zebra"})
    assert ask(empty, "zebra").status is SearchStatus.INDEX_EMPTY
    assert ask(running, "zebra").status is SearchStatus.INDEX_INCOMPLETE
    assert paths(ask(running, "zebra")) == ["d/a.md"]
    assert ask(running, "nowhere").status is SearchStatus.INDEX_INCOMPLETE
    assert ask(full, "nowhere").status is SearchStatus.OK
    for query in ("", "   ", "&& --", "\U0001f389", "x"):
        assert ask(full, query).status is SearchStatus.QUERY_EMPTY
    assert [drop.term for drop in ask(full, "&& x").dropped_terms] == ["&&", "x"]


def test_single_characters_are_looked_up_where_nothing_else_is_found(tmp_path: Path) -> None:
    texts = {"d/one.md": "plan b is here", "d/two.md": "plan only"}
    database = build_store(tmp_path / "home", texts)
    alone = ask(database, "b")
    assert paths(alone) == ["d/one.md"]
    assert alone.dropped_terms == ()
    beside = ask(database, "plan b")
    assert [drop.term for drop in beside.dropped_terms] == ["b"]


def test_words_that_the_tokenizer_cuts_are_found_and_marked(tmp_path: Path) -> None:
    word = "\u0939\u093f\u0928\u094d\u0926\u0940"
    answer = asked(tmp_path, {"d/a.md": f"yeh {word} hai", "d/b.md": "other"}, word)
    assert paths(answer) == ["d/a.md"]
    assert marked(answer.results[0]) == [word]


def test_folded_letters_match_and_are_marked(tmp_path: Path) -> None:
    answer = asked(tmp_path, {"d/a.md": "Das \u00dcbung und Caf\u00e9s"}, "ubung cafe")
    assert marked(answer.results[0]) == ["\u00dcbung", "Caf\u00e9s"]


def test_hidden_items_are_left_out_of_every_lane(tmp_path: Path) -> None:
    texts = {"d/a.md": "zebra foo.bar \u4e16\u754c\u5730", "d/b.md": "zebra foo.bar \u4e16\u754c\u5730 too"}
    database = build_store(tmp_path / "home", texts)
    from store.connection import open_writer

    writer = open_writer(database, synchronous="NORMAL")
    writer.execute("UPDATE documents SET item_id = 'secret' WHERE key = 'd/a.md'")
    writer.close()
    hidden = Visibility("base", 1, frozenset({"secret"}))
    for query in ("zebra", "foo.bar", '"zebra foo"', "\u4e16\u754c\u5730", "\u4e16\u754c", "\u4e16"):
        assert len(ask(database, query).results) == 2
        assert paths(ask(database, query, visibility=hidden)) == ["d/b.md"]


def test_no_word_of_a_hidden_item_is_suggested(tmp_path: Path) -> None:
    """What is near is of the visible text alone, by both ways of looking."""
    texts = {"d/a.md": "giraffes porcupine", "d/b.md": "giraffes other"}
    database = build_store(tmp_path / "home", texts)
    from store.connection import open_writer

    writer = open_writer(database, synchronous="NORMAL")
    writer.execute("UPDATE documents SET item_id = 'secret' WHERE key = 'd/a.md'")
    writer.close()
    hidden = Visibility("base", 1, frozenset({"secret"}))
    for written in ("porcupnie", "oprcupine"):
        assert ask(database, written).did_you_mean[0].suggestions == ("porcupine",)
        assert ask(database, written, visibility=hidden).did_you_mean[0].suggestions == ()
    assert ask(database, "girafefs", visibility=hidden).did_you_mean[0].suggestions == ("giraffes",)


def test_chunks_gone_in_between_are_skipped(tmp_path: Path) -> None:
    database = build_store(tmp_path / "home", {f"d/{number}.md": f"zebra {number}" for number in range(9)})

    class Losing(SqliteSnapshot):
        """The first two chunks of the lane go before they are looked at."""

        def sketches(self, ids):  # type: ignore[no-untyped-def]
            return super().sketches(ids[2:])

    with open_snapshot(database) as snapshot:
        losing = Losing(snapshot._connection, snapshot._path, snapshot._counts)
        answer = search(losing, SearchRequest("zebra", top_k=5))
    assert [hit.rank for hit in answer.results] == [1, 2, 3, 4, 5]
    assert answer.results[0].lanes.words == 3


def test_what_is_remembered_of_a_store_ends_with_its_state(tmp_path: Path) -> None:
    home = tmp_path / "home"
    database = build_store(home, {"d/a.md": "zebra", "d/b.md": "other"})
    assert [entry.term for entry in ask(database, "okapi zebra").did_you_mean] == ["okapi"]
    assert paths(ask(database, "okapi", root="d")) == []
    change_store(home, texts={"d/c.md": "okapi"}, removed=("d/a.md",))
    assert paths(ask(database, "okapi zebra")) == ["d/c.md"]
    assert paths(ask(database, "okapi", root="d")) == ["d/c.md"]


def test_long_queries_are_bounded(tmp_path: Path) -> None:
    database = build_store(tmp_path / "home", {"d/a.md": "needle in hay"})
    answer = ask(database, "needle " + " ".join(f"word{number}" for number in range(100_000)))
    assert paths(answer) == ["d/a.md"]
    assert SearchNote.QUERY_TRUNCATED in answer.notes
    assert len(answer.dropped_terms) <= 400


def test_a_long_term_that_is_nowhere_is_told_by_its_beginning(tmp_path: Path) -> None:
    """T16: a word of a hundred thousand characters does not come back as a note of that length."""
    answer = asked(tmp_path, {"d/a.md": "zebra"}, "q" * 100_000)
    text = search_text(answer, "home", {}, 0, str)
    assert f"{'q' * MAX_TERM_CHARS}... is nowhere" in text
    assert len(text) < 1_000
