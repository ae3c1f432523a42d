"""A `knowledge serve` that has something to tell: documents that mean harm, runs, failures, removals that are held."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from app.approving import HELD
from domain.files import Reason
from domain.layout import BaseLayout
from domain.settings import Settings
from store.failure_port import FailureRecord
from store.lock import WriteLock
from store.run_port import RunRecord
from store.state import SqliteStateStore
from store.state_port import PageOutcome, RemovalCandidate
from tests.support.fuzz_requests import OPERATE, READ
from tests.support.hostile_texts import hostile_texts
from tests.support.runs import Base
from tests.support.service import free_port
from tests.support.status_bases import TEXTS, configure

PLAIN = {
    "docs/plain.md": "# Plain\n\nThe quick brown fox.\n\n## Deeper\n\nA herd of quagga.\n",
    "docs/sub/c.md": "# 東京\n",
}
ENDS_WITHIN_S = 15


class FuzzService(NamedTuple):
    pid: int
    port: int
    places: tuple[str, ...]  # of this machine: in no answer to a reader
    log: list[str]

    def memory_kb(self) -> int:
        """What is resident; 0 where nobody can say."""
        return self._numbers("status").get("VmRSS:", 0)

    def files(self) -> int:
        """How many it has open."""
        folder = Path(f"/proc/{self.pid}/fd")
        return len(list(folder.iterdir())) if folder.exists() else 0

    def threads(self) -> int:
        return self._numbers("status").get("Threads:", 0)

    def _numbers(self, name: str) -> dict[str, int]:
        path = Path(f"/proc/{self.pid}/{name}")
        lines = path.read_text("utf-8").splitlines() if path.exists() else ()
        return {words[0]: int(words[1]) for words in map(str.split, lines) if len(words) > 1 and words[1].isdigit()}


def hostile_base(folder: Path, most_documents: int) -> Settings:
    """An index over plain and hostile documents, with three runs: one that holds removals, one of another kind, one
    that was cancelled; and files that failed."""
    tools = ["knowledge_search", "knowledge_enumerate", "knowledge_read"]
    settings = configure(folder, schedules=[{"name": "nightly", "cron": "0 3 * * *"}], mcp={"tools": tools})
    texts = PLAIN | {f"docs/{name}": text for name, text in TEXTS.items()}
    texts |= {one.path: one.document for one in list(hostile_texts())[:most_documents]}
    for key, text in texts.items():
        path = folder / key
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    Base(settings).index()
    with closing(SqliteStateStore(BaseLayout(settings.home).state)) as state:
        run = state.begin_run(RunRecord(0, 0, "index", "cli", ("docs",), "walking", 1, None, {}), floor_generation=0)
        keys = [f"docs/{one.number} {one.kind}.md" for one in hostile_texts()][:40]
        failures = tuple(FailureRecord(key, Reason.UNREADABLE.value, "", 1, 1, 1) for key in keys)
        candidates = tuple(RemovalCandidate(key, Reason.GONE) for key in sorted(texts)[:40])
        state.finish_pages(run.id, [PageOutcome(1, {}, failures, (), candidates, {"added": sorted(texts)})])
        state.note_progress(run.id, {"checked": len(texts)})
        state.end_run(run.id, "partial", {"failed": len(keys)}, HELD)
        other = state.begin_run(RunRecord(0, 0, "verify", "api", (), "walking", 2, None, {}), floor_generation=0)
        state.end_run(other.id, "cancelled", {}, "")
    return settings


def _environment() -> dict[str, str]:
    """Without what says how deep tests go: the program knows no such variable of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("KNOWLEDGE_")}


@contextmanager
def fuzz_service(folder: Path, *, most_documents: int) -> Iterator[FuzzService]:
    """Started over such an index, with tokens; a scheduler seems to run, so that what is asked is taken on record."""
    settings = hostile_base(folder, most_documents)
    port = free_port()
    tokens = {"READ_TOKEN": READ, "OPERATE_TOKEN": OPERATE}
    named = {f"KNOWLEDGE_SERVER__{name}_ENV": name for name in tokens}
    command = [sys.executable, "-P", "-m", "cli.main", "serve", "--config", "knowledge.yaml"]
    process = subprocess.Popen(
        [*command, "--health-port", str(port), "--log-format", "json"],
        cwd=folder, env=_environment() | named | tokens, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    log: list[str] = []
    for line in process.stderr:
        log.append(line)
        if "listens" in line:
            break
    reading = threading.Thread(target=lambda: log.extend(process.stderr or ()))
    reading.start()
    try:
        assert process.poll() is None, log
        with WriteLock(BaseLayout(settings.home).scheduler_lock, purpose="knowledge scheduler"):
            yield FuzzService(process.pid, port, (str(folder), str(settings.home)), log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(ENDS_WITHIN_S) == 0, log
    finally:
        process.kill()
        process.wait()
        reading.join()
        process.stderr.close()
