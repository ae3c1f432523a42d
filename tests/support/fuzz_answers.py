"""What a server of embeddings may send in the place of an answer: of HTTP, of JSON, and of vectors that nearly fit."""

import json
from collections.abc import Sequence
from random import Random

from tests.support.embedding_lies import LIES, Piece, answer_json
from tests.support.fuzz_trying import mutated

_NUMBERS = (
    b"0", b"1", b"-0.0", b"1e38", b"3.5e38", b"1e39", b"1e-45", b"1e-400", b"1e999", b"NaN", b"Infinity",
    b"-Infinity", b"null", b"true", b'"0.5"', b"[]",
    b"{}", b"0x1", b"01", b"1.", b".5", b"+1", b"1_0", b"9" * 400, b"0." + b"3" * 900, b"-", b"1e", b"\xef\xbc\x91",
    b"",
)  # fmt: skip
_TOKENS = (
    *_NUMBERS, b"{", b"}", b"[", b"]", b",", b":", b'"', b'"index":', b'"embedding":', b'"data":', b'"model":',
    b'"error":', b'"error":null,', b'"data":null,',
    b'"index":0,', b'"index":1,', b'"index":"0",', b'"index":-1,', b'"index":1.0,', b'"model":"other"',
    b'"\\ud800"', b'"\\u0000"', b"\xff", b"\xef\xbb\xbf", b"\x00",
    b"[" * 3_000, b'{"a":' * 3_000, b"/**/", b"\xed\xa0\x80", b" " * 3_000, b"\\",
)  # fmt: skip
_STATUS_LINES = (
    b"HTTP/1.1 200 OK", b"HTTP/1.1 200", b"HTTP/1.0 200 OK", b"HTTP/1.1 201 Created", b"HTTP/1.1 204 No Content",
    b"HTTP/1.1 301 Moved", b"HTTP/1.1 307 T",
    b"HTTP/1.1 400 Bad", b"HTTP/1.1 401 No", b"HTTP/1.1 404 No", b"HTTP/1.1 413 Long", b"HTTP/1.1 429 Later",
    b"HTTP/1.1 500 Oops", b"HTTP/1.1 503 Away",
    b"HTTP/1.1 999 ?", b"HTTP/1.1 099 ?", b"HTTP/1.1 2OO OK", b"HTTP/2 200", b"HTTP/1.1 100 Continue",
    b"HTTP/1.1 103 Hints", b"HTTP/1.1 101 Switch", b"SSH-2.0",
    b"HTTP/1.1 200 \xff\xfe", b"", b"HTTP/1.1 200 OK" + b"x" * 70_000,
)  # fmt: skip
_HEADS = (
    b"Content-Type: application/json", b"Content-Type: text/html", b"Content-Encoding: gzip",
    b"Content-Encoding: identity", b"Content-Encoding: br",
    b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: x",
    b"Content-Length: 99999999999999999999", b"Content-Length: 7, 7",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: identity",
    b"Location: http://169.254.169.254/", b"Location: http://[::1",
    b"Location: \xff", b"Location: ", b"Location: //a:b@c:99999/\x01", b"Retry-After: 5", b"Retry-After: -1",
    b"Retry-After: 1e9", b"Retry-After: Fri, 31 Feb 9999 99:99:99 GMT",
    b"Retry-After: " + b"9" * 5_000, b"Retry-After: Wed, 21 Oct 2015 07:28:00 +9999999999", b"Set-Cookie: a=b",
    b"X: " + b"a" * 70_000, b": x", b"X", b" folded", b"X:\x00", b"X\xff: 1",
    b"Connection: close", b"Upgrade: h2c", b"Trailer: X", *[b"X: y"] * 3,
)  # fmt: skip
_INDEXES = (b"0", b"1", b"2", b"3", b"-1", b'"0"', b"0.0", b"null", b"true", b"1e0", b"99999999999999999999", b"[]")


def pieces_of(vectors: Sequence[Sequence[float]]) -> list[Piece]:
    return [Piece(b"%d" % at, json.dumps(list(vector)).encode()) for at, vector in enumerate(vectors)]


def body(random: Random, honest: list[Piece], model: bytes) -> bytes:
    """An honest answer in another order, with something changed, or one of the known lies."""
    pieces = random.sample(honest, len(honest))
    kind = random.random()
    if kind < 0.1:
        return answer_json(pieces, model)
    if kind < 0.2:
        return LIES[random.choice(sorted(LIES))](pieces, model).body
    for _ in range(random.choice((0, 1, 1, 2))):
        at = random.randrange(len(pieces))
        piece = pieces[at]
        numbers = piece.vector[1:-1].split(b",")
        numbers[random.randrange(len(numbers))] = random.choice(_NUMBERS)
        changed = (
            piece._replace(at=random.choice(_INDEXES)), piece._replace(vector=b"[" + b",".join(numbers) + b"]"),
            piece._replace(vector=b"[" + b",".join(numbers[: random.randint(0, len(numbers))]) + b"]"),
        )  # fmt: skip
        pieces[at] = random.choice(changed)
    raw = answer_json(
        pieces,
        random.choice((model, model, b'""', b"null", b"7", b'"other"', b'"\\u001b[2J"', b'"' + b"m" * 999 + b'"')),
    )
    return mutated(random, raw, _TOKENS, most=3) if random.random() < 0.4 else raw


def response(random: Random, content: bytes) -> bytes:
    """The body in an answer of HTTP, right in most; what follows it is the end of the connection."""
    if random.random() < 0.65:
        return (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content) + content
        )
    lines = [random.choice(_STATUS_LINES), *random.sample(_HEADS, random.randint(0, 4))]
    if random.random() < 0.5:
        lines.append(b"Content-Length: %d" % len(content))
    if any(b"chunked" in line for line in lines) and random.random() < 0.7:
        size = random.choice((b"%x" % len(content), b"ZZ", b"-1", b"ffffffffffffffffff", b"5;x=y", b""))
        content = size + b"\r\n" + content + b"\r\n0\r\n\r\n"
    raw = random.choice((b"\r\n", b"\r\n", b"\r\n", b"\n")).join([*lines, b"", b""]) + content
    return mutated(random, raw, _TOKENS, most=2) if random.random() < 0.2 else raw
