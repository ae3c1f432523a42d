"""S0-84: three spans, over every surface; what they are told is numbers and words of closed sets."""

import ast
import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from app import worker_start
from app.config import Loaded
from app.discovery import Located
from app.worker_start import end_worker, start_worker
from cli.main import run
from domain.errors import EmbeddingsUnavailableError, SemanticNotConfiguredError
from domain.settings import EmbeddingsSettings, McpSettings, Settings
from domain.status import DegradeCause, MatchStatus, TierKind
from domain.tracing import Attribute, SpanName
from embedding.build import make_embedder
from retrieval.answer import Mode
from server.mcp_arguments import EnumerateArguments, ReadArguments, SearchArguments
from server.mcp_calls import ToolCalls
from tests.support.bases import build_base
from tests.support.embedding_server import embedding_server
from tests.support.http_service import http_client
from tests.support.meaning import TEXTS, MeaningBase
from tests.support.tracing import KeepingTracer, KeptSpan, kept_traces

ROOT = Path(__file__).resolve().parents[2]
SECRET = "quick"  # stands in the query, in the text and in no attribute
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SEARCHED = {
    "knowledge.mode": "auto",
    "knowledge.tier.configured": "lexical",
    "knowledge.tier.effective": "lexical",
    "knowledge.degraded": False,
    "knowledge.hits": 1,
}
ENUMERATED = {"knowledge.status": "ok", "knowledge.matched": 1, "knowledge.returned": 1}
WORDS = {
    *get_args(Mode), *TierKind, *DegradeCause, *MatchStatus,
    "ok", "cancelled", "rejected", "changed", "timeout", "connection", "busy",
}  # fmt: skip


@pytest.fixture
def tracer() -> Iterator[KeepingTracer]:
    with kept_traces() as tracer:
        yield tracer
        for span in tracer.spans:
            assert_tells_nothing_else(span.attributes)


