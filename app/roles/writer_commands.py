"""The operator's commands, as the writer of a service does them for whoever has asked."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import assert_never

from app.compacting import compact_base
from app.heap import give_back_free_memory
from app.last_room import with_last_room
from app.maintenance import rebuild_base
from app.removal_command import remove
from app.roles.calls import Compact, Rebuild, Remove, Verify
from app.verifying import verify_base
from app.wiring import WritableBase
from domain.commands import CompactCommand, RebuildCommand, RemoveCommand
from domain.settings import Settings
from store import driver

LOOKED_EVERY_STEPS = 20_000  # of SQLite's virtual machine: a thousandth of a second
LOOK_EVERY_S = 0.05

Wanted = Callable[[], bool]
Command = Compact | Verify | Rebuild | Remove


def command_effect(call: Command, base: WritableBase, settings: Settings, is_wanted: Wanted) -> Callable[[], object]:
    """What the command does, to be called on the connection's thread. It is broken off when it is wanted no more:
    what it has committed stays, and StorageError is raised."""

    def effect() -> object:
        connection = base.writer.connection
        try:
            with broken_off(connection, is_wanted):
                return _effect(call, base, settings, is_wanted)()
        finally:
            give_back_free_memory()  # a check of everything needs more than a day of writing

    return effect


def _effect(call: Command, base: WritableBase, settings: Settings, is_wanted: Wanted) -> Callable[[], object]:
    match call:
        case Compact(command_id):
            return partial(compact_base, base, CompactCommand(command_id))
        case Verify(deep):
            return partial(verify_base, base, deep, lambda connection: _watch(connection, is_wanted))
        case Rebuild(command_id):
            return partial(rebuild_base, base, RebuildCommand(command_id))
        case Remove(command_id, prefixes, root):
            command = RemoveCommand(command_id, prefixes, root)
            removing = partial(remove, base, settings, command, is_beside_run=True)
            return partial(with_last_room, base.layout, removing)
    assert_never(call)


@contextmanager
def broken_off(connection: driver.Connection, is_wanted: Wanted) -> Iterator[None]:
    """Statements of the block are interrupted once what they do is wanted no more."""
    _watch(connection, is_wanted)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def _watch(connection: driver.Connection, is_wanted: Wanted) -> None:
    looked_s = time.monotonic()
    is_over = False

    def look() -> int:
        nonlocal looked_s, is_over
        if not is_over and time.monotonic() - looked_s >= LOOK_EVERY_S:
            looked_s = time.monotonic()
            is_over = not is_wanted()
        return int(is_over)

    connection.set_progress_handler(look, LOOKED_EVERY_STEPS)
