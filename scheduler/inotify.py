"""Linux's inotify as it is: watches of single folders, and what the kernel says of them (inotify(7)).

A library between would say less: watchfiles drops the kernel's word that events were lost (IN_Q_OVERFLOW), gives up at
the first folder that cannot be watched, cannot tell a change of permissions from one of the content, and ends at a
name that is no UTF-8.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

IN_MODIFY = 0x2
IN_CLOSE_WRITE = 0x8
IN_MOVED_FROM = 0x40
IN_MOVED_TO = 0x80
IN_CREATE = 0x100
IN_DELETE = 0x200
IN_DELETE_SELF = 0x400
IN_MOVE_SELF = 0x800
IN_UNMOUNT = 0x2000
IN_Q_OVERFLOW = 0x4000
IN_IGNORED = 0x8000
IN_ONLYDIR = 0x01000000
IN_DONT_FOLLOW = 0x02000000
IN_EXCL_UNLINK = 0x04000000
IN_ISDIR = 0x40000000
# IN_ATTRIB is not asked for: permissions alone are no change; IN_OPEN neither: a run opens files itself
_WATCHED = (
    IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
)
_FLAGS = IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK
_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_READ_BYTES = 256 * 1024


class Event(NamedTuple):
    """What the kernel says; `name` is "" where it speaks of the watched folder itself."""

    watch: int
    mask: int
    name: str


class Inotify:
    """One queue of the kernel's. Not blocking; to be closed."""

    def __init__(self) -> None:
        """Raises OSError: EMFILE where fs.inotify.max_user_instances is reached."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise _error("inotify")

    def add(self, folder: str) -> int:
        """Watch a folder, not what is below its folders; the number of the watch, the same one for the same folder.

        Raises OSError: ENOSPC where fs.inotify.max_user_watches is reached, EACCES, ENOENT, ENOTDIR.
        """
        watch = self._libc.inotify_add_watch(self.descriptor, os.fsencode(folder), ctypes.c_uint32(_WATCHED | _FLAGS))
        if watch < 0:
            raise _error(folder)
        return int(watch)

    def remove(self, watch: int) -> None:
        """Its last word is IN_IGNORED; one that is gone already is no mistake."""
        self._libc.inotify_rm_watch(self.descriptor, watch)

    def read(self) -> list[Event]:
        """What is there now, in order; [] when there is nothing more."""
        try:
            return list(_events(os.read(self.descriptor, _READ_BYTES)))
        except BlockingIOError:
            return []
        except OSError as error:
            if error.errno == errno.EINTR:
                return []
            raise

    def close(self) -> None:
        os.close(self.descriptor)


def _events(raw: bytes) -> Iterator[Event]:
    at = 0
    while at < len(raw):
        watch, mask, _, length = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        yield Event(watch, mask, os.fsdecode(raw[at : at + length].rstrip(b"\0")))
        at += length


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)
