"""Many at once: writers that race for one index, of whom one wins (P9), and agents that have sessions open and do
nothing beside a long run, which keeps its log small all the same (P25)."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from domain.layout import sidecars
from tests.support.audit import audit
from tests.support.chaos import SLOW_S
from tests.support.command_line import CommandLine, write_files
from tests.support.depth import scaled
from tests.support.embedding_server import embedding_server
from tests.support.figures import Figure, NoteFigure
from tests.support.mcp_clients import BareClient
from tests.support.service import many_files, service

PROJECT = Path(__file__).parents[2]
RACERS = 20
RACES = scaled(5, 200)
COMMANDS = scaled(4, 20)
AGENTS = scaled(2, 8)
AGENTS_FILES = scaled(600, 20_000)
LOG_BAR_BYTES = 64 * 1024 * 1024
NOT_WON = 11

pytestmark = [pytest.mark.redis, pytest.mark.timeout(scaled(900, 3600))]

# one process that forks the racers: each tries once when the shot falls; the winner stays until it is killed
_RACE = """
import json, os, signal, sys, time
from pathlib import Path
from domain.errors import LockedError
from store.lock import WriteLock
path, racers = Path(sys.argv[1]), int(sys.argv[2])
shot, shoot = os.pipe()
told, tell = os.pipe()
for _ in range(racers):
    if os.fork() == 0:
        os.close(shoot)
        os.read(shot, 1)
        began = time.monotonic()
        try:
            lock = WriteLock(path, purpose="knowledge index")
            lock.acquire()
            answer = {"pid": os.getpid(), "won": True}
        except LockedError as error:
            answer = {"pid": os.getpid(), "won": False, "status": error.exit_status, "message": error.message}
        answer["ms"] = (time.monotonic() - began) * 1000
        os.write(tell, json.dumps(answer).encode() + b"\\n")
        if answer["won"]:
            signal.pause()
        os._exit(0)
os.close(tell)
os.close(shoot)
lines = os.fdopen(told, "rb")
answers = [json.loads(lines.readline()) for _ in range(racers)]
(winner, *others) = sorted(answers, key=lambda answer: not answer["won"])
os.kill(winner["pid"], signal.SIGKILL)
killed = time.monotonic()
while True:
    try:
        with WriteLock(path, purpose="knowledge index"):
            break
    except LockedError:
        pass
