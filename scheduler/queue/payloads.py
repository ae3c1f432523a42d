"""What travels in the queue: msgpack of checked types, never anything executable (C-10, T26).

arq asks a deserializer for one job's dictionary and trusts its types: a job of valid msgpack with a list for a
function name ends the worker that meets it, and stays for the next. So the dictionary is checked here, and what is
not one of our jobs becomes a call of `park`, which keeps the bytes for a look and lets the worker go on.
"""

import re
from typing import Annotated, Literal, TypeVar

import msgspec

from domain.decoding import UNDECODABLE
from domain.files import FileCheck, Page, PageKind

PAYLOAD_CAP_BYTES = 1024 * 1024
LAST_MS = 253_402_300_799_999  # of the year 9999

CHECK_PAGE = "check_page"
WRITE_PAGE = "write_page"
PARK = "park"
_SPOOL_NAME = re.compile(r"[0-9]{1,20}-[0-9]{1,20}-[0-9]{1,20}\.page")  # workers.spool.spool_name
JobFunction = Literal["check_page", "write_page", "park"]

Payload = TypeVar("Payload")
Count = Annotated[int, msgspec.Meta(ge=0)]


class CheckPayload(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A page to be checked. Paths are keys below a root that the worker knows by itself."""

    version: Literal[3]
    base_id: str
    generation: Count
    run: Count
    attempt: Count
    number: Count
    root: str
    kind: PageKind
    alone: bool
    files: tuple[tuple[str, bytes], ...]

    def page(self) -> Page:
        files = tuple(FileCheck(key, stored) for key, stored in self.files)
        return Page(self.number, self.root, files, self.kind, self.alone)


class WritePayload(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A finished page that lies in the spool under `name`."""

    version: Literal[2]
    base_id: str
    generation: Count
    run: Count
    attempt: Count
    number: Count
    name: str


class _Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """arq's own dictionary of a job, with the types that arq relies on."""

    t: Count | None  # tries so far: not used, arq counts them itself
    f: JobFunction
    a: tuple[bytes]
    k: dict[str, None]  # no keywords are used
    et: Annotated[int, msgspec.Meta(ge=0, le=LAST_MS)]  # when it was queued, in ms; arq makes a date of it


_jobs = msgspec.msgpack.Decoder(_Job)
_checks = msgspec.msgpack.Decoder(CheckPayload)
_writes = msgspec.msgpack.Decoder(WritePayload)
_encoder = msgspec.msgpack.Encoder()


class PayloadError(ValueError):
    """A payload that is none of ours; the message says how, never what it holds."""


def encode_check(base_id: str, generation: int, run: int, attempt: int, page: Page) -> bytes:
    files = tuple((file.key, file.stored_hash) for file in page.files)
    payload = CheckPayload(3, base_id, generation, run, attempt, page.number, page.root, page.kind, page.alone, files)
    return _encoder.encode(payload)


def encode_write(payload: WritePayload) -> bytes:
    return _encoder.encode(payload)


def decode_check(raw: bytes) -> CheckPayload:
    """Raises PayloadError for anything but a check of this version."""
    return _decoded(_checks, raw)


def decode_write(raw: bytes) -> WritePayload:
    """Raises PayloadError for anything but a write of this version with the name of a page in the spool."""
    payload = _decoded(_writes, raw)
    if not _SPOOL_NAME.fullmatch(payload.name):
        raise PayloadError("the spool name is none of a page")
    return payload


def serialize_job(job: dict[str, object]) -> bytes:
    """arq's job serializer. What is not bytes in the arguments would be refused on the other side."""
    return _encoder.encode(job)


def deserialize_job(raw: bytes) -> dict[str, object]:
    """arq's job deserializer; never raises, so that one bad payload ends no worker."""
    try:
        if len(raw) > PAYLOAD_CAP_BYTES:
            raise PayloadError("over the cap")
        job = _jobs.decode(raw)
    except (*UNDECODABLE, PayloadError):
        return {"t": None, "f": PARK, "a": (bytes(raw[:PAYLOAD_CAP_BYTES]),), "k": {}, "et": 0}
    return {"t": None, "f": job.f, "a": job.a, "k": {}, "et": job.et}


def _decoded(decoder: "msgspec.msgpack.Decoder[Payload]", raw: bytes) -> Payload:
    if len(raw) > PAYLOAD_CAP_BYTES:
        raise PayloadError("over the cap")
    try:
        return decoder.decode(raw)
    except UNDECODABLE as error:
        raise PayloadError(type(error).__name__) from error
