"""Which kind of file system a path lies on. Pure but for one read of /proc/self/mountinfo (proc(5)); "" elsewhere."""

import os
from pathlib import Path

MOUNT_INFO = Path("/proc/self/mountinfo")
# WAL needs shared memory and locks that every process sees: over a network, or between a virtual machine and its
# host, they are not (https://sqlite.org/wal.html, section 1; https://sqlite.org/howtocorrupt.html, section 2.3).
_NETWORK_KINDS = ("nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "gpfs")
_SHARED_KINDS = ("9p", "fuse", "virtiofs", "vboxsf", "prl_fs")
_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


def file_system_kind(path: Path) -> str:
    """The type of the file system that a path lies on, or would lie on; "" where the system does not say."""
    try:
        table = MOUNT_INFO.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    return kind_in(table, os.path.realpath(path))


def kind_in(table: str, path: str) -> str:
    """The type of the deepest mount above `path`; of several on one place the last, which covers the others."""
    deepest, kind = "", ""
    for line in table.splitlines():
        fields, _, rest = line.partition(" - ")
        parts = fields.split(" ")
        if len(parts) < 5 or not rest:
            continue
        mount = parts[4]
        for escape, character in _ESCAPES:
            mount = mount.replace(escape, character)
        if len(mount) >= len(deepest) and is_below(path, mount):
            deepest, kind = mount, rest.split(" ", 1)[0]
    return kind


def is_below(path: str, mount: str) -> bool:
    return path == mount or path.startswith(mount.rstrip("/") + "/")


def is_unsafe(kind: str) -> bool:
    """Whether a store must not lie on such a file system; `fuse.sshfs` is a kind of `fuse`, `fuseblk` a local disk."""
    return kind.partition(".")[0] in (*_NETWORK_KINDS, *_SHARED_KINDS)
