"""Requests that fit our OpenAPI document, nearly fit it, or do not at all, as bytes for a socket."""

import json
import string
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.support.fuzz_questions import citation, glob, pattern
from tests.support.fuzz_trying import chooser
from tests.support.hostile_texts import hostile_texts

Json = Any
Pairs = list[tuple[str, str]]
READ, OPERATE = "read-read-read-read-0", "operate-operate-operate-0"
PAGES = (
    "/", "/match", "/document", "/operations", "/operations/runs/{run}", "/operations/failures", "/operations/checks",
    "/operations/coverage", "/sign-in", "/static/{name}", "/healthz", "/readyz", "/metrics",
)  # fmt: skip
PAGE_QUERIES = ("q", "mode", "root", "path", "hits", "cursor", "sort", "limit", "chunk", "lines", "next", "reason", "n")
_WORDS = (
    "quagga", "herd01", "sheet", "fox", '"quick brown"', "quagga AND sheet", "quagga NOT", "(quagga OR", "qua*", "東京",
    "naïve", "the", "?!", "", " ", "NEAR(a b, 3)", "body:quagga", "^he", "[", "(a+)+$", "🙂", "-quagga", '"', "''--",
)  # fmt: skip
_PLACES = (
    "docs/plain.md", "docs/plain.md#0", "docs/sub/c.md", "docs", "docs/", "docs/plain.md#-1", "docs/plain.md#99999999",
    "../../etc/passwd#0", "/etc/passwd", "docs/../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "docs/*.md", "**", "[a",
    "docs/plain.md#99999999999999999999", "C:\\windows", "docs//plain.md", "\u202edm.a", "#", "##0", "docs/nowhere.md",
)  # fmt: skip
_NUMBERS = (
    "0", "1", "-1", "5", "20", "21", "1000", "1001", "1e9", "1.5", "NaN", "Infinity", "-0", "+1", "01", "true", "null",
    "99999999999999999999", "9223372036854775807", "9223372036854775808", "0x10", "1_000", "٣", "", " 1",
)  # fmt: skip
_KNOWN = {
    "mode": ("auto", "lexical", "vector", "hybrid"), "reason": ("unreadable",), "path": _PLACES[:4], "paths": ("docs",),
    "citation": (_PLACES[1], _PLACES[0]), "cursor": ("", "docs"), "root": ("docs", ""), "prefix": ("docs", ""),
    "roots": ("docs",), "pattern": ("^q", "herd", "a.*b"),
}  # fmt: skip
_BODIES = {
    "RetryBody": ({"all": True}, {"reason": "unreadable"}, {"paths": ["docs"]}),
    "IgnoreBody": ({"paths": ["docs"]},),
}
HARM = (
    "\x00",
    "\r\nX-Split: 1",
    "x" * 9_000,
    "(" * 3_000,
    "a b " * 2_000,
    "\u202e\u2066",
    "\x1b[2J",
    "%",
    "%zz",
    "%00",
)
_RAW = ("%ED%A0%80", "%C0%80", "%FF", "%", "%u0041", "\udc80\udcff", "+", "&", ";", "%F4%90%80%80")  # as they stand


class FuzzRequest(NamedTuple):
    kind: str  # what it was made as; in reports
    data: bytes
    operation: tuple[str, str] | None = None  # method and path in the OpenAPI document
    is_whole: bool = True  # one request with all of its body: it has to be answered; else only to be ended


def _texts() -> st.SearchStrategy[str]:
    hostile = [one.text for one in hostile_texts() if len(one.text) < 2_000]
    return st.one_of(st.sampled_from(_WORDS), st.sampled_from(_PLACES), st.sampled_from(HARM), st.sampled_from(hostile),
                     st.text(max_size=30), st.sampled_from(_NUMBERS))  # fmt: skip


TEXTS = _texts()


def fitting(name: str, schema: Json) -> st.SearchStrategy[Json]:
    """A value that a schema of ours allows."""
    if name == "run":
        return st.one_of(st.sampled_from([2, 1, 3]), st.integers(0, 20), st.just(2**63))
    if "anyOf" in schema:
        return st.one_of([fitting(name, one) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "integer":
            least, most = schema.get("minimum", 0), schema.get("maximum", 2**63 - 1)
            return st.one_of(st.integers(least, min(most, least + 9)), st.sampled_from([least, most]))
        case "number":
            return st.floats(schema.get("minimum", -1e300), schema.get("maximum", 1e300))
        case "boolean":
            return st.booleans()
        case "array":
            most = min(schema.get("maxItems", 3), 3)
            return st.lists(fitting(name, schema["items"]), min_size=schema.get("minItems", 0), max_size=most)
        case "null":
            return st.none()
    return _fitting_text(name, schema)


def _fitting_text(name: str, schema: Json) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], alphabet=st.sampled_from(string.ascii_lowercase + "0123456789-"))
    likely = _KNOWN.get(name, _WORDS[:6])
    return st.one_of(st.sampled_from(likely), st.sampled_from(likely), TEXTS)


def _fitting_object(schema: Json) -> st.SearchStrategy[Json]:
    needed = {name: fitting(name, schema["properties"][name]) for name in schema.get("required", ())}
    other = {name: fitting(name, one) for name, one in schema["properties"].items() if name not in needed}
    return st.fixed_dictionaries(needed, optional=other)


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=6,
)


@st.composite
def api_requests(draw: st.DrawFn, document: Json, path: str, method: str) -> FuzzRequest:
    """Of one operation: mostly as described, often with one thing wrong."""
    operation = document["paths"][path][method]
    target, pairs, is_fit = path, [], draw(st.sampled_from([True, True, False]))
    for parameter in operation["parameters"]:
        name = parameter["name"]
        value = draw(fitting(name, parameter["schema"]) if is_fit or draw(st.booleans()) else unfit())
        if parameter["in"] == "path":
            target = target.replace(f"{{{name}}}", _encoded(str(value), safe="/" if draw(st.booleans()) else ""))
        elif value is not None and (parameter["required"] or draw(st.integers(0, 2)) == 0):
            pairs.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    if not is_fit:
        pairs = draw(_broken_pairs(pairs))
    query = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in pairs)
    body, headers = draw(_bodies(operation, document, is_fit=is_fit))
    data = message(method.upper(), f"{target}?{query}" if query else target, headers | draw(_callers(is_fit)), body)
    return FuzzRequest("api" if is_fit else "api, unfit", data, (method, path))


def unfit() -> st.SearchStrategy[str]:
    raw = st.sampled_from(_RAW).map(lambda raw: f"\0raw{raw}")
    near = st.tuples(st.sampled_from([citation, glob, pattern]), st.integers(0, 99_999)).map(_near)
    return st.one_of(TEXTS, st.sampled_from(_NUMBERS), raw, near)


def _near(made: tuple[Callable[[Random], str], int]) -> str:
    """What is nearly a citation, a path pattern or a pattern of words."""
    maker, number = made
    return maker(chooser("http", number))


def _broken_pairs(pairs: Pairs) -> st.SearchStrategy[Pairs]:
    changed = [pairs, pairs + pairs[:1], [*pairs, ("unknown", "1")], pairs[1:], pairs * 60, [*pairs, ("token", "x")]]
    return st.one_of(st.just(pairs), st.sampled_from(changed))


def _encoded(text: str, safe: str = "") -> str:
    """Percent-encoded, but for what is to be sent as it is."""
    if text.startswith("\0raw"):
        return text.removeprefix("\0raw")
    return quote(text, safe=safe, errors="surrogatepass")


@st.composite
def _bodies(draw: st.DrawFn, operation: Json, document: Json, *, is_fit: bool) -> tuple[bytes, dict[str, str]]:
    headers = {"Content-Type": "application/json"}
    if "requestBody" not in operation:
        odd = draw(st.sampled_from([b"", b"", b"", b"{}", b"x"]))
        return odd, headers if odd or draw(st.booleans()) else {}
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = document["components"]["schemas"][reference]
    value = draw(st.one_of(st.sampled_from(_BODIES.get(reference, ({},))), _fitting_object(schema)))
    if not is_fit:
        value = draw(st.one_of(_JSON, st.dictionaries(st.sampled_from(sorted(schema["properties"])), _JSON)))
    body = json.dumps(value).encode()
    if not is_fit and draw(st.booleans()):
        body = draw(broken_json(body))
        headers["Content-Type"] = draw(
            st.sampled_from(["text/plain", "application/json", "", "application/json;x=\x80"])
        )
    return body, headers


@st.composite
def broken_json(draw: st.DrawFn, body: bytes) -> bytes:
    cut = draw(st.integers(0, len(body)))
    return draw(
        st.sampled_from([
            body[:cut], body + body, b"\xff\xfe" + body, b"[" * 10_000, b'{"a":' * 10_000, b"\x00", b"1" * 5_000,
            b'{"kind":"\\ud800"}', b'{"q":1,"q":2}', b"NaN", b"x" * 70_000, b"[" + b"1," * 9_999 + b"1]",
            b"\xef\xbb\xbf{}",
        ])
    )  # fmt: skip


@st.composite
def _callers(draw: st.DrawFn, is_fit: bool) -> dict[str, str]:
    """Headers that say who asks, and from where."""
    if is_fit:
        return {"Authorization": f"Bearer {draw(st.sampled_from([OPERATE, OPERATE, READ]))}"}
    some = {
        "Authorization": [*[f"Bearer {READ}"] * 8, "Bearer x", "Basic eDp5", "Bearer", "Bearer a b", "\x80"],
        "Origin": ["https://evil.example", "null", "http://127.0.0.1:1", "\x80", "//", "http://[::1"],
        "If-None-Match": ["*", 'W/"x"', ",,,", '"'],
        "Idempotency-Key": ["1", "x" * 300, "\x80", ""],
        "Last-Event-ID": ["1", "x", "-1"],
        "Accept": ["text/html", "application/json", "*/*;q=x", "\xff"],
        "Cookie": ["knowledge_00000000=x", ";;;=", "=" * 200, "\x80=\x80"],
        "X-Form-Token": ["x", "\x80"],
        "X-Forwarded-For": ["1.2.3.4, x", "\x80", "::1"],
        "Forwarded": ["for=x;host=evil.example"],
    }
    names = draw(st.lists(st.sampled_from(sorted(some)), unique=True, max_size=4))
    chosen = {name: draw(st.sampled_from(some[name])) for name in names}
    return {"Authorization": f"Bearer {OPERATE}"} | chosen


