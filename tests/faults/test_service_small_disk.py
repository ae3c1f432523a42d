"""A service whose index lies on a disk that is too small for it: writing waits and says so, everything else goes on,
and with more room the run ends by itself (P23, fault 11). Needs root, to mount the disk."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from store.sqlite import SqliteStore
from tests.support.audit import audit
from tests.support.chaos import SLOW_S
from tests.support.command_line import CommandLine
from tests.support.depth import IS_NIGHTLY, scaled
from tests.support.figures import Figure, NoteFigure
from tests.support.service import Service, many_files, service
from tests.support.small_disk import small_disk

FILES_OF_DISKS = {3: 900, 10: 3000, 50: 15_000}  # MiB of disk: more files than it can hold the index of
DISKS = tuple(FILES_OF_DISKS)
SEARCHERS = scaled(1, 4)
WITH_ROOM_MIB = 1000
LONG_S = scaled(1, 5) * SLOW_S  # many files on a busy machine

pytestmark = [
    pytest.mark.redis,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not IS_NIGHTLY, reason="a disk that is outgrown takes minutes: in `make faults` only"),
]
_tried: dict[int, tuple[int, int, float, int]] = {}  # by MiB: waits in words, bad, seconds, searches


@dataclass(slots=True)
class Searchers:
    """Ask the command line for the words of the first files for as long as they are wanted."""

    folder: Path
    asked: int = 0
    failed: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def ask(self) -> None:
        command = CommandLine(self.folder, within_s=SLOW_S)
        while not self._over.is_set():
            answer = command("search", "text", "--config", "knowledge.yaml")
            self.asked += 1
            if answer.status not in (0, 4):
                self.failed.append(f"{answer.status}: {answer.err}")
            self._over.wait(0.2)

    @contextmanager
    def asking(self, count: int) -> Iterator[None]:
        threads = [threading.Thread(target=self.ask) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()


def _waits_for_room(it: Service, run: int) -> bool:
    """In the writer's words, or in the scheduler's, whichever finds it first."""
    found = it.run(run)
    return found.state == "waiting" and any(words in found.cause for words in ("room on the disk", "no space left"))


def _operated(it: Service, run: int) -> list[str]:
    """What an operator cannot do although there is the room that is kept for it."""
    command = CommandLine(it.folder, within_s=SLOW_S)
    with closing(SqliteStore(it.layout.database, base_id=None)) as store:
        key = next(iter(store.reader().stored_files("docs/"))).key
    wrong = []
    for verb in (("status",), ("runs", "show", str(run)), ("rm", key), ("runs", "pause", str(run))):
        done = command(*verb, "--config", "knowledge.yaml")
        wrong += [f"{verb[0]} {verb[-1]}: {done.status} {done.err}"] * (done.status != 0)
    resumed = command("runs", "resume", str(run), "--config", "knowledge.yaml")
    return wrong + [f"resume: {resumed.err}"] * (resumed.status != 0)


@pytest.mark.parametrize("mebibytes", DISKS)
def test_an_index_that_outgrows_its_disk_waits_in_words_and_goes_on_with_room(
    tmp_path: Path, mebibytes: int, note_figure: NoteFigure
) -> None:
    """P23: searches answer all the while, removals and the verbs of runs work, no role ends."""
    files, began_s = FILES_OF_DISKS[mebibytes], time.monotonic()
    with (
        small_disk(tmp_path / "knowledge", mebibytes) as disk,
        service(tmp_path, configuration="  disk_reserve: 600 KiB", files=many_files(files), files_per_job=8) as it,
    ):
        it.start_all(workers=2)
        run = it.first_run()
        it.wait_until(lambda: _waits_for_room(it, run), LONG_S)
        searchers = Searchers(tmp_path)
        with searchers.asking(SEARCHERS):
            wrong = _operated(it, run)
            it.wait_until(lambda: searchers.asked > SEARCHERS, SLOW_S)
            wrong += [f"it has ended: {it.run(run)}"] * (it.run(run).ended_ns is not None)
            subprocess.run(["mount", "-o", f"remount,size={WITH_ROOM_MIB}m", str(disk)], check=True)
            ended = it.ended(run, LONG_S)
        wrong += [f"{ended.state}: {ended.cause} {ended.counts}"] * (ended.state != "done")
        wrong += searchers.failed
        wrong += [f"{role.name}: {role.said()}" for role in it.roles if role.process.poll() is not None]
        again = it.ended(it.submit(), LONG_S)
        wrong += [f"{again.counts}"] * (again.state != "done")
        with closing(SqliteStore(it.layout.database, base_id=None)) as store:
            count = store.reader().document_count("docs/")
        wrong += [f"{count} documents"] * (count != files)
        wrong += audit(it.layout.database)
        _tried[mebibytes] = (1, len(wrong), time.monotonic() - began_s, searchers.asked)
        _note(note_figure)
        assert wrong == []


def _note(note_figure: NoteFigure) -> None:
    tried, bad, seconds, asked = (sum(each) for each in zip(*_tried.values(), strict=True))
    disks = ", ".join(str(size) for size in _tried)
    what = f"disks of {disks} MiB that the index outgrows, and more room"
    detail = f"{asked:.0f} searches meanwhile"
    figure = Figure("disk-outgrown", ("P23",), what, int(tried), bad=int(bad), asked=3, seconds=seconds, detail=detail)
    note_figure(figure)
