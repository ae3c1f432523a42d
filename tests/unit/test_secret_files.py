"""Files that hold a secret: what is none is told at once (T29)."""

import os
from pathlib import Path

import pytest

from app.secret_files import secret_bytes
from domain.errors import ConfigurationError


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert secret_bytes("server.read_token_file", tmp_path / "pipe", most_bytes=10, hint="") == b""


def test_no_more_is_read_than_a_byte_too_many(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 50)
    assert secret_bytes("k", tmp_path / "long", most_bytes=10, hint="") == b"x" * 11


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        secret_bytes("k", tmp_path, most_bytes=10, hint="")
