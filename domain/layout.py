"""Every path of a base's home directory, made in one place."""

from dataclasses import dataclass
from pathlib import Path

DATABASE_NAME = "knowledge.db"
STATE_NAME = "state.db"
LOCK_NAME = "knowledge.lock"
SPOOL_NAME = "spool"


@dataclass(frozen=True, slots=True)
class BaseLayout:
    """The files of one base below its home directory (absolute)."""

    home: Path

    @property
    def database(self) -> Path:
        return self.home / DATABASE_NAME

    @property
    def state(self) -> Path:
        return self.home / STATE_NAME

    @property
    def lock(self) -> Path:
        return self.home / LOCK_NAME

    @property
    def spool(self) -> Path:
        return self.home / SPOOL_NAME

    @property
    def restore_staging(self) -> Path:
        """Where a restore lays out a pair of databases; dropped when it does not come to its end."""
        return self.home / "restore.part"

    @property
    def restore_ready(self) -> Path:
        """The same directory once the pair is whole: from here on it replaces the old one, whatever happens."""
        return self.home / "restore.ready"

    @property
    def gitignore(self) -> Path:
        return self.home / ".gitignore"

    @property
    def cachedir_tag(self) -> Path:
        return self.home / "CACHEDIR.TAG"


def sidecars(database: Path) -> tuple[Path, Path, Path]:
    """The database file and the two files that SQLite keeps beside it (WAL and shared memory)."""
    return database, database.with_name(f"{database.name}-wal"), database.with_name(f"{database.name}-shm")


def is_home(entry_names: frozenset[str] | set[str]) -> bool:
    """Whether a directory with these entries is a base's home: a walk skips it whole (S0-14)."""
    return LOCK_NAME in entry_names and (DATABASE_NAME in entry_names or STATE_NAME in entry_names)
