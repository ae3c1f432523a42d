"""Where the queue listens. Knows nothing of redis, so that a server can be started before that is imported."""

from msgspec import Struct

from domain.errors import ConfigurationError


class QueueAddress(Struct, frozen=True):
    """Where a Redis or Valkey listens: a socket path, or host and port. Never printed with its password."""

    socket: str = ""
    host: str = ""
    port: int = 6379
    database: int = 0
    username: str | None = None
    password: str | None = None
    tls: bool = False

    def __str__(self) -> str:
        if self.socket:
            return f"unix:{self.socket}"
        return f"{'rediss' if self.tls else 'redis'}://{self.host}:{self.port}/{self.database}"

    def __repr__(self) -> str:
        return f"QueueAddress({self})"


def parse_queue_url(url: str) -> QueueAddress:
    """`redis://`, `rediss://` or `unix://`; user and password are percent-decoded.

    Raises ConfigurationError for anything else; the message never holds the password.
    """
    from urllib.parse import unquote, urlsplit

    hint = "write queue.url as redis://HOST:PORT/0, rediss://HOST:PORT/0 or unix:///PATH"
    try:
        parts = urlsplit(url)
        port = parts.port or 6379
        database = int(parts.path.strip("/") or 0) if parts.scheme != "unix" else 0
    except ValueError:
        raise ConfigurationError("queue.url cannot be read", hint=hint) from None
    if database < 0:
        raise ConfigurationError("queue.url cannot be read", hint=hint)
    user = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    if parts.scheme == "unix" and parts.path:
        return QueueAddress(socket=unquote(parts.path), username=user, password=password)
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise ConfigurationError("queue.url cannot be read", hint=hint)
    return QueueAddress("", parts.hostname, port, database, user, password, parts.scheme == "rediss")
