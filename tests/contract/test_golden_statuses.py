"""What every surface says of every status, letter by letter (S0-50..S0-56, S2-21).

A file of `golden/statuses` holds all that is said of a base in one state (tests.support.status_matrix): to a person on
the terminal, to a program (`--json`), and to an agent (MCP, in both of its forms). `words.txt` holds the words of every
member of every closed set. A member that no golden file shows fails here: add a state, or a line of ELSEWHERE with the
test that shows it. Where a change is meant, run these tests with WRITE_GOLDEN=1 and look at what has changed.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import pytest

from app.discovery import Located
from app.present import (
    degraded_note_words,
    drop_reason_words,
    not_built_message,
    search_note_words,
    search_status_words,
    standing_words,
    tier_line,
)
from app.present_checks import CHECK_SIGNS, ChecksStatus
from domain.checks import CheckState
from domain.errors import KnowledgeError
from domain.settings import Settings
from domain.status import (
    Absence,
    DegradeCause,
    DropReason,
    MatchStatus,
    NoMatchCause,
    SearchNote,
    SearchStatus,
    Standing,
    Tier,
    TierKind,
)
from tests.support.scratch import scratch_directory
from tests.support.status_matrix import EVERY_COMMAND, EVERY_TOOL, STATES, WHOLE_STATES, everything_told
from tests.support.told import Told

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
GOLDEN = Path(__file__).parent / "golden" / "statuses"
HOME = Path("/base/knowledge/default")
SETTINGS, LOCATED = Settings("default", HOME, config_path=None, configured=False), Located("store", None, HOME)
STATUS_SENTENCES = (
    "tier: ", "only words were searched", "the index holds no document:", "no run has seen all", "the index is blank, ",
    "the index is older than", "the query holds nothing to search for", "nothing found", "there is no index yet",
    "embeddings unreachable", "no vectors yet", "index metadata unreadable",
)  # fmt: skip
REWRITES = bool(os.environ.get("WRITE_GOLDEN"))


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with scratch_directory() as path:
        yield path


@pytest.fixture(scope="module")
def known() -> dict[str, dict[str, Told]]:
    """What has been asked in this module; each base is made once."""
    return {}


@pytest.fixture
def told(place: Path, known: dict[str, dict[str, Told]]) -> Callable[[str], dict[str, Told]]:
    def ask(name: str) -> dict[str, Told]:
        if name not in known:
            known[name] = everything_told(STATES[name], place / name / "base")
        return known[name]

    return ask


def compare(file_name: str, text: str) -> None:
    golden = GOLDEN / file_name
    if REWRITES:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), f"if this is meant: WRITE_GOLDEN=1, and look at {golden}"


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_told_as_the_golden_file_says(name: str, told: Callable[[str], dict[str, Told]]) -> None:
    asked_of: dict[Told, list[str]] = {}
    for asked, answer in told(name).items():
        asked_of.setdefault(answer, []).append(f"$ {asked}")
    sections = ["\n".join([*asked, *answer.lines()]) for answer, asked in asked_of.items()]
    compare(f"{name}.txt", "\n\n".join(sections) + "\n")


@pytest.mark.parametrize("name", STATES)
def test_no_absence_reads_as_a_result(name: str, told: Callable[[str], dict[str, Told]]) -> None:
    """Each JSON object has a code; what ends well has said something, and what does not says why and what to do."""
    for asked, answer in told(name).items():
        if asked.endswith(("--json", "structured_content")):
            value = json.loads(answer.out)
            assert value.get("status") or value["error"]["code"], asked
            if answer.status:
                assert "error" in value or value.get("exit_status") == answer.status, asked
        elif answer.status == 0:
            assert answer.out.strip() or (name, "--words-only" in asked) == ("nothing_found", True), asked
        elif answer.status is not None:
            assert "hint: " in answer.out + answer.err or "state      there is no such file" in answer.out, asked
    assert not re.search(r"Traceback|\bNone\b|unexpected", "".join(answer.words for answer in told(name).values()))


def is_unconcerned(name: str, asked: str) -> bool:
    """A document that is found reads the same, whether or not others are still to come."""
    return name == "incomplete" and asked.startswith(("knowledge show", "knowledge_read"))


@pytest.mark.parametrize("asked", [" ".join(("knowledge", *command)) for command in EVERY_COMMAND])
@pytest.mark.parametrize("form", ["", " --json"])
def test_no_two_states_are_told_alike(asked: str, form: str, told: Callable[[str], dict[str, Told]]) -> None:
    """Of one command, no two states of a base have the same words, nor the same object."""
    seen: dict[str, str] = {}
    for name in WHOLE_STATES:
        answer = told(name).get(asked + form)
        if answer is not None and not is_unconcerned(name, asked):
            assert answer.words not in seen, f"{name} and {seen[answer.words]} are told alike: {answer.words}"
            seen[answer.words] = name


@pytest.mark.parametrize("call", [f"{name} {json.dumps(arguments)}" for name, arguments in EVERY_TOOL])
@pytest.mark.parametrize("form", [": content", ": structured_content"])
def test_no_two_states_are_told_alike_to_an_agent(call: str, form: str, told: Callable[[str], dict[str, Told]]) -> None:
    seen: dict[str, str] = {}
    for name in WHOLE_STATES:
        words = told(name)[call + form].words
        if is_unconcerned(name, call):
            continue
        assert words not in seen, f"{name} and {seen[words]} are told alike: {words}"
        seen[words] = name


# kinds of states that answer, beside the code that each has of its own; the others are errors, by their codes
CODES = {
    "empty": ("index_empty", "corpus_empty", "index_empty", "empty"),
    "emptied_by_reset": ("index_incomplete", "corpus_empty", "index_incomplete", "incomplete"),
    "incomplete": ("index_incomplete", "index_incomplete", "index_incomplete", "incomplete"),
    "inconsistent": ("index_inconsistent",) * 4,
    "outdated": ("index_outdated",) * 4,
    "complete": ("ok", "ok", "ok", "complete"),
    **dict.fromkeys(("not_built", "cut_short", "lost", "record_lost"), ("index_not_built",) * 4),
}


@pytest.mark.parametrize("name", CODES)
def test_each_state_has_its_code_on_every_surface(name: str, told: Callable[[str], dict[str, Told]]) -> None:
    """S0-50, S0-51, S2-21: the words are for people, the codes for programs."""
    answers = told(name)
    found, matched, listed, shown = CODES[name]
    wanted = {"search fox": found, "match fox": matched, "words ^fo": listed, "status": shown}
    if shown != "index_not_built":
        wanted |= dict.fromkeys(("stats", "sources", "sources --coverage", "explain docs/a.md"), shown)
    for asked, code in wanted.items():
        assert json.loads(answers[f"knowledge {asked} --json"].out)["status"] == code, asked
    for (tool, arguments), code in zip(EVERY_TOOL[:2], (found, matched), strict=True):
        call = f"{tool} {json.dumps(arguments)}"
        value = json.loads(answers[f"{call}: structured_content"].out)
        assert value["status"] == code
        assert f"status: {code}\n" in answers[f"{call}: content"].out


def test_the_words_of_every_member() -> None:
    """Every closed set, member by member; no two of one set are said alike."""
    sets: dict[str, dict[str, str]] = {
        "tier": {
            kind.value: tier_line(Tier(kind, "small-embed", 384)) for kind in TierKind if kind is not TierKind.DEGRADED
        },
        "degraded": {cause.value: tier_line(Tier.degraded(cause, "why")) for cause in DegradeCause},
        "degraded, note": {cause.value: degraded_note_words(cause) for cause in DegradeCause},
        "search": {status.value: search_status_words(status, has_results=False) for status in SearchStatus},
        "search, with hits": {
            status.value: search_status_words(status, has_results=True)
            for status in (SearchStatus.OK, SearchStatus.INDEX_INCOMPLETE, SearchStatus.INDEX_OUTDATED)
        },
        "search, note": {note.value: search_note_words(note) for note in SearchNote},
        "not searched for": {reason.value: drop_reason_words(reason) for reason in DropReason},
        "index": {standing.value: standing_words(standing) for standing in Standing},
        "no index": {absence.value: "; ".join(not_built_message(LOCATED, SETTINGS, absence)) for absence in Absence},
        "checks": {state.value: sign for state, sign in CHECK_SIGNS.items()},
    }
    for name, words in sets.items():
        assert len(set(words.values())) == len(words), name
    lines = [line for name, words in sets.items() for line in (f"{name}:", *(f"  {c}: {w}" for c, w in words.items()))]
    compare("words.txt", "\n".join(lines) + "\n")


def golden_text() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.txt")) if path.stem in STATES)


@pytest.mark.parametrize("members", [SearchStatus, MatchStatus, Standing, NoMatchCause])
def test_every_status_is_shown_by_a_golden_file(members: type[Enum]) -> None:
    """A new member needs a state of its own above."""
    shown = golden_text()
    assert not [member.value for member in members if f': "{member.value}"' not in shown]


def test_every_state_of_checks_and_every_absence_is_shown() -> None:
    shown = golden_text()
    assert not [state for state in get_args(ChecksStatus) if f'"status": "{state}"' not in shown]
    assert not [state.value for state in CheckState if f'": "{state.value}: ' not in shown]
    assert {absence.value for absence in Absence} == {"never_built", "cut_short", "lost", "record_lost"}  # states above


# errors of a question, of the machine, or of a run, which no base shows by itself; and where they are shown
ELSEWHERE = {
    "unexpected": "tests/unit/test_present.py",
    "usage": "tests/acceptance/test_cli_errors.py",
    "configuration": "tests/unit/test_config_rules.py",
    "unsafe_place": "tests/integration/test_store_files.py",
    "refused": "tests/integration/test_restore.py",
    "storage": "tests/integration/test_restore.py",
    "disk_full": "tests/integration/test_index_run.py",
    "queue_unreachable": "tests/integration/test_doctor.py",
    "interrupted": "tests/acceptance/test_cli_runs.py",
    "cancelled": "tests/acceptance/test_cli_runs.py",
}


def test_every_error_code_is_shown_by_a_golden_file() -> None:
    """Those of the table in domain.errors; codes of single files are reasons."""
    shown = golden_text()
    codes = {error.code for error in every_error() if error.__module__ == KnowledgeError.__module__}
    missing = {code for code in codes if f'"code": "{code}"' not in shown}
    assert missing == set(ELSEWHERE)
    names = {error.code: error.__name__ for error in every_error() if error.__module__ == KnowledgeError.__module__}
    for code, path in ELSEWHERE.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f'"{code}"' in text or names[code] in text, f"{path} does not show {code}"


def every_error(of: type[KnowledgeError] = KnowledgeError) -> Iterator[type[KnowledgeError]]:
    yield of
    for below in of.__subclasses__():
        yield from every_error(below)


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*STATES, "words"}


def test_sentences_of_statuses_are_made_in_one_place() -> None:
    """The tier line, and what a status means, are written down in app.present alone: elsewhere they are called for."""
    quoted = [*(f'"{words}' for words in STATUS_SENTENCES), *(f'f"{words}' for words in STATUS_SENTENCES)]
    makers = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if any(sentence in path.read_text(encoding="utf-8") for sentence in quoted)
    }
    assert makers == {"app/present.py", "app/present_match.py"}  # the latter: the tier line of an enumeration
