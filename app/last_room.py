"""What an operator asks for on a full disk: done with the room that the base holds for that (store.ballast)."""

from collections.abc import Callable
from typing import TypeVar

from domain.errors import StorageError
from domain.layout import BaseLayout
from store.ballast import give_up_ballast

Result = TypeVar("Result")


def with_last_room(layout: BaseLayout, action: Callable[[], Result]) -> Result:
    """What the action returns. Where the disk takes no write it is done once more, with more room: it has to be one
    that may be begun again. A full disk is not always told as such (a file that SQLite maps is an I/O error)."""
    try:
        return action()
    except StorageError:
        if not give_up_ballast(layout):
            raise
    return action()
