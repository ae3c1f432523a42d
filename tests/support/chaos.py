"""A service with a vector tier whose every part can be killed and brought back: roles, queue server, model server.

What must be in the store at the end is told by a clean index of the same tree (`assert_like_a_clean_index`).
"""

import hashlib
import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from domain.settings import Settings
from scheduler.queue.embedded import server_program
from store.run_port import RunRecord
from tests.support.audit import audit
from tests.support.depth import SEED, scaled
from tests.support.embedding_server import EmbeddingServer, embedding_server, vector_array_of
from tests.support.reading_on import LiveReader
from tests.support.runs import Base
from tests.support.scratch import scratch_directory
from tests.support.service import Service
from tests.support.vector_runs import DIMENSION, base_with
from tests.support.waiting import eventually

PARTS = ("scheduler", "worker", "writer", "broker", "embeddings", "reader")
MATTER = "about the matter"  # in every text, and in none that a model is only tried with
LATEST_S = 1.2  # a kill strikes at any moment of a round's run, as long as that takes on a machine at rest
SLOW_S = 240.0  # the machine may be busy with other tests
_VECTORS = (
    "SELECT documents.key, chunks.ordinal, hex(embeddings.vector) FROM vector_links"
    " JOIN chunks ON chunks.id = vector_links.chunk JOIN documents ON documents.id = chunks.document"
    " JOIN embeddings ON embeddings.id = vector_links.embedding ORDER BY documents.key, chunks.ordinal"
)


class Round(NamedTuple):
    """How the run of a round has ended, and whether it went on when the parts were killed."""

    run: RunRecord
    was_struck: bool


class Broker:
    """A queue server of a test's own on a fixed socket; it keeps what it has only where it is told to."""

    def __init__(self, folder: Path, *options: str, keeps: bool = False) -> None:
        self.socket, self.keeps = folder / "valkey.sock", keeps
        persistence = ["--appendonly", "yes", "--appendfsync", "everysec"] if keeps else ["--appendonly", "no"]
        places = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(folder), "--save", ""]
        self._command = [server_program(), *places, *persistence, "--loglevel", "warning", *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)  # of one that was killed
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self.socket.exists)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


@dataclass(slots=True)
class Chaos:
    """The parts of one base's service, and the dice."""

    service: Service
    broker: Broker
    embeddings: EmbeddingServer
    dice: random.Random = field(default_factory=lambda: random.Random(SEED))
    reader: LiveReader | None = None  # from the first round on

    @property
    def docs(self) -> Path:
        return self.service.folder / "docs"

    @property
    def base(self) -> Base:
        """The service's base, to be looked into."""
        home = self.service.layout.home
        return Base(Settings(identity="base", home=home, config_path=None, configured=False))

    def ended(self, run: int) -> RunRecord:
        self.service.wait_until(lambda: self.service.run(run).ended_ns is not None, SLOW_S)
        return self.service.run(run)

    def kill(self, *parts: str) -> None:
        """With SIGKILL, all of them before any is brought back; of several processes of one part alone, one."""
        for part in parts:
            if part == "broker":
                self.broker.kill()
            elif part == "embeddings":
                self.embeddings.take_down("refuse")
            elif part == "reader":
                assert self.reader is not None
                self.reader.kill()
            else:
                roles = self.service.of(part)
                for role in roles if len(parts) > 1 else roles[:1]:
                    role.kill()

    def bring_back(self, *parts: str) -> None:
        for part in parts:
            if part == "broker":
                self.broker.start()
            elif part == "embeddings":
                self.embeddings.bring_up()
            elif part == "reader":
                self.read_on()
            else:
                self.service.start(part)

    def read_on(self) -> None:
        self.reader = LiveReader(self.service.layout.database, self.service.folder / "reader.log")

    def change(self, count: int = 40) -> list[Path]:
        """Other texts for so many files, whichever they are."""
        changed = self.dice.sample(sorted(self.docs.rglob("*.md")), count)
        for path in changed:
            path.write_text(text_of(self.dice.randrange(10**9)), encoding="utf-8")
        return changed

    def round(self, *parts: str, is_held: bool = False) -> Round:
        """Change files, one of them in its name too, begin a run, kill parts at some moment of it, and see it end.
        `is_held`: it gets no vectors, and so does not end, before they are killed."""
        self.embeddings.behaviour.held = MATTER if is_held else ""
        changed = self.change()
        changed[0].rename(changed[0].with_name(f"{self.dice.randrange(10**9):09}.md"))
        run = self.service.submit()
        self.service.wait_until(lambda: self.service.run(run).state != "queued", SLOW_S)
        time.sleep(self.dice.uniform(0, LATEST_S))
        self.kill(*parts)
        was_struck = self.service.run(run).ended_ns is None
        self.embeddings.behaviour.held = ""
        time.sleep(self.dice.uniform(0, 0.3))
        self.bring_back(*parts)
        return Round(self.ended(run), was_struck)


