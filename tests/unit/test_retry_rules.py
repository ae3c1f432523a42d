"""When a file that failed is tried again by itself (C-06): pure, the clock is a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.files import Reason
from domain.retry_rules import (
    FIRST_DELAY_S,
    JITTER,
    LONGEST_DELAY_S,
    TRIES_BEFORE_QUARANTINE,
    is_waiting,
    next_try_ns,
    standing_after,
)

SECOND_NS = 1_000_000_000
NOW_NS = 1_800_000_000 * SECOND_NS
PASSING = [reason for reason, most in TRIES_BEFORE_QUARANTINE.items() if most is None]
LASTING = [reason for reason, most in TRIES_BEFORE_QUARANTINE.items() if most is not None]
KEYS = st.text(max_size=20)


def delay_s(reason: str, tries: int, key: str) -> float:
    return (next_try_ns(reason, tries, key, NOW_NS) - NOW_NS) / SECOND_NS


@given(st.sampled_from(PASSING), st.integers(1, 10_000), KEYS)
def test_the_delay_doubles_up_to_a_day_less_a_jitter(reason: str, tries: int, key: str) -> None:
    """C-06: exponential, jittered, bounded; as long as the next one at most."""
    whole_s = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (tries - 1))
    assert whole_s * (1 - JITTER) <= delay_s(reason, tries, key) <= whole_s
    if whole_s < LONGEST_DELAY_S / 2:
        assert delay_s(reason, tries, key) < delay_s(reason, tries + 1, key)


@given(st.integers(1, 50), KEYS)
def test_the_jitter_is_the_same_for_the_same_key_and_try(tries: int, key: str) -> None:
    assert delay_s("unreadable", tries, key) == delay_s("unreadable", tries, key)


def test_files_that_failed_together_do_not_come_back_together() -> None:
    delays = {round(delay_s("unreadable", 1, f"docs/{number}.md")) for number in range(1000)}
    assert len(delays) >= FIRST_DELAY_S * JITTER
    assert min(delays) <= FIRST_DELAY_S * (1 - JITTER) + 1
    assert max(delays) >= FIRST_DELAY_S - 1


@pytest.mark.parametrize("reason", LASTING)
def test_what_does_not_pass_is_quarantined_and_has_no_next_try(reason: str) -> None:
    """C-06: permanent ones are recorded and tried on demand."""
    most = TRIES_BEFORE_QUARANTINE[reason] or 0
    told = [(standing_after(reason, tries), next_try_ns(reason, tries, "k", NOW_NS) > 0) for tries in range(1, 9)]
    assert told == [("open", True)] * (most - 1) + [("quarantined", False)] * (9 - most)


def test_a_file_that_killed_its_worker_is_quarantined_at_once() -> None:
    """R23."""
    assert standing_after(Reason.WORKER_DIED, 1) == standing_after(Reason.OVER_LIMIT, 1) == "quarantined"


@given(st.text(max_size=10), st.integers(1, 100))
def test_any_other_reason_may_pass(reason: str, tries: int) -> None:
    """Of a later version, say."""
    if reason not in TRIES_BEFORE_QUARANTINE:
        assert standing_after(reason, tries) == "open"


@given(st.sampled_from(PASSING), st.integers(1, 60), KEYS)
def test_a_file_waits_until_its_next_try(reason: str, tries: int, key: str) -> None:
    due_ns = next_try_ns(reason, tries, key, NOW_NS)
    assert is_waiting(due_ns, NOW_NS)
    assert is_waiting(due_ns, due_ns - 1)
    assert not is_waiting(due_ns, due_ns)
    assert not is_waiting(0, NOW_NS)


def test_a_clock_that_was_years_ahead_keeps_no_file_from_being_tried() -> None:
    assert not is_waiting(next_try_ns("unreadable", 1, "k", NOW_NS * 2), NOW_NS)
