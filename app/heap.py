"""Memory of a process that lives for long: one arena of the C library's heap, what is free given back to the system,
and garbage looked for as often as Python does by itself, which a short command puts off.

glibc gives threads arenas of their own, and each keeps the most that it ever needed: pages that SQLite caches in one
thread and frees in another leave holes in all of them, and memory grows for hours without anything being kept. Its own
remedies are used (mallopt(3), malloc_trim(3)); where the C library has none, nothing is done. With 1, 2 and 64 arenas
as many searches a second were answered; only with one did the memory of a service under churn stay level.
"""

import ctypes
import gc
from collections.abc import Mapping
from functools import cache

_M_ARENA_MAX = -8  # malloc.h
_USUAL_COLLECTIONS = (700, 10, 10)  # Python's own
_SET_BY_OPERATOR = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")


@cache
def _c_library() -> ctypes.CDLL | None:
    """Of this process, where it is glibc."""
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
    except (OSError, TypeError):  # TypeError: on Windows there is no such thing
        return None


def settle_in(environ: Mapping[str, str]) -> None:
    """What a process does that stays, before it starts threads."""
    keep_one_arena(environ)
    gc.set_threshold(*_USUAL_COLLECTIONS)


def keep_one_arena(environ: Mapping[str, str]) -> bool:
    """To be called before threads are started; whether it was done. An operator who has said it otherwise is heeded."""
    library = _c_library()
    if library is None or any(name in environ for name in _SET_BY_OPERATOR):
        return False
    return bool(library.mallopt(_M_ARENA_MAX, 1))


def give_back_free_memory() -> bool:
    """After something that needed much more than what follows; whether any was given back. Some milliseconds."""
    library = _c_library()
    return library is not None and bool(library.malloc_trim(0))
