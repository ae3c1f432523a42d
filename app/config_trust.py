"""A configuration that was found, not named, is trusted once before it may send texts or keys anywhere.

What is remembered is the file's absolute path and the digest of its content: a change is asked for again.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from app.config_document import read_bytes
from app.config_origins import Sources, shown
from app.config_schema import EmbeddingsBlock, KnowledgeBlock, NotifyBlock
from app.places import real
from domain.errors import ConfigurationError, StorageError, UntrustedConfigurationError
from domain.settings import RootSettings

Ask = Callable[[str], bool]
_MAX_STORE_BYTES = 16 * 1024 * 1024


def trust(config_path: Path, environ: Mapping[str, str]) -> Path:
    """Trust the file as it is now; returns the real path that is remembered."""
    remember(config_path, hashlib.sha256(read_bytes(config_path)).hexdigest(), environ)
    return real(config_path)


def reasons(block: KnowledgeBlock, roots: Sequence[RootSettings], sources: Sources) -> tuple[str, ...]:
    """What the file itself (not a variable) asks for that needs trust, in words."""
    return tuple(_reasons(block, roots, sources))


def require_trust(
    config_path: Path, digest: str, because: Sequence[str], environ: Mapping[str, str], ask: Ask | None
) -> None:
    """Raises UntrustedConfigurationError unless trusted before or, on a terminal, now."""
    if not because or is_trusted(config_path, digest, environ):
        return
    what = f"The configuration {shown(str(config_path))} was found, not named, and {'; '.join(because)}."
    if ask is not None and ask(f"{what} Trust it?"):
        remember(config_path, digest, environ)
        return
    import shlex

    raise UntrustedConfigurationError(
        f"{what} It is not obeyed before you trust it.",
        hint=f"Look at it, then: knowledge config trust {shown(shlex.quote(str(config_path)))} "
        f"(or name it for this command with --config).",
    )


def is_trusted(config_path: Path, digest: str, environ: Mapping[str, str]) -> bool:
    path = _store_path(environ)
    return path is not None and _remembered(path).get(str(real(config_path))) == digest


def remember(config_path: Path, digest: str, environ: Mapping[str, str]) -> None:
    """Written beside and renamed, readable by the owner alone."""
    import json  # only here and where trust is needed: a search in a fresh process must be quick

    path = _store_path(environ)
    if path is None:
        raise ConfigurationError("There is no home directory to remember trust in.", hint="Set XDG_STATE_HOME.")
    trusted = {**_remembered(path), str(real(config_path)): digest}
    try:
        _write(path, json.dumps(trusted, indent=2, sort_keys=True))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"Cannot remember trust in {path}: {reason}.") from error


def _reasons(block: KnowledgeBlock, roots: Sequence[RootSettings], sources: Sources) -> Iterator[str]:
    if block.embeddings is not None:
        yield from _embeddings_reasons(block.embeddings, sources)
    if block.queue.url and sources.is_from_file("queue.url"):
        yield "sends work over a queue of its own (queue.url)"
    if block.queue.password_file and sources.is_from_file("queue.password_file"):
        yield f"sends what {shown(block.queue.password_file)} holds to the queue (queue.password_file)"
    for index, schedule in enumerate(block.schedules):
        if schedule.heartbeat_url_env and sources.is_from_file(f"schedules[{index}].heartbeat_url_env"):
            variable = shown(schedule.heartbeat_url_env)
            yield f"reads the variable {variable} (schedules[{index}].heartbeat_url_env)"
    if block.notify is not None:
        yield from _notify_reasons(block.notify, sources)
    if block.server is not None:
        from app.config_server import server_trust_reasons

        yield from server_trust_reasons(block.server, sources)
    if sources.config_path is not None:
        yield from _places_outside(real(sources.config_path.parent), block.directory, roots, sources)


def _notify_reasons(block: NotifyBlock, sources: Sources) -> Iterator[str]:
    if block.command and sources.is_from_file("notify.command"):
        yield f"runs the program {shown(block.command[0])} (notify.command)"
    if block.url_env and sources.is_from_file("notify.url_env"):
        yield f"reads the variable {shown(block.url_env)} (notify.url_env)"


def _embeddings_reasons(block: EmbeddingsBlock, sources: Sources) -> Iterator[str]:
    """Texts, or a key, for a host that only the file names; on this machine others may listen too."""
    if block.base_url and sources.is_from_file("embeddings.base_url"):
        from embedding.addresses import is_loopback, parse_base_url

        address = parse_base_url(block.base_url)  # checked before (app.config_embeddings)
        if not is_loopback(address.host):
            yield f"sends texts to {address.shown_host} (embeddings.base_url)"
        elif block.api_key_env and not sources.is_from_file("embeddings.api_key_env"):
            yield f"sends the key in {block.api_key_env} to {address.shown_host} (embeddings.base_url)"
    if block.api_key_env and sources.is_from_file("embeddings.api_key_env"):
        yield f"reads the variable {shown(block.api_key_env)} (embeddings.api_key_env)"
    if block.insecure_hosts and sources.is_from_file("embeddings.insecure_hosts"):
        yield "permits unencrypted connections (embeddings.insecure_hosts)"


def _places_outside(folder: Path, directory: str, roots: Sequence[RootSettings], sources: Sources) -> Iterator[str]:
    """What the file reads or writes outside its own folder."""
    home = real(folder / directory)
    if sources.is_from_file("directory") and not home.is_relative_to(folder):
        yield f"keeps its index in {shown(str(home))}, outside its own folder (directory)"
    for index, root in enumerate(roots):
        if sources.is_from_file(f"paths[{index}]") and not real(root.path).is_relative_to(folder):
            yield f"reads {shown(str(root.path))}, outside its own folder (paths[{index}])"


def _store_path(environ: Mapping[str, str]) -> Path | None:
    """As the XDG base directory specification says: a relative path there counts as unset."""
    state = environ.get("XDG_STATE_HOME", "")
    if state and Path(state).is_absolute():
        return Path(state) / "knowledge" / "trusted.json"
    home = environ.get("HOME") or environ.get("USERPROFILE") or ""
    return Path(home) / ".local" / "state" / "knowledge" / "trusted.json" if Path(home).is_absolute() else None


def _remembered(path: Path) -> dict[str, str]:
    """Nothing when the file is damaged or when somebody else could have written it."""
    import json

    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IWOTH):
                return {}
            content = json.loads(file.read(_MAX_STORE_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {str(key): digest for key, digest in content.items() if isinstance(digest, str)}


def _write(path: Path, text: str) -> None:
    import tempfile

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, written = tempfile.mkstemp(prefix=".trusted-", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(written).replace(path)
    except BaseException:
        Path(written).unlink(missing_ok=True)
        raise
