"""What the pages of `knowledge serve` cost a browser over a real index: first contentful paint, and bytes.

    python -m bench.page HOME [--runs N] [--json FILE]

HOME is the folder of an index. Needs node, Chromium, and KNOWLEDGE_PLAYWRIGHT_CORE, the folder of the npm package
playwright-core. The service is a process of its own on loopback; every page is opened anew, with nothing kept.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.figures import NONE, Bar, Sheet
from bench.http import service_over

DRIVER = Path(__file__).parent.parent / "tests" / "acceptance" / "browser.mjs"
PACKAGE = "KNOWLEDGE_PLAYWRIGHT_CORE"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGES = {"/": "the page of searches", "/?q=driver": "hits of a search"}
BAR_MS, BAR_KB = Bar(300, 150), Bar(60, 30)
COST = re.compile(r"first contentful paint (\d+) ms, (\d+) bytes")


def lacking(package: str) -> str:
    """What this machine has not, in words; nothing where the pages can be measured."""
    found = {
        "node": shutil.which("node"),
        "Chromium": any(map(shutil.which, BROWSERS)),
        f"{PACKAGE}, the folder of the npm package playwright-core": package and Path(package).is_dir(),
    }
    return ", ".join(name for name, is_there in found.items() if not is_there)


def costs(port: int, runs: int, package: str) -> dict[str, list[tuple[int, int]]]:
    """For each page, milliseconds to its first paint and bytes of all that it loads; a first round is warm-up."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    environment = os.environ | {PACKAGE: package, "KNOWLEDGE_CHROMIUM": browser}
    command = ["node", str(DRIVER), "cost", f"http://127.0.0.1:{port}", *(list(PAGES) * (runs + 1))]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    if ended.returncode:
        raise SystemExit(ended.stderr[-2000:])
    found = [(int(paint), int(size)) for paint, size in COST.findall(ended.stdout)]
    return {path: found[at :: len(PAGES)][1:] for at, path in enumerate(PAGES)}


def measure(home: Path, runs: int, package: str, sheet: Sheet) -> None:
    with service_over(home) as service:
        found = costs(service.port, runs, package)
    for path, name in PAGES.items():
        paints, sizes = zip(*found[path], strict=True)
        is_promised = path == "/"
        detail = f"worst {max(paints)} ms"
        sheet.add(
            f"{name}: first paint", _middle(paints), "ms", BAR_MS if is_promised else NONE, runs=runs, detail=detail
        )
        sheet.add(f"{name}: all it loads", _middle(sizes) / 1000, "KB", BAR_KB if is_promised else NONE, runs=runs)


def _middle(values: Sequence[int]) -> float:
    return statistics.median(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path, help="the folder of an index")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    chosen = parser.parse_args()
    package = os.environ.pop(PACKAGE, "")  # the program knows no such variable, and says so
    if missing := lacking(package):
        parser.error(f"this machine lacks {missing}")
    sheet = Sheet()
    measure(chosen.home, chosen.runs, package, sheet)
    sheet.write(chosen.json)


if __name__ == "__main__":
    main()
