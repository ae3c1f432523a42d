"""`knowledge watch` on one machine: events are drained in a thread, passes run where Ctrl-C and SIGTERM arrive."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, NoReturn

from app.watching import Tell, WatchOptions, watch_roots, watched_roots
from app.wiring import readable_base
from domain.errors import InterruptedRunError, KnowledgeError, NotBuiltError
from domain.settings import Settings
from scheduler.watch import WatchPass
from scheduler.watched_folders import WatchedRoot
from store.state_port import RootRecord


class _Due(NamedTuple):
    """A pass, and who waits for its end."""

    pass_: WatchPass
    ended: "asyncio.Future[None]"


def run_watch(
    settings: Settings,
    paths: Sequence[Path],
    options: WatchOptions,
    run_pass: Callable[[WatchPass], object],
    tell: Tell,
) -> NoReturn:
    """Follow the paths, or every root, until KeyboardInterrupt or InterruptedRunError, which are raised.

    `run_pass` is called in the calling thread, `tell` in another one. Raises UsageError for paths that cannot be
    watched, and what a pass raises that does not pass by itself (app.watching).
    """
    roots = watched_roots(settings, _recorded(settings), paths, has_initial_pass=options.has_initial_pass)
    drained = _Drained(roots, options, tell)
    drained.start()
    try:
        while True:
            due = drained.next()
            try:
                run_pass(due.pass_)
            except InterruptedRunError:
                raise
            except KnowledgeError as error:
                drained.end(due, error)
            else:
                drained.end(due, None)
    finally:
        drained.stop()


def _recorded(settings: Settings) -> Sequence[RootRecord]:
    try:
        with readable_base(settings) as base:
            return base.state.roots()
    except NotBuiltError:
        return ()


class _Drained:
    """The thread that drains events; a pass that is due comes out of `next`."""

    def __init__(self, roots: Sequence[WatchedRoot], options: WatchOptions, tell: Tell) -> None:
        self._roots = roots
        self._options = options
        self._tell = tell
        self._due: SimpleQueue[_Due | BaseException] = SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._watch())
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def next(self) -> _Due:
        """Wait for the next pass; raises what has ended the watch."""
        due = self._due.get()
        if isinstance(due, BaseException):
            raise due
        return due

    def end(self, due: _Due, error: KnowledgeError | None) -> None:
        if error is None:
            self._loop.call_soon_threadsafe(due.ended.set_result, None)
        else:
            self._loop.call_soon_threadsafe(due.ended.set_exception, error)

    def stop(self) -> None:
        with suppress(RuntimeError):  # it has ended, and its loop is closed
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the passes run
            self._due.put(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _watch(self) -> None:
        await watch_roots(self._roots, self._index, self._tell, self._options)

    async def _index(self, pass_: WatchPass) -> None:
        ended: asyncio.Future[None] = self._loop.create_future()
        self._due.put(_Due(pass_, ended))
        await ended
