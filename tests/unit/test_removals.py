"""The guard over removals (R34, S0-31, S0-32, S2-59, P8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.removals import RemovalVerdict, judge_removals

EVERYTHING = RemovalVerdict("all", 0, "")


def judge(
    candidates: int,
    documents: int = 1000,
    *,
    moved: int = 0,
    met: int = 900,
    ended_well: bool = True,
    allow_mass: bool = False,
) -> RemovalVerdict:
    return judge_removals(
        candidates=candidates,
        moved=moved,
        documents_before=documents,
        files_met=met,
        walk_ended_well=ended_well,
        allow_mass=allow_mass,
    )


@pytest.mark.parametrize(
    ("candidates", "documents", "is_held"),
    [
        (50, 50, False),  # no more than 50, be it all of them
        (51, 51, True),
        (51, 254, True),  # 20.08%
        (51, 255, False),  # exactly a fifth
        (51, 256, False),
        (200, 1000, False),
        (201, 1000, True),
        (0, 0, False),
    ],
)
def test_more_than_fifty_and_more_than_a_fifth_are_held(candidates: int, documents: int, is_held: bool) -> None:
    verdict = judge(candidates, documents)
    assert verdict == (RemovalVerdict("moved", candidates, "removals_held") if is_held else EVERYTHING)
    assert judge(candidates, documents, allow_mass=True) == EVERYTHING


def test_a_moved_document_is_not_lost_and_always_goes() -> None:
    assert judge(300, 1000, moved=100) == EVERYTHING
    assert judge(301, 1000, moved=100) == RemovalVerdict("moved", 201, "removals_held")


@pytest.mark.parametrize("allow_mass", [False, True])
def test_a_root_that_shows_no_file_loses_none(allow_mass: bool) -> None:
    """S0-32: also when mass removals are allowed."""
    assert judge(3, 3, met=0, allow_mass=allow_mass) == RemovalVerdict("nothing", 3, "source_empty")


@pytest.mark.parametrize("allow_mass", [False, True])
def test_a_root_that_was_not_read_whole_loses_none(allow_mass: bool) -> None:
    """P8, S2-59: a moved one neither."""
    verdict = judge(3, 1000, moved=3, ended_well=False, allow_mass=allow_mass)
    assert verdict == RemovalVerdict("nothing", 3, "source_unreadable")


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 2000), st.integers(0, 3), st.booleans(), st.booleans())
def test_nothing_is_ever_held_without_a_cause(
    candidates: int, moved: int, documents: int, met: int, ended_well: bool, allow_mass: bool
) -> None:
    moved = min(moved, candidates)
    verdict = judge(candidates, documents, moved=moved, met=met, ended_well=ended_well, allow_mass=allow_mass)
    assert (verdict.held > 0) is bool(verdict.cause)
    assert verdict.held <= candidates
    if verdict.apply == "all" and candidates - moved > 50 and not allow_mass:
        assert (candidates - moved) * 5 <= documents
