"""The schedules of a configuration: what may be wrong with them (C-08), and their settings.

Imported only where there are some.
"""

from collections.abc import Callable, Iterator, Sequence

from app.config_origins import Problem, Sources, has_control_characters, shown
from app.config_roots import Places
from app.config_schema import ScheduleBlock
from app.config_values import duration_or_zero, duration_problems, variable_name_problems
from app.places import real
from domain.settings import RootSettings, ScheduleSettings
from scheduler.cron import check_cron
from scheduler.windows import parse_window
from scheduler.zones import zone_of

MAX_JITTER_S = 24 * 3600.0
MAX_NAME_CHARS = 100


def schedules_of(
    blocks: Sequence[ScheduleBlock], roots: Sequence[RootSettings], sources: Sources, places: Places
) -> tuple[tuple[ScheduleSettings, ...], list[Problem]]:
    """The schedules, their roots as absolute paths where roots are configured; and what is wrong with them."""
    schedules: list[ScheduleSettings] = []
    problems: list[Problem] = []
    for index, block in enumerate(blocks):
        key = f"schedules[{index}]"
        problems += _problems(block, key)
        if any(block.name == schedule.name for schedule in schedules):
            problems.append(Problem(f"{key}.name", "is the name of another schedule too"))
        chosen: list[str] = []
        for number, written in enumerate(block.roots):
            root_key = f"{key}.roots[{number}]"
            found = _roots_meant(written, roots, places, from_file=sources.is_from_file(root_key))
            problems += _root_problems(written, found, roots, root_key)
            chosen += found[:1]
        schedules.append(_settings(block, tuple(dict.fromkeys(chosen))))
    return tuple(schedules), problems


def _problems(block: ScheduleBlock, key: str) -> Iterator[Problem]:
    """What is wrong with an entry by itself."""
    if not block.name.strip() or len(block.name) > MAX_NAME_CHARS or has_control_characters(block.name):
        yield Problem(f"{key}.name", f"must be a short name, up to {MAX_NAME_CHARS} characters, none a control one")
    checks: list[tuple[str, Callable[[str], object], str]] = [
        ("cron", check_cron, block.cron),
        ("timezone", zone_of, block.timezone),
    ]
    if block.window:
        checks.append(("window", parse_window, block.window))
    for name, check, written in checks:
        try:
            check(written)
        except ValueError as error:
            yield Problem(f"{key}.{name}", str(error))
    yield from duration_problems(block.jitter, f"{key}.jitter", at_most_s=MAX_JITTER_S)
    yield from variable_name_problems(block.heartbeat_url_env, f"{key}.heartbeat_url_env")
    if block.kind in ("verify", "compact"):
        for name in ("roots", "requests_per_minute", "workers"):
            if getattr(block, name):
                yield Problem(f"{key}.{name}", f"means nothing to {block.kind}, which looks at the whole index")


def _roots_meant(written: str, roots: Sequence[RootSettings], places: Places, *, from_file: bool) -> list[str]:
    """The paths of the roots that an entry may mean, by name, by the folder's own name, by path; without configured
    roots the entry itself, a recorded root's name."""
    if not roots:
        return [written]
    named = [str(root.path) for root in roots if root.name == written]
    called = [str(root.path) for root in roots if not root.name and root.path.name == written]
    path = real(places.absolute(written, from_file=from_file))
    placed = [str(root.path) for root in roots if real(root.path) == path]
    return named or placed or called


def _root_problems(written: str, found: list[str], roots: Sequence[RootSettings], key: str) -> Iterator[Problem]:
    if not written.strip() or has_control_characters(written):
        yield Problem(key, "must be the name or the path of a root")
    elif not found:
        names = ", ".join(shown(root.name or root.path.name) for root in roots)
        yield Problem(key, f"{shown(written)} is no root of this configuration; there are: {names}")
    elif len(found) > 1:
        yield Problem(key, f"{shown(written)} is the folder's name of {len(found)} roots", "Write its path instead.")


def _settings(block: ScheduleBlock, roots: tuple[str, ...]) -> ScheduleSettings:
    return ScheduleSettings(
        name=block.name,
        cron=" ".join(block.cron.split()),
        timezone=block.timezone,
        kind=block.kind,
        window=block.window,
        jitter_s=duration_or_zero(block.jitter),
        requests_per_minute=block.requests_per_minute,
        workers=block.workers,
        heartbeat_url_env=block.heartbeat_url_env,
        roots=roots,
    )
