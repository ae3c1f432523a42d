"""Following a run of the service until it has ended: one moving line on a terminal, a line now and then elsewhere."""

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from app.beside_service import is_service_up
from app.config import process_environ
from app.present import Json, index_line, json_text
from app.present_runs import (
    Pace,
    average_pace,
    detached_text,
    ended_run_text,
    follow_line,
    held_json,
    pace,
    run_json,
    submitted_text,
)
from app.runs import ShownRun, as_it_is, error_of_run, exit_status_of, recorded_runs, shown_run
from app.submitting import follow
from app.tiers import tier_now
from cli import terminal
from cli.chosen_base import opened, tell_notes
from cli.index_verb import terminated_like_interrupted
from domain.errors import InterruptedRunError
from domain.layout import BaseLayout
from store.port import Visibility

if TYPE_CHECKING:
    from app.config import Loaded
    from app.run_request import RunRequest
    from domain.settings import Settings
    from store.run_port import RunRecord

RATE_OVER_S = 10.0
PLAIN_LINE_EVERY_S = 10.0
_CLEAR_LINE = "\r\x1b[2K"


class Teller:
    """Tells how a run gets on: `look` is given it again and again."""

    def __init__(self, layout: BaseLayout, *, is_quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._layout = layout
        self._is_quiet = is_quiet
        self._is_live = terminal.may_redraw(process_environ())
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()
        self._told_s = float("-inf")
        self._told_state = ""
        self._has_drawn = False

    def look(self, run: "RunRecord") -> None:
        at = self._pace(run)
        if self._is_quiet or run.ended_ns is not None:
            return
        is_due = self._clock() - self._told_s >= PLAIN_LINE_EVERY_S or run.state != self._told_state
        if not (self._is_live or is_due):
            return
        self._told_s, self._told_state = self._clock(), run.state
        shown = ShownRun(run, awaits_scheduler=not is_service_up(self._layout))
        line = follow_line(shown, time.time_ns(), at)
        terminal.tell(f"{_CLEAR_LINE}{line[: terminal.width() - 1]}" if self._is_live else f"{line}\n")
        self._has_drawn = self._is_live

    def clear(self) -> None:
        if self._has_drawn:
            terminal.tell(_CLEAR_LINE)
            self._has_drawn = False

    def _pace(self, run: "RunRecord") -> Pace:
        """Over the last seconds, as far as this has seen them."""
        now_s, checked = self._clock(), run.progress.get("checked", 0)
        self._seen.append((now_s, checked))
        while now_s - self._seen[0][0] > RATE_OVER_S:
            self._seen.popleft()
        began_s, before = self._seen[0]
        if now_s - began_s < 1:
            return average_pace(run)
        return pace(run, max(0, checked - before) / (now_s - began_s))


def followed(settings: "Settings", run_id: int, *, is_quiet: bool) -> "RunRecord":
    """The run when it has ended. Ctrl-C detaches: that is said, and InterruptedRunError is raised; the run goes on."""
    layout = BaseLayout(settings.home)
    teller = Teller(layout, is_quiet=is_quiet)
    try:
        with terminated_like_interrupted():
            ended = follow(settings, run_id, teller.look)
    except KeyboardInterrupt:
        raise InterruptedRunError(detached_text(run_id).strip(), hint="nothing was stopped") from None
    finally:
        teller.clear()
    with recorded_runs(settings) as state:
        return as_it_is(layout, state, ended)


def handed_over(settings: "Settings", request: "RunRequest", *, is_quiet: bool, detaches: bool = False) -> "RunRecord":
    """Have the service carry out a run, and follow it to its end; with `detaches`, only hand it over."""
    from app.submitting import submit

    run = submit(settings, request)
    if not (is_quiet or detaches):
        terminal.tell(submitted_text(run))
    return run if detaches else followed(settings, run.id, is_quiet=is_quiet)


def run_answer(shown: ShownRun) -> Json:
    """A run as the answer of a command: its state is the status that every answer has."""
    return {"status": shown.run.state, **run_json(shown, time.time_ns())}


def concluded(loaded: "Loaded", run: "RunRecord", *, is_quiet: bool, as_json: bool) -> int:
    """Print what a run of the service has come to; its exit status. Raises what has ended it, unless as JSON."""
    shown = shown_run(loaded.settings, run.id)
    status = exit_status_of(shown.run) if run.ended_ns is not None else 0
    if as_json:
        terminal.write_json(json_text({**run_answer(shown), "removals_held": held_json(shown.held)}))
        return status
    if run.ended_ns is None:  # detached
        terminal.write(submitted_text(run))
        return 0
    if (error := error_of_run(shown.run)) is not None:
        raise error
    if status or not is_quiet:
        with opened(loaded) as base, base.store.snapshot() as snapshot:
            counts = snapshot.counts(visibility=Visibility.everything())
        terminal.write(ended_run_text(shown, tier_now(loaded.settings), counts))
        terminal.write(f"{index_line(loaded.located, loaded.settings)}\n")
        tell_notes(loaded)
    return status
