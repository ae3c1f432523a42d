"""Bad payloads (T26): of the queue's outer dictionary, of a check and of a write."""

import json
import os
import pickle
from typing import Any

import msgspec

from scheduler.queue.payloads import CHECK_PAGE, LAST_MS, PAYLOAD_CAP_BYTES

encode = msgspec.msgpack.encode


class Hostile:
    """Would run a command where somebody unpickles it."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self._command,)


def job(**changes: object) -> bytes:
    return encode({"t": None, "f": CHECK_PAGE, "a": [b"x"], "k": {}, "et": 1} | changes)


def without(name: str) -> bytes:
    fields: dict[str, object] = {"t": None, "f": CHECK_PAGE, "a": [b"x"], "k": {}, "et": 1}
    del fields[name]
    return encode(fields)


NOT_PAYLOADS: dict[str, bytes] = {
    "nothing": b"",
    "pickle": pickle.dumps({"f": "check_page"}),
    "hostile pickle": pickle.dumps(Hostile("true")),
    "json": json.dumps({"t": None, "f": CHECK_PAGE, "a": [], "k": {}, "et": 1}).encode(),
    "a number": encode(7),
    "nil": encode(None),
    "a string": encode("check_page"),
    "deep lists": b"\x91" * 100_000 + b"\xc0",
    "deep maps": b"\x81\xa1a" * 100_000 + b"\xc0",
    "ten megabytes": b"\xc6\x00\xa0\x00\x00" + bytes(10 * 1024 * 1024),
    "over the cap": bytes(PAYLOAD_CAP_BYTES + 1),
    "claims four gigabytes": b"\xdd\xff\xff\xff\xff",
    "cut short": job()[:-1],
    "two of them": job() + job(),
    "a string that is no utf-8": b"\x81\xa2\xff\xfe\x01",
    "reserved byte": b"\xc1",
    "extension type": b"\xd4\x01\x00",
}

BAD_JOBS: dict[str, bytes] = {
    "f a list": job(f=["check_page"]),
    "f a number": job(f=1),
    "f unknown": job(f="os.system"),
    "f with a path": job(f="workers.jobs.check_page"),
    "f empty": job(f=""),
    "t a string": job(t="1"),
    "t negative": job(t=-1),
    "t a float": job(t=1.5),
    "a a string": job(a="x"),
    "a empty": job(a=[]),
    "a of two": job(a=[b"x", b"y"]),
    "a of strings": job(a=["x"]),
    "a of maps": job(a=[{}]),
    "a nil": job(a=None),
    "k a list": job(k=[]),
    "k with values": job(k={"ctx": 1}),
    "et a string": job(et="now"),
    "et negative": job(et=-1),
    "et beyond every date": job(et=LAST_MS + 1),
    "et enormous": job(et=2**63),
    "et true": job(et=True),
    "one field more": job(z=1),
    **{f"without {name}": without(name) for name in ("f", "a", "k", "et")},
}


def check(**changes: object) -> bytes:
    fields: dict[str, object] = {
        "version": 3,
        "base_id": "base",
        "generation": 1,
        "run": 1,
        "attempt": 1,
        "number": 1,
        "root": "docs",
        "kind": "check",
        "alone": False,
        "files": [["docs/a.md", b""]],
    }
    return encode(list((fields | changes).values()))


BAD_CHECKS: dict[str, bytes] = {
    "old version": check(version=1),
    "the version before": check(version=2),
    "new version": check(version=4),
    "version a string": check(version="1"),
    "base a number": check(base_id=1),
    "generation negative": check(generation=-1),
    "generation a float": check(generation=1.5),
    "run a string": check(run="1"),
    "number nil": check(number=None),
    "root a list": check(root=["docs"]),
    "an unknown kind": check(kind="other"),
    "a kind that is a number": check(kind=1),
    "an alone that is a number": check(alone=1),
    "files a map": check(files={}),
    "files of strings": check(files=["docs/a.md"]),
    "a file of three": check(files=[["docs/a.md", b"", b""]]),
    "a key of bytes": check(files=[[b"docs/a.md", b""]]),
    "a hash of text": check(files=[["docs/a.md", "not bytes"]]),
    "a field more": check(more=1),
    "a field less": encode([3, "base", 1, 1, 1, 1, "docs", "check", False]),
    "a map": encode({"version": 1, "base_id": "base"}),
}

# well-typed, and still not to be worked on: the worker's own check finds them
STALE_CHECKS: dict[str, bytes] = {
    "another base": check(base_id="other"),
    "another run": check(run=2),
    "an older generation": check(generation=0),
    "a newer generation": check(generation=2),
    "an unknown root": check(root="etc", files=[["etc/passwd", b""]]),
    "a root of dots": check(root="..", files=[["../secret.md", b""]]),
    "a file of another root": check(files=[["notes/a.md", b""]]),
    "dots in the middle": check(files=[["docs/../../secret.md", b""]]),
    "dots at the end": check(files=[["docs/..", b""]]),
    "a dot": check(files=[["docs/./a.md", b""]]),
    "an empty part": check(files=[["docs//secret.md", b""]]),
    "only the root": check(files=[["docs/", b""]]),
    "the root's name": check(files=[["docs", b""]]),
    "a zero byte": check(files=[["docs/a\x00.md", b""]]),
    "an absolute path": check(files=[["/docs/a.md", b""]]),
    "one bad among good ones": check(files=[["docs/a.md", b""], ["docs/../b.md", b""]]),
}


def write(**changes: object) -> bytes:
    fields: dict[str, object] = {
        "version": 2,
        "base_id": "base",
        "generation": 1,
        "run": 1,
        "attempt": 1,
        "number": 1,
        "name": "1-1-1.page",
    }
    return encode(list((fields | changes).values()))


BAD_WRITES: dict[str, bytes] = {
    "old version": write(version=1),
    "name with a slash": write(name="../state.db"),
    "name of dots": write(name=".."),
    "hidden name": write(name=".gitignore"),
    "name with a backslash": write(name="..\\state.db"),
    "absolute name": write(name="/etc/passwd"),
    "no name": write(name=""),
    "name a number": write(name=1),
    "name with a zero byte": write(name="1-1-1\x00.page"),
    "name too long for a file": write(name="1" * 300 + "-1-1.page"),
    "name of another file": write(name="notes.txt"),
    "a field more": write(more=1),
}
