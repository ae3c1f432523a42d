"""`make compose-init`: what it writes, for whom, what it keeps, and that it says so."""

import io
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError

from app.config import locate, read
from tests.support.compose import ROOT, compose_init, resolved
from tests.support.valkey import serving

init = compose_init()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "texts" / "team notes"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    return folder


def run(into: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """As `make` calls it, without a terminal."""
    command = [sys.executable, "-I", str(ROOT / "scripts" / "compose_init.py"), "--into", str(into), *arguments]
    inherited = {name: value for name, value in os.environ.items() if name not in ("CORPUS", "SUDO_UID", "SUDO_GID")}
    return subprocess.run(
        command, env=inherited | environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_writes_all_that_the_services_need(into: Path, corpus: Path) -> None:
    done = run(into, CORPUS=str(corpus))
    assert (done.returncode, done.stderr) == (0, "")
    assert mode(into / "secrets") == 0o700
    for name in ("queue-password", "queue-users", "read-token", "operate-token"):
        assert mode(into / "secrets" / name) == 0o600
    for name in (
        ".env",
        "secrets/queue-password",
        "secrets/queue-users",
        "secrets/read-token",
        "deploy/config/knowledge.yaml",
    ):
        assert f"{name}: written" in done.stdout
    password = (into / "secrets" / "queue-password").read_text(encoding="utf-8").strip()
    assert len(password) >= 32
    tokens = {(into / "secrets" / f"{name}-token").read_text(encoding="utf-8").strip() for name in ("read", "operate")}
    assert len(tokens | {password}) == 3
    assert not [secret for secret in tokens | {password} if len(secret) < 32 or secret in done.stdout]
    assert "docker compose run --rm cli status" in done.stdout
    assert [line[:16] for line in done.stdout.partition("Next:\n")[2].splitlines()] == ["  docker compose"] * 3


def test_two_checkouts_have_two_passwords(tmp_path: Path, corpus: Path) -> None:
    passwords = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert run(tmp_path / name, "--corpus", str(corpus)).returncode == 0
        passwords.add((tmp_path / name / "secrets" / "queue-password").read_text(encoding="utf-8"))
    assert len(passwords) == 2


def test_a_second_time_keeps_everything_and_says_so(into: Path, corpus: Path) -> None:
    run(into, CORPUS=str(corpus))
    files = [path for path in into.rglob("*") if path.is_file()]
    before = {path: (path.read_bytes(), path.stat().st_ino) for path in files}
    done = run(into, CORPUS=str(corpus))
    assert done.stdout.count(": kept\n") == len(files) == 6
    assert {path: (path.read_bytes(), path.stat().st_ino) for path in files} == before


def test_another_folder_changes_one_line_and_says_which(into: Path, corpus: Path, tmp_path: Path) -> None:
    run(into, CORPUS=str(corpus))
    environment = into / ".env"
    environment.write_text(environment.read_text("utf-8") + "KNOWLEDGE_WORKERS=5\n", "utf-8")
    other = tmp_path / "other"
    other.mkdir()
    done = run(into, CORPUS=str(other))
    assert f".env: changed: KNOWLEDGE_CORPUS='{corpus}' is now '{other}'" in done.stdout
    lines = environment.read_text("utf-8").splitlines()
    assert "KNOWLEDGE_WORKERS=5" in lines
    assert [line for line in lines if line.startswith("KNOWLEDGE_CORPUS=")] == [f"KNOWLEDGE_CORPUS='{other}'"]
    assert "secrets/queue-password: kept" in done.stdout


def test_a_new_password_is_asked_for_and_told(into: Path, corpus: Path) -> None:
    run(into, CORPUS=str(corpus))
    before = (into / "secrets" / "queue-password").read_text(encoding="utf-8")
    done = run(into, "--new-password", CORPUS=str(corpus))
    assert (into / "secrets" / "queue-password").read_text(encoding="utf-8") != before
    assert "secrets/queue-password: replaced" in done.stdout
    assert "secrets/queue-users: made to fit the password" in done.stdout


def test_new_tokens_are_asked_for_and_the_password_stays(into: Path, corpus: Path) -> None:
    run(into, CORPUS=str(corpus))
    folder = into / "secrets"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = run(into, "--new-tokens", CORPUS=str(corpus))
    changed = {path.name for path in folder.iterdir() if path.read_bytes() != before[path.name]}
    assert changed == {"read-token", "operate-token"}
    assert "secrets/read-token: replaced: docker compose up" in done.stdout


def test_a_deployment_of_before_is_given_its_tokens(into: Path, corpus: Path) -> None:
    run(into, CORPUS=str(corpus))
    (into / "secrets" / "read-token").unlink()
    done = run(into, CORPUS=str(corpus))
    assert "secrets/read-token: written" in done.stdout
    assert "secrets/operate-token: kept" in done.stdout


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("", "which folder shall be indexed? make compose-init CORPUS=FOLDER"),
        ("nowhere/at/all", "there is no folder"),
        ("/", "the whole file system"),
        ("two\nlines", "characters that .env cannot hold"),
    ],
)
def test_what_is_no_folder_is_one_line_and_nothing_is_written(named: str, said: str, into: Path) -> None:
    done = run(into, CORPUS=named)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(into.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_services_are_the_folders_owner(into: Path, corpus: Path) -> None:
    os.chown(corpus, 4321, 8765)
    done = run(into, CORPUS=str(corpus))
    assert "read as 4321:8765" in done.stdout
    assert {"KNOWLEDGE_UID=4321", "KNOWLEDGE_GID=8765"} <= set((into / ".env").read_text("utf-8").splitlines())
    for path in ((into / "secrets"), *(into / "secrets").iterdir()):
        assert (path.stat().st_uid, path.stat().st_gid) == (4321, 8765)


@pytest.mark.skipif(os.geteuid() != 0, reason="the folder must be root's")
@pytest.mark.parametrize(("environ", "is_then"), [({}, "10001:10001"), ({"SUDO_UID": "77", "SUDO_GID": "78"}, "77:78")])
def test_the_services_are_never_root(environ: dict[str, str], is_then: str, into: Path, corpus: Path) -> None:
    done = run(into, CORPUS=str(corpus), **environ)
    assert f"belongs to root, which the services never are: they are {is_then}" in done.stdout


def test_who_is_not_root_and_cannot_read_it_is_told(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = corpus.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert init.identity_for(corpus).uid == owner + 1
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(init.RefusedError, match="sudo make compose-init"):
        init.identity_for(corpus)


def test_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch, corpus: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(f"  {corpus} \n"))
    assert init.corpus_of(init.ask()) == corpus


@pytest.mark.parametrize("name", ["plain", "it's", 'a "b"', "$HOME", "a#b", "back\\slash", "Ünïcode", "{x}: - y"])
def test_any_name_of_a_folder_survives(name: str, into: Path, tmp_path: Path) -> None:
    """In .env, as Compose reads it, and in the configuration, as we do."""
    folder = tmp_path / "texts" / name
    folder.mkdir(parents=True)
    assert run(into, CORPUS=str(folder)).returncode == 0
    path = into / "deploy" / "config" / "knowledge.yaml"
    loaded = read(locate(into, config=path, environ={}), {}, cwd=into, absent_roots="note")
    assert [(str(root.path), root.name) for root in loaded.settings.roots] == [("/corpus", name)]
    (into / "docker-compose.yml").write_text(
        "services: {it: {image: x, environment: {CORPUS: '${KNOWLEDGE_CORPUS}'}}}\n", "utf-8"
    )
    assert resolved(into)["services"]["it"]["environment"]["CORPUS"].replace("$$", "$") == str(folder)


@pytest.fixture
def queue(into: Path, corpus: Path, tmp_path: Path) -> Iterator[Path]:
    """A Valkey with the users that were written, on a socket."""
    assert run(into, CORPUS=str(corpus)).returncode == 0
    users = tmp_path / "users"
    users.write_bytes((into / "secrets" / "queue-users").read_bytes())
    with serving(tmp_path, "--aclfile", str(users)) as socket:
        yield socket


@pytest.mark.redis
def test_the_queue_opens_to_the_password_and_tells_a_health_check_nothing(into: Path, queue: Path) -> None:
    """The one user without a password may ask whether the server is there, and nothing else."""
    password = (into / "secrets" / "queue-password").read_text(encoding="utf-8").strip()
    with Redis(unix_socket_path=str(queue), password=password) as client:
        assert client.set("key", "value")
    with Redis(unix_socket_path=str(queue), password="none") as client, pytest.raises(AuthenticationError):
        client.ping()
    with Redis(unix_socket_path=str(queue)) as client, pytest.raises(AuthenticationError):
        client.ping()
    with Redis(unix_socket_path=str(queue), username="health", password="none") as client:
        assert client.ping()
        for command in ("GET key", "KEYS *", "INFO", "CONFIG GET *", "FLUSHALL", "SHUTDOWN"):
            with pytest.raises(NoPermissionError):
                client.execute_command(*command.split())
