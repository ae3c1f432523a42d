"""Every example of docs/from-a-program.md, run as it stands against a whole service (issue 6, point 4)."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from httpx import Client, HTTPError

from tests.support.command_line import COMMAND, CommandLine, write_files
from tests.support.scratch import scratch_directory
from tests.support.service import free_port

pytestmark = pytest.mark.redis

PAGE = (Path(__file__).parents[2] / "docs" / "from-a-program.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8765"
NODE_MODULES = "MCP_NODE_MODULES"  # the folder `node_modules` with the SDK for JavaScript
WAIT_S = 60.0
TEXTS: dict[str, str | bytes] = {
    "kitchen/bread.md": "# Bread\n\nMix flour and water.\n\n## Baking\n\n"
    "Bread is done when the loaf sounds hollow. Oven off.\n",
    "kitchen/cake.md": "# Cake\n\nThe oven must be hot.\n",
    "kitchen/dough.md": "# Dough\n\nA sourdough rests beside the oven.\n",
}


class Block(NamedTuple):
    language: str
    text: str


def blocks() -> list[Block]:
    found = []
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        fenced = re.findall(r"^```(\w+)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
        found += [Block(language, text) for language, text in fenced]
    return found


BLOCKS = blocks()
# what each prints, in their order
SAID = (
    r"notes/kitchen/bread\.md#1  Bread\n(.*\n)*3\nnotes/.*\n(.*\n)*\"done\"\n\{.*\}\n",
    r"notes/kitchen/bread\.md#1  Bread\n",
    r"notes/kitchen/bread\.md\nnotes/kitchen/cake\.md\n",
    r'\{"state":"done","counts":\{.*\}\}\n',
    r"ok tier: lexical.*\nnotes/kitchen/bread\.md#1 Bread ",
    r"\['notes/kitchen/bread\.md', 'notes/kitchen/cake\.md', 'notes/kitchen/dough\.md'\]\n",
    r"4\d\d \w+ .*nowhere.*\ndone \{.*\}\n",
    r"notes/kitchen/bread\.md#1 (.*\n)*.*hollow",
    r"\[.*'knowledge_enumerate'.*\]\n3\n",
    r"notes/kitchen/bread\.md#1 Bread\n",
)


class Running(NamedTuple):
    folder: Path
    port: int


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    """`knowledge up` over a few notes, its first run done."""
    with scratch_directory() as place, _up(place) as running:
        yield running


@contextmanager
def _up(place: Path) -> Iterator[Running]:
    write_files(place / "notes", TEXTS)
    tools, port = "knowledge_search, knowledge_enumerate, knowledge_read", free_port()
    configuration = f"knowledge:\n  paths: [notes]\n  server: {{port: {port}}}\n  mcp: {{tools: [{tools}]}}\n"
    (place / "knowledge.yaml").write_text(configuration, encoding="utf-8")
    program = place / "bin" / "knowledge"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{COMMAND[0]}" {" ".join(COMMAND[1:])} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    with (place / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [*COMMAND, "up", "--workers", "1"], cwd=place, env=environment(place), stdin=subprocess.DEVNULL,
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        _await_first_run(port, place / "up.log")
        yield Running(place, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def environment(place: Path) -> dict[str, str]:
    return CommandLine(place).environment({"PATH": f"{place / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}"})


def _await_first_run(port: int, log: Path) -> None:
    latest_s = time.monotonic() + WAIT_S
    with Client(base_url=f"http://127.0.0.1:{port}") as client:
        while time.monotonic() < latest_s:
            try:
                if client.get("/v1/search", params={"q": "bread"}).json()["status"] == "ok":
                    return
            except (HTTPError, ValueError, KeyError):
                pass
            time.sleep(0.1)
    raise TimeoutError(log.read_text(encoding="utf-8")[-4000:])


def command_of(block: Block, folder: Path) -> list[str]:
    """What runs a block; skips where its program is not there."""
    match block.language:
        case "python":
            return [sys.executable, "-W", "ignore", "-c", block.text]
        case "sh":
            _require("jq", *(["curl"] if "curl" in block.text else []))
            return ["bash", "-euo", "pipefail", "-c", block.text]
        case "js":
            _require("node")
            modules = os.environ.get(NODE_MODULES, "")
            if not modules:
                pytest.skip(f"{NODE_MODULES} names no folder with the SDK for JavaScript")
            if not (folder / "node_modules").exists():
                (folder / "node_modules").symlink_to(modules)
            (folder / "example.mjs").write_text(block.text, encoding="utf-8")
            return ["node", "example.mjs"]
    raise AssertionError(f"nobody runs a block of {block.language}")


def _require(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")


def test_every_block_is_known() -> None:
    assert len(BLOCKS) == len(SAID)
    assert [block.language for block in BLOCKS] == ["sh"] * 4 + ["python"] * 5 + ["js"]


@pytest.mark.parametrize("number", range(len(SAID)))
def test_an_example_does_what_it_says(number: int, service: Running) -> None:
    block = BLOCKS[number]
    told = block._replace(text=block.text.replace(ADDRESS, f"http://127.0.0.1:{service.port}"))
    done = subprocess.run(
        command_of(told, service.folder), cwd=service.folder, env=environment(service.folder), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(SAID[number], done.stdout), done.stdout + done.stderr
