"""A role as a process: signals, health page, and the role itself beside it."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial

from app.config import Loaded, process_environ
from app.heap import settle_in
from app.roles.role_log import LogFormat, fault_of, hear_libraries, make_log
from app.roles.role_metrics import RoleMetrics
from app.roles.runtime import Runtime
from app.roles.table import ROLES
from app.tracing import process_tracer
from domain.errors import KnowledgeError
from domain.layout import BaseLayout
from scheduler.queue.leases import holder_id
from server.ending_in_time import ended_in_time
from server.ending_signals import ending_signals
from server.health_server import bound_socket, show_health

USUAL_COLLECTIONS = (
    700,
    10,
    10,
)  # Python's own: a short command puts them off, who stays for long keeps little garbage


def serve(
    loaded: Loaded, role: str, *, health: tuple[str, int] | None, log_format: LogFormat, with_input: bool = False
) -> int:
    """Run a role until SIGTERM (exit 0, what is in hand is finished) or Ctrl-C (130).

    `health`: host and port of its health page. `with_input`: it is told to end, too, when standard input closes.
    Raises KnowledgeError for what the role cannot go on with.
    """
    settle_in(process_environ())
    settings = loaded.settings
    if role == "serve" and health is not None:
        from server.service_process import at_place, refuse_unfit

        settings = (loaded := at_place(loaded, *health)).settings
        refuse_unfit(settings)
    listening = _listening(role, *health) if health is not None else None
    log = make_log(role, log_format)
    hear_libraries(log)
    process_tracer()  # what keeps it from tracing stands in the log before the first question
    metrics = RoleMetrics(role)
    runtime = Runtime(settings, BaseLayout(settings.home), role, holder_id(), log, telemetry=metrics)
    return asyncio.run(_run(runtime, _shown_work(loaded, runtime, metrics, listening), with_input=with_input))


def _shown_work(
    loaded: Loaded, runtime: Runtime, metrics: RoleMetrics, listening: socket.socket | None
) -> Callable[[], Awaitable[None]]:
    """The role to its end, while it can be asked."""

    def rendered() -> bytes:
        return metrics.rendered(runtime.status)

    if runtime.role == "serve" and listening is not None:
        from server.service_process import serving

        return partial(serving, loaded, runtime, rendered, listening)
    return partial(_working, runtime, rendered, listening)


async def _working(runtime: Runtime, rendered: Callable[[], bytes], listening: socket.socket | None) -> None:
    pages = None
    if listening is not None:
        pages = asyncio.create_task(show_health(runtime, rendered, listening))
    try:
        await ended_in_time(runtime, partial(ROLES[runtime.role], runtime))
    finally:
        if pages is not None:
            pages.cancel()
            await asyncio.gather(pages, return_exceptions=True)


def _listening(role: str, host: str, port: int) -> socket.socket:
    """Where a role is asked: its health page, or the whole service."""
    if role != "serve":
        return bound_socket(host, port)
    return bound_socket(host, port, what="the service", hint="choose another with server.port, or with --health-port")


async def _run(runtime: Runtime, work: Callable[[], Awaitable[None]], *, with_input: bool) -> int:
    ended_by = _end_by_signals(runtime)
    if with_input:
        _end_with_input(runtime)
    runtime.log.info("starts", home=str(runtime.layout.home))
    try:
        await work()
    except KnowledgeError as error:
        runtime.log.error("ends", code=error.code, message=error.message, hint=error.hint)
        raise
    except Exception as error:
        runtime.log.error("ends", code=KnowledgeError.code, **fault_of(error))
        # without its words, which may be those of a document
        raise KnowledgeError(f"{type(error).__name__} in the {runtime.role}", hint="its log says where") from error
    runtime.log.info("ended")
    return 130 if ended_by[:1] == [signal.SIGINT] else 0  # however often it was pressed


def _end_by_signals(runtime: Runtime) -> list[signal.Signals]:
    """SIGTERM and Ctrl-C tell the role to end; the signal that did is in the list then."""
    ended_by: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        if not ended_by:
            runtime.log.info("told_to_end", signal=number.name)
        ended_by.append(number)
        runtime.stopping.set()

    loop = asyncio.get_running_loop()
    for number in ending_signals():
        loop.add_signal_handler(number, end, number)
    return ended_by


def _end_with_input(runtime: Runtime) -> None:
    """Standard input stays open for as long as the starter lives."""
    loop = asyncio.get_running_loop()

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 4096):  # past the buffer: a thread in it would keep the process from its end
            pass
        with contextlib.suppress(RuntimeError):  # the loop is over
            loop.call_soon_threadsafe(runtime.stopping.set)

    threading.Thread(target=wait, daemon=True).start()
