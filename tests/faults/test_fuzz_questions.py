"""Whatever is asked of an index: an answer that holds, or a refusal in words (T14..T19)."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.present import json_text
from app.present_documents import chunk_json, chunk_text, document_json, document_on_terminal
from app.present_match import match_json, match_text
from app.present_search import IndexState, search_json, search_text
from app.present_words import words_json
from app.query_embedder import QueryEmbedder
from app.searching import answer
from app.showing import KnownPlaces, ShownChunk, ShowRequest, show
from domain.citations import Citation
from domain.settings import RootSettings
from domain.status import Standing, Tier
from retrieval.answer import MAX_TOP_K
from retrieval.enumeration import enumerate_documents
from retrieval.match_query import parse_match
from retrieval.query_vector import Meaning
from retrieval.vocabulary import count_words, list_words
from store.port import Visibility
from store.sqlite import SqliteSnapshot, SqliteStore
from store.state_port import RootRecord
from tests.faults.test_search_fuzz import TEXTS as LANGUAGES
from tests.support.depth import scaled
from tests.support.figures import NoteFigure
from tests.support.frame_checks import assert_harmless
from tests.support.fuzz_questions import citation, lines, match_request, search_request, words_request
from tests.support.fuzz_texts import ODD_INTEGERS
from tests.support.fuzz_trying import ASKED, Trial, chooser, told
from tests.support.hostile_texts import hostile_texts
from tests.support.meaning import SETTINGS, TEXTS, MeaningBase

INPUTS = scaled(200, ASKED)
MOST_BYTES = 4_000_000  # of an answer
INDEX = IndexState("home", 1, 0, None)
EVERYTHING = Visibility.everything()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> MeaningBase:
    """Texts in many languages, some that mean harm, all with vectors."""
    made = MeaningBase(tmp_path_factory.mktemp("asked") / "home")
    hostile = {f"d/{one.number}.md": one.document for one in list(hostile_texts())[::9]}
    made.put({**LANGUAGES, **TEXTS, **hostile}, made.pin())
    return made


@pytest.fixture(scope="module")
def store(base: MeaningBase) -> Iterator[SqliteStore]:
    with base.opened() as opened:
        yield opened


@pytest.fixture(scope="module")
def snapshot(store: SqliteStore) -> Iterator[SqliteSnapshot]:
    with store.snapshot() as opened:
        yield opened


@pytest.fixture(scope="module")
def meaning(base: MeaningBase) -> Iterator[Meaning]:
    embedder = QueryEmbedder(SETTINGS, make=base.make)
    yield embedder.meaning()
    embedder.close()


def assert_sent(value: object, text: str = "") -> None:
    """An answer of bounded size, as JSON and for a terminal."""
    written = json_text(value)
    assert json.loads(written) == json.loads(json.dumps(value))
    assert len(written.encode()) < MOST_BYTES and len(text.encode()) < MOST_BYTES
    assert_harmless(text)


def test_queries_in_every_mode_with_every_filter(note_figure: NoteFigure, store: SqliteStore, meaning: Meaning) -> None:
    """T14..T18, P16, P31: what is given is cited rightly and holds what was asked for."""
    trial = Trial("queries")

    def ask(number: int) -> None:
        request = search_request(chooser("queries", number))
        found = answer(store, request, meaning)
        assert len(found.results) <= MAX_TOP_K
        for hit in found.results:
            assert Citation.parse(hit.citation) == Citation(hit.path, hit.ordinal)
            assert all(0 <= first < end <= len(hit.snippet) for first, end in hit.matches)
            assert request.root in ("", hit.root)
        now_ns = time.time_ns()
        assert_sent(search_json(found, INDEX, {}, now_ns), search_text(found, "home", {}, now_ns, str))

    for number in range(INPUTS):
        trial.take(f"{number}: {search_request(chooser('queries', number))!r}", partial(told, partial(ask, number)))
    note_figure(
        trial.figure(
            ("P16", "P31", "T14", "T15", "T16", "T17", "T18"), "queries in every mode, with filters and counts"
        )
    )
    assert trial.faults == [], trial.report()
    assert trial.outcomes["answered"] > INPUTS // 4


def test_the_language_of_enumerations(note_figure: NoteFigure, snapshot: SqliteSnapshot) -> None:
    """T14, T16: every string is a query or a refusal; a query is read again from what it says of itself."""
    trial = Trial("match")

    def ask(number: int) -> None:
        request = match_request(chooser("match", number))
        parsed = parse_match(request.query)
        for term in parsed.terms:
            again = parse_match(term.surface if not term.excluded else f"x -{term.surface}").terms[-1]
            assert again == term, (again, term)
        found = enumerate_documents(snapshot, request)
        assert found.matched >= len(found.documents)
        assert request.limit is None or len(found.documents) <= request.limit
        now_ns = time.time_ns()
        assert_sent(match_json(found, request, now_ns), match_text(found, request, "home", now_ns, explain=True))

    for number in range(INPUTS):
        trial.take(f"{number}: {match_request(chooser('match', number))!r}", partial(told, partial(ask, number)))
    note_figure(trial.figure(("P31", "T14", "T16", "T17"), "the language of enumerations"))
    assert trial.faults == [], trial.report()
    assert min(trial.outcomes["answered"], trial.outcomes["refused (usage)"]) > INPUTS // 10


def in_a_thread(ask: Callable[[], object]) -> str:
    """The outcome there, where no signal stops a pattern: a process beside does."""
    found: list[str | BaseException] = []

    def work() -> None:
        try:
            found.append(told(ask))
        except Exception as error:  # noqa: BLE001 - raised again below
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (outcome,) = found
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def test_patterns_of_words(note_figure: NoteFigure, snapshot: SqliteSnapshot, base: MeaningBase) -> None:
    """T16, P31: patterns that no engine reads, and those that it would not end with; every 20th in another thread."""
    trial = Trial("patterns")

    def ask(number: int, view: SqliteSnapshot) -> None:
        request = words_request(chooser("patterns", number))
        found = list_words(view, request)
        assert len(found.words) <= min(request.limit, found.matched)
        if request.min_chunks == 0 and request.max_chunks is None:
            assert count_words(view, request).matched == found.matched
        assert_sent(words_json(found, request, Tier.LEXICAL, with_words=True))

    def ask_there(number: int) -> None:
        with base.opened() as store, store.snapshot() as view:
            ask(number, view)

    for number in range(INPUTS):
        shown = f"{number}: {words_request(chooser('patterns', number))!r}"
        if number % 20 == 19:
            trial.take(shown, partial(in_a_thread, partial(ask_there, number)))
        else:
            trial.take(shown, partial(told, partial(ask, number, snapshot)))
    note_figure(trial.figure(("P31", "T16"), "patterns of words"))
    assert trial.faults == [], trial.report()
    assert min(trial.outcomes["answered"], trial.outcomes["refused (usage)"]) > INPUTS // 20


def test_citations_and_paths_to_show(note_figure: NoteFigure, snapshot: SqliteSnapshot, tmp_path: Path) -> None:
    """T2, T19: looked up in the store, whatever they point to; no file is read for them."""
    trial = Trial("citations")
    secret = tmp_path / "d" / "a.md"
    secret.parent.mkdir()
    secret.write_text("SECRET of the disk\n", encoding="utf-8")
    records = (RootRecord("d", str(secret.parent)), RootRecord("e", "/etc"))
    places = KnownPlaces(records, (RootSettings(secret.parent, "d"),), tmp_path, str(tmp_path))

    def ask(number: int) -> None:
        random = chooser("citations", number)
        target = citation(random)
        amounts = (*(0,) * 20, *ODD_INTEGERS[4:])
        request = ShowRequest(target, random.choice(amounts), random.choice(amounts), lines(random))
        shown = show(snapshot, replace(request, before=abs(request.before), after=abs(request.after)), places)
        stored = snapshot.text(shown.document.key, visibility=EVERYTHING) or ""
        if isinstance(shown, ShownChunk):
            assert all(chunk.body in stored for chunk in shown.chunks)
            assert_sent(
                chunk_json(shown, Tier.LEXICAL, Standing.COMPLETE), chunk_text(shown, Tier.LEXICAL, Standing.COMPLETE)
            )
        else:
            assert shown.text in stored and "SECRET" not in shown.text
            assert_sent(document_json(shown, Tier.LEXICAL, Standing.COMPLETE), document_on_terminal(shown))

    for number in range(INPUTS):
        trial.take(f"{number}: {citation(chooser('citations', number))!r}", partial(told, partial(ask, number)))
    note_figure(trial.figure(("P7", "T2", "T19"), "citations and paths that are to be shown"))
    assert trial.faults == [], trial.report()
    assert trial.outcomes["answered"] > INPUTS // 20
