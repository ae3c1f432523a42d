"""What a well-typed configuration may still have wrong; no text here ever holds a secret or a password."""

import re
from collections.abc import Iterator

from app.config_origins import Problem, has_control_characters
from app.config_schema import KnowledgeBlock, McpBlock, QueueBlock
from app.config_values import size_problems
from app.masking import MASK, mask_url

_MAX_IDENTITY_BYTES = 100


def block_problems(block: KnowledgeBlock) -> list[Problem]:
    """Everything that is wrong with the block by itself (roots apart)."""
    problems = list(identity_problems(block.identity)) if block.identity else []
    problems += size_problems(block.max_file_bytes, "max_file_bytes", at_least=1)
    if block.embeddings is not None:
        from app.config_embeddings import embeddings_problems

        problems += embeddings_problems(block.embeddings)
    if block.mcp is not None:
        problems += _mcp_problems(block.mcp, is_enabled=block.enabled)
    if block.server is not None:
        from app.config_server import server_problems

        problems += server_problems(block.server, mcp_port=block.mcp.port if block.mcp is not None else 0)
    if block.notify is not None:
        from app.config_notify import notify_problems

        problems += notify_problems(block.notify)
    problems += _queue_problems(block.queue)
    return problems


def identity_problems(identity: str) -> Iterator[Problem]:
    """An identity is the name of a folder."""
    unfit = not identity.strip() or identity.startswith(".") or has_control_characters(identity)
    if (
        unfit
        or re.search(r"[/\\:]", identity)
        or len(identity.encode("utf-8", "surrogateescape")) > _MAX_IDENTITY_BYTES
    ):
        text = "must be usable as a folder's name: no / \\ : or control characters, no leading dot, short"
        yield Problem("identity", text, "Set identity: to a short name.")


def _queue_problems(block: QueueBlock) -> Iterator[Problem]:
    for key, text in (("queue.url", block.url), ("queue.password_file", block.password_file)):
        if has_control_characters(text):
            yield Problem(key, "must not hold control characters")
    if not block.password_file:
        return
    if not block.url:
        yield Problem("queue.password_file", "goes with queue.url: the bundled server has no password")
    elif f":{MASK}@" in mask_url(block.url):
        yield Problem("queue.password_file", "queue.url holds a password too", "Keep one of them: the file.")


def _mcp_problems(block: McpBlock, *, is_enabled: bool) -> Iterator[Problem]:
    from app.mcp_exposure import listed, unexposable

    for words, hint in unexposable(block.tools, allow_write=block.allow_write):
        yield Problem("mcp.tools", words, hint)
    if listed(block.tools) and not is_enabled:
        yield Problem("mcp.tools", "lists tools of a base that is switched off", "Take them out, or set enabled: true.")
