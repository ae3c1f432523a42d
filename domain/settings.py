"""The settings of a base as values: units in names, nothing read here (app.config fills them)."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

EXTENSIONS = (".md", ".markdown", ".txt", ".text")
MAX_FILE_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class RootSettings:
    """One root: a folder that is indexed in place and never written to."""

    path: Path  # absolute
    name: str = ""  # "": the folder's own name; made unique and fixed in state.db
    role: Literal["documents"] = "documents"
    description: str = ""
    include: tuple[str, ...] = ()  # gitignore syntax, relative to the root; () = everything
    exclude: tuple[str, ...] = ()
    exclude_dirs: tuple[str, ...] = ("memory",)
    extensions: tuple[str, ...] = EXTENSIONS  # lower case, with the dot
    watch: bool = False
    link: str = ""  # URL template: {path} {absolute_path} {start_line} {heading_anchor}
    held_removals: bool = True


@dataclass(frozen=True, slots=True)
class QueueSettings:
    url: str = ""  # "": the bundled Valkey, started when there is work to queue
    files_per_job: int = 64
    workers: int = 0  # worker processes; 0 = chosen by the run


@dataclass(frozen=True, slots=True)
class EmbeddingsSettings:
    """The vector tier; there is none without this value (S1-10)."""

    provider: Literal["openai", "local"] = "openai"
    base_url: str = ""
    model: str = ""
    api_key_env: str = ""  # NAME of the variable; the key itself is in no value of ours
    timeout_s: float = 30.0  # of one request, from its first byte to its last
    batch: int = 64  # texts in one request
    max_batch_bytes: int = 1024 * 1024  # UTF-8 of one request's texts
    concurrency: int = 4  # requests at a time, of all workers together
    requests_per_minute: int = 0  # 0: no limit
    outage_limit_s: float = 600.0  # how long a run waits for a server that is away (R18)
    commit: Literal["together", "words_first"] = "together"  # R31
    query_prefix: str = ""
    document_prefix: str = ""
    insecure_hosts: tuple[str, ...] = ()
    min_similarity: float = -1.0  # cosine; candidates of the vector lane below it are dropped and counted


@dataclass(frozen=True, slots=True)
class McpSettings:
    """What agents are given (R9)."""

    tools: tuple[str, ...] = ()  # names; () = none
    allow_write: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What one command works with: which base, where it lies, what it indexes."""

    identity: str
    home: Path  # absolute: the base's home directory
    config_path: Path | None  # the file it came from, if any
    configured: bool  # a configuration file was read (False: defaults)
    enabled: bool = True
    description: str = ""
    roots: tuple[RootSettings, ...] = ()
    top_k: int = 5
    max_injected_tokens: int = 6000
    max_file_bytes: int = MAX_FILE_BYTES
    substring_index: Literal["auto", "on", "off"] = "auto"
    change_detection: Literal["stat", "hash"] = "stat"
    queue: QueueSettings = field(default_factory=QueueSettings)
    mcp: McpSettings = field(default_factory=McpSettings)
    embeddings: EmbeddingsSettings | None = None  # None: no vector tier
    allow_network_filesystem: bool = False  # True: an index may be made where its locks are not to be relied on
    disabled_because: str = ""  # in words, where enabled is False
