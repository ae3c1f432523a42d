"""The service of a soak: every role a process of its own, a queue that keeps its work, a model that only pretends."""

import hashlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from redis import Redis

from store import driver
from store.state import SqliteStateStore
from tests.support.chaos import Broker
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.service import Role, Service

DIMENSION = 64
LIMIT_S = 1_800.0
TOOLS = ["knowledge_search", "knowledge_enumerate", "knowledge_read"]


class Soaking:
    """The parts of the service, and the names that they have in the report."""

    def __init__(self, service: Service, broker: Broker, model: EmbeddingServer) -> None:
        self.service = service
        self.broker = broker
        self.model = model
        self.others: dict[str, int] = {}  # further processes that are looked at, by their names
        self.deaths: list[str] = []  # roles that have ended by themselves, which none should
        self._gone: set[int] = set()
        self._reviving = threading.Lock()

    @property
    def docs(self) -> Path:
        return self.service.folder / "docs"

    @property
    def configuration(self) -> Path:
        return self.service.folder / "knowledge.yaml"

    @property
    def port(self) -> int:
        return next(role.health_port for role in self.service.of("serve"))

    def start(self) -> None:
        """All roles; returns when the first run has ended."""
        for role in ("writer", "scheduler", "worker", "worker"):
            self.service.start(role)
        self.wait_for(lambda: bool(self.service.of("writer")) and '"active"' in self.service.of("writer")[0].said())
        self.wait_for(self.service.layout.state.exists)
        self.service.start("serve", with_health=True)
        run = self.service.first_run()
        self.wait_for(lambda: self.service.run(run).ended_ns is not None)
        self.wait_for(lambda: "listens" in self.service.of("serve")[0].said())
        if (state := self.service.run(run).state) != "done":
            raise SystemExit(f"the first run ended {state}")

    def pids(self) -> dict[str, int]:
        """Every process that is looked at, by the name of its line in the plots."""
        alive: list[Role] = [role for role in self.service.roles if role.process.poll() is None]
        names: dict[str, int] = {}
        for role in alive:
            number = sum(role.name == name.partition(" ")[0] for name in names) + 1
            names[f"{role.name} {number}" if role.name == "worker" else role.name] = role.pid
        return names | self.others

    def kill(self, name: str) -> None:
        role = self.service.of(name)[0]
        self._gone.add(role.pid)
        role.kill()

    def revive(self) -> None:
        """Whoever has ended without being killed here is started again, as whoever runs a service would have it."""
        with self._reviving:
            for role in list(self.service.roles):
                if role.process.poll() is not None and role.pid not in self._gone:
                    self._gone.add(role.pid)
                    self.deaths.append(f"{role.name}: {role.said()[-1500:]}")
                    print(f"  ended by itself: {self.deaths[-1]}", flush=True)
                    self.service.start(role.name, with_health=role.name == "serve")

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Raises SystemExit with what the roles have said, where it never comes."""
        latest_s = time.monotonic() + LIMIT_S
        while not condition():
            self.revive()
            if time.monotonic() > latest_s:
                raise SystemExit("\n".join(f"--- {role.name}\n{role.said()[-2000:]}" for role in self.service.roles))
            time.sleep(0.1)

    def run_states(self) -> list[str]:
        """Of all runs on record."""
        with closing(SqliteStateStore(self.service.layout.state, read_only=True)) as state:
            return [run.state for run in state.runs(1_000_000)]

    def queue_client(self) -> Redis:
        return Redis(unix_socket_path=str(self.broker.socket), socket_timeout=5, socket_connect_timeout=5)


def differing(it: Soaking, files: Iterable[Path]) -> list[str]:
    """Keys of documents that are not as their files are, and of files that should be documents and are none."""
    with closing(driver.connect(str(it.service.layout.database), uri=False, timeout_s=5)) as connection:
        stored = dict(connection.execute("SELECT key, file_hash FROM documents"))
        skipped = {key for (key,) in connection.execute("SELECT key FROM skipped_files")}
    by_key = {f"docs/{path.relative_to(it.docs).as_posix()}": path for path in files}
    right = {key for key, path in by_key.items() if hashlib.sha256(path.read_bytes()).digest() == stored.get(key)}
    return sorted((stored.keys() | by_key.keys()) - right - skipped)


@contextmanager
def soaking(folder: Path, *, more: dict[str, object] | None = None) -> Iterator[Soaking]:
    """The folder holds docs/ already; roles are not started yet. Nothing is left running afterwards."""
    with (
        embedding_server(dimension=DIMENSION, delay_s=0.005, delay_per_input_s=0.001) as model,
        tempfile.TemporaryDirectory(prefix="soak-") as kept,  # the path of a socket has to be short
    ):
        broker = Broker(Path(kept), keeps=True)
        block: dict[str, object] = {
            "identity": "base",
            "paths": [{"path": "docs/", "watch": True}],
            "queue": {"url": f"unix://{broker.socket}"},
            "embeddings": {"base_url": model.url, "model": "made-up"},
            "mcp": {"tools": TOOLS},
        }
        whole = {"knowledge": block | (more or {})}
        (folder / "knowledge.yaml").write_text(json.dumps(whole), encoding="utf-8")
        broker.start()
        it = Soaking(Service(folder, str(broker.socket)), broker, model)
        try:
            yield it
        finally:
            it.service.end()
            broker.stop()
