"""Opening connections: pragmas, modes, and the one translation of SQLite's errors."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from domain.errors import (
    DiskFullError,
    FormatError,
    IntegrityError,
    KnowledgeError,
    LockedError,
    NotBuiltError,
    StorageError,
)
from domain.layout import STATE_NAME
from store import driver, files

if TYPE_CHECKING:
    import aiosqlite

Result = TypeVar("Result")

PAGE_BYTES = 8192  # measured: a tenth less work than 4096 for the full-text tables
BUSY_TIMEOUT_S = 5.0
WRITER_CACHE_KIB = 32 * 1024
READER_CACHE_KIB = 4 * 1024  # of each open base; with 16 MiB, searches over 400,000 passages take 1 to 2% less
CHECKPOINT_PAGES = 2048  # 16 MiB of WAL before the writer checkpoints


class RowRefusedError(KnowledgeError):
    """A row of a group cannot be stored: the group is halved down to the guilty document (R24)."""

    code = "store_refused"


def translate(error: Exception, path: Path) -> KnowledgeError:
    """SQLite's error as ours, by its code, never by its text."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    match primary:
        case 13:  # SQLITE_FULL
            return DiskFullError(f"no space left to write {path}", hint="free some space, then run the command again")
        case 11 | 26:  # SQLITE_CORRUPT, SQLITE_NOTADB
            return damaged(str(error), path)
        case 5 | 6:  # SQLITE_BUSY, SQLITE_LOCKED
            return LockedError(f"{path} is busy: another process holds it", hint="try again in a moment")
        case 8 if files.is_being_made(path):  # SQLITE_READONLY: the journal awaits a writer
            return NotBuiltError(
                f"making {path} was cut short before it held anything", hint="run `knowledge index YOUR_FOLDER` again"
            )
        case 8 | 10 | 14:  # SQLITE_READONLY, SQLITE_IOERR, SQLITE_CANTOPEN
            return StorageError(
                f"cannot read or write {path}: {error}",
                hint="check that the directory and its files are yours, that the disk is not full or read-only",
            )
        case 18 | 19 | 20 | 25:  # SQLITE_TOOBIG, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_RANGE
            return RowRefusedError(f"{path} refused a row: {error}")
    is_undecodable = isinstance(error, driver.OperationalError) and code is None  # the module's own word, not SQLite's
    if is_undecodable or isinstance(error, UnicodeDecodeError):
        return damaged(str(error), path)
    if isinstance(error, driver.DataError | driver.InterfaceError | OverflowError | UnicodeEncodeError):
        return RowRefusedError(f"{path} refused a value: {error}")
    return StorageError(f"{path}: {error}", hint="see `knowledge doctor`")


def damaged(why: str, path: Path) -> IntegrityError:
    """What a database that does not hold what it should is told as."""
    if path.name == STATE_NAME:  # a reset needs it, and keeps it
        hint = (
            "`knowledge restore --force FILE` where there is a backup; else move it away, then"
            " `knowledge reset --force` and `knowledge index` start anew from the files"
        )
    else:
        hint = "see `knowledge verify`; `knowledge reset --force` starts anew from the files"
    return IntegrityError(f"{path} is damaged or is no database of this program ({why})", hint=hint)


class translated:  # noqa: N801 - it reads as the statement that it is: `with translated(path):`
    """Nothing of the driver crosses this line. A class, since a search crosses it ten times and a generator costs
    three times as much."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, driver.Error | OverflowError | UnicodeError):
            raise translate(error, self._path) from error


class reading_full_text(translated):  # noqa: N801 - as above
    """The same around a read of the full-text tables: what is damaged there is made again by a rebuild.

    A table of theirs that is lost is told by SQLite as an error of the statement; ours are fixed and were tried.
    """

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, driver.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in (1, 11):
            raise IntegrityError(
                f"the full-text tables of {self._path} are damaged ({error})",
                hint="run `knowledge rebuild`, which makes them again from the stored text; `knowledge verify` says"
                " whether anything else is damaged",
            ) from error
        super().__exit__(kind, error, trace)


@contextmanager
def immediate(connection: driver.Connection) -> Iterator[None]:
    """One write transaction; rolled back on anything, also where SQLite has done so already."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # after SQLITE_FULL or SQLITE_IOERR it is over: a blind ROLLBACK raises
            connection.execute("ROLLBACK")
        raise


def open_writer(path: Path, *, synchronous: str) -> driver.Connection:
    """The writing connection of a store file: made 0600 before SQLite sees it, WAL, foreign keys on.

    `synchronous` is NORMAL (knowledge.db: a lost tail is made again by the next walk) or FULL (state.db).
    """
    files.create_private(path)
    files.reassert_private(path)
    with translated(path):
        connection = driver.connect(str(path), uri=False, timeout_s=BUSY_TIMEOUT_S)
    try:
        with translated(path):
            _harden(connection)
            _prepare_file(connection, path)
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
        files.reassert_private(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare_file(connection: driver.Connection, path: Path) -> None:
    """Lay out an empty file. One with content that is not in WAL mode was not written here, and is left as it is:
    the mode would be changed in the file before anyone has looked at what it holds.

    Emptiness is asked of SQLite, which first rolls back what a crash in the midst of this has left; a file that was
    just laid out then need not be in WAL mode yet.
    """
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    elif connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        raise FormatError(
            f"{path} is a database that this program did not write (it is not in WAL mode)",
            hint="move it away, or choose another directory",
        )
    connection.execute("PRAGMA journal_mode = WAL").fetchall()


def open_reader(path: Path) -> driver.Connection:
    """A read-only connection. The caller has seen that the file is there."""
    files.refuse_unsafe_database(path)
    with translated(path):
        connection = driver.connect(_read_only_uri(path), uri=True, timeout_s=BUSY_TIMEOUT_S)
    try:
        with translated(path):
            _harden(connection)
            connection.execute("PRAGMA query_only = ON")
            connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
    except BaseException:
        connection.close()
        raise
    return connection


def forget_pages(connection: driver.Connection) -> None:
    """Give up the cache, which grows with the file up to WRITER_CACHE_KIB or READER_CACHE_KIB: the system has the
    pages, too."""
    connection.execute("PRAGMA shrink_memory")


def _harden(connection: driver.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def _read_only_uri(path: Path) -> str:
    quoted = str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?mode=ro"


async def run_on_connection(
    connection: "aiosqlite.Connection", function: Callable[..., Result], *arguments: object
) -> Result:
    """Run one function whole on the connection's thread.

    A transaction made of awaited statements holds the write lock for as long as the event loop is busy; this is
    the one place that calls aiosqlite's `_execute`, pinned by version and by a contract test.
    """
    result: Result = await connection._execute(function, *arguments)  # type: ignore[no-untyped-call]
    return result
