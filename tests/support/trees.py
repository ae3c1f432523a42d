"""Trees of files: made from a mapping, compared to the last byte, and looked at as another user."""

import ctypes
import hashlib
import os
import pickle
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

NOBODY = 65534
_LIBC = ctypes.CDLL(None)
Result = TypeVar("Result")


def make_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files by their posix paths below a root, which is made; says the root with its links resolved."""
    root.mkdir(parents=True, exist_ok=True)
    for relative, content in files.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root.resolve()


def make_raw_file(root: Path, name: bytes, content: bytes = b"# Raw\n\nraw name\n") -> None:
    """A file whose name is given in bytes."""
    with open(os.path.join(os.fsencode(root), name), "wb") as file:  # noqa: PTH118, PTH123
        file.write(content)


def tree_digest(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything about a tree that a write to it would change: names, kinds, modes, times, link targets, bytes."""
    return {os.fsencode(path).hex(): _facts(path) for path in _everything(root)}


def _everything(root: Path) -> Iterator[Path]:
    yield root
    for folder, folders, names in os.walk(root):
        yield from (Path(folder) / name for name in (*folders, *names))


def _facts(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    content = b""
    if stat.S_ISLNK(status.st_mode):
        content = os.fsencode(path.readlink())
    elif stat.S_ISREG(status.st_mode):
        content = path.read_bytes()
    return status.st_mode, status.st_mtime_ns, status.st_ctime_ns, hashlib.sha256(content).hexdigest()


class OtherOs:
    """The module `os` with some functions of a test's own."""

    def __init__(self, **functions: Callable[..., object]) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> object:
        return self._functions.get(name, getattr(os, name))


def heed_modes() -> None:
    """In a child before its program: root may open what its own modes close no more (capabilities(7): the program is
    not given CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH)."""
    if os.geteuid() == 0:
        for capability in (1, 2):
            _LIBC.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    """A path with other mode bits for a while."""
    before = stat.S_IMODE(path.stat().st_mode)
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)


def give_to_nobody(*trees: Path) -> None:
    """Let the user `nobody` own these trees, where we may give files away."""
    if os.geteuid() == 0:
        for tree in trees:
            for path in _everything(tree):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def as_nobody(function: Callable[[], Result]) -> Result:
    """Call a function as the user `nobody`, in a child process, where this one is root: root may read everything."""
    if os.geteuid() != 0:
        return function()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer: object = "nothing came of it"
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            answer = function()
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            answer = error
        finally:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(answer))
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    if isinstance(result, BaseException):
        raise result
    return result  # type: ignore[no-any-return]
