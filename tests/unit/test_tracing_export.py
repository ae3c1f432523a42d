"""S0-84: who asks for traces, what stands between the port and OpenTelemetry, and what nobody pays for."""

import ast
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from app import tracing_export
from app.tracing import (
    asks_for_traces,
    continued_trace,
    end_tracing,
    process_tracer,
    use_tracer,
)
from app.tracing_export import ExportingTracer, exporter_names, exporting_tracer
from domain.errors import UsageError
from domain.tracing import UNTRACED

ROOT = Path(__file__).resolve().parents[2]
SOME = "http://127.0.0.1:4318"


@pytest.mark.parametrize(
    ("environ", "asks"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "shelf"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": " None "}, False),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": SOME}, False),
        ({"OTEL_TRACES_EXPORTER": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": SOME}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": SOME}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": SOME, "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "false"}, True),
    ],
)
def test_the_standard_variables_ask(environ: dict[str, str], asks: bool) -> None:
    assert asks_for_traces(environ) is asks


@pytest.mark.parametrize(
    ("written", "names"),
    [("", ["otlp"]), ("console", ["console"]), (" otlp , console,", ["otlp", "console"]), ("none,otlp", ["otlp"])],
)
def test_names_of_exporters(written: str, names: list[str]) -> None:
    assert exporter_names({"OTEL_TRACES_EXPORTER": written}) == names


def test_nobody_traces_unasked() -> None:
    """One object is all there is: nothing is made for a span."""
    use_tracer(None)
    assert process_tracer() is UNTRACED
    with process_tracer().span("knowledge.search") as span, continued_trace({"traceparent": "anything"}) as trace:
        span.tell({"knowledge.hits": 1})
        assert span is trace is UNTRACED
    with pytest.raises(UsageError), UNTRACED.span("knowledge.enumerate"):
        raise UsageError("passes")
    end_tracing()


class Span:
    def __init__(self) -> None:
        self.attributes: dict[str, object] = {}
        self.status: tuple[object, ...] = ()

    def set_attributes(self, attributes: Mapping[str, object]) -> None:
        self.attributes.update(attributes)

    def set_attribute(self, name: str, value: object) -> None:
        self.attributes[name] = value

    def set_status(self, *status: object) -> None:
        self.status = status


class ApiTracer:
    """As much of OpenTelemetry's tracer as is used."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, dict[str, object], Span]] = []

    @contextmanager
    def start_as_current_span(self, name: str, **options: object) -> Iterator[Span]:
        span = Span()
        self.opened.append((name, options, span))
        yield span


class Provider:
    """As much of the SDK's as is used."""

    last: "Provider"

    def __init__(self, **options: object) -> None:
        self.options = options
        self.processors: list[object] = []
        self.is_shut_down = threading.Event()
        self.tracer = ApiTracer()
        Provider.last = self

    def add_span_processor(self, processor: object) -> None:
        self.processors.append(processor)

    def get_tracer(self, name: str) -> ApiTracer:
        return self.tracer

    def shutdown(self) -> None:
        self.is_shut_down.set()


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """An SDK with its exporters by name."""
    exporters: dict[str, Any] = {
        "console": lambda out: ("console", out),
        "otlp_proto_http": lambda: "over http",
        "otlp_proto_grpc": lambda: "over grpc",
    }
    resources = SimpleNamespace(Resource=SimpleNamespace(create=dict))
    modules = {
        "opentelemetry.sdk.trace": SimpleNamespace(TracerProvider=Provider),
        "opentelemetry.sdk.trace.export": SimpleNamespace(BatchSpanProcessor=lambda exporter: exporter),
        "opentelemetry.sdk.resources": resources,
    }
    monkeypatch.setattr(tracing_export, "import_module", modules.__getitem__)

    def found(group: str, name: str) -> list[SimpleNamespace]:
        assert group == "opentelemetry_traces_exporter"
        return [SimpleNamespace(load=lambda: exporters[name])] if name in exporters else []

    monkeypatch.setattr(tracing_export, "entry_points", found)
    yield exporters
    tracing_export.send_last()  # its thread ends
    tracing_export._LastSending.of_process.clear()


def test_a_span_that_fails_is_marked_without_words(sdk: dict[str, Any]) -> None:
    tracer = exporting_tracer({"OTEL_TRACES_EXPORTER": "otlp"})
    assert isinstance(tracer, ExportingTracer)
    with tracer.span("knowledge.search") as span:
        span.tell({"knowledge.hits": 3})
    with pytest.raises(UsageError), tracer.span("knowledge.enumerate"):
        raise UsageError("the words of a query")
    with pytest.raises(ValueError, match="words"), tracer.span("knowledge.embed_batch"):
        raise ValueError("words of a text")
    good, unfit, faulty = Provider.last.tracer.opened
    for _, options, _ in (good, unfit, faulty):
        assert options == {"record_exception": False, "set_status_on_exception": False}
    assert (good[0], good[2].attributes, good[2].status) == ("knowledge.search", {"knowledge.hits": 3}, ())
    assert (unfit[2].attributes, unfit[2].status) == ({"error.type": "usage"}, (StatusCode.ERROR,))
    assert (faulty[2].attributes, faulty[2].status) == ({}, (StatusCode.ERROR,))


