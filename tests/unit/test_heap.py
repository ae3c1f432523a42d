"""The C library's heap: one arena for all threads, and free memory given back; where there is no glibc, nothing."""

import ctypes
import gc
import os
import platform
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app import heap

HAS_GLIBC = platform.libc_ver()[0] == "glibc"
ARENAS_AFTER = """
import ctypes, os, threading
from app.heap import keep_one_arena
print(keep_one_arena(os.environ))
held, together = [], threading.Barrier(8)
def work():
    held.append(ctypes.CDLL(None).malloc(1000))
    together.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
ctypes.CDLL(None).malloc_stats()
"""


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    heap._c_library.cache_clear()
    yield
    heap._c_library.cache_clear()


@pytest.mark.skipif(not HAS_GLIBC, reason="only glibc gives threads arenas of their own")
@pytest.mark.parametrize(("variables", "is_kept"), [({}, True), ({"MALLOC_ARENA_MAX": "3"}, False)])
def test_threads_share_one_arena(variables: dict[str, str], is_kept: bool) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in heap._SET_BY_OPERATOR} | variables
    done = subprocess.run(
        [sys.executable, "-c", ARENAS_AFTER], env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == str(is_kept)
    assert 1 <= done.stderr.count("Arena ") <= (1 if is_kept else 3)


@pytest.mark.skipif(not HAS_GLIBC, reason="only glibc can be asked to give memory back")
def test_what_is_free_is_given_back() -> None:
    told = subprocess.run(
        [sys.executable, "-c", GIVEN_BACK], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    full, freed, given = map(int, told)
    assert full - given > 20_000, "of the 40 MB that were free"
    assert freed - given > 20_000, "which were not given back by themselves"


def test_who_stays_looks_for_garbage_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short command puts that off, and is started by the same entry."""
    monkeypatch.setattr(heap, "keep_one_arena", lambda environ: True)
    before = gc.get_threshold()
    gc.set_threshold(20_000)
    try:
        heap.settle_in({})
        assert gc.get_threshold() == (700, 10, 10)
    finally:
        gc.set_threshold(*before)


def test_without_glibc_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not heap.keep_one_arena({})
    assert not heap.give_back_free_memory()


GIVEN_BACK = """
import ctypes
from app.heap import give_back_free_memory
library = ctypes.CDLL(None)
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))
blocks = [library.malloc(10_000) for _ in range(4_000)]
for block in blocks: ctypes.memset(block, 1, 10_000)
full = resident()
for block in blocks[:-1]: library.free(block)
freed = resident()
give_back_free_memory()
print(full, freed, resident())
"""
