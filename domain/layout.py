"""Every path of a base's home directory, made in one place."""

from pathlib import Path

from msgspec import Struct

DATABASE_NAME = "knowledge.db"
STATE_NAME = "state.db"
LOCK_NAME = "knowledge.lock"
SPOOL_NAME = "spool"


class BaseLayout(Struct, frozen=True):
    """The files of one base below its home directory (absolute)."""

    home: Path
    database_folder: Path | None = None  # where knowledge.db lies, if not in the home itself

    @property
    def database(self) -> Path:
        return (self.database_folder or self.home) / DATABASE_NAME

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
    def upgrade_staging(self) -> Path:
        """Where an upgrade makes the new knowledge.db; one that was cut short is gone on with."""
        return self.home / "upgrade.part"

    @property
    def upgrading(self) -> "BaseLayout":
        """The same base with the knowledge.db that an upgrade makes in the place of its own."""
        return BaseLayout(self.home, self.upgrade_staging)

    @property
    def scheduler_lock(self) -> Path:
        """Held by the scheduler of a service: while somebody has it, a command line asks the service."""
        return self.home / "scheduler.lock"

    @property
    def calls(self) -> Path:
        """What other processes ask of the writer of a service, a file each, and its answers."""
        return self.home / "calls"

    @property
    def service(self) -> Path:
        """Where the queue of a service is that brought its own (`knowledge up`)."""
        return self.home / "service.json"

    @property
    def ballast(self) -> Path:
        """Room on the disk that is held for whoever ends runs and removes documents once it is full."""
        return self.home / "ballast"

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
