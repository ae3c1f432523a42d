"""Which signals end a process of the service (see test_service_watched for the processes themselves)."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from server.ending_signals import ending_signals

TERM, INT = signal.SIGTERM, signal.SIGINT


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (signal.SIG_IGN, (TERM,)),
        (signal.SIG_DFL, (TERM, INT)),
        (signal.default_int_handler, (TERM, INT)),
    ],
)
def test_ctrl_c_ends_only_what_does_not_ignore_it(
    handler: Callable[..., Any], expected: tuple[signal.Signals, ...]
) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        assert ending_signals() == expected
    finally:
        signal.signal(signal.SIGINT, before)
