"""Resources of MCP: any document or passage of the index by its address, told as knowledge_read tells it.

Nothing is listed but how an address is made: an index may hold a million documents.
"""

import logging
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from app.mcp_resources import TEMPLATE, parse_address
from app.present import unexpected_error
from app.present_mcp import RESOURCE_DESCRIPTION, failed
from domain.citations import Citation
from domain.errors import KnowledgeError
from server.mcp_arguments import ReadArguments
from server.mcp_calls import Stopped, ToolCalls
from server.mcp_sdk import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    MCPError,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplate,
    ServerRequestContext,
    TextResourceContents,
)

MIME_TYPE = "text/plain"  # of what is told: the document's own text stands inside a frame
_NOT_BUILT = "index_not_built"
log = logging.getLogger("knowledge.mcp")
Context = ServerRequestContext[Any]


def resource_handlers(read: Callable[[str], Awaitable[str]]) -> dict[str, Any]:
    """What a Server takes so that it has resources; `read` gives the text behind an address, or raises MCPError."""

    async def on_list_resources(_context: Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[])

    async def on_list_templates(
        _context: Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        template = ResourceTemplate(
            name="document",
            title="A document, or a passage of it",
            uri_template=TEMPLATE,
            description=RESOURCE_DESCRIPTION,
            mime_type=MIME_TYPE,
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def on_read_resource(_context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        text = await read(params.uri)
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type=MIME_TYPE, text=text)])

    return {
        "on_list_resources": on_list_resources,
        "on_list_resource_templates": on_list_templates,
        "on_read_resource": on_read_resource,
    }


def read_resource(calls: ToolCalls, uri: str, stopped: Stopped) -> str:
    """The answer of knowledge_read to the same document or passage. Raises MCPError."""
    began_s = time.monotonic()
    outcome = "ok"
    try:
        answer = calls.read(_arguments_of(uri), stopped)
        if answer.value["status"] == _NOT_BUILT:
            outcome = _NOT_BUILT
            raise _protocol_error(answer.value["error"], answer.value["note"])
    except KnowledgeError as error:
        outcome = error.code
        told = failed(error)
        raise _protocol_error(told.value["error"], told.text) from None
    except MCPError:
        raise
    except Exception as error:  # noqa: BLE001 - one bad call must not end the server for all others
        outcome = where(error)
        told = failed(unexpected_error(error))
        raise _protocol_error(told.value["error"], told.text, INTERNAL_ERROR) from None
    finally:
        log.info("resource: %s, %d ms", outcome, (time.monotonic() - began_s) * 1000)
    return answer.text


def where(error: Exception) -> str:
    """Kind and place of an unforeseen error, without its words: they may hold text of a document."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"unexpected {type(error).__name__} in {place.name}, {place.filename}:{place.lineno}"


def _arguments_of(uri: str) -> ReadArguments:
    """The key as it stands: a passage's is no path of this machine."""
    address = parse_address(uri)
    if address.ordinal is None:
        return ReadArguments(path=address.key)
    return ReadArguments(citation=Citation(address.key, address.ordinal).format())


def _protocol_error(told: dict[str, Any], words: str, code: int = INVALID_PARAMS) -> MCPError:
    """An error of the protocol: a client looks for one where there is nothing to read."""
    return MCPError(code, words.strip(), told)
