"""What the pages say beside an answer: what to do next where there is little to see, and why a hit stands where it
stands."""

from collections.abc import Iterator, Sequence

from app.present import count
from app.present_checks import ChecksStatus
from app.present_safe import name
from app.status import RootStatus
from domain.checks import CheckResult, CheckState
from domain.status import SearchStatus, Standing
from retrieval.answer import Lanes, MatchedIn, Mode, SearchAnswer, SearchHit

LANES = {"words": "By words", "literal": "As it is written", "substring": "As part of a word", "vector": "By meaning"}
MODES: dict[Mode, str] = {
    "auto": "what there is",
    "lexical": "words only",
    "vector": "meaning only",
    "hybrid": "words and meaning",
}
_MATCHED_IN: dict[MatchedIn, str] = {"body": "the text", "heading_path": "a heading", "names": "a name or tag"}
_STANDINGS = {
    Standing.COMPLETE: "Complete",
    Standing.EMPTY: "Empty",
    Standing.INCOMPLETE: "Not complete yet",
    Standing.INCONSISTENT: "Inconsistent",
    Standing.OUTDATED: "Outdated",
}
START_A_RUN = "start a run: `knowledge index`, or under Operations"


def first_steps() -> list[str]:
    """On a search page without a query."""
    return [
        'words find every form of themselves; "quoted text" is looked for as it is written',
        "`/` brings you to the box, `j` and `k` go through the hits, Enter opens one",
    ]


def next_steps(answer: SearchAnswer, *, is_narrowed: bool) -> Iterator[str]:
    """What may help where a search has no hit."""
    match answer.status:
        case SearchStatus.INDEX_EMPTY:
            yield "see under Operations which folders are indexed, and what was skipped"
            yield START_A_RUN
        case SearchStatus.INDEX_INCONSISTENT | SearchStatus.INDEX_OUTDATED:
            yield START_A_RUN
        case SearchStatus.QUERY_EMPTY:
            yield 'name a word of two letters or more; a sign or a single letter goes in quotes: "C"'
        case _:
            if answer.status is SearchStatus.INDEX_INCOMPLETE:
                yield "wait for the run to end, or see under Operations how far it is"
            if is_narrowed:
                yield "search all folders: take the filters away"
            yield "try fewer words, or other ones"
            yield "`knowledge words` lists the words that the index holds"


def rank_words(hit: SearchHit) -> str:
    """`matched in the text and a heading`; "" for a hit by meaning alone."""
    places = [_MATCHED_IN[place] for place in hit.matched_in]
    return f"matched in {' and '.join(places)}" if places else ""


def lane_rows(lanes: Lanes) -> list[tuple[str, str]]:
    """Each lane and the hit's place in it."""
    ranks = {"words": lanes.words, "literal": lanes.literal, "substring": lanes.substring, "vector": lanes.vector}
    return [(LANES[lane], f"place {rank:,}" if rank is not None else "not found") for lane, rank in ranks.items()]


def standing_title(standing: Standing) -> str:
    """What the index as a whole is, in a word or two."""
    return _STANDINGS[standing]


def holds_words(documents: int, folders: int) -> str:
    return f"{count(documents, 'document')} in {count(folders, 'folder')}"


def hits_words(shown: int, asked: int) -> str:
    """Where as many are shown as were asked for, others may follow."""
    return f"the best {count(shown, 'hit')}" if shown and shown == asked else count(shown, "hit")


def matched_words(matched: int, of_documents: int) -> str:
    return f"{matched:,} of {count(of_documents, 'document')}"


def also_in_words(citations: tuple[str, ...]) -> str:
    return f"the same text is in {', '.join(map(name, citations))}" if citations else ""


def run_heading(run_id: int, asked: str) -> str:
    return f"Run {run_id}: {asked}"


def service_words(is_up: bool) -> str:
    return "up" if is_up else "no scheduler runs"


def no_runs_words() -> str:
    return f"no run is on record; {START_A_RUN}"


def no_schedules_words() -> str:
    return "no schedules are configured: `schedules:` in the configuration holds them"


def no_folders_words() -> str:
    return "no folder has been indexed yet: `paths:` in the configuration names them; then `knowledge index`"


def no_queue_words() -> str:
    return "no queue is known to this process: runs of a command line need none, a service has one (`knowledge up`)"


def stage_words(stage: str) -> str:
    """A stage of the queue, as a label."""
    return {"check": "To be read", "write": "To be written"}.get(stage, stage.replace("_", " ").capitalize())


def role_words(role: str) -> str:
    """A role's processes, as a label."""
    return {"worker": "Workers", "writer": "Writer", "scheduler": "Scheduler", "serve": "Server"}.get(
        role, role.capitalize()
    )


def folder_kind_words(root: RootStatus) -> str:
    """What is odd about a folder; "" where nothing is."""
    if not root.is_there:
        return "the folder is not there now"
    if root.kind == "left":
        return "no longer in the configuration; still answers until `knowledge rm --root`"
    return f"only {count(len(root.single_files), 'named file')}" if root.single_files else ""


def no_failures_words() -> str:
    return "no file has failed: there is nothing to try again"


def standing_words_of_failure(standing: str) -> str:
    return {"open": "to be tried again"}.get(standing, standing)


def check_state_words(result: CheckResult) -> str:
    """What has come of one check, in a word."""
    if result.state is CheckState.FAIL:
        return "failed" if result.is_fatal else "warning"
    return "passed" if result.state is CheckState.PASS else "not run"


def checks_words(status: ChecksStatus, results: Sequence[CheckResult]) -> str:
    """What all of them come to, in a sentence."""
    found = sum(result.state is CheckState.FAIL for result in results)
    left_out = sum(result.state is CheckState.NOT_RUN for result in results)
    told = {
        "fail": f"{count(found, 'problem')} found",
        "warning": f"nothing serious; {count(found, 'warning')}",
        "not_run": "nothing wrong was seen",
        "pass": "all is well, as far as this looks: `knowledge verify` checks what the index holds",
    }[status]
    return f"{told}; {count(left_out, 'check was', 'checks were')} not run" if left_out else told
