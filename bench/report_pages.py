"""docs/performance.md, from its template and the kept figures, and the report beside them, which is the tables alone.

A line `{{name}}` of the template is a block of tables; `{{table NAME}}` and `{{beside NAME}}` take one.
"""

import re
from collections.abc import Callable
from pathlib import Path

from bench.report_beside import beside, beside_plot, growth, how
from bench.report_kept import Kept
from bench.report_parts import TABLES
from bench.report_tables import earlier, machine, recovery, short, table

TEMPLATE = Path(__file__).with_name("performance.template.md")
BLOCK = re.compile(r"^\{\{([^{}]+)\}\}$", re.MULTILINE)
BLOCKS: dict[str, Callable[[Kept], str]] = {
    "machine": machine,
    "short": short,
    "recovery": recovery,
    "earlier": earlier,
    "growth": growth,
    "how": how,
    "beside plot": beside_plot,
    **{f"table {name}": lambda kept, name=name: table(kept, name) for name in TABLES},  # type: ignore[misc]
    **{f"beside {name}": lambda kept, name=name: beside(kept, name) for name in ("beside-2k", "beside-40k")},  # type: ignore[misc]
}


def performance_page(kept: Kept, template: str | None = None) -> str:
    """The text of docs/performance.md. Raises KeyError for a block that is unknown."""
    text = TEMPLATE.read_text(encoding="utf-8") if template is None else template
    return BLOCK.sub(lambda found: BLOCKS[found[1]](kept), text)


def report_page(kept: Kept) -> str:
    blocks = [f"# Bench report\n\n{machine(kept)}", f"## What falls short\n\n{short(kept)}"]
    blocks.append(f"## In quieter hours\n\n{earlier(kept)}")
    blocks.extend(f"## {title}\n\n{table(kept, name)}" for name, title in TABLES.items())
    blocks.append(f"## Recovery in the tests of faults\n\n{recovery(kept)}")
    blocks.append(f"## Growth\n\n{growth(kept)}")
    blocks.extend(f"## Beside others: {name}\n\n{beside(kept, name)}" for name in ("beside-2k", "beside-40k"))
    blocks.append(f"## What others were called with\n\n{how(kept)}")
    return "\n\n".join(blocks) + "\n"


def write_pages(kept: Kept, results: Path, docs: Path) -> None:
    """report.md into `results`, performance.md and its plots into `docs`."""
    from bench.report_plots import draw  # matplotlib takes a second to load

    (results / "report.md").write_text(report_page(kept), encoding="utf-8")
    (docs / "performance.md").write_text(performance_page(kept), encoding="utf-8")
    draw(kept, docs / "images")
