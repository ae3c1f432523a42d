"""Writes what a soak has found: report.md, soak.json and the plots. The first line says what falls short."""

import json
import math
import time
from collections import Counter
from pathlib import Path
from typing import Any

from app.vector_run import KEPT_UNUSED
from bench.soak_figures import (
    LOG_BAR_MB,
    P99_BAR,
    SLOPE_BAR_MB_H,
    ProcessFigures,
    Slope,
    minutes_of,
    p99_growth,
    process_figures,
    process_names,
    quarters,
    shortfalls,
)
from bench.soak_plan import AGENTS, CALLERS, READERS, SEARCHERS, SLOPE_WANTS_S, Incident, Soaked
from bench.soak_plots import draw_all

MOST_POINTS = 240  # of each line in soak.json


def write_report(soaked: Soaked, folder: Path) -> list[str]:
    """What falls short, as the first line has it."""
    folder.mkdir(parents=True, exist_ok=True)
    short = shortfalls(soaked)
    pictures = draw_all(soaked, folder)
    report = "\n\n".join([first_line(short), *sections(soaked, pictures)]) + "\n"
    (folder / "report.md").write_text(report, encoding="utf-8")
    (folder / "soak.json").write_text(json.dumps(summary(soaked, short), indent=1) + "\n", encoding="utf-8")
    print(report)
    return short


def first_line(short: list[str]) -> str:
    return f"**Falls short:** {'; '.join(short)}." if short else "**Nothing falls short of the bar.**"


def sections(soaked: Soaked, pictures: list[str]) -> list[str]:
    figures = [process_figures(soaked, name) for name in process_names(soaked.samples)]
    return [
        "# Soak",
        _conditions(soaked),
        "## Memory and descriptors",
        _memory(soaked, figures),
        f"![Resident memory of each process]({pictures[0]})",
        f"![Open descriptors of each process]({pictures[1]})",
        "## Write-ahead log and sizes",
        _sizes(soaked),
        f"![Write-ahead logs and database sizes]({pictures[2]})",
        "## Searches",
        _searches(soaked),
        f"![Latency of searches]({pictures[3]})",
        "## Harm",
        _harm(soaked),
        f"![Queue]({pictures[4]})",
        "## Is the index right",
        _checks(soaked),
    ]


def _conditions(soaked: Soaked) -> str:
    plan = soaked.plan
    done = ", ".join(f"{count:,} {kind}" for kind, count in soaked.changes.items())
    about = ", ".join(f"{name} {value}" for name, value in soaked.machine.items())
    return (
        f"{_today()}, {plan.seconds / 60:g} minutes ({about}). The machine is shared with other loads, so latencies are"
        " noisy.\n\nScheduler, two workers, writer, serve and a Valkey that keeps its work"
        " (AOF), each a process of its own, with a server of made-up vectors. The root is watched."
        f" {plan.changes} files change every {plan.batch_every_s:g} seconds, and a run is asked for ({done})."
        f" {SEARCHERS} searchers ask {plan.searches_per_s:g} times a second each over HTTP; a command reads the index"
        f" about every {plan.command_every_s:g} seconds; {AGENTS + CALLERS + READERS} idle readers keep sessions open:"
        f" {AGENTS} `knowledge mcp`, {CALLERS} connections over HTTP (one an event stream), {READERS} open bases."
        f" A sample every {plan.sample_every_s:g} seconds.{_filled(soaked)}"
    )


def _filled(soaked: Soaked) -> str:
    if not soaked.plan.fills:
        return ""
    return (
        " Before it began, files were changed to bring the index to its lasting size: vectors that no chunk has any"
        f" more are kept for files that come back, up to {KEPT_UNUSED:,} or more; there were"
        f" {soaked.unused_before:,}."
    )


def _memory(soaked: Soaked, figures: list[ProcessFigures]) -> str:
    short = "" if soaked.plan.seconds >= SLOPE_WANTS_S else " This soak is too short for slopes to mean anything."
    head = (
        "Slope after the first quarter, by least squares, with twice its standard error"
        f" (bar: {SLOPE_BAR_MB_H:.0f} MB an hour, of the resident memory; MB = a million bytes).{short}\n\n"
        "| process | resident, MB/h | proportional, MB/h | anonymous, MB/h | resident, MB | descriptors | threads |\n"
        "| --- | --- | --- | --- | --- | --- | --- |"
    )
    rows = [
        f"| {one.name} | {_slope(one.rss)} | {_slope(one.pss)} | {_slope(one.anonymous)}"
        f" | {one.rss.first_mb:.1f} to {one.rss.last_mb:.1f} | {_from_to(one.descriptors)} | {_from_to(one.threads)} |"
        for one in figures
    ]
    return "\n".join([head, *rows])


def _slope(one: Slope) -> str:
    return f"{one.mb_per_h:+.2f} ± {one.spread:.2f}"


def _from_to(ends: tuple[float, float]) -> str:
    return f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"


def _sizes(soaked: Soaked) -> str:
    samples = soaked.samples
    first, last = samples[0], samples[-1]
    return (
        f"Largest log: {max(one.log_mb for one in samples):.1f} MB of knowledge.db,"
        f" {max(one.state_log_mb for one in samples):.1f} MB of state.db (bar {LOG_BAR_MB:.0f})."
        f" knowledge.db {first.database_mb:.1f} to {last.database_mb:.1f} MB,"
        f" state.db {first.state_mb:.1f} to {last.state_mb:.1f} MB;"
        f" vectors that no chunk uses any more: {last.dead_vectors:.0%}."
        f" Free disk {first.free_disk_mb:,.0f} to {last.free_disk_mb:,.0f} MB, which others use, too."
    )


