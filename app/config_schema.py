"""The shape of `knowledge.yaml`: every key, its type, its default and what it is for.

`docs/configuration.schema.json` is made from these. Durations and sizes stay as they were written; the rules
of app.config_rules read them. Defaults that this version works with come from domain.settings.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field, json

from domain.settings import EmbeddingsSettings, QueueSettings, RootSettings, Settings

_ROOT = RootSettings(path=Path())
_QUEUE = QueueSettings()
_EMBEDDINGS = EmbeddingsSettings()
_BASE = Settings(identity="", home=Path(), config_path=None, configured=False)

Duration = str | int | float
Size = str | int | float
MAX_TOP_K = 1000
MAX_FILES_PER_JOB = 10_000
MAX_WORKERS = 256
MAX_BATCH = 64  # texts in a request (S0-28)
MAX_CONCURRENCY = 64
MAX_REQUESTS_PER_MINUTE = 1_000_000
MAX_PREFIX_CHARS = 2000

_DURATION_SCHEMA = {"examples": ["30s", "10m", 30]}
_SIZE_SCHEMA = {"examples": ["512KiB", "1MB", 524288]}


def _a(description: str, **limits: Any) -> Any:
    return Meta(description=description, **limits)


class PathBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """One root: a folder that is indexed in place and never written to."""

    path: Annotated[str, _a("The folder; relative to the configuration file's folder.", min_length=1)]
    name: Annotated[str, _a("First part of the citations; the folder's own name when empty.")] = ""
    role: Annotated[Literal["documents"], _a("What the root holds.")] = _ROOT.role
    description: Annotated[str, _a("One sentence about what lies there.")] = _ROOT.description
    include: Annotated[tuple[str, ...], _a("Patterns in gitignore syntax; empty: everything.")] = _ROOT.include
    exclude: Annotated[tuple[str, ...], _a("Patterns in gitignore syntax that are left out.")] = _ROOT.exclude
    exclude_dirs: Annotated[tuple[str, ...], _a("Names of folders that are left out wherever they lie.")] = (
        _ROOT.exclude_dirs
    )
    extensions: Annotated[tuple[str, ...], _a("Endings of the files that are read.")] = _ROOT.extensions
    watch: Annotated[bool, _a("Whether changes are followed while a service runs.")] = _ROOT.watch
    link: Annotated[str, _a("Template of a hit's URL: {path}, {absolute_path}, {start_line}, {heading_anchor}.")] = (
        _ROOT.link
    )
    held_removals: Annotated[bool, _a("Whether unusually many removals wait for a confirmation.")] = _ROOT.held_removals


class QueueBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """The queue between scheduler and workers."""

    url: Annotated[str, _a("A Redis or Valkey URL; empty: the bundled Valkey, started when needed.")] = _QUEUE.url
    files_per_job: Annotated[int, _a("Files in one job.", ge=1, le=MAX_FILES_PER_JOB)] = _QUEUE.files_per_job
    workers: Annotated[int, _a("Worker processes; 0: chosen by the run.", ge=0, le=MAX_WORKERS)] = _QUEUE.workers


class EmbeddingsBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """The vector tier; its presence switches it on."""

    provider: Annotated[
        Literal["openai", "local"],
        _a("Who makes the vectors: a server that speaks OpenAI's /embeddings, or a model inside this program."),
    ] = _EMBEDDINGS.provider
    base_url: Annotated[str, _a("The server's address up to /embeddings; https unless it is this machine.")] = (
        _EMBEDDINGS.base_url
    )
    model: Annotated[str, _a("The model's name, as the server knows it; empty for the local one.")] = _EMBEDDINGS.model
    api_key_env: Annotated[str, _a("NAME of the environment variable that holds the key, not the key.")] = (
        _EMBEDDINGS.api_key_env
    )
    timeout: Annotated[Duration, _a("Of one request.", extra_json_schema=_DURATION_SCHEMA)] = "30s"
    batch: Annotated[int, _a("Texts in one request.", ge=1, le=MAX_BATCH)] = _EMBEDDINGS.batch
    max_batch_bytes: Annotated[Size, _a("Text in one request.", extra_json_schema=_SIZE_SCHEMA)] = "1MiB"
    concurrency: Annotated[int, _a("Requests at a time, of all workers together.", ge=1, le=MAX_CONCURRENCY)] = (
        _EMBEDDINGS.concurrency
    )
    requests_per_minute: Annotated[int, _a("0: no limit.", ge=0, le=MAX_REQUESTS_PER_MINUTE)] = (
        _EMBEDDINGS.requests_per_minute
    )
    outage_limit: Annotated[
        Duration,
        _a("How long a run waits for a server that is away, before it ends.", extra_json_schema=_DURATION_SCHEMA),
    ] = "10m"
    commit: Annotated[Literal["together", "words_first"], _a("Whether words wait for their vectors.")] = (
        _EMBEDDINGS.commit
    )
    query_prefix: Annotated[str, _a("Put before a query.", max_length=MAX_PREFIX_CHARS)] = _EMBEDDINGS.query_prefix
    document_prefix: Annotated[
        str,
        _a("Put before a document's text; {title} in it becomes the headings above.", max_length=MAX_PREFIX_CHARS),
    ] = _EMBEDDINGS.document_prefix
    insecure_hosts: Annotated[tuple[str, ...], _a("Hosts (exact names) to which http is permitted.")] = (
        _EMBEDDINGS.insecure_hosts
    )
    min_similarity: Annotated[
        float, _a("Cosine below which a passage is not close enough in meaning; -1: any will do.", ge=-1.0, le=1.0)
    ] = _EMBEDDINGS.min_similarity


class ScheduleBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """A run at set times, in the versions that have schedules."""

    name: Annotated[str, _a("Unique among the schedules.", min_length=1)]
    cron: Annotated[str, _a("Five fields: minute, hour, day, month, weekday.", min_length=1)]
    timezone: Annotated[str, _a("An IANA name such as Europe/Malta.")] = "UTC"
    kind: Annotated[str, _a("What runs.", min_length=1)] = "index"
    window: Annotated[str, _a("Hours in which it may run, such as 01:00-05:00; empty: any.")] = ""
    jitter: Annotated[Duration, _a("A random delay up to this.", extra_json_schema=_DURATION_SCHEMA)] = 0


class McpBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """The tools that agents see."""

    tools: Annotated[tuple[str, ...], _a("Names of the tools that agents are given; empty: none.")] = ()
    allow_write: Annotated[bool, _a("Whether tools that change something may be listed; there are none yet.")] = False
    profile: Annotated[str, _a("A named set of tools, in the versions that have several.")] = "agent"
    port: Annotated[int, _a("Of the HTTP service, in the versions that have it.", ge=0, le=65535)] = 0


class ServerBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """The HTTP service, in the versions that have it."""

    host: Annotated[str, _a("The address to listen on.", min_length=1)] = "127.0.0.1"
    port: Annotated[int, _a("The port to listen on.", ge=1, le=65535)] = 8765
    read_token_env: Annotated[str, _a("NAME of the variable that holds the token for reading.")] = ""
    operate_token_env: Annotated[str, _a("NAME of the variable that holds the token for operating.")] = ""
    allowed_hosts: Annotated[tuple[str, ...], _a("Host headers that are answered.")] = ()
    allowed_origins: Annotated[tuple[str, ...], _a("Origins that are answered.")] = ()


class KnowledgeBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """What one base indexes and how it answers."""

    enabled: Annotated[bool, _a("false: commands say that this base is switched off.")] = _BASE.enabled
    identity: Annotated[str, _a("The base's name; the configuration file's stem when empty.")] = ""
    description: Annotated[str, _a("One sentence about what can be found here.")] = _BASE.description
    paths: Annotated[tuple[str | PathBlock, ...], _a("The folders that are indexed.")] = ()
    directory: Annotated[
        str, _a("Where the index lies; knowledge/<identity> beside the configuration file when empty.")
    ] = ""
    top_k: Annotated[int, _a("Hits of a search.", ge=1, le=MAX_TOP_K)] = _BASE.top_k
    max_injected_tokens: Annotated[int, _a("Upper bound of the text handed to an agent.", ge=1)] = (
        _BASE.max_injected_tokens
    )
    max_file_bytes: Annotated[Size, _a("Larger files are skipped and listed.", extra_json_schema=_SIZE_SCHEMA)] = (
        _BASE.max_file_bytes
    )
    substring_index: Annotated[
        Literal["auto", "on", "off"], _a("Index for text written without spaces between words.")
    ] = _BASE.substring_index
    change_detection: Annotated[
        Literal["stat", "hash"], _a("How a changed file is told: by its dates and size, or by its content.")
    ] = _BASE.change_detection
    allow_network_filesystem: Annotated[
        bool, _a("Make the index on a network file system all the same; its locks are not to be relied on there.")
    ] = _BASE.allow_network_filesystem
    embeddings: Annotated[EmbeddingsBlock | None, _a("Switches the vector tier on.")] = None
    queue: Annotated[QueueBlock, _a("The queue between scheduler and workers.")] = field(default_factory=QueueBlock)
    schedules: Annotated[tuple[ScheduleBlock, ...], _a("Runs at set times.")] = ()
    mcp: Annotated[McpBlock | None, _a("The tools that agents see.")] = None
    server: Annotated[ServerBlock | None, _a("The HTTP service.")] = None


class HarnessBlock(Struct, frozen=True):
    """Another accepted place of the block."""

    knowledge: Annotated[KnowledgeBlock | None, _a("The block.")] = None


class ConfigurationFile(Struct, frozen=True):
    """A knowledge.yaml; other keys beside the block are none of ours."""

    knowledge: Annotated[KnowledgeBlock | None, _a("The block.")] = None
    harness: Annotated[HarnessBlock | None, _a("Another accepted place of the block.")] = None


LATER_FEATURES = ("schedules", "server")  # accepted, without effect in this version
LATER_MCP_KEYS = ("profile", "port")  # likewise


def json_schema() -> str:
    """The file's JSON schema, as docs/configuration.schema.json holds it."""
    schema = json.schema(ConfigurationFile)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "knowledge.yaml",
        **schema,
    }
    return json.format(json.encode(schema), indent=2).decode() + "\n"
