"""The one place that names a SQLite module.

pysqlite3 where its wheel is installed (it bundles a current SQLite that can load extensions), else the
standard module when it is new enough. Exceptions are re-exported, since pysqlite3's are not `sqlite3.*`.
"""

from typing import TYPE_CHECKING

from domain.errors import StorageError

MINIMUM_VERSION = (3, 40, 0)  # external-content FTS5, STRICT, and RETURNING as used here

if TYPE_CHECKING:
    import sqlite3 as dbapi
else:
    try:
        from pysqlite3 import dbapi2 as dbapi
    except ImportError:  # no wheel for this platform
        import sqlite3 as dbapi

Connection = dbapi.Connection
Cursor = dbapi.Cursor
Row = dbapi.Row
Error = dbapi.Error
DatabaseError = dbapi.DatabaseError
OperationalError = dbapi.OperationalError
IntegrityError = dbapi.IntegrityError
DataError = dbapi.DataError
InterfaceError = dbapi.InterfaceError
ProgrammingError = dbapi.ProgrammingError
sqlite_version: str = dbapi.sqlite_version
sqlite_version_info: tuple[int, int, int] = dbapi.sqlite_version_info
module_name: str = dbapi.__name__


def connect(address: str, *, uri: bool, timeout_s: float) -> Connection:
    """A connection in autocommit mode that may move between threads (one at a time uses it).

    Raises StorageError when the SQLite at hand is older than `MINIMUM_VERSION`.
    """
    if sqlite_version_info < MINIMUM_VERSION:
        wanted = ".".join(str(part) for part in MINIMUM_VERSION)
        raise StorageError(
            f"SQLite {sqlite_version} is too old: {wanted} or newer is needed",
            hint="install the pysqlite3 package, or a Python whose sqlite3 module is newer",
        )
    return dbapi.connect(address, uri=uri, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def load_vector_functions(connection: Connection) -> bool:
    """Give a connection the functions of sqlite-vec; False where this SQLite module can load no extension.

    The library is loaded by its path, since its Python package imports numpy; afterwards the connection loads nothing
    any more.
    """
    if connection.execute("SELECT 1 FROM pragma_function_list WHERE name = 'vec_distance_cosine'").fetchone():
        return True
    library = _vector_library()
    if library is None or not hasattr(connection, "enable_load_extension"):
        return False
    try:
        connection.enable_load_extension(True)
        try:
            connection.load_extension(library)
        finally:
            connection.enable_load_extension(False)
    except Error:
        return False
    return True


def _vector_library() -> str | None:
    """The path of sqlite-vec's library, without the ending that the platform gives it."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sqlite_vec")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return f"{places[0]}/vec0" if places else None
