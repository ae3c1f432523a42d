"""`make e2e-compose`: docker-compose.yml under podman, a corpus indexed across containers, each of them killed once.

For root on Debian, with the packages of PROGRAMS. What is downloaded are Debian's packages and the locked wheels.
No image is taken from elsewhere: a Debian with Python stands for the Python image, the same with Redis for Valkey's.
Images are kept in build/e2e-compose, or the folder of --storage, for the next time; `make clean` drops the former.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = Path(sysconfig.get_path("purelib")) / "compose" / "docker-compose"  # its console script hides the exit status
PROGRAMS = {
    "podman": "podman",
    "runc": "runc",
    "debootstrap": "debootstrap",
    "/usr/lib/podman/netavark": "netavark",
    "/usr/lib/podman/aardvark-dns": "aardvark-dns",
    "/usr/libexec/podman/catatonit": "catatonit",
}
PACKAGES = "python3,python3-venv,ca-certificates,redis-server"
OWNER = 4321  # of the corpus, and so of the services
FILES = 24_000  # a run over them takes ten seconds and more: long enough to be met in its midst
READY_S, RUN_S = 120, 300
SERVICES = ("valkey", "scheduler", "worker", "writer", "serve")
CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""
QUEUE_BASE = """\
FROM localhost/e2e-base
RUN ln -s /usr/bin/redis-server /usr/local/bin/valkey-server && ln -s /usr/bin/redis-cli /usr/local/bin/valkey-cli
"""


class Failure(Exception):  # noqa: N818 - it is what is told, not what went wrong inside
    """A check that did not hold."""


class Podman:
    """Podman with a storage of its own, and its service that Compose speaks to."""

    def __init__(self, place: Path, storage: Path) -> None:
        """`place` is gone after this time, `storage` is there the next time."""
        configuration = place / "containers.conf"
        configuration.write_text(CONTAINERS_CONF)
        self.storage = storage
        self.socket = place / "podman.sock"
        self.command = ["podman", "--root", str(storage / "storage"), "--runroot", str(storage / "run")]
        self.environ = {**os.environ, "CONTAINERS_CONF": str(configuration)}

    def __call__(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            [*self.command, *arguments], env=self.environ, capture_output=True, text=True, check=False
        )
        if check and done.returncode:
            raise Failure(f"podman {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def clear(self) -> None:
        """What an earlier time that was broken off has left; the storage is this script's own."""
        self("rm", "--force", "--all", "--volumes")
        self("volume", "prune", "--force")
        self("network", "prune", "--force")

    @contextmanager
    def service(self) -> Iterator[None]:
        """Its socket, and health checks: on a machine without systemd podman starts none by itself."""
        url = f"unix://{self.socket}"
        with (self.storage / "service.log").open("w") as log:
            started = subprocess.Popen(
                [*self.command, "system", "service", "--time=0", url], env=self.environ, stderr=log
            )
            ended = threading.Event()
            asking = threading.Thread(target=self._ask_healths, args=(ended,))
            try:
                until(self.socket.exists, 20, "podman's service does not come up")
                asking.start()
                yield
            finally:
                ended.set()
                if asking.is_alive():
                    asking.join()
                started.terminate()
                started.wait()

    def _ask_healths(self, ended: threading.Event) -> None:
        while not ended.wait(1):
            for container in self("ps", "-q", check=False).split():
                self("healthcheck", "run", container, check=False)


class Services:
    """The services of a deployment, as an operator has them in hand."""

    def __init__(self, folder: Path, podman: Podman) -> None:
        self.folder, self.podman = folder, podman
        self._environ = {**podman.environ, "DOCKER_HOST": f"unix://{podman.socket}"}

    def compose(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(COMPOSE), *arguments], cwd=self.folder, env=self._environ, capture_output=True, text=True, check=False
        )

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.compose("run", "--rm", "-T", "cli", *arguments)

    def begin(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """A verb that goes on beside what follows."""
        command = [str(COMPOSE), "run", "--rm", "-T", "cli", *arguments]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=self.folder, env=self._environ, stdout=quiet, stderr=quiet)

    def containers(self) -> list[str]:
        names = self.podman("ps", "-a", "--format", "{{.Names}}").split()
        return sorted(name for name in names if name.split("-")[1] in SERVICES)

    def are_healthy(self) -> bool:
        healths = [self.podman("inspect", name, "--format", "{{.State.Health.Status}}") for name in self.containers()]
        return len(healths) == len(SERVICES) + 1 and set(healths) == {"healthy"}

    def status(self) -> dict[str, Any]:
        """As the first container says that can: one of them may be away."""
        for name in self.containers():
            if "valkey" not in name:
                said = self.podman("exec", name, "knowledge", "status", "--json", check=False)
                if said.startswith("{"):
                    loaded: dict[str, Any] = json.loads(said)
                    return loaded
        return {}

    def runs(self) -> tuple[int, int]:
        """The number of the run that is under way, 0 = none is, and of the newest that is over."""
        status = self.status()
        running = status.get("index", {}).get("run_in_progress") or {}
        return running.get("id", 0), (status.get("last_run") or {}).get("id", 0)


