"""Finished pages without a file, a store that refuses what it is told to, and a connection that is none."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

import aiosqlite

from domain.files import FileFailure, FileStat, Outcome, Reason
from domain.telemetry import SILENCE, Telemetry
from store.connection import RowRefusedError
from store.state_port import PageOutcome
from store.write_port import Applied, DocumentWrite, GroupResult, RecheckWrite, RemoveWrite, SkipWrite, WriteGroup
from workers.checking import FinishedPage
from workers.writer.inbox import DocumentWriter

STAT = FileStat(1, 2, 3, 4, 5)


def document(key: str, *, text_bytes: int = 100, generation: int = 1, observed_ns: int = 10) -> DocumentWrite:
    return DocumentWrite(
        key=key,
        root="docs",
        stat=STAT,
        checked_ns=observed_ns,
        observed_ns=observed_ns,
        generation=generation,
        file_hash=key.encode(),
        content_hash=key.encode(),
        title=key,
        warnings="[]",
        tail="",
        chunks=((0, 0, 1, 1, b"t" * 12, key, "", "", f"body of {key}"),),
        text_bytes=text_bytes,
    )


def recheck(key: str) -> RecheckWrite:
    return RecheckWrite(key, STAT, 10, 10, 1, key.encode())


def skip(key: str, reason: Reason = Reason.NOT_UTF8) -> SkipWrite:
    return SkipWrite(key, "docs", reason, STAT, 10, 10, 1)


def remove(key: str) -> RemoveWrite:
    return RemoveWrite(key, 10, 1)


def finished(
    number: int,
    documents: Sequence[str] = (),
    *,
    rechecks: Sequence[str] = (),
    skips: Sequence[str] = (),
    failures: Sequence[str] = (),
    text_bytes: int = 100,
) -> FinishedPage:
    return FinishedPage(
        run=1,
        number=number,
        root="docs",
        documents=tuple(document(key, text_bytes=text_bytes) for key in documents),
        rechecks=tuple(recheck(key) for key in rechecks),
        skips=tuple(skip(key) for key in skips),
        failures=tuple(FileFailure(key, Reason.UNREADABLE, "no") for key in failures),
    )


def keys_of(group: WriteGroup) -> list[str]:
    return [w.key for part in (group.documents, group.rechecks, group.skips, group.removes) for w in part]


class FakeStore:
    """Takes groups as a store does (store.port.StoreWriter): whole or not at all."""

    def __init__(self, *, refuses: Collection[str] = (), stored: Collection[str] = ()) -> None:
        self.refuses = set(refuses)
        self.stored = set(stored)
        self.fails_with: BaseException | None = None
        self.asked: list[list[str]] = []
        self.committed: list[list[str]] = []

    def apply(self, group: WriteGroup) -> GroupResult:
        keys = keys_of(group)
        self.asked.append(keys)
        if self.fails_with is not None:
            raise self.fails_with
        if self.refuses.intersection(keys):
            raise RowRefusedError("refused a row")
        self.committed.append(keys)
        results = [Applied(write.key, "applied", Outcome.ADDED) for write in group.documents]
        results += [Applied(write.key, "applied", Outcome.UNCHANGED) for write in group.rechecks]
        results += [
            Applied(write.key, "candidate" if write.key in self.stored else "applied", Outcome.SKIPPED)
            for write in group.skips
        ]
        results += [Applied(write.key, "applied", Outcome.REMOVED) for write in group.removes]
        return GroupResult(tuple(results), len(self.committed), len(group.documents))

    def highest_generation(self) -> int:
        return 0

    def close_generation(self, generation: int, *, complete: bool = False) -> None:
        return None


class _NoConnection:
    """What aiosqlite may close at the end of its thread."""

    def close(self) -> None:
        return None


class WriterAtWork:
    """A writer over a fake store with all that it reported."""

    def __init__(self, connection: "aiosqlite.Connection", store: FakeStore, telemetry: Telemetry = SILENCE) -> None:
        self.store = store
        self.recorded: list[PageOutcome] = []
        self.observed: list[tuple[FinishedPage, PageOutcome]] = []
        self.writer = DocumentWriter(
            connection,
            store,
            record=lambda pages, outcomes: self.recorded.extend(outcomes),
            observe=lambda *pair: self.observed.append(pair),
            telemetry=telemetry,
        )


@asynccontextmanager
async def writer_over(store: FakeStore, telemetry: Telemetry = SILENCE) -> AsyncIterator[WriterAtWork]:
    """The writer with its thread; its `run` is for the test to start."""
    async with aiosqlite.Connection(_NoConnection, 64) as connection:  # type: ignore[arg-type]
        yield WriterAtWork(connection, store, telemetry)


@asynccontextmanager
async def running(writer: DocumentWriter) -> AsyncIterator["asyncio.Task[None]"]:
    """The writer's loop as a task, ended at the end."""
    task = asyncio.create_task(writer.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
