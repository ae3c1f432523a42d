"""The two pictures of docs/architecture.md, as SVG text: who imports whom, and the way of a document. Pure."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

FONT = "font-family='system-ui, sans-serif'"
INK, PALE, LINE = "#1f2933", "#66788a", "#c5ced6"
CELL_WIDTH, CELL_HEIGHT, EDGE = 92, 46, 24
STATION_WIDTH, STATION_GAP, STATION_HEIGHT, STATIONS_A_ROW = 212, 34, 112, 4


class Station(NamedTuple):
    name: str
    modules: tuple[str, ...]


def matrix(layers: Sequence[Sequence[str]], imports: Mapping[tuple[str, str], int]) -> str:
    """Packages on the diagonal, uppermost layer first; in a package's row, how often it imports those below it.

    An import that led upwards would stand in the lower left half.
    """
    names = [name for layer in layers for name in layer]
    size = len(names)
    drawn = [_cell(names, row, column, imports) for row in range(size) for column in range(size)]
    width, height = 2 * EDGE + size * CELL_WIDTH, 2 * EDGE + size * CELL_HEIGHT + 20
    said = "Rows import columns; the number counts pairs of modules. No number stands below the diagonal."
    foot = f"<text x='{EDGE}' y='{height - 12}' {FONT} font-size='12' fill='{PALE}'>{said}</text>"
    return _picture(width, height, "Which package imports which", [*_borders(layers), *drawn, foot])


def way(stations: Sequence[Station]) -> str:
    """The stations in reading order, each with the modules that do it."""
    rows = (len(stations) + STATIONS_A_ROW - 1) // STATIONS_A_ROW
    width = 2 * EDGE + STATIONS_A_ROW * STATION_WIDTH + (STATIONS_A_ROW - 1) * STATION_GAP
    height = 2 * EDGE + rows * STATION_HEIGHT + (rows - 1) * STATION_GAP
    drawn = [_station(number, station) for number, station in enumerate(stations)]
    return _picture(width, height, "The way of a document", [*drawn, *map(_arrow, range(1, len(stations)))])


def _cell(names: Sequence[str], row: int, column: int, imports: Mapping[tuple[str, str], int]) -> str:
    left, top = EDGE + column * CELL_WIDTH, EDGE + row * CELL_HEIGHT
    count = imports.get((names[row], names[column]), 0)
    if row == column:
        box = _box(left + 2, top + 2, CELL_WIDTH - 4, CELL_HEIGHT - 4, INK)
        name = _middle(left + CELL_WIDTH / 2, top + 22, names[row], "white", 13)
        return box + name + _middle(left + CELL_WIDTH / 2, top + 36, f"{count} inside", LINE, 10)
    if not count:
        return _middle(left + CELL_WIDTH / 2, top + 28, "·", LINE, 13) if column > row else ""
    box = _box(left + 2, top + 2, CELL_WIDTH - 4, CELL_HEIGHT - 4, _shade(count) if column > row else "#c0392b")
    return box + _middle(left + CELL_WIDTH / 2, top + 28, str(count), INK, 13)


def _borders(layers: Sequence[Sequence[str]]) -> list[str]:
    """A frame around packages that share a layer: they know nothing of each other."""
    found, before = [], 0
    for layer in layers:
        if len(layer) > 1:
            left, top = EDGE + before * CELL_WIDTH, EDGE + before * CELL_HEIGHT
            wide, high = len(layer) * CELL_WIDTH, len(layer) * CELL_HEIGHT
            found.append(
                f"<rect x='{left}' y='{top}' width='{wide}' height='{high}' rx='8' fill='none' stroke='{PALE}' "
                "stroke-dasharray='4 3'/>"
            )
        before += len(layer)
    return found


def _station(number: int, station: Station) -> str:
    left, top = _place(number)
    lines = [_box(left, top, STATION_WIDTH, STATION_HEIGHT, "#eef2f5")]
    lines.append(
        f"<text x='{left + 12}' y='{top + 24}' {FONT} font-size='14' font-weight='600' fill='{INK}'>"
        f"{number + 1}. {escape(station.name)}</text>"
    )
    for place, module in enumerate(station.modules):
        lines.append(
            f"<text x='{left + 12}' y='{top + 46 + 17 * place}' font-family='ui-monospace, monospace' font-size='12' "
            f"fill='{PALE}'>{escape(module)}</text>"
        )
    return "".join(lines)


def _arrow(number: int) -> str:
    """From the station before to this one; down and back to the left where a row ends."""
    left, top = _place(number)
    middle = top + STATION_HEIGHT / 2
    if number % STATIONS_A_ROW:
        path = f"M {left - STATION_GAP + 3} {middle} H {left - 5}"
    else:
        before_left, before_top = _place(number - 1)
        bottom, between = before_top + STATION_HEIGHT, before_top + STATION_HEIGHT + STATION_GAP / 2
        down = f"M {before_left + STATION_WIDTH / 2} {bottom + 3} V {between}"
        path = f"{down} H {left + STATION_WIDTH / 2} V {top - 5}"
    return f"<path d='{path}' fill='none' stroke='{INK}' stroke-width='1.5' marker-end='url(#head)'/>"


def _place(number: int) -> tuple[int, int]:
    row, column = divmod(number, STATIONS_A_ROW)
    return EDGE + column * (STATION_WIDTH + STATION_GAP), EDGE + row * (STATION_HEIGHT + STATION_GAP)


def _shade(count: int) -> str:
    """The more imports, the darker: a step for each doubling."""
    step = min(count.bit_length(), 10)
    return f"#{250 - 9 * step:02x}{252 - 6 * step:02x}ff"


def _box(left: float, top: float, width: float, height: float, fill: str) -> str:
    return f"<rect x='{left}' y='{top}' width='{width}' height='{height}' rx='5' fill='{fill}'/>"


def _middle(left: float, top: float, text: str, fill: str, size: int) -> str:
    where = f"x='{left}' y='{top}' text-anchor='middle'"
    return f"<text {where} {FONT} font-size='{size}' fill='{fill}'>{escape(text)}</text>"


def _picture(width: int, height: int, title: str, drawn: Sequence[str]) -> str:
    head = (
        "<defs><marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
        f"<path d='M 0 0 L 8 4 L 0 8 z' fill='{INK}'/></marker></defs>"
    )
    opening = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        f"role='img'><title>{escape(title)}</title>"
    )
    ground = f"<rect width='{width}' height='{height}' fill='white'/>"
    return "\n".join([opening, head, ground, *(line for line in drawn if line), "</svg>", ""])
