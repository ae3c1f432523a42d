"""What the numbers of a soak come to: slopes, percentiles, and what falls short of the bar (P25). Pure functions."""

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from bench.soak_plan import HOUR_S, SLOPE_WANTS_S, Asked, Plan, Sample, Soaked

SLOPE_BAR_MB_H = 1.0
LOG_BAR_MB = 64.0
P99_BAR = 1.5
FLAT_DESCRIPTORS = 4.0  # a connection more or less
EMPTY = (math.nan, math.nan)


class Slope(NamedTuple):
    """A straight line by least squares. `spread` is twice the standard error, wider where neighbours are alike."""

    mb_per_h: float
    spread: float
    first_mb: float  # medians of the first and the last tenth of what was looked at
    last_mb: float
    samples: int


class ProcessFigures(NamedTuple):
    """One process after it was warm."""

    name: str
    rss: Slope
    pss: Slope
    anonymous: Slope
    descriptors: tuple[float, float]  # of quiet moments in the first and in the last quarter of what was looked at
    threads: tuple[float, float]


class Quarter(NamedTuple):
    """Searches of a quarter of the time, but for those during incidents."""

    searches: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    pressure: float  # median share of the time in which something waited for a processor


class Minute(NamedTuple):
    at_min: float
    searches: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


def slope_of(times_s: Sequence[float], values: Sequence[float]) -> Slope:
    """Fewer than three samples have no slope (NaN)."""
    if len(values) < 3:
        return Slope(math.nan, math.nan, *EMPTY, len(values))
    x = np.asarray(times_s, dtype=np.float64) / HOUR_S
    y = np.asarray(values, dtype=np.float64)
    x = x - x.mean()
    around = float(x @ x)
    slope = float(x @ (y - y.mean())) / around
    left = y - y.mean() - slope * x
    squares = float(left @ left)
    alike = min(max(float(left[1:] @ left[:-1]) / squares, 0.0), 0.99) if squares > 1e-12 else 0.0
    error = math.sqrt(squares / max(len(y) - 2, 1) / around * (1 + alike) / (1 - alike))
    tenth = max(len(y) // 10, 1)
    return Slope(slope, 2 * error, float(np.median(y[:tenth])), float(np.median(y[-tenth:])), len(y))


def warm_life(samples: Sequence[Sample], name: str, plan: Plan) -> list[Sample]:
    """The samples in which one process had this name for longest, without its warming up."""
    own = [sample for sample in samples if name in sample.processes]
    lives = [list(life) for _, life in groupby(own, key=lambda sample: sample.processes[name].pid)]
    warm = []
    for number, life in enumerate(lives):
        from_s = max(plan.warm_s, life[0].at_s + plan.settle_s if number else 0.0)
        warm.append([sample for sample in life if from_s <= sample.at_s <= plan.seconds])
    return max(warm, key=len, default=[])


def process_figures(soaked: Soaked, name: str) -> ProcessFigures:
    life = warm_life(soaked.samples, name, soaked.plan)
    times_s = [sample.at_s for sample in life]
    own = [sample.processes[name] for sample in life]
    return ProcessFigures(
        name,
        slope_of(times_s, [one.rss_mb for one in own]),
        slope_of(times_s, [one.pss_mb for one in own]),
        slope_of(times_s, [one.anonymous_mb for one in own]),
        _ends([float(one.descriptors) for one in own]),
        _ends([float(one.threads) for one in own]),
    )


def _ends(values: list[float]) -> tuple[float, float]:
    """How many there are in quiet moments (the lowest decile), in the first and in the last quarter."""
    if not values:
        return EMPTY
    quarter = max(len(values) // 4, 1)
    first, last = (np.percentile(part, 10, method="nearest") for part in (values[:quarter], values[-quarter:]))
    return float(first), float(last)


def process_names(samples: Sequence[Sample]) -> list[str]:
    return sorted({name for sample in samples for name in sample.processes})


def percentiles(asked: Sequence[Asked]) -> tuple[float, float, float]:
    """p50, p95 and p99 in ms; NaN where nothing was asked."""
    if not asked:
        return math.nan, math.nan, math.nan
    p50, p95, p99 = np.percentile([one.ms for one in asked], (50, 95, 99))
    return float(p50), float(p95), float(p99)


def minutes_of(asked: Sequence[Asked], seconds: float) -> list[Minute]:
    """By the minute; a soak of less than twenty minutes is cut into twenty."""
    width_s = min(60.0, seconds / 20)
    by_minute: dict[int, list[Asked]] = {}
    for one in asked:
        by_minute.setdefault(int(one.at_s // width_s), []).append(one)
    return [
        Minute((number + 0.5) * width_s / 60, len(own), *percentiles(own)) for number, own in sorted(by_minute.items())
    ]


def shaded(soaked: Soaked) -> list[tuple[float, float, str]]:
    """From when to when something was done to the service, and its name; with what it took to go on."""
    return [
        (one.began_s, one.ended_s + max((s for s in one.took_s.values() if math.isfinite(s)), default=0.0), one.name)
        for one in soaked.incidents
    ]


def quarters(soaked: Soaked) -> list[Quarter]:
    """Without what was asked while something was done to the service."""
    away = shaded(soaked)
    calm = [one for one in soaked.asked if not any(began <= one.at_s <= ended for began, ended, _ in away)]
    width_s = soaked.plan.seconds / 4
    found = []
    for number in range(4):
        is_in: Callable[[float], bool] = lambda at_s, n=number: n * width_s <= at_s < (n + 1) * width_s  # type: ignore[misc]  # noqa: E731
        own = [one for one in calm if is_in(one.at_s)]
        pressed = [one.pressure for one in soaked.samples if is_in(one.at_s) and math.isfinite(one.pressure)]
        found.append(Quarter(len(own), *percentiles(own), float(np.median(pressed)) if pressed else math.nan))
    return found


def p99_growth(soaked: Soaked) -> float:
    """The last quarter against the first."""
    first, *_, last = quarters(soaked)
    return last.p99_ms / first.p99_ms if first.p99_ms else math.nan


def shortfalls(soaked: Soaked) -> list[str]:
    """What is not as the bar wants it, in words; [] where nothing falls short. Judged, too, where it is no fault of the
    service: that is for the report to say."""
    return [*_of_memory(soaked), *_of_log_and_time(soaked), *_of_answers(soaked)]


def _of_memory(soaked: Soaked) -> list[str]:
    found = []
    for name in process_names(soaked.samples) if soaked.plan.seconds >= SLOPE_WANTS_S else []:
        figures = process_figures(soaked, name)
        slope, spread = figures.rss.mb_per_h, figures.rss.spread
        if slope >= SLOPE_BAR_MB_H:
            found.append(f"memory of {name} grows by {slope:.1f} ± {spread:.1f} MB an hour (bar {SLOPE_BAR_MB_H:.0f})")
        first, last = figures.descriptors
        if last - first > FLAT_DESCRIPTORS:
            found.append(f"descriptors of {name} grow from {first:.0f} to {last:.0f}")
    return found


def _of_log_and_time(soaked: Soaked) -> list[str]:
    found = []
    largest_mb = max(max(one.log_mb, one.state_log_mb) for one in soaked.samples)
    if largest_mb > LOG_BAR_MB:
        found.append(f"a write-ahead log reached {largest_mb:.0f} MB (bar {LOG_BAR_MB:.0f})")
    growth = p99_growth(soaked)
    if soaked.plan.seconds >= SLOPE_WANTS_S and not growth <= P99_BAR:
        found.append(f"p99 of searches grew to {growth:.2f} times that of the start (bar {P99_BAR})")
    return found


def _of_answers(soaked: Soaked) -> list[str]:
    bad = {
        "searches failed": sum(one.status != 200 for one in soaked.asked),
        "commands of readers failed": sum(one.status != 0 for one in soaked.commands),
        "calls of idle readers failed": sum(count for name, count in soaked.idle.items() if name.endswith("failed")),
        "problems were found in the index": sum(len(one.problems) for one in soaked.checks),
        "runs did not end well": sum(not one.ended_well for one in soaked.passes),
        "documents are not as their files are": soaked.differing,
        "roles ended by themselves": soaked.deaths,
        "times something did not go on": sum(
            math.isinf(took) for one in soaked.incidents for took in one.took_s.values()
        ),
    }
    return [f"{count:,} {what}" for what, count in bad.items() if count]
