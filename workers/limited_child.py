"""The process that checks files under limits: told what on standard input, says what came of it on standard output.

It opens nothing but the files, has no connection to queue or store, and ends when its starter does.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from domain.files import FileCheck, Page
from workers.checking import Checked, CheckRules, check_file, finished_page, unexpected_failure
from workers.limited_check import OUT_OF_MEMORY, READY, LimitedCheck, leave_with_starter
from workers.reading import RootReader


def _limit(told: LimitedCheck) -> None:
    """Where the system knows no such limit, the starter's clock has to do."""
    try:
        import resource
    except ImportError:
        return
    # one second more for the hard limit: the soft one ends the process with a signal that says why
    for kind, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, told.cpu_s, told.cpu_s + 1),
        (resource.RLIMIT_AS, told.memory_bytes, told.memory_bytes),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (soft, hard))


def _check(told: LimitedCheck) -> bytes:
    """The finished page of the files, as msgpack."""
    files = tuple(FileCheck(key, stored_hash) for key, stored_hash in told.files)
    rules = CheckRules(Path(told.root_path), told.generation, told.max_file_bytes, told.substring_index)
    with RootReader(rules.root_path, max_file_bytes=rules.max_file_bytes) as reader:
        checked = [_check_one(file, told.root, reader, rules) for file in files]
    return msgspec.msgpack.encode(finished_page(Page(0, told.root, files), 0, checked))


def _check_one(file: FileCheck, root: str, reader: RootReader, rules: CheckRules) -> Checked:
    try:
        return check_file(file, root, reader, rules, time.monotonic)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a fault of ours that the file brings out
        return unexpected_failure(file.key, error, reader)


def main() -> None:
    source = sys.stdin.buffer
    told = msgspec.msgpack.decode(source.read(int.from_bytes(source.read(4), "big")), type=LimitedCheck)
    threading.Thread(target=leave_with_starter, daemon=True).start()
    _limit(told)
    os.write(1, READY)
    try:
        answer = _check(told)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    with open(1, "wb", closefd=False) as out:
        out.write(answer)
    os._exit(0)


if __name__ == "__main__":
    main()
