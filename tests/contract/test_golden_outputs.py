"""What surfaces print, letter by letter. A change here is a change that users see."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.discovery import Located
from app.outcomes import FirstFailure, IndexReport
from app.present import Json, json_text, not_built_message, tier_line
from app.present_base import stats_text, status_json, status_text
from app.present_index import report_json, report_text
from app.present_search import IndexState, not_built_json, search_json, search_text
from app.removing import HeldRemovals, RemovalReport
from app.status import BaseStatus, FailureGroup, RootStatus
from domain.errors import NotBuiltError
from domain.settings import Settings
from domain.status import DegradeCause, DropReason, SearchNote, SearchStatus, Standing, Tier, TierKind
from retrieval.answer import DidYouMean, DroppedTerm, Lanes, SearchAnswer, SearchHit, VectorFacts
from store.port import StoreIdentity
from store.run_port import RunRecord

GOLDEN = Path(__file__).parent / "golden"
SECOND = 1_000_000_000
THEN = 1_700_000_000 * SECOND
NOW = THEN + 3_600 * SECOND
HOME = Path("/base/knowledge/default")
SETTINGS = Settings("default", HOME, config_path=None, configured=False)
LOCATED = Located("store", None, HOME)
IDENTITY = StoreIdentity("b" * 32, "u" * 32, 41, 1, "auto", THEN)
RUN = RunRecord(
    7, 9, "index", "cli", ("docs",), "done", THEN - 12 * SECOND, THEN, {"unchanged": 2, "added": 1}, full=True
)  # fmt: skip


def hit(rank: int, *, evil: str = "") -> SearchHit:
    snippet = f"Hello{evil} world of words"
    return SearchHit(
        rank=rank, citation=f"docs/a{evil}.md#3", path=f"docs/a{evil}.md", ordinal=3, title=f"Design{evil}",
        heading_path="A > B", start_line=45, end_line=78, snippet=snippet,
        matches=((0, 5), (len(snippet) - 5, len(snippet))), matched_in=("body",), content=None, score=0.0321,
        lanes=Lanes(words=1), also_in=("old/a.md#3",), root="docs", document_sha256="ab" * 32, indexed_ns=THEN,
        modified_ns=THEN - SECOND,
    )  # fmt: skip


ANSWER = SearchAnswer(
    SearchStatus.OK, IDENTITY, (hit(1), hit(2, evil="\x1b]0;x\x07\u202e")),
    dropped_terms=(DroppedTerm("$$", DropReason.PUNCTUATION),), did_you_mean=(DidYouMean("wrd", ("word", "ward")),),
    notes=(SearchNote.LITERAL_TRUNCATED,),
)  # fmt: skip
HYBRID = Tier(TierKind.HYBRID, "small-embed", 384)
HYBRID_ANSWER = SearchAnswer(
    SearchStatus.OK, IDENTITY,
    (replace(hit(1), matches=(), matched_in=(), lanes=Lanes(vector=1), similarity=0.612_345_6),),
    notes=(SearchNote.NEAREST_BY_MEANING,), tier=HYBRID, mode="hybrid",
    vectors=VectorFacts("bits", 2, 1_234, "large-embed", 7),
)  # fmt: skip
DEGRADED_ANSWER = SearchAnswer(
    SearchStatus.OK, IDENTITY, (hit(1),),
    tier=Tier.degraded(DegradeCause.EMBEDDINGS, "127.0.0.1:1234: connection\x1b[2J\nrefused"),
)  # fmt: skip
STATUS = BaseStatus(
    home=HOME, identity=IDENTITY, standing=Standing.COMPLETE,
    roots=(
        RootStatus("docs", "/base/docs", "recorded", True, (), 3, 12, 1, 1),
        RootStatus("old", "/base/old", "left", False, ("a.md",), 0, 0, 0, 0),
    ),
    documents=3, chunks=12, skipped=1, failures=(FailureGroup("unreadable", 1, "docs/x.md", "denied", THEN),),
    holder="", running=None, last_run=RUN, database_bytes=172_032, wal_bytes=0, state_bytes=90_112, modified_ns=THEN,
)  # fmt: skip
REPORT = IndexReport(
    home=HOME, run=RUN, state="partial", counts={"added": 1, "unchanged": 2, "skipped": 3, "failed": 1},
    skips={"empty": (1, "docs/e.md"), "too_large": (2, "docs/big.md")},
    failures=(FirstFailure("unreadable", 1, "docs/x.md", "Permission denied"),),
    removals=RemovalReport(held=(HeldRemovals("docs", "/base/docs", 60, 100, "removals_held"),)),
    problems=(("docs/secret/", "Permission denied"),), notes=("docs/loop/: the same directory again, not entered",),
    documents=3, chunks=12, chunks_written=4, text_bytes=12_345, elapsed_s=1.25, holds_s=(),
)  # fmt: skip


def not_built() -> Json:
    message, hint = not_built_message(Located("nothing", None, HOME, (Path("/base"), Path("/"))), SETTINGS)
    return not_built_json(NotBuiltError(message, hint=hint))


def mark(text: str) -> str:
    return f"[{text}]"


OUTPUTS = {
    "tier_lexical.txt": tier_line(Tier.LEXICAL) + "\n",
    "tier_hybrid.txt": tier_line(HYBRID) + "\n",
    "tier_degraded.txt": "".join(f"{tier_line(Tier.degraded(cause, 'why'))}\n" for cause in DegradeCause),
    "tier_asked.txt": "".join(
        f"{tier_line(tier)}\n" for tier in (Tier(TierKind.LEXICAL_ASKED), Tier(TierKind.VECTOR, "small-embed", 384))
    ),
    "search.txt": search_text(ANSWER, str(HOME), {"docs/a.md#3": "https://x/a.md#b"}, NOW, mark),
    "search.json": json_text(
        search_json(ANSWER, IndexState(str(HOME), 3, 1, None), {"docs/a.md#3": "https://x/a.md#b"}, NOW)
    ),
    "search_hybrid.txt": search_text(HYBRID_ANSWER, str(HOME), {}, NOW, mark),
    "search_hybrid.json": json_text(search_json(HYBRID_ANSWER, IndexState(str(HOME), 3, 0, None), {}, NOW)),
    "search_degraded.txt": search_text(DEGRADED_ANSWER, str(HOME), {}, NOW, mark),
    "search_nothing.txt": search_text(SearchAnswer(SearchStatus.OK, IDENTITY), str(HOME), {}, NOW, mark),
    "search_query_empty.txt": search_text(SearchAnswer(SearchStatus.QUERY_EMPTY, IDENTITY), str(HOME), {}, NOW, mark),
    "search_index_empty.txt": search_text(SearchAnswer(SearchStatus.INDEX_EMPTY, IDENTITY), str(HOME), {}, NOW, mark),
    "search_not_built.json": json_text(not_built()),
    "status.txt": status_text(STATUS, LOCATED, SETTINGS, NOW),
    "status.json": json_text(status_json(STATUS, LOCATED, SETTINGS, NOW)),
    "stats.txt": stats_text(STATUS, LOCATED, SETTINGS, NOW),
    "index.txt": report_text(REPORT, LOCATED, SETTINGS),
    "index.json": json_text(report_json(REPORT, LOCATED, SETTINGS)),
}


@pytest.mark.parametrize("file_name", sorted(OUTPUTS))
def test_output_is_the_golden_one(file_name: str) -> None:
    golden = GOLDEN / file_name
    assert OUTPUTS[file_name] == golden.read_text(encoding="utf-8"), f"if this is meant, write it to {golden}"


def test_the_answer_has_every_field_of_the_shared_object() -> None:
    answer = json.loads(OUTPUTS["search.json"])
    assert set(answer) >= {"tier", "status", "mode", "note", "dropped_terms", "index", "results"}
    assert set(answer["index"]) == {
        "commit_seq", "complete_at", "age_seconds", "documents", "pending_vectors", "failed", "run_in_progress",
    }  # fmt: skip
    assert set(answer["results"][0]) == {
        "rank", "citation", "path", "ordinal", "title", "heading_path", "start_line", "end_line", "snippet", "matches",
        "matched_in", "content", "score", "similarity", "lanes", "also_in", "url", "document_sha256", "indexed_at",
        "modified_at",
    }  # fmt: skip
    assert set(answer["results"][0]["lanes"]) == {"words", "literal", "substring", "vector"}


@pytest.mark.parametrize("file_name", [name for name in OUTPUTS if name.endswith(".json")])
def test_all_keys_are_snake_case(file_name: str) -> None:
    def keys(value: object) -> list[str]:
        if isinstance(value, dict):
            return [*value, *(key for inner in value.values() for key in keys(inner))]
        return [key for inner in value for key in keys(inner)] if isinstance(value, list) else []

    assert all(key == key.lower() and " " not in key and "-" not in key for key in keys(json.loads(OUTPUTS[file_name])))


@pytest.mark.parametrize("file_name", sorted(OUTPUTS))
def test_no_output_holds_what_acts_on_a_terminal(file_name: str) -> None:
    assert not any((char < " " and char != "\n") or "\x7f" <= char < "\xa0" for char in OUTPUTS[file_name])
