"""What a broker may hand over in the place of a job: payloads that nearly are ones, and bytes."""

from random import Random

import msgspec

from scheduler.queue.payloads import CHECK_PAGE, PAYLOAD_CAP_BYTES, WRITE_PAGE
from tests.support.fuzz_texts import WORDS, file_name
from tests.support.fuzz_trying import mutated, some
from tests.support.payloads import BAD_CHECKS, BAD_JOBS, BAD_WRITES, NOT_PAYLOADS, STALE_CHECKS, check, job, write

encode = msgspec.msgpack.encode
_ODD: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63 - 1, 2**64 - 1, -(2**63), 1.5, float("nan"), float("inf"), "", "docs",
    "x" * 5_000, b"", b"x", b"\xff" * 40,
    [], [[]], {}, {"a": 1}, [1], ["a"], "check", "vectors", "../x", "\x00",
)  # fmt: skip
_TOKENS = (
    b"\xc1", b"\xc0", b"\xc3", b"\x91", b"\x81", b"\xa1a", b"\xff", b"\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00",
    b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xd4\x01\x00", b"\xd6\xff\x00\x00\x00\x00",
    b"\xc7\x0c\xff" + b"\xff" * 12, b"\xd7\xff" + b"\xff" * 8,
    b"\x91" * 3_000, b"\x81\xa1a" * 3_000, b"\x80\x04\x95", b"\xa2\xed\xa0", b"\xcf" + b"\xff" * 8,
    b"\xd3\x80" + bytes(7), b"{}", b"\x00" * 64,
)  # fmt: skip
_KNOWN = tuple(
    raw
    for made in (BAD_CHECKS, BAD_JOBS, BAD_WRITES, NOT_PAYLOADS, STALE_CHECKS)
    for raw in made.values()
    if len(raw) < 300_000
)
_CHECK_FIELDS = ("version", "base_id", "generation", "run", "attempt", "number", "root", "kind", "alone", "files")
_WRITE_FIELDS = ("version", "base_id", "generation", "run", "attempt", "number", "name")
_JOB_FIELDS = ("t", "f", "a", "k", "et", "z")
_PARTS = (
    "..",
    ".",
    "",
    "a",
    "sub",
    "a.md",
    "secret.md",
    "\x00",
    "~",
    "C:",
    "\\",
    "..\\",
    "docs",
    "é",
    "e\u0301",
    "\u202e",
    "*",
    "a" * 300,
    "%2e%2e",
    "/",
)


def key(random: Random) -> str:
    kind = random.random()
    if kind < 0.65:
        return random.choice(("docs/a.md", "docs/sub/b.md", "docs/c.txt"))
    if kind < 0.75:
        return "docs/" + file_name(random).decode("utf-8", "replace")
    return "/".join([random.choice(("docs", "docs", "", "..", "etc")), *some(random, _PARTS, 5)])


def payload(random: Random) -> bytes:
    """Of a check, of a write, of the queue's own dictionary with either in it, or of nothing."""
    kind = random.random()
    if kind < 0.03:
        return random.randbytes(random.choice((0, 1, 9, 300, PAYLOAD_CAP_BYTES + 1)))
    if kind < 0.15:
        return mutated(random, random.choice(_KNOWN), _TOKENS)
    changes = {random.choice(_CHECK_FIELDS): random.choice(_ODD) for _ in range(random.choice((0, 0, 0, 1, 2)))}
    files = [[key(random), random.choice((b"", b"x" * 32, b"x"))] for _ in range(random.randint(0, 3))]
    inner = check(**({"files": files} | changes))
    if random.random() < 0.25:
        names = {random.choice(_WRITE_FIELDS): random.choice(_ODD) for _ in range(random.choice((0, 0, 1, 2)))}
        inner = write(**({"name": random.choice((*_PARTS, *["1-1-1.page"] * 200, *WORDS))} | names))
    if random.random() < 0.2:
        inner = mutated(random, inner, _TOKENS, most=3)
    if random.random() < 0.5:
        return inner
    outer = {random.choice(_JOB_FIELDS): random.choice(_ODD) for _ in range(random.choice((0, 0, 1, 2)))}
    raw = job(**({"f": random.choice((CHECK_PAGE, WRITE_PAGE, "park", "os.system")), "a": [inner]} | outer))
    return mutated(random, raw, _TOKENS, most=3) if random.random() < 0.3 else raw
