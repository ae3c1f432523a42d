"""Whatever is typed: never an error but UsageError, and text that stands in the store is found."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.errors import UsageError
from domain.status import SearchStatus
from retrieval.answer import SearchRequest
from retrieval.search import search
from store.sqlite import SqliteSnapshot
from tests.support.stores import build_store, open_snapshot

TEXTS = {
    "d/a.md": '# Setup of foo_bar\n\nRun `make -j4 all` with C++17 & CXXFLAGS="-O2 -g"; see README.md, section 3.1.\n',
    "d/b.md": "# \u4e2d\u6587\n\n\u4f60\u597d\uff0c\u4e16\u754c\u3002 mixed\u6df7\u5408text,"
    " na\u00efve \u00dcber-stra\u00dfe \u0130stanbul\n",
    "d/c.md": 'It\'s 20.04% of $HOME/x (or a@b.co): NOT NEAR("x") AND body:y OR z* ^q {r} [s] ~t \\u |v\n',
    "d/d.md": "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \ud55c\uad6d\uc5b4"
    " \u0440\u0443\u0441\u0441\u043a\u0438\u0439 \u05e2\u05d1\u05e8\u05d9\u05ea e\u0301te\u0301\n",
}
TOKENS = sorted({token for text in TEXTS.values() for token in text.split() if any(map(str.isalnum, token))})


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteSnapshot]:
    database: Path = build_store(tmp_path_factory.mktemp("fuzz") / "home", TEXTS)
    with open_snapshot(database) as opened:
        yield opened


pieces = st.one_of(
    st.sampled_from(TOKENS),
    st.sampled_from(['"', "'", "(", ")", "*", "^", ":", "NEAR(", "AND", "OR", "NOT", "-", "+", "\x00", "\n", "{", "}"]),
    st.text(max_size=8),
)


@given(st.lists(pieces, max_size=12), st.sampled_from([" ", ""]))
@example(["\ud800"], "")
@example(['"', "\x00", '"'], "")
@example(["NEAR(", "a", "b", ",", "-1)"], " ")
def test_no_query_raises_anything_but_a_usage_error(snapshot: SqliteSnapshot, parts: list[str], joint: str) -> None:
    query = joint.join(parts)
    try:
        answer = search(snapshot, SearchRequest(query, top_k=3))
    except UsageError:
        assert any("\ud800" <= character <= "\udfff" for character in query)
        return
    assert answer.status in (SearchStatus.OK, SearchStatus.QUERY_EMPTY)
    for hit in answer.results:
        assert all(0 <= start < end <= len(hit.snippet) for start, end in hit.matches)
    if answer.status is SearchStatus.QUERY_EMPTY and query.replace("\x00", " ").strip(' "\t\r\n\v\f'):
        assert answer.dropped_terms or not query.split()


@pytest.mark.parametrize("token", TOKENS)
def test_every_token_of_the_store_finds_its_text(snapshot: SqliteSnapshot, token: str) -> None:
    answer = search(snapshot, SearchRequest(token, top_k=20))
    found = {hit.path for hit in answer.results}
    holding = {key for key, text in TEXTS.items() if token in text}
    assert found.intersection(holding)
    assert answer.results[0].path in holding


@given(st.data())
def test_any_part_of_a_text_is_found(snapshot: SqliteSnapshot, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(TEXTS)))
    tokens = TEXTS[key].split()
    first = data.draw(st.integers(0, len(tokens) - 1))
    part = tokens[first : first + data.draw(st.integers(1, 4))]
    if not any(character.isalnum() for token in part for character in token):
        return
    answer = search(snapshot, SearchRequest(" ".join(part), top_k=20))
    assert key in {hit.path for hit in answer.results}


@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=5))
def test_the_same_question_has_the_same_answer(snapshot: SqliteSnapshot, tokens: list[str]) -> None:
    request = SearchRequest(" ".join(tokens))
    assert search(snapshot, request) == search(snapshot, request)
