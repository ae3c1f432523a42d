"""What of the MCP SDK is used here, imported at less than its price, which is most of the start of `knowledge mcp`.

Two things are put off until they are wanted, and work as ever then. The SDK declares some 500 pydantic models, most of
them of messages that no client ever sends: whether a model's validator is made with its class or at its first use is a
setting that models inherit, and while the SDK is imported it is the second. And its packages list, beside the server,
the client and a framework of servers: each list is gone through when something in it is asked for.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


@contextmanager
def models_made_at_first_use() -> Iterator[None]:
    """What is declared inside makes its validators later, under pydantic's own lock."""
    before = BaseModel.model_config
    BaseModel.model_config = ConfigDict(**before, defer_build=True)
    try:
        yield
    finally:
        BaseModel.model_config = before


def open_late(package: str) -> None:
    """Make a package known whose own file is run when first something is asked of it, but for its modules."""
    spec = None if package in sys.modules else find_spec(package)
    if spec is None or spec.loader is None:
        return
    loader, module = spec.loader, module_from_spec(spec)

    def run_its_file(asked_for: str) -> Any:
        del vars(module)["__getattr__"]
        loader.exec_module(module)
        return getattr(module, asked_for)

    vars(module)["__getattr__"] = run_its_file
    sys.modules[package] = module


open_late("mcp")
open_late("mcp.server")
with models_made_at_first_use():
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel.server import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.shared.exceptions import MCPError
    from mcp.shared.message import SessionMessage
    from mcp.types import (
        INTERNAL_ERROR,
        INVALID_PARAMS,
        INVALID_REQUEST,
        PARSE_ERROR,
        CallToolRequestParams,
        CallToolResult,
        ErrorData,
        JSONRPCError,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListToolsResult,
        PaginatedRequestParams,
        ReadResourceRequestParams,
        ReadResourceResult,
        ResourceTemplate,
        TextContent,
        TextResourceContents,
        Tool,
        ToolAnnotations,
    )

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "PARSE_ERROR",
    "CallToolRequestParams",
    "CallToolResult",
    "ErrorData",
    "JSONRPCError",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ListToolsResult",
    "MCPError",
    "PaginatedRequestParams",
    "ReadResourceRequestParams",
    "ReadResourceResult",
    "ResourceTemplate",
    "Server",
    "ServerRequestContext",
    "SessionMessage",
    "StreamableHTTPSessionManager",
    "TextContent",
    "TextResourceContents",
    "Tool",
    "ToolAnnotations",
    "TransportSecuritySettings",
    "ValidationError",
    "models_made_at_first_use",
    "open_late",
    "stdio_server",
]
