"""`knowledge mcp`: the MCP server over standard input and output, for as long as its client holds them open.

Standard output carries the protocol and nothing else; what is to be said goes to standard error, without a word of
any document or query.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from app.config import Loaded, process_environ
from app.heap import settle_in
from app.mcp_exposure import exposed_tools, exposure_warnings
from app.tracing import end_tracing
from domain.settings import ToolProfile
from server.mcp_calls import ToolCalls
from server.mcp_server import KnowledgeMcpServer

INTERRUPTED = 130


def serve(loaded: Loaded, names: Sequence[str], profile: ToolProfile) -> int:
    """Serve the named tools until the client closes our input, or until a signal; the exit status.

    `profile`: which of them a client is shown.

    Raises ConfigurationError for names that cannot be exposed, UsageError where none is. An index that is not there
    yet is no error: each call looks anew.
    """
    settle_in(process_environ())
    tools = exposed_tools(names, loaded.settings)
    _log_to_standard_error()
    log = logging.getLogger("knowledge.mcp")
    for warning in exposure_warnings(tools):
        log.warning("warning: %s", warning)
    calls = ToolCalls(loaded)
    try:
        server = KnowledgeMcpServer(calls, tools, profile=profile)
        signal.signal(signal.SIGTERM, _end)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as in the background of a script
            signal.signal(signal.SIGINT, _end)
        log.info("serving %s of the index at %s", ", ".join(tools), loaded.settings.home)
        asyncio.run(server.run_stdio())
    finally:
        calls.close()
    return 0


def _end(number: int, frame: FrameType | None) -> None:
    """At once: a thread waits for the client's next line and cannot be woken, and nothing is open for writing."""
    end_tracing()
    os._exit(INTERRUPTED if number == signal.SIGINT else 0)


def _log_to_standard_error() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("knowledge mcp: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])  # before the SDK would set up its own
    logging.getLogger("knowledge").setLevel(logging.INFO)
