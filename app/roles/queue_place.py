"""Where the queue of a base's service is: as configured, or as `knowledge up` says that has brought its own."""

import json
import os
from pathlib import Path

from app.queue_password import queue_url
from domain.errors import ConfigurationError
from domain.layout import BaseLayout
from domain.settings import Settings
from scheduler.queue.address import QueueAddress, parse_queue_url
from store.files import PRIVATE_FILE_MODE, lstat_or_none

NOTE_CAP_BYTES = 4096


def queue_place(settings: Settings, layout: BaseLayout) -> QueueAddress:
    """Raises ConfigurationError where there is neither."""
    if settings.queue.url:
        return parse_queue_url(queue_url(settings.queue))
    noted = _noted_socket(layout.service)
    if noted:
        return QueueAddress(socket=noted)
    raise ConfigurationError(
        "a role needs a queue that all roles reach",
        hint="set queue.url to a Redis or Valkey, or start everything on this machine with `knowledge up`",
    )


def note_queue(layout: BaseLayout, socket_path: str) -> None:
    """Remember where the queue of this base's service is, for the roles and for command lines."""
    aside = layout.service.with_name(f"{layout.service.name}.part")
    descriptor = os.open(aside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
    try:
        os.write(descriptor, json.dumps({"socket": socket_path, "pid": os.getpid()}).encode())
    finally:
        os.close(descriptor)
    aside.replace(layout.service)


def forget_queue(layout: BaseLayout) -> None:
    layout.service.unlink(missing_ok=True)


def _noted_socket(note: Path) -> str:
    """The socket of a queue that `knowledge up` has brought; "" where there is none."""
    if lstat_or_none(note) is None:
        return ""
    try:
        value = json.loads(note.read_bytes()[:NOTE_CAP_BYTES])
        return str(value["socket"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
