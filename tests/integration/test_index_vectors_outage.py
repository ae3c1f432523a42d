"""A server that is away while a run embeds: interrupted meanwhile, a worker killed meanwhile, and what is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.progress import RunProgress
from domain.errors import EmbeddingsUnavailableError, InterruptedRunError
from tests.support.embedding_server import EmbeddingServer
from tests.support.runs import Base, Watched, is_running, workers
from tests.support.signals import sigint
from tests.support.trees import make_tree
from tests.support.vector_runs import assert_whole, misplaced, texts_of, tree_of, uncovered, with_embeddings
from tests.support.waiting import eventually

pytestmark = pytest.mark.redis

FILES = 40
CHUNKS = FILES * 3
OF_FILE_2 = "text 0 of file 2,"

STARTER = """
import sys
from pathlib import Path
from domain.settings import EmbeddingsSettings, QueueSettings
from tests.support.runs import base_in
home, docs, url = sys.argv[1:]
embeddings = EmbeddingsSettings(base_url=url, model="m", batch=8)
base_in(Path(home), queue=QueueSettings(files_per_job=4), embeddings=embeddings).index(Path(docs))
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", tree_of(FILES))


def go_away(server: EmbeddingServer, *, for_s: float) -> None:
    """After some more requests."""
    server.requests.clear()
    server.behaviour.down_after, server.behaviour.down_for_s = 5, for_s


def come_back(server: EmbeddingServer) -> None:
    server.behaviour.down_after = None
    server.bring_up()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("worker_processes", [0, 1])
def test_ctrl_c_in_an_outage_ends_the_run(
    vector_base: Base,
    docs: Path,
    embedder: EmbeddingServer,
    worker_processes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R18: nobody waits until jobs that wait for a server have ended by themselves."""
    monkeypatch.setattr("app.pipeline.JOBS_END_S", None)
    go_away(embedder, for_s=600)
    with sigint(), pytest.raises(InterruptedRunError) as ended:
        vector_base.index(docs, worker_processes=worker_processes, progress=Watched(interrupt, "hold_up"))
    assert ended.value.exit_status == 130
    assert vector_base.last_run()[:2] == ("interrupted", "interrupted")
    assert uncovered(vector_base) == [] and misplaced(vector_base) == []
    come_back(embedder)
    assert vector_base.index(docs).state == "done"
    assert_whole(vector_base)


def test_ctrl_c_while_a_request_is_under_way_ends_the_run(
    vector_base: Base, docs: Path, embedder: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model may work on a request for as long as its timeout."""
    monkeypatch.setattr("app.pipeline.JOBS_END_S", None)
    vector_base.index(docs)
    for path in sorted(docs.rglob("*.md")):
        path.write_text(f"# New\n\nnew words in {path.name}\n", "utf-8")
    vector_base.settle()
    slow = with_embeddings(vector_base, embedder, timeout_s=600.0, concurrency=1, batch=1)
    embedder.requests.clear()

    def interrupt_when_it_hangs() -> None:
        embedder.behaviour.delay_s = 600.0
        signal.setitimer(signal.ITIMER_REAL, 0.3)

    before = signal.signal(signal.SIGALRM, lambda number, frame: interrupt())
    try:
        with sigint(), pytest.raises(InterruptedRunError):
            slow.index(docs, progress=Watched(interrupt_when_it_hangs))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert uncovered(vector_base) == [] and misplaced(vector_base) == []


@pytest.mark.skipif(sys.platform != "linux", reason="worker processes are found in /proc")
def test_a_worker_that_is_killed_in_an_outage_is_replaced_by_one_that_waits_too(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """R18, R23: the new one has asked the server nothing yet, but the run has; so it is no reason to end."""
    vector_base.index(docs)
    for path in sorted(docs.rglob("*.md")):
        path.write_text(path.read_text("utf-8").replace("matter", "other matter"), "utf-8")
    vector_base.settle()
    go_away(embedder, for_s=6)
    killed: list[int] = []

    def kill() -> None:
        killed.extend(workers())
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    report = vector_base.index(docs, worker_processes=1, progress=Watched(kill, "hold_up"))
    assert len(killed) == 1 and not is_running(killed[0])
    assert (report.state, report.counts) == ("done", {"updated": FILES})
    assert vector_base.failures() == {}
    assert_whole(vector_base)


def test_a_run_that_is_killed_while_it_waits_is_no_longer_said_to_wait(
    tmp_path: Path, vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """R18: its state in state.db is closed by the next run, which goes on where it was."""
    go_away(embedder, for_s=600)
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path), str(docs), embedder.url], cwd=Path(__file__).parents[2]
    )
    try:
        eventually(lambda: vector_base.layout.state.exists() and _is_waiting(vector_base))
    finally:
        starter.kill()
        starter.wait()
    committed = len(vector_base.rows("SELECT 1 FROM embeddings"))
    come_back(embedder)
    embedder.requests.clear()
    assert vector_base.index(docs).state == "done"
    assert len(texts_of(embedder)) == CHUNKS - committed
    with vector_base.state() as state:
        assert [run.state for run in state.runs(2)] == ["done", "interrupted"]
    assert_whole(vector_base)


