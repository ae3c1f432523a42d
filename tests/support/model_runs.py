"""Commands over a base in children of a small process of their own, which modes keep out and which can be killed.

    with run_host(place) as host:
        outcome = host.do(Command("index", home, (root,)))

The process imports the product once and forks for each command: a run costs what the run costs. It may not read what a
mode forbids, root or not. A command with `dies_at` kills itself (SIGKILL) at that SQL statement of its own, however
quick the machine is.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Literal, NamedTuple

from app import maintenance
from app.index_request import IndexRequest
from app.indexing import run_index
from app.progress import RunProgress
from domain.errors import KnowledgeError
from domain.settings import EmbeddingsSettings, QueueSettings, Settings
from store import driver
from tests.support.trees import heed_modes

PROJECT = Path(__file__).parents[2]
FORKED = "forked"  # the argument with which the process is started for the second time
FILES_A_PAGE = 8

Verb = Literal["index", "reindex", "rehash", "rm", "rebuild", "compact", "verify"]


@dataclass(frozen=True, slots=True)
class Command:
    """What is to be done to the base at `home`. Paths are absolute."""

    verb: Verb
    home: str
    paths: tuple[str, ...] = ()
    url: str = ""  # of an embeddings server; "": words only
    commit: Literal["together", "words_first"] = "together"
    dies_at: int = 0  # the number of the SQL statement at which the command is killed, from 1; 0: it lives
    dies_after: bool = False  # when the statement has been carried out, not before


class Outcome(NamedTuple):
    """`state` is that of the run ("done", "partial"), "" for other verbs; or "killed"."""

    state: str
    error: str = ""
    statements: int = 0  # SQL statements that the command has made


class RunHost:
    """The process that commands are children of."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.heeds_modes = bool(self._told())

    def do(self, command: Command) -> Outcome:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(command)).encode() + b"\n")
        self._process.stdin.flush()
        return Outcome(*self._told())

    def _told(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process that commands run in has ended"
        return json.loads(line)


@contextmanager
def run_host(place: Path) -> Iterator[RunHost]:
    """`place` is the home directory of what runs in it. Nothing of it is left afterwards."""
    (place / "user").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=PROJECT,
        env=os.environ | {"HOME": str(place / "user"), "OPENBLAS_NUM_THREADS": "1"},  # what forks has one thread
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        with process:
            yield RunHost(process)
    finally:
        process.kill()


def settings_of(command: Command) -> Settings:
    """Small pages and batches, so that small trees make several of both."""
    embeddings = EmbeddingsSettings(
        base_url=command.url, model="m", batch=8, timeout_s=20.0, outage_limit_s=20.0, commit=command.commit
    )
    return Settings(
        identity="default",
        home=Path(command.home),
        config_path=None,
        configured=False,
        queue=QueueSettings(files_per_job=FILES_A_PAGE),
        embeddings=embeddings if command.url else None,
    )


def _carry_out(command: Command) -> str:
    settings = settings_of(command)
    if command.verb in ("index", "reindex", "rehash"):
        request = IndexRequest(
            paths=tuple(map(Path, command.paths)),
            reindex=command.verb == "reindex",
            rehash=command.verb == "rehash",
            allow_mass_delete=True,
            worker_processes=0,
        )
        return str(run_index(settings, request, RunProgress()).state)
    if command.verb == "rm":
        maintenance.remove_paths(settings, Path(command.home), command.paths)
    elif command.verb == "verify":
        status = maintenance.verify(settings, deep=True).exit_status
        return f"verify says {status}" if status else ""
    else:
        verbs: dict[str, Callable[[Settings], object]] = {
            "rebuild": maintenance.rebuild,
            "compact": maintenance.compact,
        }
        verbs[command.verb](settings)
    return ""


class _Counter:
    """Counts the SQL statements of this process, and ends it at the one that was chosen."""

    statements = 0

    def __init__(self, command: Command) -> None:
        self._command = command

    def around(self, call: Callable[[], Any]) -> Any:
        _Counter.statements += 1
        is_due = _Counter.statements == self._command.dies_at
        if is_due and not self._command.dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = call()
        if is_due:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def _count_statements(command: Command) -> None:
    counter = _Counter(command)

    class Counted(driver.Connection):
        def execute(self, *arguments: Any) -> Any:
            return counter.around(lambda: super(Counted, self).execute(*arguments))

        def executemany(self, *arguments: Any) -> Any:
            return counter.around(lambda: super(Counted, self).executemany(*arguments))

    module: Any = vars(driver)["dbapi"]
    module.connect = partial(module.connect, factory=Counted)


def _child(command: Command, answers: int) -> None:
    """The command, and what came of it, in a process that is good for nothing else."""
    _count_statements(command)
    try:
        told = Outcome(_carry_out(command))
    except KnowledgeError as error:
        told = Outcome("error", f"{error.code}: {error.message}")
    except BaseException as error:  # noqa: BLE001 - whoever asked for the command is told
        told = Outcome("error", f"{type(error).__name__}: {error}")
    os.write(answers, json.dumps(told._replace(statements=_Counter.statements)).encode())


def _forked(command: Command) -> Outcome:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            _child(command, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if told:
        return Outcome(*json.loads(told))
    was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return Outcome("killed" if was_killed else "error", "" if was_killed else f"it ended with {status}")


def _heeds_modes() -> bool:
    path = Path.home() / "closed"
    path.touch()
    path.chmod(0)
    with suppress(PermissionError):
        path.read_bytes()
        return False
    return True


def _import_the_product() -> None:
    """All of it, once: a run imports queue and clients only when there is work, and each child would do so anew."""
    for package in ("domain", "store", "embedding", "retrieval", "scheduler", "workers", "app"):
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)


def _serve() -> None:
    _import_the_product()
    answers = sys.stdout.buffer
    answers.write(json.dumps(_heeds_modes()).encode() + b"\n")
    answers.flush()
    for line in sys.stdin.buffer:
        fields = json.loads(line)
        outcome = _forked(Command(**(fields | {"paths": tuple(fields["paths"])})))
        answers.write(json.dumps(outcome).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    if sys.argv[1:] != [FORKED]:  # what may be read is settled when a program is started
        heed_modes()
        os.execv(sys.executable, [sys.executable, "-m", "tests.support.model_runs", FORKED])
    _serve()
