"""Complete sets of documents: against a reading of every chunk, and where the answer has more to say (S0-42..S0-54)."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.enumerating import document_budget, enumerate_base
from app.present_match import match_error
from app.wiring import readable_base, writable_base
from domain.errors import UsageError
from domain.status import DropReason, MatchStatus, NoMatchCause
from retrieval import chunk_documents
from retrieval.enumeration import enumerate_documents
from retrieval.match_answer import MatchAnswer, MatchedDocument, MatchRequest, RelatedForm, TermReading
from store import driver
from store.port import Visibility
from store.sqlite import SqliteSnapshot
from tests.support.bases import build_base, layout_of
from tests.support.enumeration import FORMS, SlowCorpus, SlowDocument, SlowTerm
from tests.support.scratch import scratch_directory
from tests.support.stores import build_store, change_store, open_snapshot

DOCUMENTS = 60


def generated_texts() -> dict[str, str]:
    """Documents of several chunks each, over so few words that sets overlap in every way."""
    source = random.Random(42)
    texts = {}
    for number in range(DOCUMENTS):
        parts = []
        for _ in range(source.randint(1, 6)):
            heading = " ".join(source.choices(FORMS, k=source.randint(1, 3)))
            paragraphs = [" ".join(source.choices(FORMS[:-2], k=source.choice((3, 12, 150)))) for _ in range(2)]
            parts.append(f"{'#' * source.randint(1, 3)} {heading}\n\n" + "\n\n".join(paragraphs) + "\n")
        if number % 20 == 7:
            parts.append("## last\n\nrare\n")
        texts[f"d/{source.choice('abc')}/{number:02}.md"] = "\n".join(parts)
    return texts


@pytest.fixture(scope="module")
def generated() -> Iterator[Path]:
    with scratch_directory() as place:
        yield build_store(place / "home", generated_texts(), documents_a_group=7)


@pytest.fixture(autouse=True)
def fresh_tables() -> Iterator[None]:
    chunk_documents.forget_tables()
    yield
    chunk_documents.forget_tables()


TERMS = st.builds(
    SlowTerm,
    words=st.lists(st.sampled_from((*FORMS, "nowhere")), min_size=1, max_size=3).map(tuple),
    fields=st.sampled_from((("body", "heading_path"), ("body",), ("heading_path",))),
)
EXCLUDED = TERMS.map(lambda term: SlowTerm(term.words, term.fields, excluded=True))


def distinct(terms: Sequence[SlowTerm]) -> list[SlowTerm]:
    return list(dict.fromkeys(terms))


def as_slow(document: MatchedDocument) -> SlowDocument:
    return SlowDocument(
        document.path, document.ordinal, document.body_matches, document.heading_matches, document.total_chunks
    )


@pytest.fixture(scope="module", params=["looked up", "table", "bisected"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """How chunks find their documents: all three must agree."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "looked up":
            patch.setattr(chunk_documents, "LOOK_UPS_A_DOCUMENT", 1_000_000)
        else:
            patch.setattr(chunk_documents, "LOOK_UPS_A_DOCUMENT", 0)
            patch.setattr(chunk_documents, "FEW_KEYS", 0)
            patch.setattr(chunk_documents, "MAX_TABLE_ENTRIES", 0 if request.param == "bisected" else 1_000_000)
        yield request.param


@pytest.fixture(scope="module")
def opened(generated: Path) -> Iterator[tuple[SqliteSnapshot, SlowCorpus]]:
    with open_snapshot(generated) as snapshot:
        yield snapshot, SlowCorpus(snapshot)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    required=st.lists(TERMS, min_size=1, max_size=3),
    excluded=st.lists(EXCLUDED, max_size=2),
    min_matches=st.sampled_from((1, 1, 2, 5)),
)
def test_sets_are_those_of_reading_every_chunk(
    way: str,
    opened: tuple[SqliteSnapshot, SlowCorpus],
    required: list[SlowTerm],
    excluded: list[SlowTerm],
    min_matches: int,
) -> None:
    """S0-42, S0-43, S0-48: documents, counts apart, the first chunk, and what is told of each term."""
    snapshot, slow = opened
    terms = distinct([*required, *excluded])
    query = " ".join(term.written for term in terms)
    request = MatchRequest(query, limit=None, sort="path", min_matches=min_matches)
    answer = enumerate_documents(snapshot, request)
    expected = slow.documents(terms, min_matches)
    assert list(map(as_slow, answer.documents)) == expected
    assert answer.matched == len(expected)
    assert answer.status is MatchStatus.OK
    assert [report.documents for report in answer.terms] == [slow.holding(term) for term in terms]
    assert [report.as_written for report in answer.terms] == [
        slow.holding_as_written(term) if len(term.words) == 1 else None for term in terms
    ]
    assert (answer.no_match_cause is None) == bool(expected)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(required=st.lists(TERMS, min_size=1, max_size=2), limit=st.integers(0, 70))
