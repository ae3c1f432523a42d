"""Document keys: `<root name>/<posix path>`, ordered byte-wise as the walk meets them (R20)."""

from pathlib import PurePosixPath

SEPARATOR = "/"


def root_of(key: str) -> str:
    return key.partition(SEPARATOR)[0]


def path_below_root(key: str) -> str:
    return key.partition(SEPARATOR)[2]


def prefix_of(root: str, directory: str = "") -> str:
    """The key prefix of a root or of a directory below it; ends in `/`."""
    return f"{root}/{directory.strip('/')}/" if directory.strip("/") else f"{root}/"


def is_plain_text(key: str) -> bool:
    """Whether a file of this name has no Markdown in it (R36)."""
    return PurePosixPath(key).suffix.lower() in (".txt", ".text")


def unique_name(wanted: str, taken: frozenset[str] | set[str]) -> str:
    """`wanted`, or with the first free `_N` behind it (R20)."""
    name = wanted.replace(SEPARATOR, "_") or "root"
    number = 1
    candidate = name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def printable(name: str) -> str:
    """A file name in printable form: bytes that are no UTF-8 stand as \\xNN."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_utf8(name: str) -> bool:
    """Whether a name came from UTF-8 bytes: others carry surrogates (os.fsdecode)."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
