"""What other processes ask of the writer beside pages: a file a call in the base's home, and a file with its answer.

They do not travel on the queue: a removal has to work while the queue is away or full (it is only transport, and the
home is shared by every role anyway). A call that is done has its answer beside it, so that it is done once, also where
its asker or the writer was killed in between: the effects themselves may be repeated.
"""

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from domain import errors
from domain.errors import KnowledgeError
from domain.vectors import VectorIdentity
from store.files import storage_errors, write_private
from store.write_port import WriteGroup

CALL_SUFFIX = ".call"
ANSWER_SUFFIX = ".answer"
FORGOTTEN_AFTER_S = 24 * 3600.0
LOOK_AGAIN_S = 0.02
LOOK_AGAIN_AT_MOST_S = 0.2


class ApplyGroup(msgspec.Struct, frozen=True, tag="apply"):
    group: WriteGroup


class CloseGeneration(msgspec.Struct, frozen=True, tag="close_generation"):
    generation: int
    complete: bool


class PinIdentity(msgspec.Struct, frozen=True, tag="pin_identity"):
    identity: VectorIdentity
    canary: tuple[bytes, ...]
    afresh: bool


class ActivateIdentity(msgspec.Struct, frozen=True, tag="activate_identity"):
    identity: int
    uncovered: int


class CollectVectors(msgspec.Struct, frozen=True, tag="collect_vectors"):
    keep_unused: int


class ApplySubstringIndex(msgspec.Struct, frozen=True, tag="substring_index"):
    setting: str


class Compact(msgspec.Struct, frozen=True, tag="compact"):
    command_id: str


class Verify(msgspec.Struct, frozen=True, tag="verify"):
    deep: bool


class Rebuild(msgspec.Struct, frozen=True, tag="rebuild"):
    command_id: str


class Remove(msgspec.Struct, frozen=True, tag="remove"):
    command_id: str
    prefixes: tuple[str, ...]
    root: str


Call = (
    ApplyGroup
    | CloseGeneration
    | PinIdentity
    | ActivateIdentity
    | CollectVectors
    | ApplySubstringIndex
    | Compact
    | Verify
    | Rebuild
    | Remove
)


class Failed(msgspec.Struct, frozen=True):
    """An error of ours on its way from the writer to the asker."""

    code: str
    message: str
    hint: str


class Answer(msgspec.Struct, frozen=True):
    """What came of a call: a value of the type that the asker expects, or an error."""

    value: msgspec.Raw = msgspec.Raw(b"\xc0")  # msgpack's nil
    failed: Failed | None = None


Value = TypeVar("Value")

_calls = msgspec.msgpack.Decoder(Call)
_answers = msgspec.msgpack.Decoder(Answer)


def plain(value: object) -> object:
    """For msgspec: a path as its text (`enc_hook`)."""
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be an answer")


def unplain(kind: type[object], value: object) -> object:
    """The other way (`dec_hook`)."""
    if kind is Path:
        return Path(str(value))
    raise NotImplementedError(f"{kind.__name__} cannot be an answer")


_encoder = msgspec.msgpack.Encoder(enc_hook=plain)


def answered(value: object) -> Answer:
    return Answer(msgspec.Raw(_encoder.encode(value)))


def failed(error: KnowledgeError) -> Answer:
    return Answer(failed=Failed(error.code, error.message, error.hint))


def place_call(directory: Path, call: Call, call_id: str = "") -> str:
    """Write a call down for the writer; its id. Placed once more under the same id, it is the same call, and has the
    answer that it had. Raises DiskFullError, StorageError."""
    call_id = call_id or uuid.uuid4().hex
    _write_aside(directory / f"{call_id}{CALL_SUFFIX}", _encoder.encode(call))
    return call_id


