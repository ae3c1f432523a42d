"""`python -m bench.soak --minutes 60`: a service under churn, searchers, idle readers and harm, watched all the while.

Real processes: scheduler, two workers, writer, serve, a Valkey with its file of appended commands, a server of made-up
vectors. Written to bench/results/soak: report.md, soak.json, plots. `--corpus FOLDER` churns a copy of a folder.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.soak_beside import Beside
from bench.soak_checks import check_all
from bench.soak_corpus import Churn, copy_corpus, make_corpus
from bench.soak_filling import fill_unused
from bench.soak_harm import Harm
from bench.soak_machine import machine
from bench.soak_plan import AGENTS, Check, Pass, Plan, Soaked
from bench.soak_readers import Readers, Wish
from bench.soak_report import write_report
from bench.soak_samples import Sampler
from bench.soak_service import Soaking, differing, soaking
from tests.support.command_line import CommandLine
from tests.support.mcp_clients import BareClient

SEED = 20261130
RESULTS = Path(__file__).parent / "results" / "soak"


class Churning(Beside):
    """A batch of changes every few seconds and a run for it, until stopped; while that goes on none is asked for."""

    def __init__(self, it: Soaking, plan: Plan, churn: Churn, began_s: float) -> None:
        super().__init__("churn")
        self._it = it
        self._plan = plan
        self._churn = churn
        self._began_s = began_s
        self._open: tuple[int, float] | None = None
        self._made = self._asked_after = self._seen = 0  # changes
        self.passes: list[Pass] = []

    def run(self) -> None:
        due_s = time.monotonic()
        while not self._over.wait(max(0.0, due_s - time.monotonic())):
            if self._made + self._plan.changes - self._seen <= self._plan.most_unseen:
                self._churn.batch(self._plan.changes)
                self._made += self._plan.changes
            if self._is_idle():
                self._asked_after = self._made
                self._open = (self._it.service.submit(), time.monotonic())
            due_s = max(due_s + self._plan.batch_every_s, time.monotonic())
        self._it.wait_for(self._is_idle)

    def _is_idle(self) -> bool:
        if self._open is None:
            return True
        run, asked_s = self._open
        record = self._it.service.run(run)
        if record.ended_ns is None:
            return False
        ended_s = time.monotonic() - (time.time_ns() - record.ended_ns) / 1e9
        self._open = None
        began_s = self._began_s
        self.passes.append(Pass(round(asked_s - began_s, 2), round(ended_s - began_s, 2), record.state, record.cause))
        if self.passes[-1].ended_well:
            self._seen = self._asked_after
        return True


class Checking(Beside):
    """Looks at the whole index at the times of the plan, and once more when it is stopped."""

    def __init__(self, it: Soaking, plan: Plan, scratch: Path, began_s: float) -> None:
        super().__init__("checks")
        self._it = it
        self._plan = plan
        self._scratch = scratch
        self._began_s = began_s
        self.checks: list[Check] = []

    def run(self) -> None:
        for due_s in self._plan.checks_s:
            waits_s = self._began_s + due_s - time.monotonic()
            if waits_s < 0:
                continue  # the one before it took longer than the time between two
            if self._over.wait(waits_s):
                break
            self._check()
        self._over.wait()
        self._check()  # what is there in the end

    def _check(self) -> None:
        self.checks.append(check_all(self._it.configuration, self._scratch / "check", self._began_s))
        _say(self._began_s, f"{self.checks[-1]}")


class Agents(Beside):
    """Agents that keep `knowledge mcp` open; now and then each is asked something, and in between they are silent."""

    def __init__(self, it: Soaking, plan: Plan, folder: Path) -> None:
        super().__init__("agents")
        command = CommandLine(folder)
        self._plan = plan
        self._agents = [BareClient(command, "--config", str(it.configuration)) for _ in range(AGENTS)]
        it.others = {f"agent {number}": agent.process.pid for number, agent in enumerate(self._agents, 1)}
        self.told = {"calls_of_agents": 0, "calls_of_agents_that_failed": 0}

    def run(self) -> None:
        for agent in self._agents:
            agent.greet()
        while not self._over.wait(self._plan.idle_every_s):
            for number, agent in enumerate(self._agents, 1):
                agent.call(number, "knowledge_search", query="bacedi foguha")
                told = agent.receive()
                self.told["calls_of_agents"] += 1
                self.told["calls_of_agents_that_failed"] += "error" in told or bool(told["result"].get("isError"))

    def end(self) -> None:
        """Their processes, whatever they are at."""
        for agent in self._agents:
            agent.process.kill()
            agent.process.communicate()


def soak(it: Soaking, plan: Plan, churn: Churn, scratch: Path) -> Soaked:
    """All of it; the roles have not been started yet."""
    started_s = time.monotonic()
    it.start()
    _say(started_s, "the service is up, and has indexed everything")
    unused = fill_unused(it, plan, churn)
    _say(started_s, f"it begins, with {unused:,} vectors that no chunk has")
    began_s = time.monotonic()
    sampler = Sampler(it, plan, began_s)
    churning = Churning(it, plan, churn, began_s)
    checking = Checking(it, plan, scratch, began_s)
    agents = Agents(it, plan, scratch)
    readers = Readers(_wish(it, plan, scratch, began_s))
    try:
        for thread in (agents, sampler, churning, checking):
            thread.start()
        harm = Harm(it, plan, readers.so_far, churning.passes, began_s)
        _watch(it, plan, began_s, harm)
        _say(began_s, "the time is over, and what was harmed goes on")
        churning.stop()
        _say(began_s, "the last run for the churn has ended")
        for thread in (checking, agents, sampler):
            thread.stop()
        asked, commands, idle = readers.end()
        _say(began_s, "the readers have ended")
    finally:
        readers.stop()
        agents.end()
    runs = Counter(it.run_states())
    apart = _differing(it, churn)
    return Soaked(
        plan, sampler.samples, asked, commands, idle | agents.told, harm.incidents, checking.checks, churning.passes,
        dict(churn.done), dict(runs), apart, len(it.deaths), machine(), unused,
    )  # fmt: skip


def _wish(it: Soaking, plan: Plan, scratch: Path, began_s: float) -> Wish:
    return Wish(
        it.port,
        str(it.service.layout.home),
        str(it.configuration),
        str(scratch / "readers.log"),
        began_s,
        plan.searches_per_s,
        plan.idle_every_s,
        plan.command_every_s,
        SEED,
    )


def _say(since_s: float, words: str) -> None:
    print(f"  {time.monotonic() - since_s:.0f} s: {words}", flush=True)


def _watch(it: Soaking, plan: Plan, began_s: float, harm: Harm) -> None:
    """Until the time is over, and all that was harmed goes on."""
    while time.monotonic() < began_s + plan.seconds:
        harm.look()
        it.revive()
        time.sleep(0.2)
    harm.finish()


def _differing(it: Soaking, churn: Churn) -> int:
    """Documents that are not as their files are, after one more run over a tree that is at rest."""
    run = it.service.submit()
    it.wait_for(lambda: it.service.run(run).ended_ns is not None)
    return len(differing(it, churn.files))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--files", type=int, default=3_000, help="how many documents are made")
    parser.add_argument("--corpus", type=Path, default=None, help="a folder, of which a copy is churned instead")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report is written")
    parser.add_argument("--scratch", type=Path, default=None, help="where the service lies meanwhile")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended on the way out
    if chosen.scratch is not None:
        chosen.scratch.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="knowledge-soak-", dir=chosen.scratch))
    try:
        folder = scratch / "service"  # what is beside it is not below its configuration
        folder.mkdir()
        if chosen.corpus is None:
            make_corpus(folder / "docs", chosen.files, random.Random(SEED))
        else:
            copy_corpus(folder / "docs", chosen.corpus)
        with soaking(folder) as it:
            churn = Churn(it.docs, random.Random(SEED))
            seen = soak(it, Plan(chosen.minutes * 60, len(churn.files)), churn, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 1 if write_report(seen, chosen.results) else 0


if __name__ == "__main__":
    sys.exit(main())
