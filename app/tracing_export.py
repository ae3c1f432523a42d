"""Spans over OpenTelemetry: its SDK and an exporter are the operator's to install, and are found by name.

The provider is our own and never made that of the process: libraries that trace through the common one, as the SDK of
MCP does with the words of errors, would send spans of theirs along.
"""

import atexit
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from domain.errors import KnowledgeError
from domain.tracing import UNTRACED, Attribute, Span, SpanName, Tracer

if TYPE_CHECKING:
    from opentelemetry import trace

SERVICE_NAME = "knowledge"
LAST_SENDING_S = 1.0  # at the end of a process: a collector that is away keeps nobody waiting
EXPORTER_GROUP = "opentelemetry_traces_exporter"
PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOLS = {"http/protobuf": ("otlp_proto_http",), "grpc": ("otlp_proto_grpc",)}
MAKING = threading.Lock()  # two threads that ask first make one tracer
log = logging.getLogger("knowledge.tracing")


class TracingUnfitError(Exception):
    """What the variables ask for cannot be had; in words."""


class ExportingTracer:
    """domain.tracing.Tracer over a tracer of OpenTelemetry's API."""

    def __init__(self, tracer: "trace.Tracer") -> None:
        self._tracer = tracer

    @contextmanager
    def span(self, name: SpanName) -> Iterator[Span]:
        from opentelemetry.trace import StatusCode

        opened = self._tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False)
        with opened as span:
            try:
                yield _ToldSpan(span)
            except BaseException as error:
                span.set_status(StatusCode.ERROR)
                if isinstance(error, KnowledgeError):
                    span.set_attribute("error.type", error.code)
                raise


class _ToldSpan:
    def __init__(self, span: "trace.Span") -> None:
        self._span = span

    def tell(self, attributes: Mapping[str, Attribute]) -> None:
        self._span.set_attributes(attributes)


def exporting_tracer(environ: Mapping[str, str]) -> Tracer:
    """What the variables of OpenTelemetry ask for; UNTRACED, with a warning in the log, where it cannot be had: a
    question is answered all the same.

    What the SDK has to say of its collector stands in the log of a service; a command prints nothing of it.
    """
    try:
        provider = _provider(environ)
    except TracingUnfitError as error:
        return _untraced(str(error))
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises over its variables
        return _untraced(f"{type(error).__name__} in OpenTelemetry's SDK")
    if not log.hasHandlers():
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    _LastSending(provider)
    return ExportingTracer(provider.get_tracer(SERVICE_NAME))


@contextmanager
def within_remote_trace(traceparent: str, tracestate: str) -> Iterator[None]:
    """Spans in it belong to that trace; one that cannot be read is passed over."""
    from opentelemetry.context import attach, detach
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({"traceparent": traceparent, "tracestate": tracestate})
    token = attach(context)
    try:
        yield
    finally:
        detach(token)


def send_last() -> None:
    """See app.tracing.end_tracing."""
    for sending in _LastSending.of_process:
        sending.send()


def _untraced(reason: str) -> Tracer:
    """A service is told in its log. A command is not: the variables may be meant for other programs of this shell."""
    if log.hasHandlers():
        log.warning(f"nothing is traced: {reason}")  # a role's log shows the message alone
    return UNTRACED


class _LastSending:
    """Sends what is left when the process ends, and waits a little for it. The thread for it is there from the
    beginning: at the end of an interpreter none can be started."""

    of_process: "list[_LastSending]" = []  # noqa: RUF012 - of the process, as its name says

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._is_wanted, self._is_done = threading.Event(), threading.Event()
        threading.Thread(target=self._work, name="last-spans", daemon=True).start()
        self.of_process.append(self)
        atexit.register(self.send)

    def send(self) -> None:
        self._is_wanted.set()
        self._is_done.wait(LAST_SENDING_S)

    def _work(self) -> None:
        self._is_wanted.wait()
        with suppress(Exception):
            self._provider.shutdown()
        self._is_done.set()


def _provider(environ: Mapping[str, str]) -> Any:
    """Raises TracingUnfitError; what the SDK raises."""
    try:
        sdk, export = import_module("opentelemetry.sdk.trace"), import_module("opentelemetry.sdk.trace.export")
        resources = import_module("opentelemetry.sdk.resources")
    except ImportError:
        raise TracingUnfitError("opentelemetry-sdk is not installed beside this program") from None
    is_named = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = resources.Resource.create({} if is_named else {"service.name": SERVICE_NAME})
    exporters = [_exporter(name, environ) for name in exporter_names(environ)]
    provider = sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(export.BatchSpanProcessor(exporter))
    return provider


def exporter_names(environ: Mapping[str, str]) -> list[str]:
    """As they are written; `otlp` where only a collector's address is given."""
    names = [name.strip() for name in environ.get("OTEL_TRACES_EXPORTER", "").split(",")]
    return [name for name in names if name and name != "none"] or ["otlp"]


def _exporter(name: str, environ: Mapping[str, str]) -> Any:
    """Raises TracingUnfitError where it is not installed."""
    wanted: tuple[str, ...] = (name,)
    if name == "otlp":
        protocol = next((environ[variable] for variable in PROTOCOL_VARIABLES if environ.get(variable)), "")
        wanted = PROTOCOLS.get(protocol, ("otlp_proto_http", "otlp_proto_grpc"))
    for candidate in wanted:
        for found in entry_points(group=EXPORTER_GROUP, name=candidate):
            make = found.load()
            # standard output is for answers, and for the protocol of MCP
            return make(out=sys.stderr) if candidate == "console" else make()
    raise TracingUnfitError(f"there is no exporter {name[:40]!r} installed beside this program")
