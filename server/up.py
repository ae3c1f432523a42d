"""`knowledge up`: every role as a process of its own on this machine, and the queue where none is configured.

A role that ends by itself is started again, after a little and then after longer; one that ends because of what only
its operator can mend ends all. Should this process be killed, the roles find their standard input closed, and end.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from msgspec import Struct, field

from app.config import Loaded
from app.roles.queue_place import forget_queue, note_queue
from app.roles.role_log import LogFormat, RoleLog, make_log
from app.roles.runtime import DRAIN_S
from domain.errors import ConfigurationError, FormatError, IntegrityError, LockedError, UsageError
from domain.layout import BaseLayout
from scheduler.queue.embedded import EmbeddedValkey
from server.ending_signals import ending_signals
from store import files
from store.lock import WriteLock

LOOK_EVERY_S = 0.1
AGAIN_AFTER_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_AFTER_S = 60.0  # a role that has run for so long is started again at once
# ended with these statuses, a role would end the same way again
HOPELESS = {UsageError.exit_status, ConfigurationError.exit_status, FormatError.exit_status, IntegrityError.exit_status}


class Child(Struct):
    """One role's process, and when it may be started again."""

    role: str
    command: list[str]
    process: "subprocess.Popen[bytes] | None" = None
    began_s: float = 0.0
    failures: int = 0
    next_s: float = field(default=0.0)

    def start(self, now_s: float) -> None:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, start_new_session=True)
        self.began_s = now_s

    def ended(self, now_s: float) -> int | None:
        """The status of a process that has just ended; it is to be started again later. None: nothing is new."""
        if self.process is None or (status := self.process.poll()) is None:
            return None
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None
        self.failures = 0 if now_s - self.began_s > STEADY_AFTER_S else self.failures + 1
        self.next_s = now_s + AGAIN_AFTER_S[min(self.failures, len(AGAIN_AFTER_S) - 1)]
        return status


def up(loaded: Loaded, *, workers: int | None, health_port: int | None, log_format: LogFormat) -> int:
    """Until SIGTERM (0) or Ctrl-C (130); else the status of the role that cannot go on.

    Raises LockedError where the service of this base is up already, QueueError without a queue.
    """
    settings = loaded.settings
    layout = BaseLayout(settings.home)
    log = make_log("up", log_format)
    files.make_home(layout, allow_network_filesystem=settings.allow_network_filesystem)
    _refuse_second(layout)
    with _queue(layout, is_own=not settings.queue.url):
        count = workers or settings.queue.workers or max(1, (os.cpu_count() or 2) - 1)
        serve_port = settings.server.port if health_port is None else health_port
        roles = [("writer", 0), ("scheduler", 0), ("serve", serve_port), *[("worker", 0)] * count]
        children = [Child(role, _command(loaded, role, port, log_format)) for role, port in roles]
        log.info("up", workers=count, home=str(layout.home), health_port=serve_port)
        try:
            return _supervised(children, log)
        finally:
            _end(children)
            log.info("down")


def _refuse_second(layout: BaseLayout) -> None:
    """Raises LockedError where a scheduler has this base."""
    try:
        with WriteLock(layout.scheduler_lock, purpose="knowledge up"):
            return
    except LockedError as error:
        raise LockedError(
            "the service of this index is up already", hint="stop it first, or leave it running"
        ) from error


@contextmanager
def _queue(layout: BaseLayout, *, is_own: bool) -> Iterator[None]:
    if not is_own:
        yield
        return
    server = EmbeddedValkey()
    address = server.start()
    try:
        note_queue(layout, address.socket)
        yield
    finally:
        forget_queue(layout)
        server.stop()


def _command(loaded: Loaded, role: str, port: int, log_format: LogFormat) -> list[str]:
    config = loaded.located.config_path
    named = ["--config", str(config)] if config is not None else []
    told = ["--health-port", str(port), "--log-format", log_format, "--with-input"]
    return [sys.executable, "-P", "-m", "cli.main", role, *named, *told]


def _supervised(children: list[Child], log: RoleLog) -> int:
    """Keep every role alive until a signal; the exit status."""
    ended_by: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        ended_by.append(number)

    before = {number: signal.signal(number, end) for number in ending_signals()}
    try:
        while not ended_by:
            now_s = time.monotonic()
            for child in children:
                status = child.ended(now_s)
                if status is not None:
                    log.warning("role_ended", of=child.role, status=status)
                    if status in HOPELESS:
                        return status
                if child.process is None and now_s >= child.next_s:
                    child.start(now_s)
            time.sleep(LOOK_EVERY_S)
        return 130 if ended_by[0] == signal.SIGINT else 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(children: list[Child]) -> None:
    """Told to end all at once, each has as long as it needs to drain, and no longer."""
    alive = [child.process for child in children if child.process is not None]
    for process in alive:
        process.terminate()
    latest_s = time.monotonic() + DRAIN_S + 2
    for process in alive:
        try:
            process.wait(max(0.0, latest_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()