@st.composite
def page_requests(draw: st.DrawFn, target: str) -> FuzzRequest:
    target = target.replace("{run}", _encoded(draw(st.one_of(st.sampled_from("1234"), unfit()))))
    target = target.replace("{name}", _encoded(draw(st.one_of(st.just("pages.css"), unfit()))))
    pairs = draw(st.lists(st.tuples(st.sampled_from(PAGE_QUERIES), unfit()), max_size=4))
    query = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in pairs)
    is_fit = draw(st.booleans())
    method = (
        "GET" if is_fit else draw(st.sampled_from(["GET", "HEAD", "POST", "PUT", "OPTIONS", "PATCH", "DELETE", "X"]))
    )
    form = "&".join(f"{name}={_encoded(draw(unfit()))}" for name in ("token", "form_token", "next"))
    body = form.encode("utf-8", "surrogateescape") if method == "POST" else b""
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    callers = draw(_callers(is_fit))
    return FuzzRequest("page", message(method, f"{target}?{query}" if query else target, headers | callers, body))


def message(method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """A request after which the connection ends. Latin-1, as headers are; other characters go as UTF-8."""
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}"] * bool(body or method == "POST")
    head = "\r\n".join(lines) + "\r\n\r\n"
    try:
        return head.encode("latin-1") + body
    except UnicodeEncodeError:
        return head.encode("utf-8", "surrogateescape") + body


def drawn(strategy: st.SearchStrategy[FuzzRequest], number: int, count: int) -> list[FuzzRequest]:
    """The same requests for the same number."""
    found: list[FuzzRequest] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(request: FuzzRequest) -> None:
        found.append(request)

    collect()
    return found[:count]
