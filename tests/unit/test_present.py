"""The words of statuses, errors and numbers."""

from pathlib import Path

import pytest

from app.discovery import Located
from app.present import (
    ago,
    count,
    drop_reason_words,
    duration,
    error_json,
    error_text,
    index_line,
    not_built_message,
    search_note_words,
    search_status_words,
    size,
    unexpected_error,
    utc,
)
from app.present_reasons import counts_words, ending_words, held_words, reason_words
from domain.errors import KnowledgeError, UsageError
from domain.files import Reason
from domain.settings import RootSettings, Settings
from domain.status import DropReason, SearchNote, SearchStatus
from store.run_port import RUN_ENDINGS

HOME = Path("/base/knowledge/default")
SETTINGS = Settings("default", HOME, config_path=None, configured=False)


def test_every_status_has_words_of_its_own() -> None:
    told = [search_status_words(status, has_results=False) for status in SearchStatus]
    assert len(set(told)) == len(told)
    assert search_status_words(SearchStatus.OK, has_results=True) == ""


def test_every_note_and_reason_has_words_of_its_own() -> None:
    for words in (
        [search_note_words(note) for note in SearchNote],
        [drop_reason_words(reason) for reason in DropReason],
        [reason_words(reason.value) for reason in Reason],
    ):
        assert len(set(words)) == len(words)
        assert all(words)


def test_codes_of_later_versions_are_readable() -> None:
    assert reason_words("from_the_future") == "from the future"
    assert held_words("from_the_future") == "from the future"


def test_every_ending_of_a_run_has_words_of_its_own() -> None:
    """No state of a run is shown as its bare code."""
    told = {state: ending_words(state) for state in RUN_ENDINGS}
    assert len(set(told.values())) == len(RUN_ENDINGS)
    assert [state for state, words in told.items() if words == state] == ["failed"]
    assert "_" not in "".join(told.values())


def test_counts_are_told_in_the_order_of_the_outcomes() -> None:
    assert counts_words({"removed": 1, "added": 1200}) == "1,200 added, 1 removed"
    assert counts_words({}) == "no file met"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.4, "0.40 s"), (3.21, "3.2 s"), (9, "9 s"),
     (42, "42 s"), (60, "1 min"), (185, "3 min 5 s"), (7260, "2 h 1 min"),
     (86_400 * 3, "3 days")],
)  # fmt: skip
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_numbers() -> None:
    assert count(1, "file") == "1 file"
    assert count(39_834, "file") == "39,834 files"
    assert count(2, "directory", "directories") == "2 directories"
    assert size(999) == "999 bytes"
    assert size(1_500_000) == "1.5 MB"


def test_times() -> None:
    assert utc(1_700_000_000_123_456_789) == "2023-11-14T22:13:20Z"
    assert utc(None) is None
    assert ago(None, 0) == "never"
    assert ago(0, 1_000_000_000) == "just now"
    assert ago(0, 90_000_000_000) == "1 min 30 s ago"


def test_an_error_is_told_without_what_acts_on_a_terminal() -> None:
    error = UsageError("no file \x1b[31mx\ny", hint="look\u202e")
    assert error_text(error) == "error: no file <U+001B>[31mx\ny\nhint: look<U+202E>\n"
    assert error_json(error)["error"]["code"] == "usage"
    assert error_text(KnowledgeError("")) == "error: (no message)\n"


def test_the_unexpected_is_one_line() -> None:
    told = unexpected_error(ValueError("a\nb" * 500))
    assert told.code == "unexpected"
    assert "\n" not in told.message
    assert len(told.message) < 400


def test_where_nothing_was_found_the_places_are_named() -> None:
    places = (Path("/base/here"), Path("/base"))
    message, hint = not_built_message(Located("nothing", None, HOME, places), SETTINGS)
    assert "/base/here, /base" in message
    assert "knowledge index YOUR_FOLDER" in hint
    configured = Settings("x", HOME, config_path=Path("/c.yaml"), configured=True, roots=(RootSettings(Path("/d")),))
    message, hint = not_built_message(Located("named", Path("/c.yaml"), HOME), configured)
    assert "/c.yaml" in message
    assert "`knowledge index --config /c.yaml`" in hint


@pytest.mark.parametrize(
    ("located", "why"),
    [
        (Located("named", Path("/c.yaml"), HOME), "configuration /c.yaml"),
        (Located("found", Path("/c.yaml"), HOME), "configuration /c.yaml, found here or above"),
        (Located("store", None, HOME), "found here or above"),
        (Located("directory", None, HOME), "named by KNOWLEDGE_DIRECTORY"),
        (Located("nothing", None, HOME), "default place"),
    ],
)
def test_which_index_is_said(located: Located, why: str) -> None:
    assert index_line(located, SETTINGS) == f"index: {HOME} ({why})"
