"""The `notify` block: what may be wrong with it, and its settings. Imported only where there is such a block."""

from collections.abc import Iterator

from app.config_origins import Problem, has_control_characters
from app.config_schema import NotifyBlock
from app.config_values import duration_or_zero, duration_problems, variable_name_problems
from domain.settings import NotifySettings

MAX_TIMEOUT_S = 120.0


def notify_problems(block: NotifyBlock) -> Iterator[Problem]:
    """Everything that is wrong with the block by itself; the address is looked at when it is used."""
    if bool(block.url_env) == bool(block.command):
        which = "has both url_env and command" if block.command else "has neither url_env nor command"
        yield Problem("notify", which, "Give the NAME of a variable in url_env, or a list of words in command.")
    yield from variable_name_problems(block.url_env, "notify.url_env")
    if block.command and (not block.command[0].strip() or any("\0" in word for word in block.command)):
        yield Problem("notify.command", "must be a list of words, the first of them a program")
    if not block.on:
        yield Problem("notify.on", "is empty: nothing would be told", "Leave it out to be told of everything.")
    for index, host in enumerate(block.insecure_hosts):
        if not host or set(host) & set("/*@?#\\ ") or has_control_characters(host):
            text = "must be the exact name of a host, without scheme, path or *"
            yield Problem(f"notify.insecure_hosts[{index}]", text)
    yield from duration_problems(block.timeout, "notify.timeout", zero=False, at_most_s=MAX_TIMEOUT_S)


def notify_settings(block: NotifyBlock) -> NotifySettings:
    """The block as settings; what is wrong in it is told elsewhere."""
    return NotifySettings(
        url_env=block.url_env,
        command=block.command,
        on=tuple(dict.fromkeys(block.on)),
        insecure_hosts=block.insecure_hosts,
        timeout_s=duration_or_zero(block.timeout),
    )
