"""What the verbs of `knowledge config` find out and do; the command line prints it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from app.config import Loaded, read
from app.config_origins import FromDefault, FromPlace, Origin, Sources, shown
from app.config_schema import EmbeddingsBlock, KnowledgeBlock, ScheduleBlock
from app.config_trust import is_trusted
from app.discovery import CONFIG_NAME, Located
from app.masking import mask_url
from app.places import is_folder
from domain.errors import ConfigurationError, RefusedError, StorageError
from domain.settings import EmbeddingsSettings

Plain = str | int | float | bool | list[str] | None
_ADDRESSES = frozenset({"queue.url", "embeddings.base_url"})


class EffectiveValue(Struct, frozen=True):
    """One key as it is in effect, fit to be shown: secrets are masked."""

    key: str
    value: Plain
    origin: Origin


class Check(Struct, frozen=True):
    """A configuration without errors, and what is worth a look."""

    loaded: Loaded
    notes: tuple[str, ...]
    trusted: bool  # True too where no trust is needed


def init(path: Path) -> Path:
    """Write a commented configuration to the file, or into the folder; returns it. Never overwrites."""
    target = path / CONFIG_NAME if is_folder(path) else path
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise RefusedError(
            f"{shown(str(target))} is there already and is not overwritten.",
            hint="Name another file: knowledge config init OTHER.yaml",
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"Cannot write {shown(str(target))}: {reason}.") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(INITIAL_TEXT)
    return target


def check(located: Located, environ: Mapping[str, str], *, cwd: Path) -> Check:
    """Read everything, obey nothing. Raises ConfigurationError with all that is wrong."""
    loaded = read(located, environ, cwd=cwd)
    path = loaded.settings.config_path
    trusted = not loaded.needs_trust or (path is not None and is_trusted(path, loaded.digest, environ))
    notes = [*loaded.notes, *([loaded.later_note()] if loaded.later_features else [])]
    if loaded.settings.embeddings is not None:
        notes.append(embeddings_note(loaded.settings.embeddings))
    if not loaded.settings.enabled:
        notes.append(f"switched off: {loaded.settings.disabled_because}")
    if not trusted:
        notes.append(f"not trusted yet, and it {'; '.join(loaded.needs_trust)}: knowledge config trust")
    return Check(loaded, tuple(notes), trusted)


def embeddings_note(settings: EmbeddingsSettings) -> str:
    """What is sent where, so that nobody is surprised by it."""
    model = shown(settings.model)
    if settings.provider == "local":
        return f"searched by meaning too: model {model}, inside this program; no text leaves this machine"
    key = f", with the key in the variable {settings.api_key_env}" if settings.api_key_env else ", without a key"
    return f"searched by meaning too: every text is sent to {mask_url(shown(settings.base_url))} (model {model}{key})"


def trusted_path(located: Located) -> Path:
    """The configuration that `config trust` means. Raises ConfigurationError where there is none."""
    if located.config_path is None:
        raise ConfigurationError(
            "There is no configuration file here or above.", hint="Name one: knowledge config trust PATH"
        )
    return located.config_path


def effective_values(loaded: Loaded, environ: Mapping[str, str]) -> tuple[EffectiveValue, ...]:
    """Every key with its value and its origin, in the order of the schema; optional blocks when present."""
    return tuple(_values(loaded, loaded.block or KnowledgeBlock(), environ))


def _values(loaded: Loaded, block: KnowledgeBlock, environ: Mapping[str, str]) -> Iterator[EffectiveValue]:
    settings, sources = loaded.settings, _sources(loaded)
    derived: dict[str, Plain] = {
        "enabled": settings.enabled,
        "identity": settings.identity,
        "directory": str(settings.home),
        "max_file_bytes": settings.max_file_bytes,
    }
    for name in KnowledgeBlock.__struct_fields__:
        value = getattr(block, name)
        if name == "paths":
            yield from _roots(loaded, block)
        elif name in derived:
            yield EffectiveValue(name, derived[name], _derived_origin(name, loaded))
        elif name == "schedules":
            yield EffectiveValue(name, [_schedule_words(schedule, environ) for schedule in value], sources.origin(name))
        elif isinstance(value, EmbeddingsBlock) and settings.embeddings is not None:
            named = msgspec.structs.replace(value, model=settings.embeddings.model)  # the local one has a name, too
            yield from _nested(name, named, sources, environ)
        elif isinstance(value, msgspec.Struct):
            yield from _nested(name, value, sources, environ)
        elif value is not None:
            yield EffectiveValue(name, _plain(value), sources.origin(name))


def _sources(loaded: Loaded) -> Sources:
    return loaded.sources or Sources()


def _derived_origin(name: str, loaded: Loaded) -> Origin:
    origin = _sources(loaded).origin(name)
    if isinstance(origin, FromDefault) and name in {"identity", "directory"}:
        return FromPlace(f"default of the {loaded.located.words()}")
    return origin


def _roots(loaded: Loaded, block: KnowledgeBlock) -> Iterator[EffectiveValue]:
    """A root's absolute path, and what else was written for it."""
    sources = _sources(loaded)
    if not block.paths:
        yield EffectiveValue("paths", [], sources.origin("paths"))
    for index, (entry, root) in enumerate(zip(block.paths, loaded.settings.roots, strict=True)):
        key = f"paths[{index}]"
        yield EffectiveValue(key, str(root.path), sources.origin(key))
        if isinstance(entry, str):
            continue
        for name, value in msgspec.structs.asdict(entry).items():
            origin = sources.origin(f"{key}.{name}")
            if name != "path" and not isinstance(origin, FromDefault):
                yield EffectiveValue(f"{key}.{name}", _plain(value), origin)


