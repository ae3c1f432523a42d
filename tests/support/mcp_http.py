"""MCP over HTTP with real sockets: the service's own gate and listener, in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from httpx2 import AsyncClient
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from app.config import Loaded
from app.discovery import Located
from domain.settings import Settings
from server.health_server import bound_socket
from server.http.connections import answer_at
from server.http.service import http_parts, mcp_only_app


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """The address of /mcp, at some port."""
    loaded = Loaded(Located("store", None, settings.home), settings)
    with http_parts(loaded) as parts, bound_socket("127.0.0.1", 0) as listening:
        answering = asyncio.ensure_future(answer_at(listening, mcp_only_app(parts), closing=parts.closing))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            parts.closing.set()
            await answering


@asynccontextmanager
async def connected_by_http(url: str, *, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """The SDK's client."""
    async with (
        AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=60) as client,
    ):
        yield client
