"""Writes what docker-compose.yml needs: .env, secrets/ and deploy/config/knowledge.yaml. Standard library only.

The folder of texts comes from --corpus, the variable CORPUS, or a question on a terminal. What is there already is
kept, and where a line of .env changes that is said.
"""

import argparse
import hashlib
import json
import os
import re
import secrets
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
STRANGER = 10001  # who the services are where the texts belong to root: somebody who owns nothing
NEXT_COMMANDS = (
    "docker compose up -d --build              # builds the image, starts the services",
    "docker compose run --rm cli status        # what is there",
    "docker compose run --rm cli index         # the first index, followed to its end",
)
TOKENS = ("read-token", "operate-token")
ADDRESS = "http://127.0.0.1:8765/ (KNOWLEDGE_PUBLISH)"
YAML = """\
# What the services index. Paths are the container's: KNOWLEDGE_CORPUS of .env lies at /corpus.
# Check it with: docker compose run --rm cli config check
knowledge:
  enabled: true
  paths:
    - path: /corpus
      name: {name}  # first part of the citations
      # exclude: [drafts/]          # gitignore syntax

  # embeddings:                     # search by meaning, too: the local model, with COMPOSE_PROFILES=embeddings in .env
  #   base_url: http://embeddings:8766/v1
  #   model: wordllama-l2-supercat-256
  #   insecure_hosts: [embeddings]  # plain http, inside the services' own network
"""


class RefusedError(Exception):
    """Nothing was written; the text says why and what to do."""


class Identity(NamedTuple):
    """Who the services are, and what is to be said about the choice."""

    uid: int
    gid: int
    remark: str = ""