def _schedule_words(block: ScheduleBlock, environ: Mapping[str, str]) -> str:
    """`nightly: index at 0 3 * * * (Europe/Malta), window 01:00-05:00`, and what else differs from the defaults."""
    told = {
        "window": block.window,
        "jitter": block.jitter,
        "roots": ", ".join(block.roots),
        "requests_per_minute": block.requests_per_minute,
        "workers": block.workers,
        "heartbeat_url_env": _variable_words(block.heartbeat_url_env, environ),
    }
    more = "".join(f", {key} {value}" for key, value in told.items() if value)
    return f"{block.name}: {block.kind} at {' '.join(block.cron.split())} ({block.timezone}){more}"


def _variable_words(variable: str, environ: Mapping[str, str]) -> str:
    """A name: what looks like a secret was refused (app.config_values)."""
    return variable and f"{variable} ({'set' if environ.get(variable) else 'not set'})"


def _nested(name: str, block: msgspec.Struct, sources: Sources, environ: Mapping[str, str]) -> Iterator[EffectiveValue]:
    for inner, value in msgspec.structs.asdict(block).items():
        key = f"{name}.{inner}"
        plain = _plain(value)
        if inner.endswith("_env") and value:
            plain = _variable_words(str(value), environ)
        elif key in _ADDRESSES:
            plain = mask_url(str(value))
        yield EffectiveValue(key, plain, sources.origin(key))


def _plain(value: Any) -> Plain:
    return list(value) if isinstance(value, tuple) else value


INITIAL_TEXT = """\
# What `knowledge` indexes here. Relative paths start at this file's folder.
# Check it with: knowledge config check       What is in effect: knowledge config show
# Every key is also a variable: KNOWLEDGE_TOP_K=7, KNOWLEDGE_QUEUE__URL=...
knowledge:
  enabled: true

  # The folders that are indexed; they are only ever read.
  paths:
    - .
    # - path: ../handbook          # or with more to say:
    #   name: handbook             # first part of its citations; default: the folder's name
    #   description: How we work
    #   include: ["*.md"]          # gitignore syntax; default: everything
    #   exclude: [drafts/]
    #   extensions: [.md, .markdown, .txt, .text]
    #   link: https://example.org/{path}#{heading_anchor}

  # identity: knowledge            # the base's name; default: this file's name without .yaml
  # description: ""                # one sentence about what can be found here
  # directory: ""                  # where the index lies; default: knowledge/<identity> beside this file

  # top_k: 5                       # hits of a search
  # max_file_bytes: 512KiB         # larger files are skipped and listed
  # substring_index: auto          # auto | on | off: for text written without spaces between words
  # change_detection: stat         # stat | hash: tell a changed file by dates and size, or by its content
  # allow_network_filesystem: false   # true: the index may lie on NFS, SMB and the like

  # embeddings:                    # search by meaning, too; the files' texts are sent to this server
  #   provider: openai             # a server with /embeddings; or local: a model inside this program
  #   base_url: http://127.0.0.1:1234/v1
  #   model: text-embedding-embeddinggemma-300m
  #   query_prefix: "task: search result | query: "     # what the model's card says; doctor knows some
  #   document_prefix: "title: {title} | text: "
  #   api_key_env: ""              # the NAME of the variable that holds the key

  # mcp:                           # what agents are given: see knowledge mcp
  #   tools: [knowledge_search, knowledge_enumerate, knowledge_read]

  # server:                        # who may ask over HTTP: see knowledge serve
  #   host: 127.0.0.1              # any other address needs a token
  #   port: 8765
  #   read_token_env: ""           # the NAMES of the variables that hold the tokens; none: this machine alone
  #   operate_token_env: ""
  #   allowed_hosts: []            # names under which it is asked, beside localhost

  # queue:
  #   url: ""                      # a Redis or Valkey; default: the bundled one, started when needed
  #   password_file: ""            # a file with its password, and nothing else in it
  #   files_per_job: 64

  # schedules:                     # runs at set times, while a service runs: see knowledge schedules
  #   - name: nightly
  #     cron: "0 3 * * *"          # minute, hour, day, month, weekday
  #     timezone: Europe/Malta     # default: UTC
  #     kind: index                # index | reindex | verify | compact
  #     window: 01:00-05:00        # pauses outside of it; default: any time
  #     jitter: 5m                 # each run is put off by a random part of this
"""