def text_of(number: int) -> str:
    """A document of two chunks that no other number has."""
    words = f"word{number} {MATTER} " * 40
    return "".join(f"# Part {part} of {number}\n\n{words}{part}\n\n" for part in (1, 2))


@contextmanager
def chaos(
    files: int,
    *,
    keeps: bool = False,
    broker: tuple[str, ...] = (),
    embeddings: str = "together",
    root: str = "docs/",
    more: str = "",
    files_per_job: int = 4,
) -> Iterator[Chaos]:
    """Its parts are there, roles are not started. `embeddings`: how the vector tier commits, "" for none; `root`: how
    the configuration names the folder of the files; `files_per_job`: few, so that harm meets many jobs."""
    with scratch_directory() as folder, embedding_server(dimension=DIMENSION, delay_per_input_s=0.004) as model:
        for number in range(files):
            path = folder / "docs" / f"{number % 8}" / f"{number:04}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text_of(number), encoding="utf-8")
        queue = Broker(folder, *broker, keeps=keeps)
        queue.start()
        lines = [
            "knowledge:",
            "  identity: base",
            f"  paths: [{root}]",
            f"  queue: {{url: 'unix://{queue.socket}', files_per_job: {files_per_job}}}",
        ]
        if embeddings:
            model_lines = f"base_url: '{model.url}', model: m, batch: 8, timeout: 5s, commit: {embeddings}"
            lines.append(f"  embeddings: {{{model_lines}}}")
        (folder / "knowledge.yaml").write_text("\n".join([*lines, more]) + "\n", encoding="utf-8")
        it = Chaos(Service(folder, str(queue.socket)), queue, model)
        try:
            yield it
        finally:
            if it.reader is not None:
                it.reader.kill()
            it.service.end()
            queue.stop()


def assert_like_a_clean_index(it: Chaos, *, commit: str) -> None:
    """Documents, chunks, texts and vectors as a clean index of the same tree has them; the audit finds nothing."""
    with scratch_directory() as elsewhere, base_with(elsewhere, it.embeddings, commit=commit) as clean:
        clean.index(it.docs)
        assert it.base.content() == clean.content()
        assert it.base.rows(_VECTORS) == clean.rows(_VECTORS)
    assert audit(it.service.layout.database, vector_of=vector_bytes) == []
    assert not list(it.service.layout.spool.glob("*.part"))


def vector_bytes(text: str, dimension: int) -> bytes:
    return vector_array_of(text, dimension).astype("<f4").tobytes()


def differing(it: Chaos) -> dict[str, str]:
    """Files whose bytes are not those that are stored, and what is wrong; {}: every one is as it is on the disk."""
    stored = dict(it.base.rows("SELECT key, hex(file_hash) FROM documents"))
    on_disk = {
        f"docs/{path.relative_to(it.docs).as_posix()}": hashlib.sha256(path.read_bytes()).hexdigest().upper()
        for path in it.docs.rglob("*.md")
    }
    keys = stored.keys() | on_disk.keys()
    return {key: f"{stored.get(key, 'not there')}" for key in sorted(keys) if stored.get(key) != on_disk.get(key)}


def rounds_wanted() -> int:
    """How many times each part is killed: `make chaos ROUNDS=20` says so."""
    return int(os.environ.get("CHAOS_ROUNDS", scaled(1, 20)))
