"""What is syntax elsewhere (T14): a search takes it as text, a complete set refuses by name what it does not know."""

from collections.abc import Iterator

import pytest

from domain.errors import UsageError
from domain.status import SearchStatus
from retrieval.answer import SearchRequest
from retrieval.match_query import parse_match
from retrieval.search import search
from store.sqlite import SqliteSnapshot
from tests.support.scratch import scratch_directory
from tests.support.stores import build_store, open_snapshot

TEXTS = {"d/foo.md": "# Foo\n\nfoo stands here\n", "d/bar.md": "# Bar\n\nbar stands there\n"}
FOO, BAR = "d/foo.md", "d/bar.md"
FOUND = {
    "foo OR bar": {FOO, BAR},
    "foo AND bar": {FOO, BAR},
    "foo NOT bar": {FOO, BAR},
    "-foo": {FOO},
    '"foo': {FOO},
    "NEAR(foo bar)": {FOO, BAR},
    "NEAR(": set(),
    "body:foo": {FOO},
    "body:": set(),
    "title : foo": {FOO},
    "{title body}: foo": {FOO},
    "(((": set(),
    ")) foo ((": {FOO},
    "^foo": {FOO},
    "foo*": {FOO},
    "*": set(),
    "foo + bar": {FOO, BAR},
    "'foo'; DROP TABLE documents; --": {FOO},
    "foo\x00bar": {FOO, BAR},
    "\\foo": {FOO},
    "foo\tbar": {FOO, BAR},
}
WITHOUT_A_WORD = ("(((", "*")  # told as such, not as words that are nowhere
REFUSED = (
    "foo OR bar",
    "foo AND bar",
    "foo NOT bar",
    "foo NEAR bar",
    "NEAR(foo bar)",
    "foo*",
    "*",
    '"foo',
    "title:foo",
)


@pytest.fixture(scope="module")
def snapshot() -> Iterator[SqliteSnapshot]:
    with scratch_directory() as path, open_snapshot(build_store(path / "home", TEXTS)) as opened:
        yield opened


@pytest.mark.parametrize("query", FOUND)
def test_signs_of_other_query_languages_are_text_in_a_search(snapshot: SqliteSnapshot, query: str) -> None:
    """T14: never an error, never an operator; nothing is found but by words that stand there."""
    found = search(snapshot, SearchRequest(query))
    assert {hit.path for hit in found.results} == FOUND[query]
    assert found.status is (SearchStatus.QUERY_EMPTY if query in WITHOUT_A_WORD else SearchStatus.OK)


@pytest.mark.parametrize("query", REFUSED)
def test_signs_that_would_mean_something_else_are_refused_in_a_set(query: str) -> None:
    """T14: what is asked for must not quietly be another set."""
    with pytest.raises(UsageError) as told:
        parse_match(query)
    assert told.value.exit_status == 2
    assert told.value.hint
