"""The queue's address with the password that `queue.password_file` names; nothing made here is ever shown."""

from pathlib import Path

from app.config_origins import shown
from app.secret_files import secret_bytes
from domain.errors import ConfigurationError
from domain.settings import QueueSettings

MAX_PASSWORD_BYTES = 4096
_HINT = "write the password into it, alone and in one line; in the containers `make compose-init` does it"


def queue_url(queue: QueueSettings) -> str:
    """`queue.url` for the queue's client, with the password of the file put into it; "" for the bundled server.

    Raises ConfigurationError where the file holds no password. An address that cannot be read is returned as it is:
    `scheduler.queue.address` says so.
    """
    if queue.password_file is None or not queue.url:
        return queue.url
    password = read_password(queue.password_file)
    from urllib.parse import quote

    scheme, separator, rest = queue.url.partition("://")
    authority, slash, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    return f"{scheme}{separator}{user.rstrip(':')}:{quote(password, safe='')}@{host}{slash}{path}"


def read_password(path: Path) -> str:
    """The file's one line, without the line break. Raises ConfigurationError: absent, unreadable, empty, or more."""
    where = f"queue.password_file: {shown(str(path))}"
    raw = secret_bytes("queue.password_file", path, most_bytes=MAX_PASSWORD_BYTES, hint=_HINT)
    try:
        password = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{where} holds bytes that are no text", hint=_HINT) from None
    if not password.strip():
        raise ConfigurationError(f"{where} is empty", hint=_HINT)
    if len(raw) > MAX_PASSWORD_BYTES or not password.isprintable():
        raise ConfigurationError(f"{where} holds more than a password", hint=_HINT)
    return password
