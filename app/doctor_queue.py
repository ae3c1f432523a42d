"""The doctor's look at the queue: the bundled server, or the one that `queue.url` names."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from app.masking import mask_url
from app.queue_password import queue_url
from domain.checks import CheckResult, failed, not_run, passed
from domain.errors import KnowledgeError
from domain.settings import QueueSettings

if TYPE_CHECKING:
    from scheduler.queue.probe import QueueFacts

Probe = Callable[[str], "QueueFacts"]
"""Asks the queue at a URL. Raises QueueError, ConfigurationError."""

CLOCK_LIMIT_S = 2.0  # a worker whose clock is behind the queue's does not start jobs that seem to lie ahead


def probe_url(url: str) -> "QueueFacts":
    """Raises QueueError, ConfigurationError."""
    from scheduler.queue.address import parse_queue_url
    from scheduler.queue.probe import probe

    return probe(parse_queue_url(url))


def check_queue(queue: QueueSettings, probe: Probe) -> Iterator[CheckResult]:
    """Without an address: whether a server program is there to be started; else whether that server is fit for it."""
    if not queue.url:
        yield _check_bundled()
        return
    try:
        facts = probe(queue_url(queue))
    except KnowledgeError as error:
        yield failed("queue", error.message, error.hint)
        names = ("queue_append_only", "queue_memory", "queue_clock")
        yield from (not_run(name, "the queue does not answer") for name in names)
        return
    yield passed("queue", f"{facts.server} at {mask_url(queue.url)}")
    yield _check_append_only(facts)
    yield _check_memory(facts)
    yield _check_clock(facts)


def _check_bundled() -> CheckResult:
    from scheduler.queue.embedded import server_program

    try:
        return passed("queue", f"started when there is work: {server_program()}")
    except KnowledgeError as error:
        return failed("queue", error.message, error.hint)


def _check_append_only(facts: "QueueFacts") -> CheckResult:
    """Not fatal: the queue is never the record, and what it loses the next run does again."""
    if facts.has_append_only_file:
        return passed("queue_append_only", "on: work survives a restart of the server")
    return failed(
        "queue_append_only",
        "off: a restart of the server drops the work that waits, and the next run does it again",
        "`redis-cli config set appendonly yes` there, and `appendonly yes` in its configuration",
        is_fatal=False,
    )


def _check_memory(facts: "QueueFacts") -> CheckResult:
    if facts.memory_policy == "noeviction":
        return passed("queue_memory", "maxmemory-policy noeviction")
    return failed(
        "queue_memory",
        f"maxmemory-policy is {facts.memory_policy or 'unknown'}: waiting work is dropped without an error",
        "`redis-cli config set maxmemory-policy noeviction` there, and the same line in its configuration",
    )


def _check_clock(facts: "QueueFacts") -> CheckResult:
    if abs(facts.clock_ahead_s) <= CLOCK_LIMIT_S:
        return passed("queue_clock", f"{abs(facts.clock_ahead_s):.1f} s apart")
    where = "ahead of" if facts.clock_ahead_s > 0 else "behind"
    return failed(
        "queue_clock",
        f"the queue's clock is {abs(facts.clock_ahead_s):.0f} s {where} this machine's: jobs start late or not at all",
        "set both clocks by NTP (`timedatectl set-ntp true`)",
        is_fatal=False,
    )
