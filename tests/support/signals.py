"""What signals do to this process and to a child that it starts: said by the test, not by whoever started the tests.

A shell starts a job in the background with SIGINT ignored, and whatever that job starts inherits it.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from signal import Handlers


@contextmanager
def sigint(ignored: bool = False) -> Iterator[None]:
    """Inside, SIGINT interrupts this process, or is ignored; a child that is started inherits that.

    Only a main thread can say so. Another one leaves it as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, Handlers.SIG_IGN if ignored else signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
