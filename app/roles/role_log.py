"""The log of a role: one event a line on standard error, as JSON or for people. No document text, no secret.

Events have stable names, and values are numbers, states, names of runs and roles, and messages of our own errors.
"""

import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TextIO

import structlog

from app.present_safe import one_line

LogFormat = Literal["json", "console"]
MAX_VALUE_CHARS = 500

RoleLog = structlog.stdlib.BoundLogger


def make_log(role: str, log_format: LogFormat, stream: TextIO | None = None) -> RoleLog:
    """A log that names its role in every line."""
    lines = Lines(_to_standard_error if stream is None else partial(_to_stream, stream))
    if log_format == "json":
        last: Any = structlog.processors.JSONRenderer()
    else:
        last = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=24)
    logger = structlog.wrap_logger(
        lines,
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            _made_safe,
            lines.with_lost,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        cache_logger_on_first_use=True,
    )
    bound: RoleLog = logger.bind(role=role)
    return bound


class Lines:
    """Writes one line an event, at once. No role ends because its log takes none (the disk below it is full, the other
    end of the pipe is closed): what is lost is counted, and said in the next line that is taken."""

    def __init__(self, write: Callable[[bytes], int]) -> None:
        """`write` takes as many bytes as it has room for, as os.write does; what it raises is OSError."""
        self._write = write
        self._lost = 0
        self._is_torn = False

    def msg(self, line: str) -> None:
        written = line.encode("utf-8", "backslashreplace") + b"\n"
        if self._is_torn:
            written = b"\n" + written
        try:
            taken = self._write(written)
        except OSError:
            taken = 0
        self._is_torn = 0 < taken < len(written) or (self._is_torn and not taken)
        self._lost = 0 if taken == len(written) else self._lost + 1

    debug = info = warning = error = critical = msg

    def with_lost(self, _logger: object, _method: str, event: Any) -> Any:
        return {**event, "lines_lost": self._lost} if self._lost else event


def _to_standard_error(written: bytes) -> int:
    return os.write(sys.stderr.fileno(), written)


def _to_stream(stream: TextIO, written: bytes) -> int:
    stream.write(written.decode())
    stream.flush()
    return len(written)


def _made_safe(_logger: object, _method: str, event: Any) -> Any:
    """No control character and no endless value reaches whoever reads the log."""
    return {
        key: one_line(value, MAX_VALUE_CHARS) if isinstance(value, str) and key not in ("at", "level") else value
        for key, value in event.items()
    }


def hear_libraries(log: RoleLog) -> None:
    """From now on warnings of libraries stand in the log as events, too; each with its first line only, and without
    what was filled into it."""
    root = logging.getLogger()
    root.addHandler(_Library(log))
    root.setLevel(logging.WARNING)


class _Library(logging.Handler):
    def __init__(self, log: RoleLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        first_line = str(record.msg).partition("\n")[0]
        self._log.warning("library_warning", of=record.name, message=first_line)


def fault_of(error: BaseException) -> dict[str, object]:
    """What the log says of a fault of ours: its type, and file, line and function of each step. Its words and variables
    may be those of a document."""
    import traceback

    return {
        "message": type(error).__name__,
        "trace": [
            f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ],
    }
