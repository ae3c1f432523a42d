"""What a run is doing, drawn beside it by a thread: one moving line on a terminal, a line now and then elsewhere."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.config import process_environ
from app.present_index import progress_line
from app.progress import RunProgress
from cli import terminal

FRAMES_PER_SECOND = 8
FIRST_LINE_AFTER_S = 0.4  # a short run needs no picture, and is not slowed by one
PLAIN_LINE_EVERY_S = 5.0


@contextmanager
def shown(progress: RunProgress, *, is_quiet: bool) -> Iterator[None]:
    """Show the progress for as long as the context is open."""
    if is_quiet:
        yield
        return
    ended = threading.Event()
    draw = _draw_live if terminal.may_redraw(process_environ()) else _draw_lines
    thread = threading.Thread(target=draw, args=(progress, ended), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _draw_live(progress: RunProgress, ended: threading.Event) -> None:
    if ended.wait(FIRST_LINE_AFTER_S):
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while not ended.wait(1 / FRAMES_PER_SECOND):
            live.update(Text(progress_line(progress), overflow="ellipsis", no_wrap=True), refresh=True)


def _draw_lines(progress: RunProgress, ended: threading.Event) -> None:
    while not ended.wait(PLAIN_LINE_EVERY_S):
        terminal.tell(f"{progress_line(progress)}\n")
