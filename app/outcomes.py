"""How a run's files have ended: added up while it goes on, and reported at its end."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from app.progress import RunProgress
from app.removing import RemovalReport
from app.unreadable_roots import UnreadableRoot
from domain.errors import EmbeddingsUnavailableError
from domain.files import Outcome, Reason
from domain.retry_rules import FailureStanding
from domain.vectors import VectorIdentity
from scheduler.plan import NotTried
from store.failure_port import FailureRecord
from store.run_port import RunRecord, RunState
from store.state_port import PageOutcome
from store.vector_port import NO_VECTORS, VectorStatus

if TYPE_CHECKING:
    from scheduler.queue.done_notes import DoneNote
    from workers.checking import FinishedPage


class FirstFailure(Struct, frozen=True):
    """How many files failed for one reason, and the first of them."""

    reason: str
    count: int
    key: str
    detail: str


class VectorReport(Struct, frozen=True):
    """What a run did for the vector tier. `activated`: a newly built identity answers from now on."""

    identity: VectorIdentity
    embedded: int = 0
    reused: int = 0
    from_parts: int = 0
    pending_documents: int = 0
    pending_chunks: int = 0
    activated: bool = False
    building: bool = False  # the new vectors are not complete: the old ones go on answering


class IndexReport(Struct, frozen=True):
    """How a run has ended; the words are made in app.present."""

    home: Path
    run: RunRecord
    state: RunState
    counts: dict[str, int]
    skips: dict[str, tuple[int, str]]  # reason -> how many, the first key
    failures: tuple[FirstFailure, ...]
    removals: RemovalReport
    problems: tuple[tuple[str, str], ...]  # directories that could not be read
    notes: tuple[str, ...]
    documents: int
    chunks: int
    chunks_written: int
    text_bytes: int
    elapsed_s: float
    holds_s: tuple[float, ...]
    vectors: VectorReport | None = None
    vector_status: VectorStatus = NO_VECTORS
    not_tried: Mapping[tuple[str, FailureStanding], NotTried] = field(default_factory=dict)  # failed in earlier runs
    stopped_by: EmbeddingsUnavailableError | None = None  # vectors did not follow, and words did not wait for them
    unreadable: tuple[UnreadableRoot, ...] = ()  # roots of which no file could be read

    @property
    def exit_status(self) -> int:
        return 3 if self.failures or self.not_tried or self.problems or self.removals.held else 0


class Outcomes:
    """Adds up what the pages report."""

    def __init__(self, progress: RunProgress) -> None:
        self.progress = progress
        self.counts: dict[str, int] = {}
        self.failures: dict[str, FirstFailure] = {}
        self.skips: dict[str, tuple[int, str]] = {}
        self.refused_keys: set[str] = set()  # whose texts the embeddings server has refused
        self.put_back: Sequence[FailureRecord] = ()  # documents whose texts it refused before: not sent in this run

    def observe(self, page: "FinishedPage", outcome: PageOutcome) -> None:
        for name, count in outcome.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        for skip in page.skips:
            self.skip(skip.reason.value, skip.key)
        for failure in outcome.failures:
            self.fail(failure.reason, failure.key, failure.detail)
            if failure.reason == Reason.EMBEDDING_REFUSED:
                self.refused_keys.add(failure.key)
        progress = self.progress
        progress.embedded += page.texts.embedded
        progress.reused += page.texts.reused
        progress.from_parts += page.texts.from_parts
        if page.kind == "vectors":  # of documents that are stored: their files were counted when they were checked
            return
        progress.checked += sum(outcome.counts.values())
        progress.written += len(page.documents)
        progress.chunks += sum(len(document.chunks) for document in page.documents)
        progress.text_bytes += page.text_bytes

    def note(self, note: "DoneNote") -> None:
        """The same of a page that the writer of a service has told of."""
        for name, count in note.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        for reason, (count, key) in note.skips.items():
            self.skip(reason, key, count)
        for failure in note.failures:
            self.fail(failure.reason, failure.key, failure.detail)
            if failure.reason == Reason.EMBEDDING_REFUSED:
                self.refused_keys.add(failure.key)
        progress = self.progress
        progress.embedded += note.embedded
        progress.reused += note.reused
        progress.from_parts += note.from_parts
        if note.kind == "vectors":
            return
        progress.checked += sum(note.counts.values())
        progress.written += note.documents
        progress.chunks += note.chunks
        progress.text_bytes += note.text_bytes

    def skip(self, reason: str, key: str, count: int = 1) -> None:
        known, first = self.skips.get(reason, (0, key))
        self.skips[reason] = (known + count, first)

    def fail(self, reason: str, key: str, detail: str) -> None:
        known = self.failures.get(reason)
        if known is None:
            self.failures[reason] = FirstFailure(reason, 1, key, detail)
        else:
            self.failures[reason] = FirstFailure(reason, known.count + 1, known.key, known.detail)

    def add(self, outcome: Outcome, count: int) -> None:
        if count:
            self.counts[outcome.value] = self.counts.get(outcome.value, 0) + count
