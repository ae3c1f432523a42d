"""The figures that proofs have left behind, and whether they reach what is asked of a release. Pure but for reading."""

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, NamedTuple

WAYS = 4  # of doing the same harm, in one figure at most: of an odd number of calls each has one less than the half
State = Literal["reached", "not reached", "not run"]


class Figure(NamedTuple):
    """One file of bench/results/proofs, as tests/support/figures.py writes it."""

    name: str
    promises: tuple[str, ...]
    what: str
    tried: int
    of: int
    bad: int
    asked: int
    detail: str
    day: str  # YYYY-MM-DD


class Limit(NamedTuple):
    """A number that a figure's detail tells, and how large it may be."""

    name: str
    told_by: str  # a pattern with one group
    at_most: float
    unit: str


class Bar(NamedTuple):
    """One figure that is asked of a release."""

    name: str
    asked: str  # in words
    figures: tuple[str, ...]  # patterns of names; each must be met by a figure at least
    tried: int  # by each figure, at least; 0: as many as the figure itself says
    together: int  # by all of them, at least
    share: float  # of all there are, at least; where the figure knows how many
    limits: tuple[Limit, ...]

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "Bar":
        return cls(
            table["name"],
            table["asked"],
            tuple(table["figures"]),
            table.get("tried", 0),
            table.get("together", 0),
            table.get("share", 0.0),
            tuple(Limit(one["name"], one["told_by"], one["at_most"], one["unit"]) for one in table.get("limits", ())),
        )


class Standing(NamedTuple):
    bar: Bar
    state: State
    told: str


def read_figures(results: Path) -> list[Figure]:
    """Of the proofs, in the order of their names, and of the last soak; what was not run is not there."""
    read = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((results / "proofs").glob("*.json"))]
    soak = results / "soak" / "soak.json"
    return [*map(_figure, read), *([_soak(json.loads(soak.read_text(encoding="utf-8")))] if soak.is_file() else [])]


def standing_of(bar: Bar, figures: Sequence[Figure]) -> Standing:
    """A figure that is bad or too small counts before one that is missing: it is known to fall short."""
    mine = {pattern: [one for one in figures if fnmatchcase(one.name, pattern)] for pattern in bar.figures}
    met = list(dict.fromkeys(figure for found in mine.values() for figure in found))
    short = [words for figure in met for words in _shortfalls(bar, figure)]
    tried = sum(figure.tried for figure in met)
    if met and tried < bar.together:
        short.append(f"{tried:,} tried, {bar.together:,} asked for")
    missing = [pattern for pattern, found in mine.items() if not found]
    missing += [limit.name for limit in bar.limits if all(_told(limit, figure) is None for figure in met)]
    if short:
        return Standing(bar, "not reached", "; ".join(short))
    if missing:
        return Standing(bar, "not run", f"not run: {', '.join(missing)}")
    limits = [told for figure in met for told in _limits_told(bar, figure)]
    newest = max(figure.day for figure in met)
    return Standing(bar, "reached", "; ".join([f"reached: {tried:,} tried, 0 bad", *limits]) + f" ({newest})")


def _shortfalls(bar: Bar, figure: Figure) -> list[str]:
    found = []
    wanted = bar.tried or (0 if bar.share or bar.together else figure.asked)
    if figure.bad:
        found.append(f"{figure.name}: {figure.bad:,} bad of {figure.tried:,}")
    if figure.tried < wanted:
        found.append(f"{figure.name}: {figure.tried:,} tried, {wanted:,} asked for")
    if bar.share and figure.of and figure.tried + WAYS < bar.share * figure.of:
        found.append(f"{figure.name}: {figure.tried:,} of {figure.of:,} tried")
    for limit in bar.limits:
        value = _told(limit, figure)
        if value is not None and value > limit.at_most:
            found.append(f"{limit.name} {value:g} {limit.unit}, at most {limit.at_most:g} asked for")
    return found


def _limits_told(bar: Bar, figure: Figure) -> list[str]:
    values = [(limit, _told(limit, figure)) for limit in bar.limits]
    return [f"{limit.name} {value:g} {limit.unit}" for limit, value in values if value is not None]


def _told(limit: Limit, figure: Figure) -> float | None:
    found = re.search(limit.told_by, figure.detail)
    return float(found[1]) if found is not None else None


def _soak(read: Mapping[str, Any]) -> Figure:
    """bench/results/soak/soak.json, as bench.soak_report writes it."""
    short, minutes = read["falls_short"], round(read["minutes"])
    told = f"largest write-ahead log {read['largest_log_mb']:.1f} MB"
    detail = "; ".join([told, *(f"falls short: {words}" for words in short)])
    what = "minutes of a service under churn, searchers and outages"
    return Figure("soak", ("P2", "P25"), what, minutes, 0, len(short), 60, detail, read["day"])


def _figure(read: Mapping[str, Any]) -> Figure:
    return Figure(
        read["name"],
        tuple(read["promises"]),
        read["what"],
        read["tried"],
        read["of"],
        read["bad"],
        read["asked"],
        read["detail"],
        read["day"],
    )
