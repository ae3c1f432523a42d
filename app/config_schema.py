"""The shape of `knowledge.yaml`: every key, its type, its default and what it is for.

`docs/configuration.schema.json` is made from these. Durations and sizes stay as they were written; the rules
of app.config_rules read them. Defaults that this version works with come from domain.settings.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field, json

from domain.settings import (
    EmbeddingsSettings,
    McpSettings,
    NotifyEvent,
    NotifySettings,
    QueueSettings,
    RootSettings,
    ScheduleKind,
    ScheduleSettings,
    ServerAuth,
    ServerSettings,
    Settings,
    ToolProfile,
)

_ROOT = RootSettings(path=Path())
_QUEUE = QueueSettings()
_EMBEDDINGS = EmbeddingsSettings()
_NOTIFY = NotifySettings()
_SCHEDULE = ScheduleSettings(name="", cron="")
_MCP = McpSettings()
_SERVER = ServerSettings()
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
    password_file: Annotated[str, _a("A file that holds the password of the server at url, and nothing else.")] = ""
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
    """A run at set times, while a service runs."""

    name: Annotated[str, _a("Unique among the schedules.", min_length=1)]
    cron: Annotated[str, _a("Five fields: minute, hour, day, month, weekday.", min_length=1)]
    timezone: Annotated[str, _a("An IANA name such as Europe/Malta; cron and window are read on its clock.")] = (
        _SCHEDULE.timezone
    )
    kind: Annotated[ScheduleKind, _a("What runs.")] = _SCHEDULE.kind
    window: Annotated[str, _a("Hours in which it may run, such as 01:00-05:00; empty: any.")] = _SCHEDULE.window
    jitter: Annotated[
        Duration, _a("Each run is put off by a random part of this.", extra_json_schema=_DURATION_SCHEMA)
    ] = 0
    roots: Annotated[tuple[str, ...], _a("Names or paths of the roots that it is about; empty: all.")] = _SCHEDULE.roots
    requests_per_minute: Annotated[
        int, _a("To the embeddings server, during its runs; 0: as configured.", ge=0, le=MAX_REQUESTS_PER_MINUTE)
    ] = _SCHEDULE.requests_per_minute
    workers: Annotated[
        int, _a("Workers that have files of its runs in hand at a time; 0: all.", ge=0, le=MAX_WORKERS)
    ] = _SCHEDULE.workers
    heartbeat_url_env: Annotated[
        str, _a("NAME of the variable that holds the address which is called after each run that ended well.")
    ] = _SCHEDULE.heartbeat_url_env


class NotifyBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """Who is told when a state changes; one of url_env and command."""

    url_env: Annotated[str, _a("NAME of the variable that holds the address to which the message is posted.")] = (
        _NOTIFY.url_env
    )
    command: Annotated[
        tuple[str, ...], _a("A program and its arguments, no shell; it gets the message on standard input.")
    ] = _NOTIFY.command
    on: Annotated[tuple[NotifyEvent, ...], _a("What is told.")] = _NOTIFY.on
    insecure_hosts: Annotated[tuple[str, ...], _a("Hosts (exact names) to which http is permitted.")] = (
        _NOTIFY.insecure_hosts
    )
    timeout: Annotated[Duration, _a("Of one delivery.", extra_json_schema=_DURATION_SCHEMA)] = "10s"


class McpBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """The tools that agents see."""

    tools: Annotated[tuple[str, ...], _a("Names of the tools that agents are given; empty: none.")] = ()
    allow_write: Annotated[bool, _a("Whether tools that change something may be listed; there are none yet.")] = False
    profile: Annotated[
        ToolProfile, _a("agent: a short list, the other tools can be called though not listed; full: all are listed.")
    ] = _MCP.profile
    port: Annotated[int, _a("A port with nothing but /mcp; 0: /mcp is on the server's port.", ge=0, le=65535)] = (
        _MCP.port
    )


class ServerBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a service is asked over HTTP, and by whom."""

    host: Annotated[str, _a("The address to listen on.", min_length=1)] = _SERVER.host
    port: Annotated[int, _a("The port to listen on.", ge=1, le=65535)] = _SERVER.port
    health_host: Annotated[str, _a("Where the health and metrics pages of roles listen.", min_length=1)] = (
        _SERVER.health_host
    )
    health_port: Annotated[
        int, _a("The port of those pages, but for `serve`, whose page is at port; 0: none.", ge=0, le=65535)
    ] = _SERVER.health_port
    read_token_env: Annotated[str, _a("NAME of the variable that holds the token for reading.")] = ""
    operate_token_env: Annotated[str, _a("NAME of the variable that holds the token for operating.")] = ""
    read_token_file: Annotated[str, _a("A file that holds the token for reading, and nothing else.")] = ""
    operate_token_file: Annotated[str, _a("A file that holds the token for operating, and nothing else.")] = ""
    allowed_hosts: Annotated[
        tuple[str, ...], _a("Names under which the service is asked, beside those of this machine and `host`.")
    ] = _SERVER.allowed_hosts
    allowed_origins: Annotated[
        tuple[str, ...], _a("Origins other than the service's own that are answered, such as https://portal.example.")
    ] = _SERVER.allowed_origins
    auth: Annotated[ServerAuth, _a("Who says who asks: the caller with a token, or a trusted proxy.")] = _SERVER.auth
    trusted_proxies: Annotated[
        tuple[str, ...], _a("Addresses and networks of proxies whose forwarded headers are believed.")
    ] = _SERVER.trusted_proxies
    proxy_user_header: Annotated[
        str, _a("With auth: proxy, the header in which the proxy says who asks.", min_length=1)
    ] = _SERVER.proxy_user_header
    operators: Annotated[tuple[str, ...], _a("With auth: proxy, the users who may operate.")] = _SERVER.operators
    base_path: Annotated[str, _a("What stands before every path, such as /kb; empty: nothing.")] = _SERVER.base_path


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
    disk_reserve: Annotated[
        Size,
        _a(
            "A service's writer pauses when less than this, and twice the write-ahead log, is free.",
            extra_json_schema=_SIZE_SCHEMA,
        ),
    ] = "64MiB"
    embeddings: Annotated[EmbeddingsBlock | None, _a("Switches the vector tier on.")] = None
    queue: Annotated[QueueBlock, _a("The queue between scheduler and workers.")] = field(default_factory=QueueBlock)
    schedules: Annotated[tuple[ScheduleBlock, ...], _a("Runs at set times.")] = ()
    notify: Annotated[NotifyBlock | None, _a("Who is told when a state changes.")] = None
    mcp: Annotated[McpBlock | None, _a("The tools that agents see.")] = None
    server: Annotated[ServerBlock | None, _a("The HTTP service.")] = None


class HarnessBlock(Struct, frozen=True):
    """Another accepted place of the block."""

    knowledge: Annotated[KnowledgeBlock | None, _a("The block.")] = None


class ConfigurationFile(Struct, frozen=True):
    """A knowledge.yaml; other keys beside the block are none of ours."""

    knowledge: Annotated[KnowledgeBlock | None, _a("The block.")] = None
    harness: Annotated[HarnessBlock | None, _a("Another accepted place of the block.")] = None


LATER_FEATURES: tuple[str, ...] = ()  # blocks that are accepted, without effect in this version


def json_schema() -> str:
    """The file's JSON schema, as docs/configuration.schema.json holds it."""
    schema = json.schema(ConfigurationFile)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "knowledge.yaml",
        **schema,
    }
    return json.format(json.encode(schema), indent=2).decode() + "\n"
