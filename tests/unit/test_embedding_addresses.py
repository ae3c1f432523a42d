"""Which addresses texts may be sent to (T20, R17, S1-57)."""

import subprocess
import sys

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from embedding.addresses import check_base_url, is_loopback, parse_base_url

HTTPS = "must be https"
NUMBER = "must spell out"
USER = "must not hold a user name"
UNSEEN = "must not hold a backslash"
FORM = "must be an http or https"
LINK_LOCAL = "must not be a link-local"

TABLE = [
    ("http://127.0.0.1:1234/v1", ""),
    ("http://127.9.8.7/v1", ""),
    ("http://[::1]:1234/v1", ""),
    ("http://localhost:11434/v1/", ""),
    ("HTTP://LocalHost/v1", ""),
    ("https://api.example.com/v1", ""),
    ("https://10.0.0.7", ""),
    ("http://127.1/v1", NUMBER),
    ("http://2130706433", NUMBER),
    ("http://0x7f000001", NUMBER),
    ("http://0", NUMBER),
    ("http://0177.0.0.1", NUMBER),
    ("http://127.0.0.1.", NUMBER),
    ("https://127.1", NUMBER),
    ("http://0x7f.0.0.0x1", NUMBER),
    ("http://256.0.0.1", NUMBER),
    ("http://[::ffff:127.0.0.1]", HTTPS),
    ("http://LOCALHOST.", HTTPS),
    ("http://localhost.evil.com", HTTPS),
    ("http://127.0.0.1.evil.com", HTTPS),
    ("http://0.0.0.0", HTTPS),
    ("http://[::]", HTTPS),
    ("http://10.0.0.7", HTTPS),
    ("http://ollama:11434", HTTPS),
    ("http://user@127.0.0.1", USER),
    ("https://user:secret@api.example.com", USER),
    ("http://127.0.0.1@evil.com", USER),
    ("http://127.0.0.1\\@evil.com", UNSEEN),
    ("http://127.0.0.1\t.evil.com", UNSEEN),
    ("http://127.0.0.1/\nv1", UNSEEN),
    (" http://127.0.0.1", UNSEEN),
    ("http://127.0.0.1\u3000/v1", UNSEEN),
    ("http://127.0.0.1\x00", UNSEEN),
    ("ftp://127.0.0.1", FORM),
    ("file:///etc/passwd", FORM),
    ("127.0.0.1:1234/v1", FORM),
    ("localhost:1234", FORM),
    ("//127.0.0.1", FORM),
    ("http:127.0.0.1", FORM),
    ("http://", FORM),
    ("http:///v1", FORM),
    ("http://:80", FORM),
    ("http://[::1", FORM),
    ("http://[fe80::1%25eth0]", FORM),
    ("http://%31%32%37.0.0.1", FORM),
    ("http://127.0.0.1:", FORM),
    ("", FORM),
    ("http://127.0.0.1:99999", "must have a port"),
    ("http://127.0.0.1:0", "must have a port"),
    ("http://\uff11\uff12\uff17.0.0.1", "must be ASCII"),
    ("https://bücher.example", "must be ASCII"),
    ("http://127.0.0.1/v1?key=x", "must not hold ?"),
    ("http://127.0.0.1/v1#x", "must not hold ?"),
    ("http://169.254.169.254/latest", LINK_LOCAL),
    ("https://169.254.169.254", LINK_LOCAL),
    ("https://[fe80::1]", LINK_LOCAL),
    ("https://[::ffff:169.254.169.254]", LINK_LOCAL),
    ("https://[::ffff:a9fe:a9fe]", LINK_LOCAL),
    ("https://[1:2]", NUMBER),
]


@pytest.mark.parametrize(("url", "problem"), TABLE)
def test_each_address_is_judged(url: str, problem: str) -> None:
    """T20."""
    found = check_base_url(url, ())
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


@pytest.mark.parametrize("url", [url for url, problem in TABLE if problem and problem != HTTPS])
def test_permission_for_http_permits_nothing_else(url: str) -> None:
    """R17: whatever is named there."""
    hosts = ("127.1", "0", "2130706433", "169.254.169.254", "fe80::1", "127.0.0.1", "evil.com", "user@127.0.0.1", "")
    assert check_base_url(url, hosts)


def test_http_is_permitted_to_the_very_name() -> None:
    """R17."""
    assert check_base_url("http://Ollama:11434/v1", ("ollama",)) == ""
    assert check_base_url("http://ollama:11434/v1", ("Ollama",)) == ""
    assert check_base_url("http://ollama.evil.com/v1", ("ollama",)).startswith(HTTPS)
    assert check_base_url("http://my.ollama/v1", ("ollama",)).startswith(HTTPS)
    assert check_base_url("http://[fd00::7]/v1", ("fd00::7",)) == ""


def test_a_refusal_does_not_repeat_the_address() -> None:
    """S1-26: it may hold a password."""
    for url, problem in TABLE:
        if problem == USER:
            assert "secret" not in check_base_url(url)
            assert "evil" not in check_base_url(url)


@given(
    st.from_regex(r"\A[Hh][Tt][Tt][Pp]s?://[\[\]a-zA-Z0-9.:_@%\\/?#\t -]{1,30}\Z")
    | st.text(max_size=20).map(lambda tail: "http://127.0.0.1" + tail)
    | st.text(max_size=20).map(lambda middle: f"http://{middle}127.0.0.1/v1")
)
@example("http://a..b/v1")
@example("http://127.0.0.1/v1/../../x")
@example("https://[2001:DB8::1]:443/v1")
def test_the_client_reads_an_address_as_it_was_judged(url: str) -> None:
    """T20: one parse. Whatever passes has the same scheme, host and port for the library that sends."""
    if check_base_url(url, ()):
        return
    address = parse_base_url(url)
    read = httpx.URL(address.endpoint)
    assert (read.scheme, read.host) == (address.scheme, address.host)
    assert read.port in (address.port, None)
    assert read.userinfo == b""
    assert address.scheme == "https" or is_loopback(read.host)
    assert httpx.URL(url).host.lower() == read.host


def test_an_address_is_judged_without_the_library() -> None:
    """S1-04: a lexical command pays for no client of HTTP."""
    code = "import sys, embedding.addresses; sys.exit(bool({'httpx', 'numpy', 'ssl', 'tenacity'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_where_texts_are_posted() -> None:
    """S1-25."""
    assert parse_base_url("http://127.0.0.1:1234/v1/").endpoint == "http://127.0.0.1:1234/v1/embeddings"
    assert parse_base_url("https://[::1]").endpoint == "https://[::1]/embeddings"
    assert parse_base_url("https://Example.COM/a/b").shown_host == "example.com"
