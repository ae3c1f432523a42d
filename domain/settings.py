"""The settings of a base as values: units in names, nothing read here (app.config fills them)."""

from pathlib import Path
from typing import Literal

from msgspec import Struct, field

EXTENSIONS = (".md", ".markdown", ".txt", ".text")
MAX_FILE_BYTES = 512 * 1024


class RootSettings(Struct, frozen=True):
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


class QueueSettings(Struct, frozen=True):
    url: str = ""  # "": the bundled Valkey, started when there is work to queue
    files_per_job: int = 64
    workers: int = 0  # worker processes; 0 = chosen by the run
    password_file: Path | None = None  # absolute; read when the queue is asked, the password is in no value of ours


class EmbeddingsSettings(Struct, frozen=True):
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


ScheduleKind = Literal["index", "reindex", "verify", "compact"]


class ScheduleSettings(Struct, frozen=True):
    """A run at set times."""

    name: str
    cron: str  # five fields, as scheduler.cron reads them
    timezone: str = "UTC"  # IANA: whose clock the expression and the window are read on
    kind: ScheduleKind = "index"
    window: str = ""  # "HH:MM-HH:MM": the run pauses outside of it; "": any time
    jitter_s: float = 0.0  # each tick is put off by a part of it
    requests_per_minute: int = 0  # to the embeddings server; 0: as configured for all runs
    workers: int = 0  # processes; 0: as configured for all runs
    heartbeat_url_env: str = ""  # NAME of the variable with the address that is called after a run that ended well
    roots: tuple[str, ...] = ()  # absolute paths of configured roots, names of recorded ones; () = all


NotifyEvent = Literal["failed", "partial", "removals_held", "quarantined", "overdue", "recovered"]
NOTIFY_EVENTS: tuple[NotifyEvent, ...] = ("failed", "partial", "removals_held", "quarantined", "overdue", "recovered")


class NotifySettings(Struct, frozen=True):
    """Who is told when a state changes: one of an address and a program."""

    url_env: str = ""  # NAME of the variable with the address that gets a POST
    command: tuple[str, ...] = ()  # program and arguments, started without a shell; the message on standard input
    on: tuple[NotifyEvent, ...] = NOTIFY_EVENTS
    insecure_hosts: tuple[str, ...] = ()  # exact names of hosts to which http is permitted
    timeout_s: float = 10.0  # of one delivery


ToolProfile = Literal["agent", "full"]
"""agent: a short list for models, the rest callable though not listed; full: every exposed tool is listed."""
ServerAuth = Literal["token", "proxy"]
"""token: callers show a token, where one is configured; proxy: a trusted proxy says who asks."""


class McpSettings(Struct, frozen=True):
    """What agents are given (R9)."""

    tools: tuple[str, ...] = ()  # names; () = none
    allow_write: bool = False
    profile: ToolProfile = "agent"
    port: int = 0  # of a listener with nothing but /mcp; 0: /mcp is on the server's port


class ServerSettings(Struct, frozen=True):
    """Where roles of a service are asked, and by whom."""

    host: str = "127.0.0.1"
    port: int = 8765
    health_host: str = "127.0.0.1"
    health_port: int = 8766  # of the roles other than `serve`, whose page is at `port`; 0: none
    read_token_env: str = ""  # NAMES of variables, or files: the tokens themselves are in no value of ours
    operate_token_env: str = ""
    read_token_file: Path | None = None
    operate_token_file: Path | None = None
    allowed_hosts: tuple[str, ...] = ()  # beside the loopback names and `host`
    allowed_origins: tuple[str, ...] = ()
    auth: ServerAuth = "token"
    trusted_proxies: tuple[str, ...] = ()  # addresses and networks whose forwarded headers are believed
    proxy_user_header: str = "X-Forwarded-User"  # with auth: proxy, who asks
    operators: tuple[str, ...] = ()  # users of that proxy who may operate
    base_path: str = ""  # "" or "/prefix": what stands before every path of ours


class Settings(Struct, frozen=True):
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
    server: ServerSettings = field(default_factory=ServerSettings)
    embeddings: EmbeddingsSettings | None = None  # None: no vector tier
    schedules: tuple[ScheduleSettings, ...] = ()
    notify: NotifySettings | None = None  # None: nobody is told
    disk_reserve_bytes: int = 64 * 1024 * 1024  # kept free, beside twice the write-ahead log, by a service's writer
    allow_network_filesystem: bool = False  # True: an index may be made where its locks are not to be relied on
    disabled_because: str = ""  # in words, where enabled is False


def host_to_ask(host: str) -> str:
    """Where a server that listens on `host` is asked on its own machine: everywhere is nowhere in particular."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