@pytest.fixture
def base(tmp_path: Path) -> Settings:
    return build_base(tmp_path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With an index in it, and the working directory."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Alpha\n\nThe quick brown fox.\n", encoding="utf-8")
    (tmp_path / "knowledge.yaml").write_text("knowledge:\n  enabled: true\n  paths: [docs]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_tells_nothing_else(attributes: dict[str, Attribute]) -> None:
    """No text of anybody: what is no number stands in a closed set."""
    for name, value in attributes.items():
        assert name.startswith("knowledge.")
        assert not isinstance(value, str) or value in WORDS, (name, value)


def only(tracer: KeepingTracer, name: SpanName) -> KeptSpan:
    (span,) = tracer.taken()
    assert span.name == name
    assert_tells_nothing_else(span.attributes)
    return span


def test_the_command_line(folder: Path, tracer: KeepingTracer, capfd: pytest.CaptureFixture[str]) -> None:
    """Runs, checks and looks have no span."""
    assert run(["index", "--quiet"]) == 0
    assert run(["doctor"]) == 0
    assert run(["status"]) == run(["words"]) == run(["show", "docs/a.md"]) == run(["sources"]) == 0
    assert tracer.taken() == []
    assert run(["search", SECRET]) == 0
    assert only(tracer, "knowledge.search").attributes == SEARCHED
    assert run(["match", SECRET, "--json"]) == 0
    assert only(tracer, "knowledge.enumerate").attributes == ENUMERATED
    assert "quick" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("variables", "imported"),
    [({}, set()), ({"OTEL_TRACES_EXPORTER": "none"}, set()), ({"OTEL_TRACES_EXPORTER": "nonesuch"}, {"app"})],
)
def test_a_cold_search_imports_nothing_of_it(folder: Path, variables: dict[str, str], imported: set[str]) -> None:
    """Asked for what is not to be had, it is answered as ever and says nothing of it."""
    assert run(["index", "--quiet"]) == 0
    code = (
        "import sys; from cli.main import run; status = run(['search', 'fox']);"
        "found = {name for name in sys.modules if name.startswith(('opentelemetry', 'app.tracing_'))};"
        "print('', status, *found)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"HOME": str(folder), "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "docs/a.md#0" in done.stdout
    assert done.stderr == ""
    status, *modules = done.stdout.splitlines()[-1].split()
    assert status == "0"
    assert {name.partition(".")[0] for name in modules} <= imported | ({"opentelemetry"} if imported else set())


def test_only_what_searches_enumerates_and_embeds_opens_spans() -> None:
    """Whoever else would (a run, doctor, watching) has to be written here first."""
    opening = {
        path.relative_to(ROOT).as_posix()
        for package in ("domain", "store", "embedding", "retrieval", "scheduler", "workers", "app", "server", "cli")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and {name.name for name in node.names} & {"process_tracer", "traced_search", "enumeration_span", "Tracer"}
    }
    assert opening == {
        "app/enumerating.py", "app/page_embedder.py", "app/query_embedder.py", "app/searching.py", "app/tracing.py",
        "app/tracing_export.py", "cli/search_verb.py", "server/role_process.py",
        "embedding/build.py", "embedding/client.py", "embedding/local.py", "embedding/measuring.py",
    }  # fmt: skip


def test_over_http(base: Settings, tracer: KeepingTracer) -> None:
    with http_client(base) as client:
        assert client.get("/v1/search", params={"q": SECRET}).status_code == 200
        assert only(tracer, "knowledge.search").attributes == SEARCHED
        assert client.get("/v1/match", params={"q": SECRET}).status_code == 200
        assert only(tracer, "knowledge.enumerate").attributes == ENUMERATED
        assert client.get("/v1/match.ndjson", params={"q": SECRET}).text.count("\n") == 3
        assert only(tracer, "knowledge.enumerate").attributes == ENUMERATED
        assert client.get("/", params={"q": SECRET}).status_code == 200
        assert only(tracer, "knowledge.search").attributes == SEARCHED
        for path in ("/v1/words", "/v1/documents", "/v1/documents/docs/a.md", "/v1/sources", "/v1/stats", "/v1/runs"):
            assert client.get(path).status_code == 200
    assert tracer.taken() == []


def test_over_mcp(base: Settings, tracer: KeepingTracer) -> None:
    calls = ToolCalls(Loaded(Located("store", None, base.home), base))
    calls.search(SearchArguments(query=SECRET), lambda: None)
    assert only(tracer, "knowledge.search").attributes == SEARCHED
    calls.enumerate(EnumerateArguments(query=SECRET), lambda: None)
    assert only(tracer, "knowledge.enumerate").attributes == ENUMERATED
    calls.read(ReadArguments(path="docs/a.md"), lambda: None)
    calls.roots()
    assert tracer.taken() == []


@pytest.mark.parametrize(
    ("traceparent", "trace"),
    [(f"00-{TRACE}-00f067aa0ba902b7-01", int(TRACE, 16)), ("", 0), ("00-quick", 0), ("00-" + "0" * 32 + "-1-01", 0)],
)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/match", "/v1/match.ndjson"])
def test_the_trace_of_the_caller_goes_on(
    base: Settings, tracer: KeepingTracer, path: str, traceparent: str, trace: int
) -> None:
    """W3C traceparent; one that cannot be read is no reason not to answer."""
    with http_client(base) as client:
        answer = client.get(path, params={"q": SECRET}, headers={"traceparent": traceparent})
        assert answer.status_code == 200
        assert client.get(path, params={"q": SECRET}).status_code == 200
    assert [span.remote_trace for span in tracer.taken()] == [trace, 0]


@pytest.mark.parametrize(
    ("meta", "trace"), [({"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}, int(TRACE, 16)), ({}, 0)]
)
def test_the_trace_of_an_agent_goes_on(tmp_path: Path, tracer: KeepingTracer, meta: dict[str, str], trace: int) -> None:
    """What MCP says of traces: it comes with the message."""
    call = {"name": "knowledge_search", "arguments": {"query": SECRET}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepted = {"accept": "application/json, text/event-stream"}
    with http_client(build_base(tmp_path, mcp=McpSettings(("knowledge_search",)))) as client:
        assert client.post("/mcp", json=message, headers=accepted).json()["result"]["isError"] is False
    assert only(tracer, "knowledge.search").remote_trace == trace


@pytest.mark.parametrize(
    ("mode", "effective"), [("auto", "hybrid"), ("hybrid", "hybrid"), ("vector", "vector"), ("lexical", "lexical")]
)
def test_both_tiers_are_told(tmp_path: Path, tracer: KeepingTracer, mode: Mode, effective: str) -> None:
    meaning = MeaningBase(tmp_path / "home")
    meaning.put(TEXTS, meaning.pin())
    found = meaning.ask("automobile", mode=mode)
    assert only(tracer, "knowledge.search").attributes == {
        "knowledge.mode": mode,
        "knowledge.tier.configured": "hybrid",
        "knowledge.tier.effective": effective,
        "knowledge.degraded": False,
        "knowledge.hits": len(found.results),
    }


def test_degraded_with_its_reason_and_without_its_words(tmp_path: Path, tracer: KeepingTracer) -> None:
    meaning = MeaningBase(tmp_path / "home")
    meaning.put(TEXTS, meaning.pin())
    meaning.fake.unavailable = "connection refused by http://models.example/v1"
    meaning.ask("automobile")
    told = only(tracer, "knowledge.search").attributes
    assert (told["knowledge.degraded"], told["knowledge.degraded.reason"]) == (True, "embeddings")
    assert (told["knowledge.tier.configured"], told["knowledge.tier.effective"]) == ("hybrid", "lexical")
    meaning.ask("automobile", stopped=lambda: DegradeCause.CANCELED)
    assert only(tracer, "knowledge.search").attributes["knowledge.degraded.reason"] == "canceled"


def test_a_search_that_fails(tmp_path: Path, tracer: KeepingTracer) -> None:
    meaning = MeaningBase(tmp_path / "home")
    meaning.put(TEXTS, meaning.pin())
    meaning.fake.unavailable = "connection refused"
    with pytest.raises(EmbeddingsUnavailableError):
        meaning.ask("automobile", mode="vector")
    span = only(tracer, "knowledge.search")
    assert isinstance(span.error, EmbeddingsUnavailableError)
    assert span.attributes == {"knowledge.mode": "vector", "knowledge.tier.configured": "hybrid"}
    with pytest.raises(SemanticNotConfiguredError):
        MeaningBase(meaning.home, settings=None).ask("automobile", mode="hybrid")
    assert only(tracer, "knowledge.search").attributes["knowledge.tier.configured"] == "lexical"


def test_a_query_is_a_batch_of_its_search(folder: Path, tracer: KeepingTracer) -> None:
    """Over the whole way: the embedder works in a loop of its own, and the span belongs to the search all the same."""
    with (folder / "knowledge.yaml").open("a", encoding="utf-8") as configuration:
        configuration.write("  embeddings:\n    provider: local\n")
    assert run(["index", "--quiet"]) == 0
    assert only(tracer, "knowledge.embed_batch").parent is None  # a run has no span to belong to
    assert run(["doctor"]) == 0
    assert tracer.taken() == []
    assert run(["search", SECRET]) == 0
    search, batch = tracer.taken()
    assert (search.name, batch.name, batch.parent) == ("knowledge.search", "knowledge.embed_batch", search)
    assert search.attributes["knowledge.tier.effective"] == "hybrid"
    assert batch.attributes == {"knowledge.texts": 1, "knowledge.attempt": 1, "knowledge.outcome": "ok"}


async def test_batches_with_their_outcomes(tracer: KeepingTracer) -> None:
    """R21: a refused batch is seen with its halves."""
    with embedding_server(dimension=8, poison="poison") as server:
        settings = EmbeddingsSettings(base_url=server.url, model="asked", concurrency=1, batch=4, outage_limit_s=20)
        embedder = make_embedder(settings, None, tracer=tracer)
        try:
            await embedder.embed_documents(["one", "two", "three", "poison"])
        finally:
            await embedder.aclose()
    told = [tuple(span.attributes.values()) for span in tracer.taken()]
    assert told == [(4, 1, "rejected"), (2, 1, "ok"), (2, 1, "rejected"), (1, 1, "ok"), (1, 1, "rejected")]


async def test_a_batch_that_is_sent_again_says_so(tracer: KeepingTracer) -> None:
    with embedding_server(dimension=8) as server:
        settings = EmbeddingsSettings(base_url=server.url, model="asked", outage_limit_s=20)
        embedder = make_embedder(settings, None, tracer=tracer)
        server.take_down("refuse", for_s=0.2)
        try:
            await embedder.embed_documents(["one", "two"])
        finally:
            await embedder.aclose()
    spans = tracer.taken()
    *failed, last = [span.attributes for span in spans]
    assert failed and all(told["knowledge.outcome"] == "connection" for told in failed)
    assert [told["knowledge.attempt"] for told in [*failed, last]] == [*range(1, len(spans) + 1)]
    assert last["knowledge.outcome"] == "ok"


async def test_a_worker_sends_its_last_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it is killed at the end of a run, with what it has traced; so is one that does not go."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "nonesuch")
    ended = await start_worker()
    await end_worker(ended)
    assert ended.returncode is not None and ended.returncode >= 0
    monkeypatch.setattr(worker_start, "LAST_SPANS_S", 0.05)
    stays = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import time; time.sleep(60)"), stdin=asyncio.subprocess.PIPE
    )
    await end_worker(stays)
    assert stays.returncode == -signal.SIGKILL
