"""Checks that run beside each other, each over a connection of its own."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from domain.checks import CheckResult
from store import driver

if TYPE_CHECKING:
    from concurrent.futures import Future

BREAK_OFF_EVERY_S = 0.02
LOOK_UP_EVERY_S = 0.1  # a signal that comes just before a wait begins does not end it


class Part(NamedTuple):
    """Checks that one thread makes, and the connection that nothing else uses meanwhile."""

    connection: driver.Connection
    run: Callable[[], list[CheckResult]]


def run_beside(parts: Sequence[Part]) -> list[list[CheckResult]]:
    """The results of each part, in the order of the parts; at the end, no connection is in use any more.

    The caller only waits, so that Ctrl-C reaches it whatever statement is running, for minutes perhaps: FTS5 compares
    a whole table with the text in one. Raises what the first part raised that could not go on; the others are then
    broken off.
    """
    from concurrent.futures import FIRST_EXCEPTION, Future, wait
    from threading import Thread

    # no pool: Ctrl-C in the midst of its submit leaves a thread at work that the pool does not know
    futures: list[Future[list[CheckResult]]] = [Future() for _ in parts]
    threads = [Thread(target=_run, args=pair) for pair in zip(parts, futures, strict=True)]
    try:
        for thread in threads:
            thread.start()
        is_waiting = True
        while is_waiting:
            done, waiting = wait(futures, timeout=LOOK_UP_EVERY_S, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            is_waiting = bool(waiting)
    except BaseException:
        _break_off(parts, futures)
        raise
    for thread in threads:
        thread.join()
    return [future.result() for future in futures]


def _run(part: Part, future: "Future[list[CheckResult]]") -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        results = part.run()
    except BaseException as error:  # noqa: BLE001 - it is raised where the results are waited for
        future.set_exception(error)
    else:
        future.set_result(results)


def _break_off(parts: Sequence[Part], futures: Sequence["Future[list[CheckResult]]"]) -> None:
    """Let none begin, and interrupt those at work until all are over: an interrupt that comes between two statements
    leaves no trace in SQLite."""
    while True:
        try:
            for part, future in zip(parts, futures, strict=True):
                if not future.cancel():
                    part.connection.interrupt()
            if all(future.done() for future in futures):
                return
            time.sleep(BREAK_OFF_EVERY_S)
        except KeyboardInterrupt:
            continue  # a second one cannot make it quicker
