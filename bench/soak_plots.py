"""The numbers of a soak over time, as pictures: PNG, small, on white."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.soak_figures import LOG_BAR_MB, minutes_of, process_names, shaded
from bench.soak_plan import ProcessSample, Sample, Soaked

COLOURS = {
    "scheduler": "#7b3294",
    "serve": "#d7191c",
    "worker 1": "#2c7bb6",
    "worker 2": "#67a9cf",
    "writer": "#1a9641",
    "queue": "#e08214",
}
AGENTS = "#888888"
SHADES = {"writer killed": "#c7e9c0", "queue restarted": "#fdd0a2", "embeddings away": "#c6dbef"}
NAMES = ("memory.png", "descriptors.png", "log.png", "latency.png", "queue.png")


def draw_all(soaked: Soaked, folder: Path) -> list[str]:
    """Writes the pictures and returns their names."""
    _by_process(soaked, folder / NAMES[0], "resident memory (MB)", lambda one: one.rss_mb)
    _by_process(soaked, folder / NAMES[1], "open descriptors", lambda one: one.descriptors)
    _log(soaked, folder / NAMES[2])
    _latency(soaked, folder / NAMES[3])
    _queue(soaked, folder / NAMES[4])
    return list(NAMES)


def _by_process(soaked: Soaked, place: Path, label: str, number: Callable[[ProcessSample], float]) -> None:
    figure, (axes,) = _axes(soaked, 1)
    named = False
    for name in process_names(soaked.samples):
        points = [(one.at_s / 60, number(one.processes[name])) for one in soaked.samples if name in one.processes]
        is_agent = name.startswith("agent")
        shown = "" if is_agent and named else "idle agents" if is_agent else name
        named = named or is_agent
        axes.plot(*zip(*points, strict=True), color=COLOURS.get(name, AGENTS), linewidth=1.3, label=shown or None)
    _finish(axes, label)
    _save(figure, place)


def _log(soaked: Soaked, place: Path) -> None:
    figure, (above, below) = _axes(soaked, 2)
    _line(above, soaked.samples, lambda one: one.log_mb, "#1a9641", "log of knowledge.db")
    _line(above, soaked.samples, lambda one: one.state_log_mb, "#7b3294", "log of state.db")
    largest = max(max(one.log_mb, one.state_log_mb) for one in soaked.samples)
    if largest > LOG_BAR_MB / 3:
        above.axhline(LOG_BAR_MB, color="#d7191c", linewidth=1, linestyle="--", label="bar")
    _finish(above, "write-ahead log (MB)")
    _line(below, soaked.samples, lambda one: one.database_mb, "#2c7bb6", "knowledge.db")
    _line(below, soaked.samples, lambda one: one.state_mb, "#7b3294", "state.db")
    _finish(below, "size (MB)")
    _save(figure, place)


def _latency(soaked: Soaked, place: Path) -> None:
    figure, (above, below) = _axes(soaked, 2)
    minutes = minutes_of(soaked.asked, soaked.plan.seconds)
    for name, colour in (("p99", "#d7191c"), ("p95", "#e08214"), ("p50", "#2c7bb6")):
        values = [getattr(minute, f"{name}_ms") for minute in minutes]
        above.plot([minute.at_min for minute in minutes], values, color=colour, linewidth=1.3, label=name)
    above.set_yscale("log")
    above.yaxis.set_major_formatter("{x:g}")
    _finish(above, "search over HTTP (ms)")
    _line(below, soaked.samples, lambda one: one.pressure, "#555555", "something waits for a processor")
    _finish(below, "share of time, this machine")
    _save(figure, place)


def _queue(soaked: Soaked, place: Path) -> None:
    figure, (above, below) = _axes(soaked, 2)
    _line(above, soaked.samples, lambda one: one.queue_jobs, "#e08214", "pages to be read or written")
    _finish(above, "pages in the queue")
    _line(below, soaked.samples, lambda one: one.queue_mb, "#2c7bb6", "memory of the queue's data")
    _finish(below, "MB")
    _save(figure, place)


def _axes(soaked: Soaked, rows: int) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(
        rows, 1, figsize=(9, 2.6 * rows + 0.8), sharex=True, squeeze=False, layout="constrained"
    )
    for axis in axes[:, 0]:
        for began_s, ended_s, name in shaded(soaked):
            shade = SHADES.get(name, "#eeeeee")
            axis.axvspan(began_s / 60, max(ended_s, began_s + soaked.plan.seconds / 300) / 60, color=shade, label=name)
    axes[-1, 0].set_xlabel("minutes since the beginning")
    axes[-1, 0].set_xlim(0, max(soaked.plan.seconds, soaked.samples[-1].at_s) / 60)
    return figure, list(axes[:, 0])


def _line(axes: Axes, samples: Sequence[Sample], number: Callable[[Sample], float], colour: str, label: str) -> None:
    points = [(one.at_s / 60, number(one)) for one in samples if math.isfinite(number(one))]
    if points:
        axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.2, label=label)


def _finish(axes: Axes, label: str) -> None:
    axes.set_ylabel(label)
    axes.set_ylim(bottom=None if axes.get_yscale() == "log" else 0)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def _save(figure: Figure, place: Path) -> None:
    figure.savefig(place, dpi=100)
    plt.close(figure)
