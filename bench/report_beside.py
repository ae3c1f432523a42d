"""The tables that stand other programs beside ours, and how figures grow. As Markdown; the plots are elsewhere."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.report_kept import Kept
from bench.report_tables import absent, commands, number

OURS = "knowledge"
QUICKER = "Who does better, by seconds of CPU for commands, by the clock for warm queries, by bytes:"
GROWTH_PLOT = "![Growth in units per document or passage](images/performance-growth.png)"
BESIDE_PLOT = "![Others beside ours](images/performance-beside.png)"
MEASURES = {
    "index_s": ("first index", 1.0, "s"),
    "no_change_s": ("nothing changed", 1.0, "s"),
    "one_change_s": ("one change", 1.0, "s"),
    "cold_s": ("a query, fresh process", 1000.0, "ms"),
    "warm_p50_ms": ("a query, warm, p50", 1.0, "ms"),
    "warm_p99_ms": ("p99", 1.0, "ms"),
    "peak_bytes": ("peak memory of the first index", 1e-6, "MB"),
    "size_bytes": ("size on disk", 1e-6, "MB"),
}
CPU = {
    "index_s": "index_cpu_s",
    "no_change_s": "no_change_cpu_s",
    "one_change_s": "one_change_cpu_s",
    "cold_s": "cold_cpu_s",
}
Values = Mapping[str, float | None]


def _told(values: Values, measure: str) -> str:
    _, factor, unit = MEASURES[measure]
    value = values[measure]
    if value is None:
        return "not run"
    cpu = values.get(CPU.get(measure, ""))
    more = f" ({number(cpu * factor)} CPU)" if cpu is not None else ""
    return f"{number(value * factor)} {unit}{more}"


def beside(kept: Kept, name: str) -> str:
    """One corpus: where the others are quicker or smaller, then the table of all."""
    part = kept.parts.get(name)
    if part is None or part.failed:
        return "\n\n".join(absent(kept, [name]))
    programs: list[dict[str, Any]] = part.data["programs"]
    columns = [program for program in programs if program["values"] is not None]
    lines = ["| | " + " | ".join(program["program"] for program in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for measure, (words, _, _) in MEASURES.items():
        cells = " | ".join(_told(program["values"], measure) for program in columns)
        lines.append(f"| {words} | {cells} |")
    text = part.data["text_bytes"] / 1e6
    about = (
        f"{part.what}: {part.data['files']:,} files, {text:,.0f} MB of text; {rounds_of(columns[0]['rounds'])},"
        f" load {part.load()}."
    )
    left_out = [f"**Not run**: {program['program']}." for program in programs if program["values"] is None]
    return "\n\n".join(
        [about, *left_out, QUICKER, "\n".join(quicker(columns)), "\n".join(lines), commands(kept, [name])]
    )


def rounds_of(rounds: int) -> str:
    return "one round" if rounds == 1 else f"medians of {rounds} rounds in turn"


def beside_plot(kept: Kept) -> str:
    there = any(name in kept.parts and not kept.parts[name].failed for name in ("beside-2k", "beside-40k"))
    return BESIDE_PLOT if there else "There is no plot before one of them was run."


def quicker(programs: list[dict[str, Any]]) -> Iterator[str]:
    """Where each of the others is better than ours, with the ratio; then where ours is. By the processor's time where
    it was measured, since neighbours take less of that."""
    ours: Values = next(program["values"] for program in programs if program["program"] == OURS)
    for program in programs:
        if program["program"] == OURS:
            continue
        values: Values = program["values"]
        better: list[str] = []
        worse: list[str] = []
        for measure, (words, _, _) in MEASURES.items():
            compared = CPU.get(measure, measure)
            theirs, own = values[compared], ours[compared]
            if theirs is not None and own is not None and theirs and own:
                ratio = own / theirs
                (better if ratio > 1 else worse).append(f"{words} {number(max(ratio, 1 / ratio))} times")
        told = [f"- **{program['program']}** does better than ours at: {', '.join(better) or 'nothing measured here'}."]
        told.append(f"Ours does better at: {', '.join(worse) or 'nothing measured here'}.")
        yield " ".join(told)


def how(kept: Kept) -> str:
    """What each program was called with, and what is not equal work; of the first part that has it."""
    for name in ("beside-40k", "beside-2k"):
        part = kept.parts.get(name)
        if part is not None and not part.failed:
            return "\n\n".join(_how_of(program) for program in part.data["programs"])
    return "**Not run.**"


def _how_of(program: dict[str, Any]) -> str:
    labels = {"first": "first", "update": "again", "ask": "query", "warm": "warm"}
    called = [f"    {labels[kind]}: {command}" for kind, command in program["commands"].items() if command]
    files = [f"    {name}: {line}" for name, text in program["files"].items() for line in text.splitlines()]
    unequal = [f"- {words}" for words in program["unequal"]]
    return "\n".join(
        [f"**{program['program']}** {program['version']}", "", *called, *files, "", "Not equal work:", "", *unequal]
    )


def growth(kept: Kept) -> str:
    part = kept.parts.get("growth")
    if part is None or part.failed:
        return "\n\n".join(absent(kept, ["growth"]))
    names = (
        "Documents", "Chunks", "Text", "First index (CPU)", "a chunk", "No change (CPU)", "a document",
        "Search p50 / p99", "of CPU", "Match p50 (CPU)", "Database", "a chunk", "Peak memory",
    )  # fmt: skip
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    lines.extend("| " + " | ".join(_grown(point)) + " |" for point in part.data["points"])
    return "\n\n".join(["\n".join(lines), GROWTH_PLOT, commands(kept, ["growth"])])


def _grown(point: Mapping[str, float]) -> tuple[str, ...]:
    chunks, documents = point["chunks"], point["documents"]
    return (
        f"{documents:,}",
        f"{chunks:,}",
        f"{point['text_bytes'] / 1e6:,.0f} MB",
        f"{number(point['index_s'])} s ({number(point['index_cpu_s'])})",
        f"{number(point['index_cpu_s'] / chunks * 1e6)} µs CPU",
        f"{number(point['no_change_s'])} s ({number(point['no_change_cpu_s'])})",
        f"{number(point['no_change_cpu_s'] / documents * 1e6)} µs CPU",
        f"{number(point['search_p50_ms'])} / {number(point['search_p99_ms'])} ms",
        f"{number(point['search_cpu_p50_ms'])} / {number(point['search_cpu_p99_ms'])} ms",
        f"{number(point['match_p50_ms'])} ms ({number(point['match_cpu_p50_ms'])})",
        f"{point['database_bytes'] / 1e6:,.0f} MB",
        f"{number(point['database_bytes'] / chunks)} B",
        f"{point['peak_bytes'] / 1e6:,.0f} MB",
    )
