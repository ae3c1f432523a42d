"""The real command under faults: each in a process of its own, with its workers and its queue, at a chosen call.

A place is laid out afresh for each point from a template that the command itself has made; what a command leaves is
judged by opening the store, by the audit and by what state.db has on record.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from domain.layout import BaseLayout
from store import driver
from store.pending_restore import settle_restore
from tests.support.audit import audit
from tests.support.bases import settings_of
from tests.support.command_line import Ended
from tests.support.fault.command_places import (
    Action,
    Place,
    lay_out,
    no_database,
    nothing,
    of_old_format,
    run_command,
    run_with,
    without_index,
)
from tests.support.fault.injector import CommandFault
from tests.support.fault.points import DEADLY, KILLED, REFUSED, WAYS, Tally, chosen, open_to_others
from tests.support.fault.run_scenarios import unit_vector_of
from tests.support.fault.scenarios import States, states_of


class Ground(NamedTuple):
    """An action's ground: the template, the place, and the states between which each document must be."""

    place: Place
    template: Path
    action: Action
    whole: Sequence[States]  # before, then after
    calls: int
    injector: CommandFault


def ground_of(place: Place, template: Path, action: Action, injector: CommandFault) -> Ground:
    """Let the action go through once, and count."""
    lay_out(place, template, action if action.prepare is without_index else action._replace(prepare=nothing))
    before = states_of(settings_of(place.home))
    lay_out(place, template, action)
    injector = injector._replace(part=str(place.where / action.part))
    done, _ = run_with(place, action.words, injector.environment())
    if done.status:
        raise AssertionError(f"{action.words}: {done.status} without any fault\n{done.err}")
    after = states_of(settings_of(place.home))
    return Ground(place, template, action, (before, after), injector.seen().calls, injector)


def try_points(ground: Ground, name: str, way: str, sample: str, tally: Tally) -> None:
    tally.calls += ground.calls
    for at in chosen(ground.calls, sample, f"command:{name}:{way}"):
        problems = _try_at(ground, way, at, tally)
        tally.points += 1
        tally.problems += [f"{name}:{way}:{at}: {problem}" for problem in problems]


def _try_at(ground: Ground, way: str, at: int, tally: Tally) -> list[str]:
    place, action = ground.place, ground.action
    lay_out(place, ground.template, action)
    fault = ground.injector._replace(at=at, mode=WAYS[way].mode, keeps_failing=WAYS[way].keeps_failing)
    done, pid = run_with(place, action.words, fault.environment())
    seen = fault.seen()
    tally.statuses[str(done.status)] = tally.statuses.get(str(done.status), 0) + 1
    problems = _ending(done, way, is_own=seen.hit_pid == pid)
    problems += [f"{path} is open to others" for path in open_to_others(place.home)]
    problems += _left(ground, done.status)
    again = run_command(place, action.words)
    if again.status not in action.again or "Traceback" in again.err:
        return [*problems, f"then it ended with {again.status}: {again.err[-400:]}"]
    holding = [path.name for path in place.home.iterdir() if action.gone_text and _holds(path, action.gone_text)]
    problems += [f"then {name} holds what was purged" for name in holding]
    return problems + [f"then {problem}" for problem in _left(ground, 0)]


def _holds(path: Path, text: bytes) -> bool:
    return path.is_file() and text in path.read_bytes()


def _ending(done: Ended, way: str, *, is_own: bool) -> list[str]:
    """A command that was hit itself is dead; a worker of it is another one's turn; the disk's refusal is 14 in words,
    or 0 where only a tidying-up was refused."""
    if way in DEADLY:
        due: tuple[int, ...] = (KILLED,) if is_own else (0,)
    else:
        due = (0, REFUSED)
    problems = [f"ended with {done.status}: {done.err[-400:]}"] * (done.status not in due)
    problems += [f"told a traceback: {done.err[-400:]}"] * ("Traceback" in done.err + done.out)
    problems += ["says nothing"] * (done.status == REFUSED and not done.err.strip())
    return problems


def left(place: Place, whole: Sequence[States], *, is_done: bool) -> list[str]:
    """Every document is the old one or the new one; all are new where the command says that it is done.

    Looked at as every command looks that opens the base: the last step of a restore that was cut short is done first.
    """
    settle_restore(BaseLayout(place.home))
    found = states_of(settings_of(place.home))
    if is_done:
        problems = ["it is not what the command should have made"] * (found != whole[1])
    else:
        problems = _between(found or {}, [state or {} for state in whole])
    if found is not None:
        problems += audit(place.database, vector_of=unit_vector_of)
        problems += _recorded(place)
    return problems


def _left(ground: Ground, status: int) -> list[str]:
    place = ground.place
    if ground.action.prepare in (no_database, of_old_format) and not _is_readable(place):
        return [] if status != 0 else ["there is no index to read"]
    return left(place, ground.whole, is_done=status == 0)


def _between(found: Mapping[str, str], whole: Sequence[Mapping[str, str]]) -> list[str]:
    keys = {key for state in whole for key in state} | found.keys()
    return [
        f"{key} is neither the old nor the new one"
        for key in sorted(keys)
        if found.get(key) not in [state.get(key) for state in whole]
    ]


def _is_readable(place: Place) -> bool:
    """An index of today's format, and no other file in its place."""
    with closing(driver.connect(str(place.database), uri=False, timeout_s=5)) as connection:
        try:
            connection.execute("SELECT title FROM documents LIMIT 1").fetchall()
        except driver.Error:
            return False
    return True


def _recorded(place: Place) -> list[str]:
    """What state.db has on record of the newest run as stored is stored."""
    if not BaseLayout(place.home).state.exists():
        return []
    with closing(driver.connect(str(BaseLayout(place.home).state), uri=False, timeout_s=5)) as state:
        done = state.execute(
            "SELECT keys FROM run_changes WHERE change IN ('added', 'updated') AND run = (SELECT max(id) FROM runs)"
        ).fetchall()
        kind = state.execute("SELECT kind FROM runs ORDER BY id DESC LIMIT 1").fetchone()
    if kind is None or kind[0] not in ("index", "reindex"):
        return []
    with closing(driver.connect(str(place.database), uri=False, timeout_s=5)) as connection:
        stored = {key for (key,) in connection.execute("SELECT key FROM documents")}
    told = {key for (keys,) in done for key in bytes(keys).decode().split("\0")}
    return [f"{key} was recorded as stored, and is not there" for key in sorted(told - stored)]
