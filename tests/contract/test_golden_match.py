"""What `match` prints, letter by letter, in each of its statuses (S0-42, S0-48..S0-54)."""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.present import json_text
from app.present_match import count_line, match_json, match_not_built_json, match_text, path_lines
from domain.errors import NotBuiltError
from domain.status import DropReason, MatchStatus, NoMatchCause
from retrieval.match_answer import MatchAnswer, MatchedDocument, MatchRequest, RelatedForm, TermReading, TermReport
from store.port import StoreIdentity

GOLDEN = Path(__file__).parent / "golden"
JSON_PAGE = (Path(__file__).parents[2] / "docs" / "reference-json.md").read_text(encoding="utf-8")
SECOND = 1_000_000_000
THEN = 1_700_000_000 * SECOND
NOW = THEN + 3_600 * SECOND
HOME = "/base/knowledge/default"
IDENTITY = StoreIdentity("b" * 32, "u" * 32, 41, 1, "auto", THEN)
REQUEST = MatchRequest('kernels "memory map" -draft x', limit=2)
EVIL = "\x1b]0;x\x07\u202e"
TERMS = (
    TermReport(
        "kernels", "", excluded=False, stem="kernel", documents=12, as_written=3,
        related_forms=(RelatedForm("kernel", 1_234), RelatedForm("kernel\u202e", 1)),
    ),
    TermReport('heading:"memory map"', "heading", excluded=False, stem="memori map", documents=1_300, as_written=None),
    TermReport("draft", "", excluded=True, stem="draft", documents=1, as_written=1),
    TermReport("x", "", excluded=False, not_queried=DropReason.TOO_SHORT),
    TermReport("東京", "", excluded=False, stem="東京", documents=2, as_written=None, reading=TermReading.PART),
)  # fmt: skip
ANSWER = MatchAnswer(
    MatchStatus.OK, IDENTITY, compiled='kernels AND heading:"memory map" AND -draft', matched=3,
    documents=(
        MatchedDocument("docs/a.md", "docs/a.md#3", 3, "Design", 1_200, 1, 2_000),
        MatchedDocument(f"docs/{EVIL}.md", f"docs/{EVIL}.md#0", 0, f"Evil{EVIL}", 1, 0, 1),
    ),
    terms=TERMS, indexed_documents=39_834,
)  # fmt: skip
NOWHERE = MatchAnswer(
    MatchStatus.INDEX_INCOMPLETE, IDENTITY._replace(complete_ns=None), compiled="zebra AND 京都",
    terms=(
        TermReport("zebra", "", excluded=False, stem="zebra", only_in_names=2),
        TermReport("京都", "", excluded=False, stem="京都", documents=1, as_written=1, reading=TermReading.WHOLE_RUN),
    ),
    indexed_documents=4, no_match_cause=NoMatchCause.NOWHERE,
)  # fmt: skip
NEVER = replace(ANSWER, matched=0, documents=(), terms=TERMS[:2], no_match_cause=NoMatchCause.NEVER_TOGETHER)
QUERY_EMPTY = MatchAnswer(MatchStatus.QUERY_EMPTY, IDENTITY, terms=TERMS[3:4], indexed_documents=4)
CORPUS_EMPTY = MatchAnswer(MatchStatus.CORPUS_EMPTY, IDENTITY)


def text(answer: MatchAnswer, *, explain: bool = False) -> str:
    return match_text(answer, REQUEST, HOME, NOW, explain=explain)


OUTPUTS = {
    "match.txt": text(ANSWER),
    "match_explain.txt": text(ANSWER, explain=True),
    "match_paths.txt": path_lines(ANSWER),
    "match_count.txt": count_line(ANSWER),
    "match_nowhere.txt": text(NOWHERE),
    "match_never_together.txt": text(NEVER),
    "match_excluded.txt": text(replace(NEVER, no_match_cause=NoMatchCause.EXCLUDED)),
    "match_too_few.txt": match_text(
        replace(NEVER, no_match_cause=NoMatchCause.TOO_FEW), replace(REQUEST, min_matches=5, root="docs"), HOME, NOW,
        explain=False,
    ),
    "match_query_empty.txt": text(QUERY_EMPTY),
    "match_corpus_empty.txt": text(CORPUS_EMPTY),
    "match.json": json_text(match_json(ANSWER, REQUEST, NOW)),
    "match_count.json": json_text(match_json(ANSWER, REQUEST, NOW, with_documents=False)),
    "match_nowhere.json": json_text(match_json(NOWHERE, REQUEST, NOW)),
    "match_query_empty.json": json_text(match_json(QUERY_EMPTY, REQUEST, NOW)),
    "match_corpus_empty.json": json_text(match_json(CORPUS_EMPTY, REQUEST, NOW)),
    "match_not_built.json": json_text(match_not_built_json(NotBuiltError("there is no index", hint="build it"))),
}  # fmt: skip


@pytest.mark.parametrize("file_name", sorted(OUTPUTS))
def test_output_is_the_golden_one(file_name: str) -> None:
    golden = GOLDEN / file_name
    assert OUTPUTS[file_name] == golden.read_text(encoding="utf-8"), f"if this is meant, write it to {golden}"


def test_the_answer_has_every_field_of_the_shared_object() -> None:
    """S0-79: what an agent is given."""
    answer = json.loads(OUTPUTS["match.json"])
    assert set(answer) >= {
        "tier", "status", "compiled", "matched", "returned", "truncated", "indexed_documents", "note", "documents",
        "terms",
    }  # fmt: skip
    assert set(answer["terms"][0]) >= {"term", "documents", "as_written", "related_forms", "not_queried"}


@pytest.mark.parametrize("file_name", [name for name in OUTPUTS if name.endswith(".json")])
def test_every_field_is_documented_and_the_note_is_always_there(file_name: str) -> None:
    """S0-53."""

    def keys(value: object) -> list[str]:
        if isinstance(value, dict):
            return [*value, *(key for inner in value.values() for key in keys(inner))]
        return [key for inner in value for key in keys(inner)] if isinstance(value, list) else []

    answer = json.loads(OUTPUTS[file_name])
    assert answer["note"]
    assert not [key for key in set(keys(answer)) if not re.search(rf"`(?:\w+\[\]\.)?{key}`", JSON_PAGE)]


def test_every_status_cause_and_reading_is_documented() -> None:
    names = [*MatchStatus, *NoMatchCause, *TermReading]
    assert not [name.value for name in names if f"`{name.value}`" not in JSON_PAGE]


@pytest.mark.parametrize("file_name", sorted(OUTPUTS))
def test_no_output_holds_what_acts_on_a_terminal(file_name: str) -> None:
    assert not any((char < " " and char != "\n") or "\x7f" <= char < "\xa0" for char in OUTPUTS[file_name])
    assert "\u202e" not in OUTPUTS[file_name]