@pytest.mark.parametrize(
    ("environ", "processors"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": SOME}, ["over http"]),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ["over grpc"]),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, ["over http"]),
        ({"OTEL_TRACES_EXPORTER": "otlp_proto_grpc"}, ["over grpc"]),
    ],
)
def test_exporters_are_found_by_name(sdk: dict[str, Any], environ: dict[str, str], processors: list[str]) -> None:
    exporting_tracer(environ)
    assert Provider.last.processors == processors
    assert Provider.last.options == {"resource": {"service.name": "knowledge"}, "shutdown_on_exit": False}


def test_what_is_shown_goes_to_standard_error(sdk: dict[str, Any]) -> None:
    """Standard output is for answers, and for the protocol of MCP."""
    exporting_tracer({"OTEL_TRACES_EXPORTER": "console"})
    assert Provider.last.processors == [("console", sys.stderr)]


@pytest.mark.parametrize("variable", ["OTEL_SERVICE_NAME=shelf", "OTEL_RESOURCE_ATTRIBUTES=a=b,service.name=shelf"])
def test_a_name_of_ones_own_is_kept(sdk: dict[str, Any], variable: str) -> None:
    name, _, value = variable.partition("=")
    exporting_tracer({"OTEL_TRACES_EXPORTER": "otlp", name: value})
    assert Provider.last.options["resource"] == {}


def test_what_cannot_be_had_is_told_in_the_log_of_a_service(
    sdk: dict[str, Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question is answered all the same."""
    assert exporting_tracer({"OTEL_TRACES_EXPORTER": "zipkin"}) is UNTRACED
    del sdk["otlp_proto_grpc"]
    assert exporting_tracer({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) is UNTRACED

    def fails() -> None:
        raise ValueError(f"not an address: {SOME}")

    sdk["otlp_proto_http"] = fails
    assert exporting_tracer({"OTEL_TRACES_EXPORTER": "otlp"}) is UNTRACED
    monkeypatch.setattr(tracing_export, "import_module", _missing)
    assert exporting_tracer({"OTEL_TRACES_EXPORTER": "otlp"}) is UNTRACED
    assert [record.message for record in caplog.records] == [
        "nothing is traced: there is no exporter 'zipkin' installed beside this program",
        "nothing is traced: there is no exporter 'otlp' installed beside this program",
        "nothing is traced: ValueError in OpenTelemetry's SDK",
        "nothing is traced: opentelemetry-sdk is not installed beside this program",
    ]
    assert all(record.levelno == logging.WARNING for record in caplog.records)


def _missing(name: str) -> None:
    raise ModuleNotFoundError(name)


def test_threads_that_ask_first_make_one_tracer(sdk: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    together = threading.Barrier(8)

    def ask(_: int) -> object:
        together.wait(60)
        return process_tracer()

    use_tracer(None)
    try:
        with ThreadPoolExecutor(8) as threads:
            assert len(set(threads.map(ask, range(8)))) == 1
        assert len(tracing_export._LastSending.of_process) == 1
    finally:
        use_tracer(None)


def test_the_last_spans_are_sent_at_the_end(sdk: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that is away keeps nobody waiting for long."""
    use_tracer(exporting_tracer({"OTEL_TRACES_EXPORTER": "otlp"}))
    good = Provider.last
    may_end = threading.Event()

    def shut_down(provider: Provider) -> None:
        if provider is good:
            provider.is_shut_down.set()
        else:
            may_end.wait(60)

    monkeypatch.setattr(tracing_export, "LAST_SENDING_S", 0.05)
    monkeypatch.setattr(Provider, "shutdown", shut_down)
    exporting_tracer({"OTEL_TRACES_EXPORTER": "otlp"})
    try:
        end_tracing()
        assert good.is_shut_down.wait(60)
    finally:
        may_end.set()
        use_tracer(None)


def test_one_place_knows_opentelemetry() -> None:
    """Beside the SDK of MCP, which has its own spans: those go to the provider of the process, which is never ours."""
    importing = {
        path.relative_to(ROOT).as_posix()
        for package in ("domain", "store", "embedding", "retrieval", "scheduler", "workers", "app", "server", "cli")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opentelemetry")
    }
    assert importing == {"app/tracing_export.py"}
    assert "set_tracer_provider" not in (ROOT / "app" / "tracing_export.py").read_text(encoding="utf-8")