class Written(NamedTuple):
    """What became of one file."""

    path: Path
    what: str


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="compose_init", description="write what docker-compose.yml needs")
    parser.add_argument("--corpus", metavar="FOLDER", default=os.environ.get("CORPUS", ""))
    parser.add_argument("--into", metavar="FOLDER", type=Path, default=ROOT, help="beside which docker-compose.yml")
    parser.add_argument("--new-password", action="store_true", help="give the queue another password")
    parser.add_argument("--new-tokens", action="store_true", help="give the service other tokens")
    chosen = parser.parse_args(arguments)
    try:
        corpus = corpus_of(chosen.corpus or ask())
        identity = identity_for(corpus)
        written = write_all(
            chosen.into, corpus, identity, new_password=chosen.new_password, new_tokens=chosen.new_tokens
        )
    except RefusedError as refused:
        sys.stderr.write(f"compose-init: {refused}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"compose-init: {error.filename}: {error.strerror}\n")
        return 1
    print(report(chosen.into, corpus, identity, written))
    return 0


def ask() -> str:
    """The answer on a terminal. Raises RefusedError where there is none."""
    if not sys.stdin.isatty():
        raise RefusedError("which folder shall be indexed? make compose-init CORPUS=FOLDER")
    try:
        return input("Folder to index (it is mounted read-only): ").strip()
    except (EOFError, KeyboardInterrupt):
        raise RefusedError("no folder was named; nothing was written") from None


def corpus_of(answer: str) -> Path:
    """The folder, absolute, links resolved: what a link names may move. Raises RefusedError."""
    if not answer:
        raise RefusedError("no folder was named; nothing was written")
    if not answer.isprintable():
        raise RefusedError("the folder's name holds characters that .env cannot hold")
    path = Path(os.path.realpath(Path(answer).expanduser()))
    if not path.is_dir():
        raise RefusedError(f"there is no folder {path}")
    if path == Path(path.anchor):
        raise RefusedError("the whole file system cannot be indexed: name a folder in it")
    return path


def identity_for(corpus: Path) -> Identity:
    """The folder's owner. Who is not root can give files to nobody else, so the services are the caller there.

    Raises RefusedError where the caller is neither root nor somebody who can read the folder.
    """
    status = corpus.stat()
    caller, owner = os.geteuid(), status.st_uid
    if caller == 0 and owner != 0:
        return Identity(owner, status.st_gid)
    if caller == 0:
        uid, gid = (int(os.environ.get(name) or STRANGER) for name in ("SUDO_UID", "SUDO_GID"))
        uid, gid = (uid, gid) if uid else (STRANGER, STRANGER)
        said = f"{corpus} belongs to root, which the services never are: they are {uid}:{gid}"
        return Identity(uid, gid, f"{said}, and must be able to read it")
    if caller == owner:
        return Identity(caller, status.st_gid if status.st_gid in _groups() else os.getegid())
    if not os.access(corpus, os.R_OK | os.X_OK):
        raise RefusedError(
            f"{corpus} belongs to user {owner}, and you cannot read it: sudo make compose-init CORPUS=..."
        )
    gid = status.st_gid if status.st_gid in _groups() else os.getegid()
    return Identity(caller, gid, f"{corpus} belongs to user {owner}; the services are you, {caller}:{gid}")


def _groups() -> set[int]:
    return {os.getegid(), *os.getgroups()}


def write_all(
    into: Path, corpus: Path, identity: Identity, *, new_password: bool = False, new_tokens: bool = False
) -> list[Written]:
    """Raises OSError."""
    values = {
        "KNOWLEDGE_CORPUS": quoted(str(corpus)),
        "KNOWLEDGE_UID": str(identity.uid),
        "KNOWLEDGE_GID": str(identity.gid),
    }
    return [
        write_environment(into / ".env", values),
        *write_secrets(into / "secrets", identity, new_password=new_password),
        *write_tokens(into / "secrets", identity, new_tokens=new_tokens),
        write_configuration(into / "deploy" / "config" / "knowledge.yaml", corpus.name),
    ]


def quoted(value: str) -> str:
    """As Compose reads it back: nothing in single quotes means anything, but the quote itself."""
    return "'" + value.replace("'", "\\'") + "'"


def write_environment(path: Path, values: dict[str, str]) -> Written:
    """Sets these lines and keeps all others."""
    before = path.read_text("utf-8").splitlines() if path.exists() else None
    lines = list(before or ["# Read by docker-compose.yml; .env.example says what else can be set."])
    changed = []
    for name, value in values.items():
        line = f"{name}={value}"
        at = [number for number, old in enumerate(lines) if re.match(rf"\s*(export\s+)?{name}\s*=", old)]
        if not at:
            lines.append(line)
        elif lines[at[-1]] != line:
            changed.append(f"{lines[at[-1]]} is now {value}")
            lines[at[-1]] = line
    if lines != before:
        _replace(path, "\n".join(lines) + "\n", 0o644)
    if before is None:
        return Written(path, "written")
    return Written(path, f"changed: {'; '.join(changed)}" if changed else "kept" if lines == before else "added to")


def write_secrets(folder: Path, identity: Identity, *, new_password: bool = False) -> list[Written]:
    """The queue's password, and the list of its users, which holds the password's digest alone."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    password_path, users_path = folder / "queue-password", folder / "queue-users"
    said = _made(password_path, anew=new_password)
    users = users_text(password_path.read_text("utf-8").rstrip("\r\n"))
    is_current = users_path.exists() and users_path.read_text("utf-8") == users
    users_said = "kept" if is_current else "made to fit the password" if users_path.exists() else "written"
    if not is_current:
        _replace(users_path, users, 0o600)
    _give([folder, password_path, users_path], identity)
    return [Written(password_path, said), Written(users_path, users_said)]


def write_tokens(folder: Path, identity: Identity, *, new_tokens: bool = False) -> list[Written]:
    """What people and programs show to the service: one for reading, one for steering runs, too."""
    paths = [folder / name for name in TOKENS]
    written = [Written(path, _made(path, anew=new_tokens)) for path in paths]
    _give(paths, identity)
    return written


def _made(path: Path, *, anew: bool) -> str:
    """A secret of its own in the file, where there is none or another is wanted; what was done."""
    was_there = path.exists()
    if was_there and not anew:
        return "kept"
    _replace(path, secrets.token_urlsafe(32) + "\n", 0o600)
    return "replaced: docker compose up -d --force-recreate" if was_there else "written"


def _give(paths: list[Path], identity: Identity) -> None:
    """To the services, which alone can read them."""
    for path in paths:
        if path.is_file():
            path.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(path, identity.uid, identity.gid)


def users_text(password: str) -> str:
    """Valkey's list of users: everything for who knows the password, one question for the health check."""
    digest = hashlib.sha256(password.encode()).hexdigest()
    return f"user default on sanitize-payload #{digest} ~* &* +@all\nuser health on nopass resetkeys -@all +ping\n"


def write_configuration(path: Path, name: str) -> Written:
    """Where none is there."""
    if path.exists():
        return Written(path, "kept")
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    _replace(path, YAML.format(name=json.dumps(name, ensure_ascii=False)), 0o644)
    return Written(path, "written")


def _replace(path: Path, text: str, mode: int) -> None:
    """Written beside and renamed, with this mode from the first byte on."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)  # whatever the umask
        file.write(text)
    beside.replace(path)


def report(into: Path, corpus: Path, identity: Identity, written: list[Written]) -> str:
    lines = [f"corpus: {corpus}, read as {identity.uid}:{identity.gid}"]
    if identity.remark:
        lines.append(f"note: {identity.remark}")
    lines += [f"{path.relative_to(into)}: {what}" for path, what in written]
    lines.append(f"sign in with {TOKENS[0]} or, to steer runs, {TOKENS[1]}, both in secrets/, at {ADDRESS}")
    return "\n".join([*lines, "", "Next:", *(f"  {command}" for command in NEXT_COMMANDS)])


if __name__ == "__main__":
    sys.exit(main())