def _searches(soaked: Soaked) -> str:
    failed = Counter(one.status for one in soaked.asked if one.status != 200)
    how = ", ".join(f"{count} with {status or 'no answer'}" for status, count in sorted(failed.items())) or "none"
    due = soaked.plan.seconds * soaked.plan.searches_per_s * SEARCHERS
    degraded = sum(one.tier == "degraded" for one in soaked.asked)
    head = (
        f"{len(soaked.asked):,} searches of {due:,.0f} that were due (one that takes longer than its time puts off the"
        f" next one), failed: {how}; {degraded:,} were answered by words alone. p99 of the last"
        f" quarter against the first: {p99_growth(soaked):.2f} (bar {P99_BAR}). What was asked while"
        " something was done to the service is left out of the quarters. The last column is how much of the time"
        " something on this machine waited for a processor.\n\n"
        "| quarter | searches | p50, ms | p95, ms | p99, ms | pressure |\n| --- | --- | --- | --- | --- | --- |"
    )
    rows = [
        f"| {number} | {one.searches:,} | {one.p50_ms:.1f} | {one.p95_ms:.1f} | {one.p99_ms:.1f} | {one.pressure:.0%} |"
        for number, one in enumerate(quarters(soaked), 1)
    ]
    bad = sum(one.status != 0 for one in soaked.commands)
    idle = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in sorted(soaked.idle.items()))
    tail = f"\n{len(soaked.commands):,} commands read the index by themselves, {bad:,} failed. Idle readers: {idle}."
    return "\n".join([head, *rows, tail])


def _harm(soaked: Soaked) -> str:
    rows = [_incident(one) for one in soaked.incidents]
    longest_s = max((one.ended_s - one.asked_s for one in soaked.passes), default=math.nan)
    partial = sum(one.state == "partial" for one in soaked.passes)
    tail = (
        f"\n{len(soaked.passes):,} runs for the churn, the longest {longest_s:.1f} s from the asking to the end;"
        f" {partial} of them partial, since a file went while it was read. Roles that ended by themselves:"
        f" {soaked.deaths}."
    )
    return "\n".join([*rows, tail])


def _incident(one: Incident) -> str:
    away_s = one.ended_s - one.began_s
    words = ", ".join(f"{name} after {_seconds(took)}" for name, took in one.took_s.items())
    return f"- {one.name} at minute {one.began_s / 60:.1f}, for {away_s:.1f} s; then: {words}."


def _seconds(took: float) -> str:
    return f"{took:.1f} s" if math.isfinite(took) else "never"


def _checks(soaked: Soaked) -> str:
    head = (
        "A backup each time, restored elsewhere and audited by means that share no code with the product (vectors too);"
        " then `knowledge verify`.\n\n"
        "| minute | documents | problems | `verify` | took, s |\n| --- | --- | --- | --- | --- |"
    )
    rows = [
        f"| {one.at_s / 60:.1f} | {one.documents:,} | {'none' if not one.problems else len(one.problems)}"
        f" | {one.verify_status} | {one.seconds:.0f} |"
        for one in soaked.checks
    ]
    found = [f"- {problem[:300]}" for one in soaked.checks for problem in one.problems[:10]]
    runs = ", ".join(f"{count:,} {state}" for state, count in sorted(soaked.runs.items()))
    apart = f"Documents that are not as their files are, at the end: {soaked.differing}."
    return "\n".join([head, *rows, *found, f"\nAll runs of the service: {runs}. {apart}"])


def summary(soaked: Soaked, short: list[str]) -> dict[str, Any]:
    """soak.json: the figures, and every line of the plots, thinned."""
    told: dict[str, Any] = _told(
        {
            "day": _today(),
            "minutes": soaked.plan.seconds / 60,
            "machine": soaked.machine,
            "falls_short": short,
            "processes": [_deep(process_figures(soaked, name)) for name in process_names(soaked.samples)],
            "largest_log_mb": max(max(one.log_mb, one.state_log_mb) for one in soaked.samples),
            "p99_growth": p99_growth(soaked),
            "quarters": [one._asdict() for one in quarters(soaked)],
            "search_minutes": [one._asdict() for one in minutes_of(soaked.asked, soaked.plan.seconds)],
            "incidents": [one._asdict() for one in soaked.incidents],
            "checks": [one._asdict() for one in soaked.checks],
            "changes": soaked.changes,
            "runs": soaked.runs,
            "idle": soaked.idle,
            "samples": _lines(soaked),
        }
    )
    return told


def _deep(figures: ProcessFigures) -> dict[str, Any]:
    return {name: value._asdict() if hasattr(value, "_asdict") else value for name, value in figures._asdict().items()}


def _lines(soaked: Soaked) -> dict[str, Any]:
    """A list for each line of the plots; all of them are as long as that of the times."""
    kept = soaked.samples[:: max(1, math.ceil(len(soaked.samples) / MOST_POINTS))]
    lines: dict[str, Any] = {
        name: [getattr(one, name) for one in kept] for name in kept[0]._fields if name != "processes"
    }
    for name in process_names(kept):
        for field in ("rss_mb", "pss_mb", "descriptors", "threads"):
            own = [one.processes.get(name) for one in kept]
            lines[f"{name}: {field}"] = [None if one is None else getattr(one, field) for one in own]
    return lines


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _told(value: Any) -> Any:
    """Rounded; what JSON has no number for is null."""
    match value:
        case bool() | str() | int() | None:
            return value
        case float():
            return round(value, 3) if math.isfinite(value) else None
        case dict():
            return {name: _told(part) for name, part in value.items()}
        case _:
            return [_told(part) for part in value]