def until(holds: Callable[[], bool], limit_s: float, otherwise: str) -> None:
    latest = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > latest:
            raise Failure(otherwise)
        time.sleep(0.5)


def build_images(podman: Podman) -> None:
    if not podman("images", "-q", "localhost/e2e-base"):
        say("making a Debian with Python (a few minutes the first time)")
        with tempfile.TemporaryDirectory(dir=podman.storage) as folder:
            release = codename(Path("/etc/os-release").read_text("utf-8"))
            command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", release, f"{folder}/root"]
            made = subprocess.run(
                command, env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True, check=False
            )
            if made.returncode:
                raise Failure(f"debootstrap: {made.stdout[-500:]}{made.stderr[-500:]}")
            run = subprocess.run(["tar", "-C", f"{folder}/root", "-cf", f"{folder}/root.tar", "."], check=False)
            if run.returncode:
                raise Failure("tar ended with an error")
            podman("import", f"{folder}/root.tar", "localhost/e2e-base")
    containerfile = _written(podman.storage / "Containerfile", QUEUE_BASE)
    podman("build", "-q", "--network=none", "-t", "localhost/e2e-valkey", "-f", str(containerfile))
    say("building the images from the locks")
    arguments = ["PYTHON_IMAGE=localhost/e2e-base", "VALKEY_IMAGE=localhost/e2e-valkey"]
    arguments += [f"KNOWLEDGE_UID={OWNER}", f"KNOWLEDGE_GID={OWNER}"]
    options = ["--network=host", "-v", "/etc/ssl/certs:/etc/ssl/certs:ro", *(f"--build-arg={it}" for it in arguments)]
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    pip = _written(podman.storage / "pip.conf", f"[global]\ncert = {certificates}\n" if certificates.exists() else "")
    options += ["-v", f"{pip}:/etc/pip.conf:ro"]
    for target, image in (("queue", "localhost/e2e-queue"), ("runtime", "localhost/e2e-knowledge")):
        podman("build", "-q", *options, f"--target={target}", "-t", image, str(ROOT))


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def codename(os_release: str) -> str:
    lines = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    return lines.get("VERSION_CODENAME", "stable").strip('"')


def deployment(place: Path) -> Path:
    """A corpus that only its owner reads, and what `make compose-init` makes of it."""
    corpus, folder = place / "texts", place / "deployment"
    corpus.mkdir(mode=0o750)
    for number in range(FILES):
        within = corpus / f"part{number % 60:02}"
        within.mkdir(exist_ok=True)
        (within / f"note{number:05}.md").write_text(f"# Note {number}\n\nHeron {number} stood in the reeds.\n" * 3)
    for path in (corpus, *corpus.rglob("*")):
        os.chown(path, OWNER, OWNER)
    folder.mkdir()
    shutil.copy(ROOT / "docker-compose.yml", folder)
    command = [
        sys.executable,
        str(ROOT / "scripts" / "compose_init.py"),
        "--into",
        str(folder),
        "--corpus",
        str(corpus),
    ]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise Failure("compose-init ended with an error")
    with (folder / ".env").open("a") as file:
        file.write("KNOWLEDGE_IMAGE=localhost/e2e-knowledge\nKNOWLEDGE_QUEUE_IMAGE=localhost/e2e-queue\n")
        file.write("KNOWLEDGE_PUBLISH=127.0.0.1:0\n")
    return folder


