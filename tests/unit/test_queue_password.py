"""The queue's password out of a file: read when the queue is asked, checked, and in no message."""

import os
from pathlib import Path
from typing import Any

import pytest

from app.config import load, locate, read
from app.config_report import effective_values
from app.queue_password import queue_url, read_password
from domain.errors import ConfigurationError, UntrustedConfigurationError
from domain.settings import QueueSettings
from scheduler.queue.address import QueueAddress, parse_queue_url

SECRET = "pa:ss@w/rd %41"


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "queue-password"
    path.write_text(SECRET + "\n", "utf-8")
    return path


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://valkey", QueueAddress(host="valkey", password=SECRET)),
        ("redis://valkey:7000/3", QueueAddress(host="valkey", port=7000, database=3, password=SECRET)),
        ("rediss://me@valkey/", QueueAddress(host="valkey", username="me", password=SECRET, tls=True)),
        ("redis://[::1]:7000", QueueAddress(host="::1", port=7000, password=SECRET)),
        ("unix:///run/q@home.sock", QueueAddress(socket="/run/q@home.sock", password=SECRET)),
    ],
)
def test_the_password_is_put_into_the_address(url: str, address: QueueAddress, password_file: Path) -> None:
    assert parse_queue_url(queue_url(QueueSettings(url, password_file=password_file))) == address


def test_without_a_file_the_address_stays_as_it_is(password_file: Path) -> None:
    assert queue_url(QueueSettings("redis://me:x@valkey")) == "redis://me:x@valkey"
    assert queue_url(QueueSettings("", password_file=password_file)) == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"  \n", "is empty"),
        (b"hunter2\nhunter3\n", "more than a password"),
        (b"hunter2\0", "more than a password"),
        (b"hunter2" * 1000, "more than a password"),
        (b"hunter2\xff", "no text"),
    ],
)
def test_a_file_without_a_password_is_told(content: bytes, said: str, tmp_path: Path) -> None:
    """What the file holds is in no message, be it a password or not."""
    path = tmp_path / "queue-password"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=said) as refused:
        read_password(path)
    assert str(path) in refused.value.message
    assert "hunter" not in refused.value.message + refused.value.hint
    assert refused.value.__cause__ is None


def test_an_absent_file_and_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not there"):
        read_password(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_password(tmp_path)


def test_the_line_break_of_another_system_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "queue-password"
    path.write_bytes(b"hunter2\r\n")
    assert read_password(path) == "hunter2"


def configured(folder: Path, block: str, environ: dict[str, str] | None = None) -> Any:
    path = folder / "knowledge.yaml"
    path.write_text(f"knowledge:\n  queue: {block}\n", "utf-8")
    environ = environ or {}
    return read(locate(folder, config=path, environ=environ), environ, cwd=Path(os.sep))


def test_a_relative_file_lies_beside_the_configuration(tmp_path: Path, password_file: Path) -> None:
    loaded = configured(tmp_path, "{url: 'redis://h', password_file: queue-password}")
    assert loaded.settings.queue.password_file == password_file


def test_the_variable_names_the_file(tmp_path: Path, password_file: Path) -> None:
    environ = {"KNOWLEDGE_QUEUE__PASSWORD_FILE": str(password_file)}
    loaded = configured(tmp_path, "{url: 'redis://h'}", environ)
    assert loaded.settings.queue.password_file == password_file
    rows = {row.key: str(row.value) for row in effective_values(loaded, environ)}
    assert rows["queue.password_file"] == str(password_file)
    assert not [value for value in rows.values() if SECRET in value]
    assert SECRET not in repr(loaded.settings)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("{password_file: /run/secrets/q}", "goes with queue.url"),
        ("{url: 'redis://:hunter2@h', password_file: /run/secrets/q}", "holds a password too"),
        ("{url: 'redis://h', password_file: \"/run\\n\"}", "control characters"),
    ],
)
def test_what_contradicts_itself_is_refused(block: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        configured(tmp_path, block)
    assert "hunter2" not in refused.value.message + refused.value.hint


def test_a_found_file_that_names_one_needs_trust(tmp_path: Path, password_file: Path) -> None:
    """A file somebody left in a folder does not get to send the content of another file anywhere."""
    (tmp_path / "knowledge.yaml").write_text(f"knowledge: {{queue: {{password_file: {password_file}}}}}\n", "utf-8")
    environ = {"KNOWLEDGE_QUEUE__URL": "redis://mine", "HOME": str(tmp_path)}
    with pytest.raises(UntrustedConfigurationError, match=r"queue\.password_file"):
        load(locate(tmp_path, config=None, environ=environ), environ, cwd=tmp_path)
