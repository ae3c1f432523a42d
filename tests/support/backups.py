"""Where the tests of backups put things, and what they compare."""

from pathlib import Path

from domain.settings import Settings
from tests.support.bases import settings_of


def elsewhere(place: Path) -> Settings:
    return settings_of(place / "elsewhere" / "home")


def listing(folder: Path) -> dict[str, bytes]:
    """All but the log and the shared memory, which a look may make."""
    kept = [path for path in folder.iterdir() if path.is_file() and not path.name.endswith(("-wal", "-shm"))]
    return {path.name: path.read_bytes() for path in kept}
