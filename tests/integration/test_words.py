"""The vocabulary of an index: every word with the chunks that hold it, against a count by hand."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.wiring import readable_base
from domain.errors import UsageError
from domain.settings import Settings
from domain.status import SearchStatus
from retrieval.vocabulary import MOST_WITH_FORMS, WordsAnswer, WordsRequest, count_words, list_words
from store import driver, vocabulary
from store.port import Visibility
from tests.support.bases import build_base, layout_of

LONG = "supercalifragilistic" * 12
TEXTS = {
    "river.md": "# River banks\n\nThe river ran.\n\n## Running\n\nRivers run; a river runs.\n",
    "bank.md": "---\ntags: [money]\n---\n# Bank\n\nA bank in Café town.\n",
    "cjk.md": "# 東京\n\n東京都は日本の首都である。\n",
    "long.md": f"# Long\n\n{LONG} and {LONG}s\n",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    yield build_base(tmp_path_factory.mktemp("words"), TEXTS)


def ask(settings: Settings, **wanted: object) -> WordsAnswer:
    with readable_base(settings) as opened, opened.store.snapshot() as snapshot:
        return list_words(snapshot, WordsRequest(**wanted))  # type: ignore[arg-type]


def by_hand(settings: Settings, *columns: str) -> dict[str, int]:
    """How many chunks hold each word of these columns, by the tokenizer of FTS5 itself, chunk by chunk."""
    texts = " || ' ' || ".join(columns)
    connection = driver.connect(str(layout_of(settings).database), uri=False, timeout_s=5)
    rows = connection.execute(f"SELECT id, {texts} FROM chunks").fetchall()  # noqa: S608
    connection.close()
    scratch = driver.connect(":memory:", uri=False, timeout_s=0)
    scratch.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='unicode61')")
    scratch.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", rows)
    scratch.execute("CREATE VIRTUAL TABLE v USING fts5vocab('t', 'row')")
    counted = dict(scratch.execute("SELECT term, doc FROM v").fetchall())
    scratch.close()
    return counted


def test_every_word_is_counted_once_a_chunk(base: Settings) -> None:
    answer = ask(base, sort="word")
    assert {word.word: word.chunks for word in answer.words} == by_hand(base, "body", "heading_path", "names")
    assert [word.word for word in answer.words] == sorted(word.word for word in answer.words)
    assert answer.matched == len(answer.words)
    assert answer.status is SearchStatus.OK


@pytest.mark.parametrize(("field", "column"), [("body", "body"), ("heading", "heading_path"), ("names", "names")])
def test_a_field_counts_its_own_words(base: Settings, field: str, column: str) -> None:
    answer = ask(base, field=field)
    assert {word.word: word.chunks for word in answer.words} == by_hand(base, column)


def test_stems_and_forms(base: Settings) -> None:
    """As written is of the exact table, any form of the stemmed one."""
    words = {word.word: word for word in ask(base, pattern="^r[iu]").words}
    assert set(words) == {"river", "rivers", "run", "running", "runs"}
    assert {words[word].stem for word in ("run", "runs", "running")} == {"run"}
    assert words["rivers"].chunks == 1
    assert words["rivers"].chunks_any_form == words["river"].chunks_any_form == 2
    body = {word.word: word for word in ask(base, pattern="^bank", field="body").words}
    assert (body["bank"].chunks, body["bank"].chunks_any_form) == (1, 1)


def test_a_very_long_word_is_its_own_stem(base: Settings) -> None:
    """porter leaves words over 64 bytes as they are; the scratch table would see only the beginning."""
    words = ask(base, pattern="^supercali").words
    assert [(word.word, word.stem, word.chunks_any_form) for word in words] == [
        (LONG, LONG, 1),
        (f"{LONG}s", f"{LONG}s", 1),
    ]


def test_forms_are_counted_for_few_words_only(base: Settings) -> None:
    assert all(word.chunks_any_form is None for word in ask(base).words)
    few = ask(base, limit=MOST_WITH_FORMS).words
    assert len(few) == MOST_WITH_FORMS
    assert all(word.chunks_any_form is not None and word.chunks_any_form >= word.chunks for word in few)


def test_the_limit_keeps_the_first_and_the_total_counts_all(base: Settings) -> None:
    every = ask(base)
    assert [(-word.chunks, word.word) for word in every.words] == sorted((-w.chunks, w.word) for w in every.words)
    for sort in ("count", "word"):
        some = ask(base, limit=3, sort=sort)
        assert some.matched == every.matched
        assert [word.word for word in some.words] == [word.word for word in ask(base, sort=sort).words[:3]]


def test_without_stems_the_words_are_the_same(base: Settings) -> None:
    bare = ask(base, with_stems=False).words
    assert [(word.word, word.chunks) for word in bare] == [(word.word, word.chunks) for word in ask(base).words]
    assert {word.stem for word in bare} == {""}


def test_least_and_most(base: Settings) -> None:
    counts = by_hand(base, "body", "heading_path", "names")
    answer = ask(base, min_chunks=2, max_chunks=3)
    assert {word.word for word in answer.words} == {word for word, count in counts.items() if 2 <= count <= 3}


@pytest.mark.parametrize(
    "wanted", [{"limit": 0}, {"min_chunks": -1}, {"max_chunks": 0}, {"min_chunks": 3, "max_chunks": 2}]
)
def test_limits_that_leave_nothing_are_refused(base: Settings, wanted: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        ask(base, **wanted)


@pytest.mark.parametrize("pattern", ["^[a-c]", "CAFE", "京", "^zzz$", "."])
def test_a_pattern_is_what_python_says(base: Settings, pattern: str) -> None:
    counts = by_hand(base, "body", "heading_path", "names")
    expected = {word for word in counts if re.search(pattern, word, re.IGNORECASE)}
    assert {word.word for word in ask(base, pattern=pattern).words} == expected
    with readable_base(base) as opened, opened.store.snapshot() as snapshot:
        answer = count_words(snapshot, WordsRequest(pattern=pattern))
        assert (answer.matched, answer.words) == (len(expected), ())


def test_a_pattern_is_the_same_in_a_thread_of_a_server(base: Settings) -> None:
    """Also the limit of one that never ends."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        assert threads.submit(ask, base, pattern="^r").result() == ask(base, pattern="^r")
        with pytest.raises(UsageError, match="takes too long"):
            threads.submit(ask, base, pattern=r"(\w+)+!$").result()


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_pages_of_any_size_hold_the_same_words(base: Settings, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {field: ask(base, sort="word", field=field).words for field in (None, "heading")}
    monkeypatch.setattr(vocabulary, "WORDS_A_PAGE", rows)
    assert {field: ask(base, sort="word", field=field).words for field in (None, "heading")} == expected


def test_the_connection_stays_one_for_reading(base: Settings) -> None:
    """The tables by column live in memory; nothing of the file can be written."""
    with readable_base(base) as opened:
        for _ in range(2):
            with opened.store.snapshot() as snapshot:
                list_words(snapshot, WordsRequest(field="body"))
        connection = opened.store._connection
        assert connection.execute("PRAGMA query_only").fetchone() == (1,)
        with pytest.raises(driver.OperationalError):
            connection.execute("DELETE FROM chunks")


def test_an_empty_index_is_told_from_one_without_such_a_word(tmp_path: Path) -> None:
    settings = build_base(tmp_path, {})
    assert ask(settings).status is SearchStatus.INDEX_EMPTY
    assert ask(settings).matched == 0


def test_hidden_documents_give_no_word_and_no_number(tmp_path: Path) -> None:
    """As of every other read: what only a hidden document holds is not told, and its chunks count nowhere."""
    shown = {name: text for name, text in TEXTS.items() if name != "river.md"}
    without, hiding = build_base(tmp_path / "without", shown), Visibility(hidden_item_ids=frozenset({"i", "j"}))
    settings = build_base(tmp_path / "with", TEXTS)
    connection = driver.connect(str(layout_of(settings).database), uri=False, timeout_s=5)
    connection.execute("UPDATE documents SET item_id = 'i' WHERE key = 'docs/river.md'")
    connection.execute("UPDATE documents SET item_id = 'seen' WHERE key = 'docs/bank.md'")
    connection.close()
    for field in (None, "body", "heading", "names"):
        hidden = ask(settings, field=field, visibility=hiding, sort="word")
        assert hidden.words == ask(without, field=field, sort="word").words
        assert hidden.matched == len(hidden.words)
        assert hidden.matched < ask(settings, field=field).matched
    few = ask(settings, pattern="^bank", visibility=hiding).words
    assert few == ask(without, pattern="^bank").words
    assert few != ask(settings, pattern="^bank").words


def test_an_index_of_hidden_documents_alone_is_an_empty_one(tmp_path: Path) -> None:
    settings = build_base(tmp_path, {"a.md": "one word\n"})
    connection = driver.connect(str(layout_of(settings).database), uri=False, timeout_s=5)
    connection.execute("UPDATE documents SET item_id = 'i'")
    connection.close()
    answer = ask(settings, visibility=Visibility(hidden_item_ids=frozenset({"i"})))
    assert (answer.status, answer.matched, answer.has_documents) == (SearchStatus.INDEX_EMPTY, 0, False)
