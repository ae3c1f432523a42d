"""The log of a role: one event a line on standard error, as JSON or for people. No document text, no secret.

Events have stable names, and values are numbers, states, names of runs and roles, and messages of our own errors.
"""

import logging
import sys
from typing import Any, Literal, TextIO

import structlog

from app.present_safe import one_line

LogFormat = Literal["json", "console"]
MAX_VALUE_CHARS = 500

RoleLog = structlog.stdlib.BoundLogger


def make_log(role: str, log_format: LogFormat, stream: TextIO | None = None) -> RoleLog:
    """A log that names its role in every line."""
    out = stream or sys.stderr
    if log_format == "json":
        last: Any = structlog.processors.JSONRenderer()
    else:
        last = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=24)
    logger = structlog.wrap_logger(
        structlog.WriteLogger(out),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            _made_safe,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        cache_logger_on_first_use=True,
    )
    bound: RoleLog = logger.bind(role=role)
    return bound


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
