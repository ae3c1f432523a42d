"""What the quick comparison of vectors leaves out: `knowledge eval recall` over a folder, with the local model.

python -m bench.recall CORPUS [--samples N] [--json FILE]
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

from bench.figures import Bar, Sheet
from bench.measure import knowledge_command, own_configuration, run_command

LOCAL = {"KNOWLEDGE_EMBEDDINGS__PROVIDER": "local"}


def measure(corpus: Path, samples: int, sheet: Sheet) -> None:
    environment = os.environ | LOCAL
    with tempfile.TemporaryDirectory(prefix="knowledge-bench-") as folder:
        directory = Path(folder)
        own_configuration(directory)
        command = knowledge_command("index", str(corpus), "--quiet")
        indexed = run_command(command, cwd=directory, environment=environment)
        if indexed.exit_status not in (0, 3):
            raise SystemExit(indexed.output)
        command = knowledge_command("eval", "recall", "--samples", str(samples), "--json", "recall.json")
        asked = run_command(command, cwd=directory, environment=environment)
        if asked.exit_status:
            raise SystemExit(asked.output)
        told = json.loads((directory / "recall.json").read_text(encoding="utf-8"))
    label = f"{told['vectors']:,} vectors of the local model"
    for source in told["sources"]:
        detail = f"around {source['number']} {source['source']}; {source['method']}, worst {source['worst']}"
        bar = Bar(0.98, 0.99, is_more_better=True)
        sheet.add(f"recall@10 against exact, {label}", source["recall_10"], "", bar, detail=detail)
        detail = f"exact {source['exact_p50_ms']:.2f} ms"
        sheet.add(f"the quick comparison, {label}: p50", source["p50_ms"], "ms", detail=detail)
    detail = f"{indexed.cpu_s:.1f} s of CPU, peak {indexed.peak_bytes / 1e6:.0f} MB"
    sheet.add(f"first index with {label}", indexed.wall_s, "s", detail=detail)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    parser.add_argument("corpus", type=Path, help="a folder of Markdown")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    chosen = parser.parse_args()
    sheet = Sheet()
    measure(chosen.corpus.resolve(), chosen.samples, sheet)
    sheet.write(chosen.json)


if __name__ == "__main__":
    main()