def test_the_most_matches_come_first_then_the_path_and_the_total_is_of_all(
    way: str, opened: tuple[SqliteSnapshot, SlowCorpus], required: list[SlowTerm], limit: int
) -> None:
    """S0-49."""
    snapshot, slow = opened
    terms = distinct(required)
    request = MatchRequest(" ".join(term.written for term in terms), limit=limit)
    answer = enumerate_documents(snapshot, request)
    expected = slow.documents(terms)
    expected.sort(key=lambda document: (-document.body_matches - document.heading_matches, document.path))
    assert list(map(as_slow, answer.documents)) == expected[:limit]
    assert answer.matched == len(expected)
    assert answer.is_truncated == (limit < len(expected))


@contextmanager
def store_of(texts: dict[str, str], **how: object) -> Iterator[SqliteSnapshot]:
    with scratch_directory() as place, open_snapshot(build_store(place / "home", texts, **how)) as snapshot:  # type: ignore[arg-type]
        yield snapshot


def ask(snapshot: SqliteSnapshot, query: str, **request: object) -> MatchAnswer:
    return enumerate_documents(snapshot, MatchRequest(query, **request))  # type: ignore[arg-type]


def paths(answer: MatchAnswer) -> list[str]:
    return [document.path for document in answer.documents]


APART = {
    "d/apart.md": "# One\n\nkernel here\n\n# Two\n\ndriver there\n",
    "d/kernel.md": "# Kernel\n\nonly kernels, kernels\n",
    "d/driver.md": "# Notes\n\na driver\n",
    "d/draft.md": "# Draft\n\nkernel driver draft\n",
}


def test_words_in_two_chunks_of_a_document_meet() -> None:
    """S0-43."""
    with store_of(APART) as snapshot:
        assert paths(ask(snapshot, "kernel driver -draft")) == ["d/apart.md"]
        assert paths(ask(snapshot, '"kernel driver"')) == ["d/draft.md"]
        assert ask(snapshot, "driver").documents[0].citation == "d/apart.md#1"
        report = ask(snapshot, "kernel").terms[0]
    assert (report.stem, report.documents, report.as_written) == ("kernel", 3, 3)
    assert report.related_forms == (RelatedForm("kernels", 1),)


def test_stems_that_do_not_begin_a_form_have_it_as_a_related_form() -> None:
    with store_of({"d/a.md": "happy happily\n", "d/b.md": "happiness\n", "d/c.md": "happening happen\n"}) as snapshot:
        report = ask(snapshot, "happiness").terms[0]
    assert report.stem == "happi"
    assert [form.word for form in report.related_forms] == ["happy"]


def test_at_most_five_related_forms_the_commonest_first() -> None:
    forms = ["connect", "connected", "connecting", "connection", "connections", "connects", "connective"]
    texts = {f"d/{number}.md": " ".join(forms[number:]) + "\n" for number in range(len(forms))}
    with store_of(texts) as snapshot:
        report = ask(snapshot, "connect").terms[0]
    assert [form.word for form in report.related_forms] == [
        "connective",
        "connects",
        "connections",
        "connection",
        "connecting",
    ]
    assert report.related_forms[0].chunks == 7


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("kernel zebra", NoMatchCause.NOWHERE),
        ("heading:driver", NoMatchCause.NOWHERE),
        ("here there draft", NoMatchCause.NEVER_TOGETHER),
        ("kernel -kernel", NoMatchCause.EXCLUDED),
        ("kernel -zebra", None),
    ],
)
def test_an_empty_answer_says_which_it_is(query: str, cause: NoMatchCause | None) -> None:
    with store_of(APART) as snapshot:
        answer = ask(snapshot, query)
        assert answer.no_match_cause is cause
        assert ask(snapshot, "kernel", min_matches=9).no_match_cause is NoMatchCause.TOO_FEW


