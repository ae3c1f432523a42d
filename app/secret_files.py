"""Files that a configuration names and that hold one secret; nothing of what they hold is ever shown."""

from pathlib import Path

from app.config_origins import shown
from domain.errors import ConfigurationError


def secret_bytes(key: str, path: Path, *, most_bytes: int, hint: str) -> bytes:
    """What the file holds, up to a byte more than may be in it. Raises ConfigurationError naming key and file: absent
    (with `hint`), unreadable."""
    where = f"{key}: {shown(str(path))}"
    try:
        with path.open("rb") as file:
            return file.read(most_bytes + 1)
    except FileNotFoundError:
        raise ConfigurationError(f"{where} is not there", hint=hint) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"{where} cannot be read: {reason}", hint="check who may read it") from None