def index(services: Services, *options: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    """One run to its end, whatever becomes of who follows it."""
    until(lambda: services.runs()[0] == 0, RUN_S, "an earlier run does not end")
    _, before = services.runs()
    following = services.begin("index", *options)
    try:
        until(lambda: max(services.runs()) > before, READY_S, "no run begins")
        meanwhile()
        until(lambda: services.runs()[1] > before and services.runs()[0] == 0, RUN_S, "the run does not end")
    finally:
        following.terminate()
        following.wait()


def kill_in_run(services: Services, container: str) -> None:
    """As the kernel does it when memory is short: its first process, from outside."""
    pid = int(services.podman("inspect", container, "--format", "{{.State.Pid}}"))  # nothing is asked once a run is on
    killed_s: list[float] = []

    def kill() -> None:
        killed_s.append(time.time())
        os.kill(pid, signal.SIGKILL)

    index(services, "--reindex", meanwhile=kill)
    ended = datetime.fromisoformat((services.status().get("last_run") or {})["ended_at"])
    if ended.timestamp() < int(killed_s[0]):  # it is told in whole seconds
        raise Failure(f"the run was over before {container} could be killed: FILES is too small for this machine")


def is_whole(services: Services, after: str) -> None:
    verified = services.cli("verify", "--deep")
    held = services.status().get("index", {}).get("documents")
    if verified.returncode or held != FILES:
        raise Failure(f"{after}: {held} of {FILES} documents; verify says {verified.stdout}{verified.stderr}")


def is_confined(podman: Podman, container: str) -> None:
    for path in ("/file", "/corpus/file", "/etc/knowledge/file"):
        code = f"open({path!r}, 'w')"
        if podman("exec", container, "python3", "-c", f"try:\n {code}\n print('open')\nexcept OSError: pass"):
            raise Failure(f"{container} can write {path}")
    if podman("exec", container, "python3", "-c", "import os; print(os.getuid())") != str(OWNER):
        raise Failure(f"{container} is not the corpus' owner")


def check_services(services: Services) -> None:
    podman = services.podman
    say("docker compose run --rm cli status, before anything runs")
    if "there is no index yet" not in (first := services.cli("status")).stdout + first.stderr:
        raise Failure(f"status: {first.stdout}{first.stderr}")
    say("docker compose up")
    up = services.compose("up", "-d", "--no-build")
    if up.returncode:
        raise Failure(up.stderr)
    until(services.are_healthy, READY_S, "not every container becomes healthy")
    for container in services.containers():
        if "valkey" not in container:
            is_confined(podman, container)
    say(f"indexing {FILES} files across the containers")
    index(services)
    is_whole(services, "the first run")
    for container in services.containers():
        say(f"kill -9 of {container} during a run")
        kill_in_run(services, container)
        until(services.are_healthy, READY_S, f"{container} does not come back")
        is_whole(services, f"the run in which {container} was killed")
    say("docker compose stop")
    services.compose("stop")
    for container in services.containers():
        if (status := podman("inspect", container, "--format", "{{.State.ExitCode}}")) != "0":
            raise Failure(f"{container} ended with {status} when it was stopped")


def say(text: str) -> None:
    print(f"e2e-compose: {text}", flush=True)


def lacking() -> list[str]:
    found = (package for program, package in PROGRAMS.items() if shutil.which(program, path=_path()) is None)
    return list(found)


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def main() -> int:
    parser = argparse.ArgumentParser(description="docker-compose.yml under podman, each container killed once")
    parser.add_argument("--storage", type=Path, default=ROOT / "build" / "e2e-compose", help="where images are kept")
    storage: Path = parser.parse_args().storage.absolute()
    if os.geteuid() != 0 or (missing := lacking()):
        what = "root is needed" if os.geteuid() != 0 else f"install the packages {' '.join(missing)}"
        sys.stderr.write(f"e2e-compose: {what}\n")
        return 2
    storage.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="e2e-compose-") as made:
        place = Path(made)
        place.chmod(0o755)
        podman = Podman(place, storage)
        try:
            podman.clear()
            build_images(podman)
            services = Services(deployment(place), podman)
            with podman.service():
                try:
                    check_services(services)
                except Failure:
                    (storage / "services.log").write_text(services.compose("logs", "--no-color").stdout)
                    raise
                finally:
                    services.compose("--profile=cli", "down", "--volumes", "--timeout=15")
        except Failure as failure:
            sys.stderr.write(f"e2e-compose: {failure}\n(the services' logs: {storage / 'services.log'})\n")
            return 1
    say("all is well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
