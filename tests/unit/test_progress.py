"""What a run says of itself while it goes on."""

from app.progress import RunProgress
from scheduler.plan import PlanTally


def test_nobody_knows_the_rest_before_the_plan_is_complete() -> None:
    progress = RunProgress(tallies=[PlanTally(to_check=100)], checked=10)
    assert progress.remaining_s is None
    progress.is_plan_complete = True
    assert progress.remaining_s is not None
    progress.checked = 0
    assert progress.remaining_s is None


def test_the_rest_is_never_negative() -> None:
    """A file that was looked at twice is no time gained."""
    progress = RunProgress(tallies=[PlanTally(to_check=3)], checked=5, is_plan_complete=True)
    assert progress.remaining_s == 0


def test_the_rate_is_over_the_time_so_far() -> None:
    progress = RunProgress(checked=10)
    progress.began_s -= 2.0
    assert 0 < progress.files_per_second <= 5
