"""The plots of docs/performance.md: how figures grow, each in units per document or chunk, and others beside ours."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("Agg")  # no display

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from bench.report_beside import CPU, MEASURES
from bench.report_kept import Kept

GROWTH, BESIDE = "performance-growth.png", "performance-beside.png"
COLOURS = ("#1f5fa8", "#c4622d", "#3b7d4f", "#7a4f9e")
Point = Mapping[str, float]


class Panel(NamedTuple):
    """One small plot over the number of chunks; a value of zero is at its foot."""

    title: str
    unit: str
    lines: Mapping[str, Callable[[Point], float]]


PANELS = (
    Panel("First index", "µs a chunk", {
        "wall": lambda p: p["index_s"] / p["chunks"] * 1e6, "CPU": lambda p: p["index_cpu_s"] / p["chunks"] * 1e6,
    }),
    Panel("No change", "µs a document", {
        "wall": lambda p: p["no_change_s"] / p["documents"] * 1e6,
        "CPU": lambda p: p["no_change_cpu_s"] / p["documents"] * 1e6,
    }),
    Panel("Search, CPU", "µs for 1,000 chunks", {
        "p50": lambda p: p["search_cpu_p50_ms"] / p["chunks"] * 1e6,
        "p99": lambda p: p["search_cpu_p99_ms"] / p["chunks"] * 1e6,
    }),
    Panel("Match, p50", "µs for 1,000 documents", {
        "wall": lambda p: p["match_p50_ms"] / p["documents"] * 1e6,
        "CPU": lambda p: p["match_cpu_p50_ms"] / p["documents"] * 1e6,
    }),
    Panel("Database", "bytes a chunk", {"size": lambda p: p["database_bytes"] / p["chunks"]}),
    Panel("Peak memory of the first index", "MB", {"all processes": lambda p: p["peak_bytes"] / 1e6}),
)  # fmt: skip


def draw(kept: Kept, folder: Path) -> list[str]:
    """Writes the plots that there are figures for; their file names."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    growing = kept.parts.get("growth")
    if growing is not None and not growing.failed:
        _growth(growing.data["points"], folder / GROWTH)
        drawn.append(GROWTH)
    corpora = [
        kept.parts[name].data
        for name in ("beside-2k", "beside-40k")
        if name in kept.parts and not kept.parts[name].failed
    ]
    if corpora:
        _beside(corpora, folder / BESIDE)
        drawn.append(BESIDE)
    return drawn


def _growth(points: Sequence[Point], file: Path) -> None:
    figure, grid = plt.subplots(2, 3, figsize=(11, 6))
    chunks = [point["chunks"] for point in points]
    for axes, panel in zip(grid.flat, PANELS, strict=True):
        for colour, (label, value) in zip(COLOURS, panel.lines.items(), strict=False):
            axes.plot(chunks, [value(point) for point in points], "o-", color=colour, label=label, markersize=4)
        axes.set_title(panel.title, fontsize=10)
        axes.set_ylabel(panel.unit, fontsize=8)
        axes.set_xscale("log")
        axes.set_xticks(chunks, [f"{round(count / 1000):,}k" for count in chunks])
        axes.minorticks_off()
        axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
        _plain(axes)
        if len(panel.lines) > 1:
            axes.legend(fontsize=8, frameon=False)
    for axes in grid[1]:
        axes.set_xlabel("chunks", fontsize=8)
    _saved(figure, file)


def _beside(corpora: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Each measure over that of ours: below 1 the other does better."""
    figure, grid = plt.subplots(1, len(corpora), figsize=(5.5 * len(corpora), 4.2), squeeze=False)
    for axes, corpus in zip(grid.flat, corpora, strict=True):
        found = {one["program"]: one["values"] for one in corpus["programs"] if one["values"] is not None}
        ours = found.pop("knowledge")
        names = [CPU.get(measure, measure) for measure in MEASURES]
        for number, (program, values) in enumerate(found.items()):
            places = [at + (number - 1) * 0.25 for at in range(len(names))]
            ratios = [(values[name] or 0) / ours[name] if ours[name] else 0 for name in names]
            axes.bar(places, ratios, width=0.23, color=COLOURS[number], label=program)
        axes.axhline(1, color="#444", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xticks(range(len(names)))
        words = [MEASURES[name][0] + (" (CPU)" if name in CPU else "") for name in MEASURES]
        axes.set_xticklabels(words, rotation=40, ha="right", fontsize=7)
        axes.set_title(f"{corpus['corpus']}: times ours (less is better)", fontsize=10)
        axes.legend(fontsize=8, frameon=False)
        _plain(axes)
    _saved(figure, file)


def _plain(axes: Axes) -> None:
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, axis="y", color="#ddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _saved(figure: Any, file: Path) -> None:
    figure.tight_layout()
    figure.savefig(file, dpi=110, metadata={"Software": None})
    plt.close(figure)
