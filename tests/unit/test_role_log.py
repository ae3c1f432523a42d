"""The log of a role: one JSON object a line, safe to show, without the words of whatever failed."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from arq.connections import ArqRedis

from app.roles.role_log import Lines, fault_of, hear_libraries, make_log
from app.roles.runtime import Runtime
from app.roles.worker_role import Troubles
from domain.errors import DiskFullError
from domain.layout import BaseLayout
from domain.settings import Settings
from scheduler.queue.names import QueueNames

SECRET = "the words of a document"


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def events(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def failing() -> Exception:
    try:
        int(SECRET)
    except ValueError as error:
        return error
    raise AssertionError


def test_a_line_is_an_object_that_names_its_role(out: io.StringIO) -> None:
    log = make_log("worker", "json", out)
    log.info("goes_on", waited_for="the queue")
    log.bind(run=7).warning("run_failed", files=3)
    first, second = events(out)
    assert (first["event"], first["role"], first["level"], first["waited_for"]) == (
        "goes_on",
        "worker",
        "info",
        "the queue",
    )
    assert (second["run"], second["files"], second["level"]) == (7, 3, "warning")
    assert first["at"].endswith("Z")


class NarrowDisk:
    """Takes as many bytes as it has room for."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken = b""

    def write(self, written: bytes) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        taken = written[: self.room]
        self.room -= len(taken)
        self.taken += taken
        return len(taken)


def test_a_log_that_takes_no_line_fails_nobody_and_says_later_how_many_are_lost() -> None:
    """P23: neither a line that is not taken nor one that is taken in part; the next whole one stands on its own."""
    disk = NarrowDisk(10)
    lines = Lines(disk.write)
    lines.info("a first one")  # fits but for its last letters
    lines.warning("a second one")
    assert lines.with_lost(None, "info", {"event": "active"}) == {"event": "active", "lines_lost": 2}
    disk.room = 1000
    lines.info("a third one")
    lines.info("a fourth one")
    assert disk.taken == b"a first on\na third one\na fourth one\n"
    assert lines.with_lost(None, "info", {"event": "active"}) == {"event": "active"}


def test_the_real_log_says_how_many_lines_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = NarrowDisk(0)
    monkeypatch.setattr("app.roles.role_log._to_standard_error", disk.write)
    log = make_log("worker", "json")
    log.info("starts")
    disk.room = 1000
    log.info("active")
    log.info("ended")
    said = [json.loads(line) for line in disk.taken.splitlines()]
    assert [(event["event"], event.get("lines_lost")) for event in said] == [("active", 1), ("ended", None)]


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_value_breaks_a_line_or_commands_a_terminal(out: io.StringIO, log_format: Any) -> None:
    hostile = "a\nb\r\x1b[2J\u202e\x00 \u2028" + "x" * 5000
    make_log("worker", log_format, out).warning("waits", message=hostile, name=hostile)
    (line,) = out.getvalue().rstrip("\n").split("\n")
    assert len(line) < 2000
    assert not any(char in line for char in "\x1b\r\x00\u202e\u2028")


def test_a_fault_is_told_by_its_type_and_place() -> None:
    told = fault_of(failing())
    assert told["message"] == "ValueError"
    assert SECRET not in str(told)
    assert "test_role_log.py" in str(told["trace"])


def test_an_unexpected_error_of_a_job_tells_nobody_what_it_was_about(out: io.StringIO, tmp_path: Path) -> None:
    """Neither the log nor the cause of the run; an error in our own words is told as it is."""
    settings = Settings("base", tmp_path, None, configured=True)
    runtime = Runtime(settings, BaseLayout(tmp_path), "worker", "me", make_log("worker", "json", out))
    troubles = Troubles(cast(ArqRedis, None), QueueNames("base"), runtime)
    troubles.tell(failing())
    troubles.tell(OSError(28, "No space left on device"))
    troubles.tell(DiskFullError("no space left to write the spool", hint="make room"))
    told = [troubles._arrived.get_nowait() for _ in range(3)]
    assert SECRET not in out.getvalue() + str(told)
    assert [event["message"] for event in events(out)] == ["ValueError", "OSError", "no space left to write the spool"]
    assert "No space left on device" in told[1].message
    assert (told[2].code, told[2].hint) == (DiskFullError.code, "make room")


def test_pages_for_which_the_disk_has_no_room_are_one_line_a_minute(out: io.StringIO, tmp_path: Path) -> None:
    """P23: each is told to the scheduler; a log beside them would help to fill the disk."""
    settings = Settings("base", tmp_path, None, configured=True)
    runtime = Runtime(settings, BaseLayout(tmp_path), "worker", "me", make_log("worker", "json", out))
    troubles = Troubles(cast(ArqRedis, None), QueueNames("base"), runtime)
    for page in range(3):
        troubles.tell(DiskFullError(f"no space left to write {page}.page", hint="make room"))
    assert [(event["event"], event["message"]) for event in events(out)] == [
        ("disk_full", "no space left to write 0.page")
    ]
    assert troubles._arrived.qsize() == 3


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


def test_libraries_are_heard_without_what_they_fill_in(out: io.StringIO, root_logger: logging.Logger) -> None:
    hear_libraries(make_log("worker", "json", out))
    library = logging.getLogger("some.library")
    library.info("nobody asked")
    library.warning("failed with %s\nand more", SECRET)
    try:
        raise failing()
    except ValueError:
        library.exception("job %s failed", SECRET)
    first, second = events(out)
    assert (first["event"], first["of"], first["message"]) == ("library_warning", "some.library", "failed with %s")
    assert second["message"] == "job %s failed"
    assert SECRET not in out.getvalue()