print(json.dumps({"answers": answers, "handed_over_ms": (time.monotonic() - killed) * 1000}))
"""


def _race(path: Path) -> tuple[list[str], float, float]:
    """What is wrong with a race, and in ms: the slowest loser, and how long the lock of the killed winner took."""
    done = subprocess.run(
        [sys.executable, "-c", _RACE, str(path), str(RACERS)],
        cwd=PROJECT,
        capture_output=True,
        check=True,
        timeout=SLOW_S,
    )
    told = json.loads(done.stdout)
    won = [answer for answer in told["answers"] if answer["won"]]
    lost = [answer for answer in told["answers"] if not answer["won"]]
    wrong = [f"{len(won)} have won"] * (len(won) != 1)
    wrong += [f"{answer}" for answer in lost if answer["status"] != NOT_WON]
    return wrong, max(answer["ms"] for answer in lost), told["handed_over_ms"]


def test_of_twenty_that_race_for_an_index_one_wins_and_the_next_has_it_when_that_one_is_killed(
    tmp_path: Path, note_figure: NoteFigure
) -> None:
    """P9, the lock alone."""
    began_s = time.monotonic()
    races = [_race(tmp_path / "knowledge.lock") for _ in range(RACES)]
    wrong = [what for found, _, _ in races for what in found]
    slowest = max(lost for _, lost, _ in races)
    handed = sorted(ms for _, _, ms in races)
    detail = f"slowest refusal {slowest:.0f} ms; hand-over after a kill: median {handed[len(handed) // 2]:.1f} ms,"
    detail += f" longest {handed[-1]:.1f} ms"
    what = f"races of {RACERS} processes for one lock"
    seconds = time.monotonic() - began_s
    note_figure(Figure("lock-races", ("P9",), what, RACES, bad=len(wrong), asked=200, seconds=seconds, detail=detail))
    assert wrong == []


def test_of_many_commands_that_race_for_an_index_one_wins_and_the_others_name_it(
    tmp_path: Path, note_figure: NoteFigure
) -> None:
    """P9: the winner stays in its run, since its texts get no vectors, until all the others have ended."""
    write_files(tmp_path / "docs", {f"{number}.md": f"# Title {number}\n\nwords\n" for number in range(4)})
    with embedding_server(held="words") as model:
        embeddings = f"{{base_url: '{model.url}', model: m, timeout: 300s}}"
        lines = ["knowledge:", "  identity: base", "  paths: [docs/]", f"  embeddings: {embeddings}"]
        (tmp_path / "knowledge.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        command, began_s = CommandLine(tmp_path), time.monotonic()
        racers = [command.start("index", "--quiet", "--config", "knowledge.yaml") for _ in range(COMMANDS)]
        try:
            _wait_until_one_is_left(racers)
            (winner,) = [racer for racer in racers if racer.poll() is None]
            lost = [racer.communicate()[1].decode() for racer in racers if racer is not winner]
            model.behaviour.held = ""
            _, said = winner.communicate(timeout=SLOW_S)
        finally:
            for racer in racers:
                racer.kill()
                racer.communicate()
    statuses = sorted(racer.returncode for racer in racers)
    wrong = [f"statuses {statuses}: {said.decode()}"] * (statuses != [0] + [NOT_WON] * (COMMANDS - 1))
    wrong += [words for words in lost if f"process {winner.pid}" not in words]
    what, seconds = "commands that race for one index", time.monotonic() - began_s
    note_figure(Figure("writer-races", ("P9",), what, COMMANDS, bad=len(wrong), asked=RACERS, seconds=seconds))
    assert wrong == []
    assert audit(tmp_path / "knowledge" / "base" / "knowledge.db") == []


def _wait_until_one_is_left(racers: list["subprocess.Popen[bytes]"]) -> None:
    latest_s = time.monotonic() + SLOW_S
    while sum(racer.poll() is None for racer in racers) > 1:
        assert time.monotonic() < latest_s, [racer.poll() for racer in racers]
        time.sleep(0.05)


@contextmanager
def _idle_agents(folder: Path, count: int) -> Iterator[list[BareClient]]:
    """Each has asked once, and holds its session open."""
    command = CommandLine(folder)
    agents = [BareClient(command, "--tools", "knowledge_search", "--config", "knowledge.yaml") for _ in range(count)]
    try:
        for agent in agents:
            agent.greet()
            agent.call(1, "knowledge_search", query="text")
            assert "result" in agent.receive()
        yield agents
    finally:
        for agent in agents:
            agent.process.kill()
            agent.process.communicate()


def test_agents_that_do_nothing_let_the_log_of_a_long_run_stay_small(tmp_path: Path, note_figure: NoteFigure) -> None:
    """P25: and they answer at once afterwards, from the index as it is then."""
    with service(tmp_path, files=many_files(10)) as it:
        it.start_all(workers=2)
        assert it.ended(it.first_run(), SLOW_S).state == "done"
        with _idle_agents(tmp_path, AGENTS) as agents:
            for name, text in many_files(AGENTS_FILES).items():
                path = it.folder / "docs" / "more" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            began_s, largest, log = time.monotonic(), 0, sidecars(it.layout.database)[1]
            run = it.submit()
            while it.run(run).ended_ns is None:
                largest = max(largest, log.stat().st_size if log.exists() else 0)
                assert time.monotonic() - began_s < SLOW_S * scaled(1, 10)
                time.sleep(0.02)
            for agent in agents:
                agent.call(2, "knowledge_search", query=f"word{AGENTS_FILES - 1}")
            late = [agent for agent in agents if f"file-{AGENTS_FILES - 1:05d}" not in json.dumps(agent.receive())]
        seconds = time.monotonic() - began_s
        detail = f"largest log {largest / 1024 / 1024:.1f} MiB while {AGENTS_FILES:,} files were indexed"
        bad = len(late) + (largest > LOG_BAR_BYTES)
        what = "idle agents with open sessions beside a long run"
        note_figure(Figure("idle-agents", ("P25",), what, AGENTS, bad=bad, asked=8, seconds=seconds, detail=detail))
        assert it.run(run).state == "done"
        assert late == []
        assert largest <= LOG_BAR_BYTES
        assert audit(it.layout.database) == []
