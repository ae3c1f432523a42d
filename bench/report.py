"""`make bench-report CORPORA=FOLDER`: every bench, and the report that is written from what they found.

    python -m bench.report --corpora FOLDER [--only PART,...] [--collection DIR] [--fresh]
    python -m bench.report --from-results

FOLDER holds docs-2k and docs-40k, and may hold cranfield, a collection of judged questions. Figures are kept in
bench/results/report/report.json, a part at a time: --only runs the parts that begin with a word and leaves the others
as they were (searches belong to `index`), --from-results runs none. Written from them: report.md beside it,
docs/performance.md and its plots. A part that fails, or lacks something, is told, and the rest goes on; the exit status
is then 1.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench import page
from bench.figures import Figure
from bench.measure import knowledge_command, own_configuration, run_command
from bench.report_kept import FOLDER, KEPT, Kept, Measured, read, write
from bench.report_machine import load, machine
from bench.report_pages import write_pages
from bench.report_parts import BY_NAME, RECOVERY, ROOT, RUNS, Part, chosen_parts

PROOFS = ROOT / "bench" / "results" / "proofs"
PROMISES_OF_RECOVERY = {"P2", "P9", "P27"}
LAST_WORDS = 300
PATH = re.compile(r"(?<![\w:])/[\w.+-]+(?:/[\w.+-]+)+")
# variables of one part; the program refuses those of its prefix that it does not know
KEPT_FROM_OTHERS = {name: value for name in (page.PACKAGE,) if (value := os.environ.pop(name, ""))}


def index_of(corpus: Path, place: Path) -> Path:
    """The index of the larger corpus, made once and brought up to date."""
    place.mkdir(parents=True, exist_ok=True)
    own_configuration(place)
    sample = run_command(knowledge_command("index", str(corpus), "--quiet"), cwd=place)
    if sample.exit_status not in (0, 3):
        raise RuntimeError(f"the index of {corpus.name} cannot be made: {last_words(sample.output)}")
    return place / "knowledge" / "default"


def places_of(chosen: argparse.Namespace) -> dict[str, Path]:
    """What is there of that which parts need; the index is made when the first part asks for it."""
    found = {
        "docs_2k": chosen.corpora / "docs-2k",
        "docs_40k": chosen.corpora / "docs-40k",
        "collection": chosen.collection or chosen.corpora / "cranfield",
        "beside": chosen.beside.resolve(),
    }
    return {name: path for name, path in found.items() if path.exists()}


def run_part(part: Part, places: dict[str, Path], scratch: Path, runs: int) -> Measured:
    """One bench in a process of its own, its output shown as it comes."""
    if "home" in part.needs and "docs_40k" in places and "home" not in places:
        places["home"] = index_of(places["docs_40k"], scratch / "docs-40k")
    before, began_s = load(), time.monotonic()
    environment = os.environ | {name: value for name, value in KEPT_FROM_OTHERS.items() if part.name == "page"}
    if missing := part.needs - places.keys():
        return _measured(part.shown(runs), part.what, before, began_s, failed=f"lacks {', '.join(sorted(missing))}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        given = {name: str(value) for name, value in (*places.items(), ("runs", runs))}
        command = [sys.executable, "-m", *part.command(**given), "--json", str(file)]
        ended = subprocess.run(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, check=False)
        if ended.returncode or not file.exists():
            print(ended.stderr, file=sys.stderr)
            failed = f"exit status {ended.returncode}: {last_words(ended.stderr)}"
            return _measured(part.shown(runs), part.what, before, began_s, failed=failed)
        found = json.loads(file.read_text(encoding="utf-8"))
    figures = [msgspec.convert(figure, Figure) for figure in found["figures"]]
    return _measured(part.shown(runs), part.what, before, began_s, figures=figures, data=found["data"])


def _measured(
    command: str,
    what: str,
    load_before: list[float],
    began_s: float,
    *,
    failed: str = "",
    figures: Sequence[Figure] = (),
    data: Mapping[str, Any] | None = None,
) -> Measured:
    return Measured(
        command=command,
        what=what,
        day=today(),
        load_before=load_before,
        load_after=load(),
        seconds=round(time.monotonic() - began_s, 1),
        failed=failed,
        figures=list(figures),
        data=dict(data or {}),
    )


def last_words(output: str) -> str:
    """The last line that is no hint, not too long, and with no path of the machine in it."""
    lines = [line for line in output.strip().splitlines() if not line.startswith("hint:")] or ["no word"]
    return PATH.sub("PATH", lines[-1])[:LAST_WORDS]


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def recovery() -> Measured:
    """What the tests of faults have kept of coming back after a kill, as it is now."""
    proofs = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(PROOFS.glob("*.json"))]
    chosen = [proof for proof in proofs if PROMISES_OF_RECOVERY.intersection(proof["promises"])]
    chosen.sort(key=lambda proof: -proof["bad"])  # what went wrong stands first
    return Measured("make faults", "faults", today(), load(), load(), 0, data={"proofs": chosen})


def measured_part(name: str, places: dict[str, Path], scratch: Path, runs: int) -> Measured:
    if name == RECOVERY:
        return recovery()
    before, began_s = load(), time.monotonic()
    try:
        return run_part(BY_NAME[name], places, scratch, runs)
    except RuntimeError as error:
        return _measured(BY_NAME[name].shown(runs), BY_NAME[name].what, before, began_s, failed=str(error))


def run_parts(names: list[str], chosen: argparse.Namespace, kept: Kept) -> Kept:
    write(kept)
    places = places_of(chosen)
    for name in names:
        print(f"== {name} (load {load()[0]:g})", flush=True)
        measured = measured_part(name, places, chosen.scratch, chosen.runs)
        if measured.failed:
            print(f"{name}: {measured.failed}", file=sys.stderr, flush=True)
        kept = read().with_part(name, measured)  # another one may have written meanwhile
        write(kept)  # a report that is broken off keeps what it has
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, default=None, help="the folder that holds docs-2k and docs-40k")
    parser.add_argument("--only", default="", help="parts, by the beginnings of their names")
    parser.add_argument("--collection", type=Path, default=None, help="judged questions, for `quality`")
    parser.add_argument("--runs", type=int, default=RUNS, help="of the longest benches; fewer on a busy machine")
    parser.add_argument(
        "--beside", type=Path, default=ROOT / "build" / "beside", help="where install.sh has put others"
    )
    parser.add_argument("--scratch", type=Path, default=ROOT / "build" / "report", help="where an index is made")
    parser.add_argument("--from-results", action="store_true", help="run nothing")
    parser.add_argument("--fresh", action="store_true", help="forget the kept figures")
    chosen = parser.parse_args()
    if chosen.from_results:
        write_pages(read(), FOLDER, ROOT / "docs")
        return 0
    try:
        names = chosen_parts(chosen.only)
        if chosen.corpora is None and names != [RECOVERY]:
            raise ValueError("name the folder of the corpora: --corpora FOLDER (or --from-results)")
        chosen.corpora = (chosen.corpora or Path()).resolve()
        kept = Kept({}) if chosen.fresh or not KEPT.exists() else read()
        kept = run_parts(names, chosen, kept.of_machine(machine()))
    except ValueError as error:
        parser.error(str(error))
    write_pages(kept, FOLDER, ROOT / "docs")
    return 1 if any(kept.parts[name].failed for name in names) else 0


if __name__ == "__main__":
    sys.exit(main())
