"""The one place that reads the environment and configuration files.

`locate` (app.discovery) says which base a command means, `load` what it works with. Without a file and
without KNOWLEDGE_ variables neither YAML nor msgspec is imported: a search in a fresh process must be quick.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from app.config_loaded import AbsentRoots, Loaded
from app.discovery import CONFIG_VARIABLE, Located, locate
from domain.errors import ConfigurationError, DisabledError
from domain.settings import EmbeddingsSettings, Settings

__all__ = [
    "AbsentRoots",
    "Loaded",
    "Located",
    "embeddings_key",
    "load",
    "load_with_sources",
    "locate",
    "process_environ",
    "read",
    "require_enabled",
    "secret",
]

Ask = Callable[[str], bool]


def process_environ() -> Mapping[str, str]:
    """The environment of this process; everything else is handed a mapping."""
    return os.environ


def secret(name: str) -> str | None:
    """What a variable that a configuration names holds; None: it is not set, or empty. The one reader of secrets."""
    return os.environ.get(name) or None


def embeddings_key(settings: EmbeddingsSettings) -> str | None:
    """The key that is sent to the embeddings server; None where none is configured. Never part of a message.

    Raises ConfigurationError where the configuration names a variable and it holds no key.
    """
    if not settings.api_key_env:
        return None
    key = (secret(settings.api_key_env) or "").strip()  # a key read from a file often ends in a line break
    if not key:
        raise ConfigurationError(
            f"embeddings.api_key_env: the variable {settings.api_key_env} is not set",
            hint=f"set it: export {settings.api_key_env}=...; words alone are searched with --mode lexical",
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError(
            f"embeddings.api_key_env: the variable {settings.api_key_env} holds characters that no key has",
            hint="set it anew, to the key alone, in one line",
        )
    return key


def read(located: Located, environ: Mapping[str, str], *, cwd: Path, absent_roots: AbsentRoots = "refuse") -> Loaded:
    """Read and check, without asking for trust: for verbs that only show. Raises ConfigurationError.

    absent_roots: whether a root that is not there is refused or a note, for commands that answer from what
    was indexed before.
    """
    has_variables = any(name.startswith("KNOWLEDGE_") and name != CONFIG_VARIABLE for name in environ)
    if located.config_path is None and not has_variables:
        identity = located.home.name  # a store that was found, or the default place
        return Loaded(located, Settings(identity, located.home, config_path=None, configured=False))
    from app.config_assembly import assemble

    return assemble(located, environ, cwd=cwd, absent=absent_roots)


def load(located: Located, environ: Mapping[str, str], *, cwd: Path, ask: Ask | None = None) -> Settings:
    """As `load_with_sources`, for commands that need the settings alone."""
    return load_with_sources(located, environ, cwd=cwd, ask=ask).settings


def load_with_sources(
    located: Located,
    environ: Mapping[str, str],
    *,
    cwd: Path,
    ask: Ask | None = None,
    absent_roots: AbsentRoots = "refuse",
) -> Loaded:
    """As `read`, and obeyed only when trusted; `ask` puts a question on a terminal, None: there is none.

    Raises UntrustedConfigurationError for a found file that asks for too much. A base that is switched off
    is returned as it is, for nothing of it is obeyed; see `require_enabled`.
    """
    loaded = read(located, environ, cwd=cwd, absent_roots=absent_roots)
    config_path = loaded.settings.config_path
    if loaded.needs_trust and loaded.settings.enabled and config_path is not None:
        from app.config_trust import require_trust

        require_trust(config_path, loaded.digest, loaded.needs_trust, environ, ask)
    return loaded


def require_enabled(settings: Settings) -> None:
    """Raises DisabledError for a file without a block or with `enabled: false`, and says how to enable."""
    if settings.enabled:
        return
    where = str(settings.config_path) if settings.config_path is not None else "the environment"
    raise DisabledError(
        f"The knowledge base of {where} is switched off: {settings.disabled_because or 'enabled is false'}.",
        hint="Write `enabled: true` and `paths:` below `knowledge:` in that file.",
    )
