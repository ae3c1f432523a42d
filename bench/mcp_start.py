"""From the start of `knowledge mcp` to its first answers: greeting, list of tools, first search.

    python -m bench.mcp_start [--home HOME] [--runs N] [--tree FOLDER] [--json FILE]

HOME is the folder of an index; without it, a small one is made. Beside each run stands `import mcp.server`, what the
SDK by itself takes: on a machine with other work, the ratio of the two medians says more than either. CPU seconds are
those of the whole process. --tree measures the sources of another folder, such as an older version of them.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.figures import NONE, Bar, Sheet

MUST_S, AIM_S = 1.0, 0.6
TOOLS = "knowledge_search,knowledge_enumerate,knowledge_read"
SDK = (sys.executable, "-c", "import mcp.server")
REQUESTS = (
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 1, "method": "tools/list"},
    {"id": 2, "method": "tools/call", "params": {"name": "knowledge_search", "arguments": {"query": "loaf"}}},
)


class Run(NamedTuple):
    """Seconds. `wall_s`: until the last answer is there; `cpu_s`: until the process has ended."""

    wall_s: float
    cpu_s: float


def measured(command: Sequence[str], tree: Path, home: Path | None) -> Run:
    """A server's run, or without `home` that of a command which asks for nothing."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KNOWLEDGE_")}
    environment["PYTHONPATH"] = str(tree)
    if home is not None:
        environment["KNOWLEDGE_DIRECTORY"] = str(home)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began_s = time.perf_counter()
    with subprocess.Popen(
        command,
        cwd=home or tree,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        if home is not None:
            converse(process)
            wall_s = time.perf_counter() - began_s
            process.communicate(timeout=30)
        else:
            process.wait(60)
            wall_s = time.perf_counter() - began_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Run(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def converse(process: subprocess.Popen[str]) -> None:
    """One request after the other, each when the one before is answered, as clients do."""
    assert process.stdin is not None and process.stdout is not None
    for request in REQUESTS:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
        process.stdin.flush()
        if "id" in request and "result" not in json.loads(process.stdout.readline()):
            raise SystemExit(f"{request['method']} was not answered")


def small_index(folder: Path) -> Path:
    docs = folder / "docs"
    docs.mkdir()
    for number in range(200):
        text = f"# Bread {number}\n\nThe loaf {number} is done when it sounds hollow.\n"
        (docs / f"{number}.md").write_text(text, encoding="utf-8")
    home = folder / "index"
    environment = {**os.environ, "KNOWLEDGE_DIRECTORY": str(home)}
    command = [sys.executable, "-m", "cli.main", "index", str(docs)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return home


def report(sheet: Sheet, name: str, runs: Sequence[Run], sdk: Sequence[Run], bar: Bar = NONE) -> None:
    wall_s, cpu_s = (statistics.median(values) for values in zip(*runs, strict=True))
    sdk_wall_s, sdk_cpu_s = (statistics.median(values) for values in zip(*sdk, strict=True))
    least_s = min(run.cpu_s for run in runs)
    ratios = f"to the SDK's import: {wall_s / sdk_wall_s:.2f} of wall, {cpu_s / sdk_cpu_s:.2f} of CPU"
    detail = f"the least CPU {least_s:.2f} s; {ratios}"
    sheet.add(name, wall_s, "s", bar, runs=len(runs), detail=detail, cpu=cpu_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--tree", type=Path, action="append", default=[])
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    chosen = parser.parse_args()
    sheet = Sheet()
    own = Path(__file__).resolve().parent.parent
    trees = [own, *(tree.resolve() for tree in chosen.tree)]
    server = (sys.executable, "-P", "-m", "cli.main", "mcp", "--tools", TOOLS)
    with tempfile.TemporaryDirectory() as folder:
        home = chosen.home.resolve() if chosen.home else small_index(Path(folder))
        sdk: list[Run] = []
        runs: dict[Path, list[Run]] = {tree: [] for tree in trees}
        for _ in range(chosen.runs):  # in turn, so that whatever else the machine does meets all of them
            sdk.append(measured(SDK, own, None))
            for tree in trees:
                runs[tree].append(measured(server, tree, home))
    report(sheet, "its floor: import mcp.server alone", sdk, sdk)
    for tree, found in runs.items():
        name = "MCP over stdio: start to first answer"
        report(sheet, name if tree == own else f"{name}, {tree.name}", found, sdk, Bar(MUST_S, AIM_S))
    sheet.write(chosen.json)


if __name__ == "__main__":
    main()
