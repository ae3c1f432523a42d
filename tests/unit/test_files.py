"""Values of files on their way through a run."""

from hypothesis import given
from hypothesis import strategies as st

from domain.files import Outcome, OutcomeCounts, fold_signed_64

COUNTS = st.dictionaries(st.sampled_from([outcome.value for outcome in Outcome]), st.integers(0, 10_000))


@given(st.integers(0, 2**64 - 1))
def test_an_identifier_folds_without_loss(value: int) -> None:
    """R26: inode and device of any size are told apart in signed 64 bits."""
    folded = fold_signed_64(value)
    assert -(2**63) <= folded < 2**63
    assert folded % 2**64 == value
    if value < 2**63:
        assert folded == value


@given(COUNTS, COUNTS)
def test_counts_add_up(first: dict[str, int], second: dict[str, int]) -> None:
    total = OutcomeCounts(first).plus(OutcomeCounts(second))
    assert total.total == sum(first.values()) + sum(second.values())
    for outcome in Outcome:
        assert total.of(outcome) == first.get(outcome.value, 0) + second.get(outcome.value, 0)
    assert first == OutcomeCounts(first).counts
