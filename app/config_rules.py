"""What a well-typed configuration may still have wrong; no text here ever holds a secret or a password."""

import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from app.config_origins import Problem, has_control_characters
from app.config_schema import EmbeddingsBlock, KnowledgeBlock, ScheduleBlock, ServerBlock
from domain.units import parse_duration_s, parse_size_bytes

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN_BEGINNINGS = (
    "sk-",
    "sk_",
    "pk-",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "hf_",
    "gsk_",
    "xox",
    "aiza",
    "eyj",
)
_MIN_SECRET_CHARS = 20
_WINDOW = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]")
_MAX_IDENTITY_BYTES = 100


def block_problems(block: KnowledgeBlock) -> list[Problem]:
    """Everything that is wrong with the block by itself (roots apart)."""
    problems = list(identity_problems(block.identity)) if block.identity else []
    problems += _size_problems(block)
    if block.embeddings is not None:
        problems += _embeddings_problems(block.embeddings)
    if block.server is not None:
        problems += _server_problems(block.server)
    problems += _schedules_problems(block.schedules)
    if has_control_characters(block.queue.url):
        problems.append(Problem("queue.url", "must not hold control characters"))
    return problems


def identity_problems(identity: str) -> Iterator[Problem]:
    """An identity is the name of a folder."""
    unfit = not identity.strip() or identity.startswith(".") or has_control_characters(identity)
    if (
        unfit
        or re.search(r"[/\\:]", identity)
        or len(identity.encode("utf-8", "surrogateescape")) > _MAX_IDENTITY_BYTES
    ):
        text = "must be usable as a folder's name: no / \\ : or control characters, no leading dot, short"
        yield Problem("identity", text, "Set identity: to a short name.")


def looks_like_a_secret(name: str) -> bool:
    """Whether a value that should be the NAME of a variable is rather what such a variable holds."""
    if not _VARIABLE_NAME.fullmatch(name) or name.lower().startswith(_TOKEN_BEGINNINGS):
        return True
    digits = sum(char.isdigit() for char in name)
    mixed = name.upper() != name and name.lower() != name and digits > 1
    return len(name) >= _MIN_SECRET_CHARS and (mixed or digits * 4 > len(name))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(url: str) -> str:
    """The host in lower case; "" where there is none or the address is malformed."""
    address = _split(url)
    return (address.hostname or "") if address is not None else ""


def _split(url: str) -> SplitResult | None:
    try:
        address = urlsplit(url)
        _ = address.port  # raises where it is no number
    except ValueError:
        return None
    return address


def _size_problems(block: KnowledgeBlock) -> Iterator[Problem]:
    try:
        if parse_size_bytes(block.max_file_bytes) < 1:
            yield Problem("max_file_bytes", "must be at least 1 byte")
    except ValueError as error:
        yield Problem("max_file_bytes", str(error))


def _duration_problems(value: str | int | float, key: str, *, zero: bool) -> Iterator[Problem]:
    try:
        if parse_duration_s(value) == 0 and not zero:
            yield Problem(key, "must be more than nothing")
    except ValueError as error:
        yield Problem(key, str(error))


def _embeddings_problems(block: EmbeddingsBlock) -> Iterator[Problem]:
    yield from _duration_problems(block.timeout, "embeddings.timeout", zero=False)
    yield from variable_name_problems(block.api_key_env, "embeddings.api_key_env")
    if block.base_url:
        yield from _base_url_problems(block)


def _base_url_problems(block: EmbeddingsBlock) -> Iterator[Problem]:
    """R17: https, unless it is this machine or a host for which http is permitted by its exact name."""
    key = "embeddings.base_url"
    address = _split(block.base_url)
    if address is None or address.scheme not in {"http", "https"} or not address.hostname:
        yield Problem(key, "must be an http or https address", "Such as http://127.0.0.1:1234/v1")
    elif address.username is not None or address.password is not None:
        yield Problem(key, "must not hold a user name or password", "Put the key in a variable; see api_key_env.")
    elif address.scheme == "http" and not (is_loopback(address.hostname) or address.hostname in block.insecure_hosts):
        text = "must be https, for it is not this machine"
        yield Problem(key, text, "In a private network: name the host in embeddings.insecure_hosts.")


def variable_name_problems(name: str, key: str) -> Iterator[Problem]:
    """The value is never echoed: it may be the secret itself."""
    if name and looks_like_a_secret(name):
        text = "must be the NAME of an environment variable; it looks like a secret (not shown here)"
        hint = "Put the secret in a variable and its name here; replace a secret that was written into a file."
        yield Problem(key, text, hint)


def _server_problems(block: ServerBlock) -> Iterator[Problem]:
    yield from variable_name_problems(block.read_token_env, "server.read_token_env")
    yield from variable_name_problems(block.operate_token_env, "server.operate_token_env")


def _schedules_problems(schedules: tuple[ScheduleBlock, ...]) -> Iterator[Problem]:
    names: set[str] = set()
    for index, schedule in enumerate(schedules):
        key = f"schedules[{index}]"
        if schedule.name in names:
            yield Problem(f"{key}.name", "is the name of another schedule too")
        names.add(schedule.name)
        if len(schedule.cron.split()) != 5:
            yield Problem(f"{key}.cron", 'must have five fields such as "0 3 * * *"')
        if schedule.window and not _WINDOW.fullmatch(schedule.window):
            yield Problem(f"{key}.window", "must be two times such as 01:00-05:00")
        yield from _duration_problems(schedule.jitter, f"{key}.jitter", zero=True)
