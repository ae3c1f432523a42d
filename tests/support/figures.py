"""What a test of faults has tried, and how much of it went wrong: printed after the tests, kept for docs/promises.md.

KNOWLEDGE_TEST_FIGURES=FOLDER keeps each figure as a JSON file of its own there.
"""

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

PROPERTY = "knowledge_figure"
_FOLDER = os.environ.get("KNOWLEDGE_TEST_FIGURES", "")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of proof. A figure with `bad` above 0 belongs to a test that fails."""

    name: str  # a slug, stable: the file of the figure is called so
    promises: tuple[str, ...]  # P1..P32 of docs/promises.md
    what: str  # what was tried, in a few words
    tried: int
    of: int = 0  # how many there are, where `tried` is a sample of them; 0: they cannot be counted
    bad: int = 0
    asked: int = 0  # how many the release bar asks for; 0: it does not say
    seconds: float = 0.0
    detail: str = ""  # what else was measured, in a few words with units

    def line(self) -> str:
        among = f" of {self.of:,}" if self.of else ""
        rest = f"; {self.detail}" if self.detail else ""
        return f"{self.what}: {self.tried:,}{among} tried, {self.bad:,} bad ({self.seconds:.0f} s){rest}"


NoteFigure = Callable[[Figure], None]


def keep(figure: Figure) -> None:
    """In the folder that was named, if one was."""
    if _FOLDER:
        folder = Path(_FOLDER)
        folder.mkdir(parents=True, exist_ok=True)
        told = {**asdict(figure), "day": time.strftime("%Y-%m-%d", time.gmtime())}
        (folder / f"{figure.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n")
