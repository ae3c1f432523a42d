"""The tables of the report, as Markdown. What falls short stands first everywhere; what was not run says so."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.figures import MISSED, NO_BAR, REACHED, SHORT_OF_AIM, Figure
from bench.report_kept import Kept, Measured
from bench.report_parts import BY_NAME, PARTS, RECOVERY

ORDER = {MISSED: 0, SHORT_OF_AIM: 1, REACHED: 2, NO_BAR: 3}
WORDS = {MISSED: "**missed**", SHORT_OF_AIM: "must, not the aim", REACHED: "reached", NO_BAR: ""}
CLOCK_UNITS = ("s", "ms", "MB/s", "/s")
HEADING = "| What | Of | Measured | Must / aim | Verdict | Runs | Load | Beside it |\n|---|---|---|---|---|---|---|---|"


class Row(NamedTuple):
    """A figure, and the part that it comes from."""

    figure: Figure
    part: Measured


def rows_of(kept: Kept, names: Sequence[str]) -> list[Row]:
    """Those that fall short first; else in the order of the parts."""
    found = [
        Row(figure, kept.parts[name]) for name in names if name in kept.parts for figure in kept.parts[name].figures
    ]
    return sorted(found, key=lambda row: ORDER[row.figure.verdict])


def number(value: float) -> str:
    """Three digits that count, or all those before the point."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if abs(value) >= 10 else f"{value:.{digits}f}"


def value_of(figure: Figure) -> str:
    """With that of the processor in parentheses, where it was measured."""
    cpu = "" if figure.cpu is None else f" ({number(figure.cpu)} CPU)"
    return f"{number(figure.value)} {figure.unit}".strip() + cpu


def bars(figure: Figure) -> str:
    if figure.must is None and figure.aim is None:
        return ""
    return " / ".join("-" if bar is None else f"{bar:,g}" for bar in (figure.must, figure.aim))


def line(row: Row) -> str:
    figure, part = row
    cells = (
        figure.name, part.what, value_of(figure), bars(figure), WORDS[figure.verdict],
        str(figure.runs), part.load(), figure.detail,
    )  # fmt: skip
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def figures_table(rows: Sequence[Row]) -> str:
    return "\n".join([HEADING, *(line(row) for row in rows)])


def table(kept: Kept, name: str) -> str:
    """The figures of all parts of a table, then what was not run, then the commands."""
    parts = [part for part in PARTS if part.table == name]
    rows = rows_of(kept, [part.name for part in parts])
    blocks = [figures_table(rows)] if rows else []
    blocks.extend(absent(kept, [part.name for part in parts]))
    blocks.append(commands(kept, [part.name for part in parts]))
    return "\n\n".join(block for block in blocks if block)


def absent(kept: Kept, names: Sequence[str]) -> Iterator[str]:
    missing = [name for name in names if name not in kept.parts]
    if missing:
        yield "**Not run**:\n\n" + "\n".join(f"- `{name}`: `{BY_NAME[name].shown()}`" for name in missing)
    for name in names:
        if name in kept.parts and kept.parts[name].failed:
            yield f"**Failed**, no figures: `{name}`: {kept.parts[name].failed}"


def commands(kept: Kept, names: Sequence[str]) -> str:
    lines = [
        f"- `{part.command}` ({part.day}, {part.seconds:.0f} s, load {part.load()})" + (part.note and f"; {part.note}")
        for name in names
        if (part := kept.parts.get(name)) is not None
    ]
    return "\n".join(lines)


def short(kept: Kept) -> str:
    """Everything that missed its bar, and everything that reached it but not the aim."""
    rows = rows_of(kept, [part.name for part in PARTS])
    missed = [row for row in rows if row.figure.verdict == MISSED]
    below = [row for row in rows if row.figure.verdict == SHORT_OF_AIM]
    judged = [row for row in rows if row.figure.verdict != NO_BAR]
    blocks = [
        f"{len(judged)} figures have a bar: {len(missed)} miss it, {len(below)} reach it but not the aim,"
        f" {len(judged) - len(missed) - len(below)} reach both."
    ]
    clouded = [row for row in (*missed, *below) if is_clouded(row, kept.machine.get("cores") or 1)]
    if clouded:
        blocks.append(
            f"{len(clouded)} of those below are times or rates of the clock, measured while more processes than cores"
            " wanted to run (see the load): they say little about a machine of one's own, and stand here all the same."
        )
    if missed or below:
        blocks.append(figures_table([*missed, *below]))
    blocks.extend(absent(kept, [part.name for part in PARTS]))
    return "\n\n".join(blocks)


def earlier(kept: Kept) -> str:
    """What parts had found when the machine had less to do."""
    if not kept.earlier:
        return "No part was measured in a quieter hour before."
    rows = rows_of(Kept(kept.machine, kept.earlier), list(kept.earlier))
    return f"{figures_table(rows)}\n\n{commands(Kept(kept.machine, kept.earlier), list(kept.earlier))}"


def is_clouded(row: Row, cores: int) -> bool:
    """Whether other work had a part in it: a time, not a ratio or a count, under a load above the number of cores."""
    return row.figure.unit in CLOCK_UNITS and row.part.highest_load() > cores


def machine(kept: Kept) -> str:
    about = kept.machine
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    processor = f" ({about['processor']})" if about["processor"] else ""
    return (
        f"Measured on {about['cores']} cores{processor}, {about['memory_gib']} GiB of memory, {about['kernel']}, Python"
        f" {about['python']}, SQLite {about['sqlite']}; {packages}."
    )


def recovery(kept: Kept) -> str:
    """What the tests of faults had measured of coming back when the report was made."""
    part = kept.parts.get(RECOVERY)
    if part is None or not part.data["proofs"]:
        return "**Not run**: the tests of faults had left no figures when this was written (`make faults`)."
    lines = ["| What was tried | Tried | Bad | Asked for | Measured | Day |", "|---|---|---|---|---|---|"]
    for proof in part.data["proofs"]:
        among = f" of {proof['of']:,}" if proof["of"] else ""
        asked = f"{proof['asked']:,}" if proof["asked"] else ""
        cells = (proof["what"], f"{proof['tried']:,}{among}", f"{proof['bad']:,}", asked, proof["detail"], proof["day"])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
