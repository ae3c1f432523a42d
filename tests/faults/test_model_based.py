"""P1, P3, P7, P14: whatever happens to the files, and whenever a run is killed, the index ends as they are.

Random walks over a tree (tests.support.model) and its index: after every run the store holds what an oracle in plain
Python says, byte for byte; `match` and `search` find every word where it is and nowhere else, every citation resolves,
every vector is that of its text; at the end a fresh index of the same tree is equal. A walk that fails prints its steps
and its seed: KNOWLEDGE_TEST_SEED=N with that number makes it the first one.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest

from tests.support import drifts
from tests.support.depth import IS_NIGHTLY, SEED, scaled
from tests.support.embedding_server import embedding_server
from tests.support.figures import Figure, NoteFigure
from tests.support.model_answers import check_covered, check_documents, check_fresh, check_store, database_of
from tests.support.model_runs import RunHost, run_host
from tests.support.model_walk import DIMENSION, ModelWalk, WentWrongError
from tests.support.scratch import scratch_directory

STEPS_A_WALK = scaled(80, 250)
STEPS_SHOWN = 60

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def host() -> Iterator[RunHost]:
    with scratch_directory() as place, run_host(place) as running:
        yield running


@pytest.fixture(scope="module")
def sound(host: RunHost) -> Iterator[ModelWalk]:
    """A short walk that went well, with its index and a fresh one."""
    with scratch_directory() as place, embedding_server(dimension=DIMENSION) as server:
        walk = ModelWalk(place, host, SEED, server.url)
        walk.go(0)
        yield walk


def outcome_of(walk: ModelWalk) -> str:
    """ "" for a walk that ends well; else what is wrong, and how it came to it."""
    try:
        walk.go(STEPS_A_WALK)
    except WentWrongError as error:
        steps = "\n  ".join(walk.history[-STEPS_SHOWN:])
        depth = " KNOWLEDGE_TEST_DEPTH=nightly" * IS_NIGHTLY
        return f"KNOWLEDGE_TEST_SEED={walk.seed}{depth}: {error}\n  {steps}"
    return ""


@pytest.mark.timeout(scaled(300, 21_600))
@pytest.mark.parametrize("kind", ["words", "vectors"])
def test_the_index_follows_any_sequence_of_steps(host: RunHost, note_figure: NoteFigure, kind: str) -> None:
    """P1, P2, P3, P6, P7; S0-27, S1-07, R26, R29, R33, R34."""
    began_s = time.monotonic()
    walks: list[ModelWalk] = []
    wrong: list[str] = []
    with embedding_server(dimension=DIMENSION) if kind == "vectors" else nullcontext() as server:
        for number in range(scaled(1, 20)):
            with scratch_directory() as place:
                url = server.url if server is not None else ""
                walks.append(ModelWalk(place, host, SEED + number, url, words_first=number % 2 == 1))
                wrong += filter(None, [outcome_of(walks[-1])])
    runs, crashes, questions = (sum(getattr(w, name) for w in walks) for name in ("runs", "crashes", "questions"))
    note_figure(
        Figure(
            name=f"model-steps-{kind}",
            promises=("P1", "P2", "P3", "P7", *["P6"] * (kind == "vectors")),
            what=f"random steps over a tree and its index ({kind}), compared with an oracle and a fresh index",
            tried=sum(len(walk.history) for walk in walks),
            bad=len(wrong),
            asked=5_000,
            seconds=time.monotonic() - began_s,
            detail=f"{len(walks)} walks, {runs:,} runs, {crashes:,} of them killed, {questions:,} questions asked",
        )
    )
    assert wrong == []


Check = Callable[[ModelWalk], list[str]]
WRONG: dict[str, tuple[drifts.Drift, Check]] = {
    "another text": (drifts.changed_tail, lambda walk: check_documents(walk.home, walk.oracle)),
    "a document that is gone": (drifts.document_without_chunks, lambda walk: check_documents(walk.home, walk.oracle)),
    "words that are not found": (drifts.missing_full_text_row, lambda walk: walk.wrong_words()),
    "a lost vector": (drifts.lost_link, lambda walk: check_covered(walk.home)),
    "vectors that changed places": (drifts.swapped_links, lambda walk: check_store(walk.home, DIMENSION)),
    "another index": (drifts.changed_names, lambda walk: check_fresh(walk.home, walk.place / "fresh")),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_would_be_seen(sound: ModelWalk, what: str) -> None:
    """The checks of a walk themselves: each finds nothing in an index that is sound, and what was done to it then."""
    drift, check = WRONG[what]
    assert check(sound) == []
    kept = database_of(sound.home).read_bytes()
    drifts.apply_drift(database_of(sound.home), drift)
    try:
        assert check(sound) != []
    finally:
        database_of(sound.home).write_bytes(kept)
