"""What a well-typed configuration may still have wrong; no text here ever holds a secret or a password."""

import re
from collections.abc import Iterator

from app.config_origins import Problem, has_control_characters
from app.config_schema import KnowledgeBlock, McpBlock, ScheduleBlock, ServerBlock
from app.config_values import duration_problems, size_problems, variable_name_problems

_WINDOW = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]")
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
        problems += _server_problems(block.server)
    problems += _schedules_problems(block.schedules)
    if has_control_characters(block.queue.url):
        problems.append(Problem("queue.url", "must not hold control characters"))
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


def _mcp_problems(block: McpBlock, *, is_enabled: bool) -> Iterator[Problem]:
    from app.mcp_exposure import listed, unexposable

    for words, hint in unexposable(block.tools, allow_write=block.allow_write):
        yield Problem("mcp.tools", words, hint)
    if listed(block.tools) and not is_enabled:
        yield Problem("mcp.tools", "lists tools of a base that is switched off", "Take them out, or set enabled: true.")


def _server_problems(block: ServerBlock) -> Iterator[Problem]:
    yield from variable_name_problems(block.read_token_env, "server.read_token_env")
    yield from variable_name_problems(block.operate_token_env, "server.operate_token_env")


def _schedules_problems(schedules: tuple[ScheduleBlock, ...]) -> Iterator[Problem]:
    names: set[str] = set()
    for index, schedule in enumerate(schedules):
        key = f"schedules[{index}]"
        if schedule.name in names:
            yield Problem(f"{key}.name", "is the name of another schedule too")
        names.add(schedule.name)
        if len(schedule.cron.split()) != 5:
            yield Problem(f"{key}.cron", 'must have five fields such as "0 3 * * *"')
        if schedule.window and not _WINDOW.fullmatch(schedule.window):
            yield Problem(f"{key}.window", "must be two times such as 01:00-05:00")
        yield from duration_problems(schedule.jitter, f"{key}.jitter")