def test_a_term_that_stands_in_names_only_is_told() -> None:
    with store_of({"d/zeppelin.md": "---\ntags: [airship]\n---\n# Balloons\n\nlight\n"}) as snapshot:
        nowhere = ask(snapshot, "airship light").terms
        assert ask(snapshot, "airship").matched == 0
    assert [term.only_in_names for term in nowhere] == [1, 0]


@pytest.mark.parametrize(
    ("query", "reasons"),
    [
        ("", []),
        ("x", [DropReason.TOO_SHORT]),
        ("?! x", [DropReason.PUNCTUATION, DropReason.TOO_SHORT]),
        ("x -kernel", [DropReason.TOO_SHORT, None]),
        ("\u093e\u0902", [DropReason.PUNCTUATION]),
    ],
)
def test_a_query_without_terms_is_empty_and_says_what_it_held(query: str, reasons: list[DropReason | None]) -> None:
    """S0-51, S0-54."""
    with store_of(APART) as snapshot:
        answer = ask(snapshot, query)
    assert answer.status is MatchStatus.QUERY_EMPTY
    assert [term.not_queried for term in answer.terms] == reasons
    assert answer.indexed_documents == 4
    assert (answer.compiled, answer.matched) == ("", 0)


def test_an_empty_corpus_is_told_before_an_empty_query_and_after_a_bad_one() -> None:
    """S0-51."""
    with store_of({}) as snapshot:
        assert ask(snapshot, "kernel").status is MatchStatus.CORPUS_EMPTY
        assert ask(snapshot, "").status is MatchStatus.CORPUS_EMPTY
        with pytest.raises(UsageError, match="OR is no operator"):
            ask(snapshot, "kernel OR driver")


def test_phrases_are_exempt_from_the_least_length() -> None:
    with store_of({"d/a.md": "written in C\n", "d/b.md": "written in Go\n"}) as snapshot:
        assert paths(ask(snapshot, '"C"')) == ["d/a.md"]
        assert ask(snapshot, 'written "C"').terms[1].not_queried is None


def test_root_and_path_narrow_documents_and_counts() -> None:
    texts = {"a/x.md": "kernel\n", "a/sub/y.md": "kernel kernels\n", "b/x.md": "kernel\n"}
    with store_of(texts) as snapshot:
        narrowed = ask(snapshot, "kernel", root="a", path_glob="sub/*")
        assert paths(narrowed) == ["a/sub/y.md"]
        assert (narrowed.terms[0].documents, narrowed.terms[0].as_written) == (1, 1)
        assert narrowed.indexed_documents == 3
        assert paths(ask(snapshot, "kernel", path_glob="x.md")) == ["a/x.md", "b/x.md"]
        assert ask(snapshot, "kernel", path_glob="z.md").no_match_cause is NoMatchCause.NOWHERE


def test_hidden_documents_are_in_no_set_and_in_no_number() -> None:
    texts = {**APART, "d/secret.md": "# Kernel\n\nkernels kernelled zebra driver\n"}
    with scratch_directory() as place:
        database = build_store(place / "home", texts)
        with closing(driver.connect(str(database), uri=False, timeout_s=5)) as connection:
            connection.execute("UPDATE documents SET item_id = 'i' WHERE key = 'd/secret.md'")
        hiding = Visibility(hidden_item_ids=frozenset({"i"}))
        with open_snapshot(database) as snapshot:
            assert ask(snapshot, "zebra").matched == 1
            hidden = ask(snapshot, "zebra", visibility=hiding)
            shown = ask(snapshot, "kernel", visibility=hiding)
    assert hidden.no_match_cause is NoMatchCause.NOWHERE
    assert (hidden.terms[0].documents, hidden.terms[0].as_written, hidden.indexed_documents) == (0, 0, 4)
    assert "d/secret.md" not in paths(shown)
    assert (shown.terms[0].documents, shown.terms[0].related_forms) == (3, ())