def _is_waiting(base: Base) -> bool:
    with base.state() as state:
        return any(run.state == "waiting" for run in state.runs(1))


def test_a_refused_text_of_a_stored_document_is_no_file_more(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """A page of vectors counts no file as checked, also where every one of its texts is refused."""
    with_embeddings(vector_base, None).index(docs)
    embedder.behaviour.poison = OF_FILE_2
    progress = RunProgress()
    vector_base.index(docs, reindex=True, progress=progress)
    assert (progress.checked, progress.to_check) == (FILES, FILES)
    again = RunProgress()
    vector_base.settle()
    assert vector_base.index(docs, progress=again).counts == {"unchanged": FILES, "failed": 1}
    assert (again.checked, again.to_check) == (0, 0)


def test_words_first_counts_a_text_once(vector_base: Base, docs: Path, embedder: EmbeddingServer) -> None:
    """A text that a document has from before is counted with the texts that it still lacks."""
    words_first = with_embeddings(vector_base, embedder, commit="words_first")
    words_first.index(docs)
    vector_base.settle()
    edited = docs / "00" / "000.md"
    edited.write_text(edited.read_text("utf-8").replace("text 1 of file 0", "another text"), "utf-8")
    report = words_first.index(docs)
    assert report.vectors is not None
    assert (report.vectors.embedded, report.vectors.reused) == (1, 2)
    assert report.counts == {"unchanged": FILES - 1, "updated": 1, "embedded": 1}
    assert_whole(vector_base)


def test_words_first_and_together_finish_what_the_other_has_begun(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """R31: the setting may change between runs; what is pending is made in either."""
    go_away(embedder, for_s=600)
    words_first = with_embeddings(vector_base, embedder, commit="words_first")
    with pytest.raises(InterruptedRunError):
        words_first.index(docs, progress=Watched(interrupt, "hold_up"))
    assert uncovered(vector_base), "some words are there without their vectors"
    made = len(vector_base.rows("SELECT 1 FROM embeddings"))
    come_back(embedder)
    embedder.requests.clear()
    assert vector_base.index(docs).state == "done"
    assert len(texts_of(embedder)) == CHUNKS - made
    assert_whole(vector_base)


def test_a_refused_text_does_not_keep_the_new_set_from_answering(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """R18, R19: its document is pending, is told, and gets its vectors when the model takes it."""
    vector_base.index(docs)
    embedder.behaviour.poison = OF_FILE_2
    changed = with_embeddings(vector_base, embedder, model="other")
    report = changed.index(docs, reindex=True)
    assert report.exit_status == 3 and report.vectors is not None
    assert (report.vectors.activated, report.vectors.pending_documents) == (True, 1)
    assert uncovered(vector_base) == ["docs/00/002.md"] and misplaced(vector_base) == []
    again = changed.index(docs)
    assert (again.exit_status, again.counts["failed"]) == (3, 1)
    assert vector_base.failures() == {"docs/00/002.md": "embedding_refused"}
    embedder.behaviour.poison = ""
    assert changed.index(docs, rehash=True).counts == {"unchanged": FILES, "embedded": 1}
    assert vector_base.failures() == {}
    assert_whole(changed)


def test_words_first_does_not_wait_with_what_is_gone(vector_base: Base, docs: Path, embedder: EmbeddingServer) -> None:
    """R31: words are brought up to date, removals too, and the base is complete; then exit 15 says what is pending."""
    words_first = with_embeddings(vector_base, embedder, commit="words_first", outage_limit_s=0.5)
    words_first.index(docs)
    (docs / "00" / "000.md").unlink()
    (docs / "00" / "001.md").write_text("# New\n\nnever embedded\n", "utf-8")
    embedder.take_down()
    with pytest.raises(EmbeddingsUnavailableError):
        words_first.index(docs)
    assert "docs/00/000.md" not in vector_base.stored_keys()
    assert vector_base.found("embedded") == ["docs/00/001.md"]
    state, cause, counts = vector_base.last_run()
    assert (state, cause) == ("partial", "embeddings_unavailable")
    assert (counts["updated"], counts["removed"]) == (1, 1)
    embedder.bring_up()
    assert words_first.index(docs).counts["embedded"] == 1
    assert_whole(vector_base)