def waiting_calls(directory: Path) -> list[str]:
    """The ids of calls without an answer, the oldest first."""
    placed: list[tuple[int, str]] = []
    for path in directory.glob(f"*{CALL_SUFFIX}"):
        call_id = path.name.removesuffix(CALL_SUFFIX)
        if not (directory / f"{call_id}{ANSWER_SUFFIX}").exists():
            with suppress(FileNotFoundError):  # its asker has come for the answer, or taken it back
                placed.append((path.stat().st_mtime_ns, call_id))
    return [call_id for _, call_id in sorted(placed)]


def read_call(directory: Path, call_id: str) -> Call:
    """Raises OSError, and ValueError for what is no call of ours."""
    return _calls.decode((directory / f"{call_id}{CALL_SUFFIX}").read_bytes())


def is_called(directory: Path, call_id: str) -> bool:
    """Whether somebody still wants the call: it was not taken back."""
    return (directory / f"{call_id}{CALL_SUFFIX}").exists()


def forget_old_calls(directory: Path, older_than_s: float = FORGOTTEN_AFTER_S) -> None:
    """Drop answers that nobody has come for."""
    oldest_s = time.time() - older_than_s
    for answer in directory.glob(f"*{ANSWER_SUFFIX}"):
        with suppress(FileNotFoundError):
            if answer.stat().st_mtime < oldest_s:
                answer.with_suffix(CALL_SUFFIX).unlink(missing_ok=True)
                answer.unlink()


def answer_call(directory: Path, call_id: str, answer: Answer) -> None:
    """Raises DiskFullError, StorageError."""
    _write_aside(directory / f"{call_id}{ANSWER_SUFFIX}", _encoder.encode(answer))


def await_answer(directory: Path, call_id: str, kind: type[Value], heed: Callable[[], None]) -> Value:
    """Wait for an answer; `heed` is called meanwhile, and may raise. Raises the writer's error as its own.

    The call is taken back where the asker gives up: a writer that has not begun it does not do it any more. One that is
    gone from the folder without an answer is placed again.
    """
    answer_file, call_file = directory / f"{call_id}{ANSWER_SUFFIX}", directory / f"{call_id}{CALL_SUFFIX}"
    pause_s = LOOK_AGAIN_S
    try:
        placed = call_file.read_bytes() if call_file.exists() else b""
        while not answer_file.exists():
            heed()
            if placed and not call_file.exists() and not answer_file.exists():
                _write_aside(call_file, placed)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LOOK_AGAIN_AT_MOST_S)
        answer = _answers.decode(answer_file.read_bytes())
    finally:
        call_file.unlink(missing_ok=True)
        answer_file.unlink(missing_ok=True)
    return _value(answer, kind)


def answer_within(directory: Path, call_id: str, kind: type[Value], within_s: float) -> Value | None:
    """The answer, where it comes in time; else None, and the call stays. It is taken back by KeyboardInterrupt only.

    Raises the writer's error as its own.
    """
    latest_s = time.monotonic() + within_s
    answer_file = directory / f"{call_id}{ANSWER_SUFFIX}"
    try:
        while not answer_file.exists():
            if time.monotonic() > latest_s:
                return None
            time.sleep(LOOK_AGAIN_S)
    except KeyboardInterrupt:
        (directory / f"{call_id}{CALL_SUFFIX}").unlink(missing_ok=True)
        raise
    return await_answer(directory, call_id, kind, lambda: None)


def _value(answer: Answer, kind: type[Value]) -> Value:
    if answer.failed is not None:
        raise error_of(answer.failed)
    return msgspec.msgpack.decode(answer.value, type=kind, dec_hook=unplain)


def error_of(failed: Failed) -> KnowledgeError:
    """The error of ours with this code."""
    kinds: dict[str, type[KnowledgeError]] = {
        kind.code: kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, KnowledgeError) and "code" in vars(kind)
    }
    return kinds.get(failed.code, KnowledgeError)(failed.message, hint=failed.hint)


def _write_aside(path: Path, raw: bytes) -> None:
    aside = path.with_name(f"{path.name}.part")
    try:
        with storage_errors(path, "write"):
            write_private(aside, raw)
            aside.replace(path)
    except KnowledgeError:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
