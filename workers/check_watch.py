"""A page that is read for ever: the worker process that has it leaves, and its page is bisected like a dead one's.

The clock is faulthandler's, a thread of C: it needs no interpreter lock, so it also ends a regular expression that
never lets go of it, and a read that never comes back.
"""

import faulthandler
import os
from collections.abc import Iterator
from contextlib import contextmanager

from domain.files import Page
from workers.checking import CheckRules, FinishedPage, check_page
from workers.limited_check import check_alone

CAREFUL_FACTOR = 5  # processes of their own have limits of their own, and may use them up one after the other
CHECK_LIMIT_S = 120.0  # for one page of files; a page of the largest ones takes a few seconds


def check_in_time(page: Page, run: int, rules: CheckRules, limit_s: float) -> FinishedPage:
    """Check a page's files, each in a process of its own where the page asks for that. This process ends, with the
    status of any crash, where it takes longer than `limit_s`; 0 = however long it takes."""
    with _leaving_after(limit_s * CAREFUL_FACTOR if page.alone else limit_s):
        return check_alone(page, run, rules) if page.alone else check_page(page, run, rules)


@contextmanager
def _leaving_after(limit_s: float) -> Iterator[None]:
    """One at a time in a process: a worker checks one page at a time."""
    if not limit_s:
        yield
        return
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - the traceback says nothing that anybody would read
        faulthandler.dump_traceback_later(limit_s, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
