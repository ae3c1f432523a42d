"""The queue's address: read by ourselves, and never shown with its password."""

import pytest
from redis.exceptions import AuthenticationError

from domain.errors import ConfigurationError
from scheduler.queue.address import QueueAddress, parse_queue_url
from scheduler.queue.client import redis_settings, unreachable

SECRET = "pa:ss@w/rd"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://cache", QueueAddress(host="cache")),
        ("redis://cache:7000/3", QueueAddress(host="cache", port=7000, database=3)),
        ("redis://[::1]:7000", QueueAddress(host="::1", port=7000)),
        ("rediss://cache/", QueueAddress(host="cache", tls=True)),
        ("redis://me:pa%3Ass%40w%2Frd@cache", QueueAddress(host="cache", username="me", password=SECRET)),
        ("redis://:pa%3Ass%40w%2Frd@cache", QueueAddress(host="cache", password=SECRET)),
        ("unix:///run/my%20queue.sock", QueueAddress(socket="/run/my queue.sock")),
    ],
)
def test_an_address_is_read(url: str, address: QueueAddress) -> None:
    read = parse_queue_url(url)
    assert read == address
    settings = redis_settings(read)
    assert settings.password == address.password
    assert settings.unix_socket_path == (address.socket or None)
    assert settings.retry_on_timeout


@pytest.mark.parametrize(
    "url",
    [
        *("", "cache", "cache:6379", "http://cache", "redis://", "redis://cache:port", "redis://cache:99999999"),
        *("redis://cache/one", "redis://cache/-1", "unix://", "redis://[::1", "pickle://cache", "redis:///3"),
    ],
)
def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="queue") as refused:
        parse_queue_url(url)
    assert refused.value.hint


@pytest.mark.parametrize("url", ["redis://me:hunter2@cache:port", "http://me:hunter2@cache", "redis://:hunter2@/x"])
def test_a_password_is_in_no_message(url: str) -> None:
    """Secrets are never printed."""
    with pytest.raises(ConfigurationError) as refused:
        parse_queue_url(url)
    assert "hunter2" not in refused.value.message + refused.value.hint


def test_a_password_is_in_no_form_of_an_address() -> None:
    address = parse_queue_url("rediss://me:hunter2@cache:7000/1")
    assert "hunter2" not in f"{address} {address!r} {[address]}"
    assert str(address) == "rediss://cache:7000/1"
    assert str(parse_queue_url("unix:///run/q")) == "unix:/run/q"


def test_a_refused_password_is_not_told_as_silence() -> None:
    """P19: the message names neither user nor password."""
    address = QueueAddress(host="queue.example", username="worker", password="s3cret")
    refused = unreachable(address, AuthenticationError("WRONGPASS"))
    silent = unreachable(address, ConnectionRefusedError())
    assert "refuses" in refused.message
    assert "does not answer" in silent.message
    assert refused.exit_status == silent.exit_status == 16
    assert "s3cret" not in refused.message + refused.hint + silent.message + silent.hint
