"""Checks beside each other: results in order; nothing outlives what ends them, as Ctrl-C amid a long statement."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from domain.checks import CheckResult, passed
from store import driver
from store.integrity_threads import Part, run_beside

Endless = Callable[[driver.Connection, threading.Event], Part]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def connections() -> Iterator[list[driver.Connection]]:
    with ExitStack() as stack:
        yield [stack.enter_context(closing(driver.connect(":memory:", uri=False, timeout_s=0))) for _ in range(2)]


@contextmanager
def ctrl_c_raises() -> Iterator[None]:
    """Also where the tests themselves were started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def part(connection: driver.Connection, *names: str) -> Part:
    return Part(connection, lambda: [passed(name) for name in names])


def long_statement(connection: driver.Connection, begins: threading.Event) -> Part:
    def run() -> list[CheckResult]:
        def begun() -> None:
            begins.set()

        connection.create_function("begun", 0, begun)
        connection.execute(f"SELECT begun(), ({ENDLESS})").fetchone()
        return []

    return Part(connection, run)


def many_statements(connection: driver.Connection, begins: threading.Event) -> Part:
    """Never ends by itself; most of the time no statement runs."""

    def run() -> list[CheckResult]:
        while True:
            connection.execute("SELECT 1").fetchone()
            begins.set()

    return Part(connection, run)


def test_results_stand_in_the_order_of_the_parts(connections: list[driver.Connection]) -> None:
    first, second = connections
    results = run_beside([part(first, "a", "b"), part(second, "c")])
    assert [[result.name for result in part_results] for part_results in results] == [["a", "b"], ["c"]]


@pytest.mark.parametrize("endless", [long_statement, many_statements])
def test_ctrl_c_ends_every_part(connections: list[driver.Connection], endless: Endless) -> None:
    begins = [threading.Event(), threading.Event()]
    parts = [endless(connection, event) for connection, event in zip(connections, begins, strict=True)]

    def press_when_both_run() -> None:
        for event in begins:
            event.wait()
        press_ctrl_c()

    with ctrl_c_raises():
        presser = threading.Thread(target=press_when_both_run)
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            run_beside(parts)
        presser.join()
    for connection in connections:  # nothing else uses them, so that closing is safe
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("begun", range(3))
def test_ctrl_c_while_the_parts_are_being_started(
    connections: list[driver.Connection], begun: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is being started at that moment is at work already, or never will be."""
    begins = [threading.Event(), threading.Event()]
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def start_and_break(thread: threading.Thread) -> None:
        if len(started) < begun:
            started.append(thread)
            start(thread)
            begins[len(started) - 1].wait()
        if len(started) == begun:
            raise KeyboardInterrupt

    parts = [long_statement(connection, event) for connection, event in zip(connections, begins, strict=True)]
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start_and_break)
        with pytest.raises(KeyboardInterrupt):
            run_beside(parts)
    for thread in started:
        thread.join()
    assert [event.is_set() for event in begins] == [number < begun for number in range(2)]


@pytest.mark.parametrize("place", [0, 1])
def test_a_part_that_cannot_go_on_ends_the_other_with_its_own_error(
    connections: list[driver.Connection], place: int
) -> None:
    begins = threading.Event()

    def fail() -> list[CheckResult]:
        begins.wait()
        raise LookupError("no page")

    parts = [long_statement(connections[1 - place], begins)]
    parts.insert(place, Part(connections[place], fail))
    with pytest.raises(LookupError, match="no page"):
        run_beside(parts)


def test_whoever_interrupts_a_connection_ends_the_checks(connections: list[driver.Connection]) -> None:
    begins = threading.Event()

    def interrupt() -> None:
        begins.wait()
        connections[0].interrupt()

    presser = threading.Thread(target=interrupt)
    presser.start()
    with pytest.raises(driver.OperationalError, match="interrupted"):
        run_beside([long_statement(connections[0], begins), part(connections[1], "a")])
    presser.join()
