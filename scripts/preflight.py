"""Says in one line what this machine lacks for the set-up, and ends with 1; says nothing when all is there.

Standard library only, and written so that a Python as old as 3.6 can run it far enough to be told so.
"""

import importlib
import importlib.util
import platform
import sys
import sysconfig

OLDEST = (3, 11)
NEWEST = (3, 14)  # the newest that every pinned package has a wheel for
OLDEST_GLIBC = (2, 28)
OLDEST_SQLITE = (3, 40, 0)
PLATFORMS = ("linux x86_64", "linux aarch64", "darwin x86_64", "darwin arm64")
WITH_OWN_SQLITE = ("linux x86_64", "darwin arm64")  # pysqlite3 has wheels for these


def missing() -> str:
    """The first thing that is missing and how to get it, in one line; "" when nothing is."""
    for check in (_python, _wheels, _venv, _modules, _sqlite):
        problem = check()
        if problem:
            return problem
    return ""


def _python() -> str:
    version = sys.version_info[:2]
    shown = f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})"
    if sys.implementation.name != "cpython":
        return f"CPython is needed, this is {shown}: name one with PYTHON=python3.12"
    if version < OLDEST:
        return (
            f"Python 3.11 or newer is needed, this is {shown}: "
            "install one and name it with PYTHON=python3.12 if it is not the python3 on your PATH"
        )
    if version > NEWEST:
        return f"the pinned packages have no wheels for {shown}: use Python 3.11 to 3.14, with PYTHON=python3.14"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"the free-threaded build of Python is not supported, and this is one ({sys.executable})"
    return ""


def _wheels() -> str:
    here = _platform()
    if here not in PLATFORMS:
        return f"there are no wheels for {here}: Linux on x86_64 or aarch64, or macOS, is needed (on Windows: WSL)"
    if sys.maxsize <= 2**32:
        return f"a 64-bit Python is needed, this one has 32 bits ({sys.executable})"
    if sys.platform != "linux":
        return ""
    name, version = platform.libc_ver()
    if name != "glibc":
        return "there are no wheels for a Linux without glibc (such as Alpine): use one with glibc 2.28 or newer"
    if _numbers(version) < OLDEST_GLIBC:
        return f"glibc 2.28 or newer is needed, this is {version}: use a newer release of your distribution"
    return ""


def _venv() -> str:
    if all(importlib.util.find_spec(name) is not None for name in ("venv", "ensurepip")):
        return ""
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    return f"Python's venv module is incomplete in {sys.executable}: on Debian or Ubuntu, apt install {package}"


def _modules() -> str:
    for name in ("ssl", "zlib", "sqlite3"):
        try:
            importlib.import_module(name)
        except ImportError:
            return (
                f"{sys.executable} was built without its {name} module: "
                "install a complete Python and name it with PYTHON=..."
            )
    return ""


def _sqlite() -> str:
    import sqlite3  # some builds lack it

    if _platform() in WITH_OWN_SQLITE or sqlite3.sqlite_version_info >= OLDEST_SQLITE:
        return ""
    return (
        f"SQLite 3.40 or newer is needed, {sys.executable} has {sqlite3.sqlite_version}: "
        "install a newer Python and name it with PYTHON=..."
    )


def _platform() -> str:
    return f"{sys.platform} {platform.machine()}"


def _numbers(version: str) -> "tuple[int, ...]":
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def main() -> int:
    problem = missing()
    if problem:
        sys.stderr.write(f"set-up: {problem}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
