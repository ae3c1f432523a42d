"""Files that a configuration names and that hold one secret; nothing of what they hold is ever shown."""

import os
from pathlib import Path

from app.config_origins import shown
from domain.errors import ConfigurationError


def secret_bytes(key: str, path: Path, *, most_bytes: int, hint: str) -> bytes:
    """What the file holds, up to a byte more than may be in it. Raises ConfigurationError naming key and file: absent
    (with `hint`), unreadable."""
    where = f"{key}: {shown(str(path))}"
    try:
        # a pipe that nobody writes to would be waited for without end; so opened, it is an empty file
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123 - descriptor
            return file.read(most_bytes + 1) or b""
    except FileNotFoundError:
        raise ConfigurationError(f"{where} is not there", hint=hint) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"{where} cannot be read: {reason}", hint="check who may read it") from None