SPACELESS = {
    "d/a.md": "# 東京都\n\n東京都は日本の首都である。\n",
    "d/b.md": "# Plain\n\n首都、京都\n",
    "d/c.md": "# Latin\n\nonly ascii\n",
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("東京都", ["d/a.md"]),
        ("京都", ["d/a.md", "d/b.md"]),
        ("首", ["d/a.md", "d/b.md"]),
        ("首都 -東京", ["d/b.md"]),
        ("heading:東京", ["d/a.md"]),
        ("日本の首都 body:東京都は", ["d/a.md"]),
    ],
)
def test_text_written_without_blanks_is_found_anywhere(query: str, expected: list[str]) -> None:
    with store_of(SPACELESS) as snapshot:
        answer = ask(snapshot, query, sort="path")
    assert paths(answer) == expected
    assert {term.reading for term in answer.terms} == {TermReading.PART}
    assert {term.as_written for term in answer.terms} == {None}


def test_without_a_table_for_such_text_whole_runs_are_found_and_that_is_told() -> None:
    with store_of(SPACELESS, substring_index="off") as snapshot:
        answer = ask(snapshot, "京都")
    assert paths(answer) == ["d/b.md"]
    assert answer.terms[0].reading is TermReading.WHOLE_RUN


def test_a_commit_makes_what_was_remembered_void_and_an_open_snapshot_keeps_its_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S0-43: one state of the store answers."""
    monkeypatch.setattr(chunk_documents, "LOOK_UPS_A_DOCUMENT", 0)
    with scratch_directory() as place:
        database = build_store(place / "home", APART)
        with open_snapshot(database) as before:
            assert ask(before, "kernel").matched == 3
            change_store(place / "home", texts={"d/new.md": "kernel\n"}, removed=("d/apart.md",))
            assert ask(before, "kernel driver -draft").matched == 1
            with open_snapshot(database) as after:
                assert paths(ask(after, "kernel", sort="path")) == ["d/draft.md", "d/kernel.md", "d/new.md"]
                assert ask(after, "kernel driver -draft").no_match_cause is NoMatchCause.EXCLUDED
            assert ask(before, "kernel driver -draft").matched == 1


def test_a_blank_index_that_runs_have_filled_is_no_ordinary_empty_one() -> None:
    """S2-21."""
    with scratch_directory() as place:
        base_settings = build_base(place)
        with writable_base(base_settings, "test") as base:
            base.state.end_run(base.state.runs(1)[0].id, "done", {"added": 5}, "")
        layout_of(base_settings).database.unlink()
        with writable_base(base_settings, "test"):
            pass  # makes a blank one
        with readable_base(base_settings) as opened_base:
            answer = enumerate_base(opened_base, MatchRequest("fox"))
    error = match_error(answer)
    assert answer.status is MatchStatus.INDEX_INCONSISTENT
    assert error is not None
    assert error.code == "index_inconsistent"
    assert "the index is blank" in error.message


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"min_matches": 0}, {"root": "other"}, {"path_glob": "a/" * 600}])
def test_what_no_enumeration_can_obey_is_refused(wrong: dict[str, object]) -> None:
    with scratch_directory() as place, readable_base(build_base(place)) as base, pytest.raises(UsageError):
        enumerate_base(base, MatchRequest("fox", **wrong))  # type: ignore[arg-type]


def test_an_enumeration_has_a_quarter_of_the_budget_and_at_least_one_document() -> None:
    """S0-78."""
    assert [document_budget(tokens) for tokens in (0, 6_000, 100_000)] == [1, 61, 1_020]


PIECES = st.sampled_from(
    ['"', "-", "*", ":", "heading:", "body:", " ", "^", "(", ")", "{", "}", "+", "'", "kernel", "C", "\u6771", "\x01"]
)


@example("00{\U00011af9")  # a letter to the index, none to us
@example("word" * 100)
@example('"' + "many words " * 60 + '"')
@settings(max_examples=200)
@given(query=st.one_of(st.text(), st.lists(PIECES, max_size=12).map("".join), st.text('\u6771\u4eac ab-"', max_size=8)))
def test_any_string_is_an_answer_or_an_error_of_ours(opened: tuple[SqliteSnapshot, SlowCorpus], query: str) -> None:
    """S0-44: never one of FTS5's."""
    snapshot, _ = opened
    try:
        answer = enumerate_documents(snapshot, MatchRequest(query))
    except UsageError as error:
        assert error.hint
        return
    assert answer.status in (MatchStatus.OK, MatchStatus.QUERY_EMPTY)
    assert (answer.status is MatchStatus.QUERY_EMPTY) == (answer.compiled == "")
    assert len(answer.documents) <= answer.matched <= answer.indexed_documents
