"""The operator's commands while a service has the base: its writer does them, also while a run is paused or the queue
is away. What takes longer than anybody waits for goes on by itself."""

import uuid
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from app.last_room import with_last_room
from app.maintenance import RebuildReport
from app.removal_command import RemovedTarget, RemoveReport, command_for
from app.removal_targets import RemovalTarget, targets_of
from app.roles.calls import Rebuild, Remove, answer_within, place_call
from app.wiring import readable_base
from domain.layout import BaseLayout
from domain.settings import Settings
from store import files

WAITED_FOR_S = 5.0


def rebuild_by_service(settings: Settings) -> RebuildReport | None:
    """None: it was asked for and goes on. Raises what the writer raised."""
    calls = files.make_calls(BaseLayout(settings.home))
    return answer_within(calls, place_call(calls, Rebuild(uuid.uuid4().hex)), RebuildReport, WAITED_FOR_S)


def remove_by_service(
    settings: Settings, cwd: Path, paths: Sequence[str], root: str | None = None
) -> RemoveReport | None:
    """As `remove_paths` does; what the names mean is looked up here. None: it was asked for and goes on.

    Raises what `remove_paths` raises.
    """
    with readable_base(settings) as base:
        targets = targets_of(base.layout, base.state, cwd, paths)
    command = command_for(uuid.uuid4().hex, targets, root)
    calls = files.make_calls(BaseLayout(settings.home))
    call = Remove(command.id, command.prefixes, command.root)
    call_id = with_last_room(BaseLayout(settings.home), lambda: place_call(calls, call, command.id))
    report = answer_within(calls, call_id, RemoveReport, WAITED_FOR_S)
    return None if report is None else replace(report, targets=_as_named(targets, report.targets))


def _as_named(asked: Sequence[RemovalTarget], done: Sequence[RemovedTarget]) -> tuple[RemovedTarget, ...]:
    """What became of each name, in the words that were given; the writer knows keys only."""
    removed = iter(done)
    return tuple(
        RemovedTarget(target.argument, target.prefix, next(removed).documents, target.is_still_there)
        if target.prefix
        else RemovedTarget(target.argument, "", 0, target.is_still_there)
        for target in asked
    )
