"""A service of real processes over a real queue, for one test: started, watched, killed and ended here."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.run_request import RunRequest
from app.submitting import submit
from domain.layout import BaseLayout
from domain.settings import QueueSettings, RootSettings, Settings
from scheduler.queue.embedded import EmbeddedValkey
from store.run_port import RunRecord
from store.state import SqliteStateStore
from tests.support.trees import heed_modes

WAIT_S = 100.0  # below what a test may take
_PROGRAM = [sys.executable, "-P", "-m", "cli.main"]


@dataclass(slots=True)
class Role:
    """A role's process; what it has logged is in its file."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    health_port: int = 0  # 0 = it has no health page

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self, within_s: float = WAIT_S) -> int:
        self.process.terminate()
        return self.process.wait(within_s)

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@dataclass(slots=True)
class Service:
    """The roles of one base."""

    folder: Path  # holds knowledge.yaml and docs/
    socket: str
    roles: list[Role] = field(default_factory=list)
    heeds_modes: bool = False  # roles may not read what is closed, also where this process is root
    logs: Path | None = None  # where the roles' logs are kept, if not beside the configuration
    environ: dict[str, dict[str, str]] = field(default_factory=dict)  # by role: variables of those that are started

    @property
    def layout(self) -> BaseLayout:
        return BaseLayout(self.folder / "knowledge" / "base")

    @property
    def settings(self) -> Settings:
        docs = RootSettings(self.folder / "docs")
        place, queue = self.folder / "knowledge.yaml", QueueSettings(f"unix://{self.socket}")
        return Settings("base", self.layout.home, place, configured=True, roots=(docs,), queue=queue)

    def start(self, role: str, *, with_health: bool = False) -> Role:
        port = free_port() if with_health else 0
        log = (self.logs or self.folder) / f"{role}-{len(self.roles)}.log"
        command = [*_PROGRAM, role, "--config", str(self.folder / "knowledge.yaml"), "--health-port", str(port)]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, "--log-format", "json"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.folder,
                env={**os.environ, **self.environ.get(role, {})},
                preexec_fn=heed_modes if self.heeds_modes else None,
            )
        self.roles.append(Role(role, process, log, port))
        return self.roles[-1]

    def start_all(self, *, workers: int = 1) -> None:
        started = [self.start(name) for name in ("writer", "scheduler", *["worker"] * workers)]
        for role in started:
            self.wait_until(lambda role=role: '"active"' in role.said() or '"goes_on"' in role.said())  # type: ignore[misc]

    def of(self, name: str) -> list[Role]:
        return [role for role in self.roles if role.name == name and role.process.poll() is None]

    def first_run(self) -> int:
        """The run that a service begins by itself, where its index is empty."""
        self.wait_until(lambda: self._newest() > 0)
        return self._newest()

    def _newest(self) -> int:
        if not self.layout.state.exists():
            return 0
        with closing(SqliteStateStore(self.layout.state, read_only=True)) as state:
            return next((run.id for run in state.runs(1)), 0)

    def submit(self, **request: object) -> int:
        return submit(self.settings, RunRequest.from_json(request)).id

    def run(self, run_id: int) -> RunRecord:
        with closing(SqliteStateStore(self.layout.state, read_only=True)) as state:
            found = state.run(run_id)
        assert found is not None
        return found

    def ask(self, run_id: int, wish: str) -> None:
        with closing(SqliteStateStore(self.layout.state)) as state:
            assert state.ask(run_id, wish)  # type: ignore[arg-type]

    def ended(self, run_id: int, within_s: float = WAIT_S) -> RunRecord:
        self.wait_until(lambda: self.run(run_id).ended_ns is not None, within_s)
        return self.run(run_id)

    def wait_until(self, condition: Callable[[], bool], within_s: float = WAIT_S) -> None:
        latest_s = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > latest_s:
                raise TimeoutError("\n".join(f"--- {role.name}\n{role.said()[-3000:]}" for role in self.roles))
            time.sleep(0.05)

    def end(self) -> None:
        for role in self.roles:
            if role.process.poll() is None:
                role.process.send_signal(signal.SIGCONT)
                role.process.terminate()
        for role in self.roles:
            try:
                role.process.wait(15)
            except subprocess.TimeoutExpired:
                role.kill()


@contextmanager
def service(
    folder: Path,
    *,
    configuration: str = "",
    files: dict[str, str] | None = None,
    files_per_job: int = 64,
    logs: Path | None = None,
) -> Iterator[Service]:
    """A folder with a configuration and documents, and a queue; roles are started by the test."""
    docs = folder / "docs"
    docs.mkdir()
    for name, text in (files or {}).items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    server = EmbeddedValkey()
    address = server.start()
    queue = f"{{url: 'unix://{address.socket}', files_per_job: {files_per_job}}}"
    lines = ["knowledge:", "  identity: base", "  paths: [docs/]", f"  queue: {queue}"]
    (folder / "knowledge.yaml").write_text("\n".join([*lines, configuration]) + "\n", encoding="utf-8")
    it = Service(folder, address.socket, logs=logs)
    try:
        yield it
    finally:
        it.end()
        server.stop()


def many_files(count: int, *, words: int = 120) -> dict[str, str]:
    """Files with a heading and some text each, all different."""
    return {
        f"part-{number % 20:02d}/file-{number:05d}.md": f"# Title {number}\n\n" + f"word{number} text " * words
        for number in range(count)
    }


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
