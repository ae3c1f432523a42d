"""From a located base, its file and the variables to settings; imported only where there is one of them."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.config_convert import convert_block, nearest
from app.config_document import ConfigurationDocument, read_document
from app.config_environment import overlay
from app.config_loaded import AbsentRoots, Loaded
from app.config_origins import Problem, Sources, has_control_characters, refuse, shown
from app.config_roots import Places, absent_roots, place_problems, roots_of
from app.config_rules import block_problems, identity_problems
from app.config_schema import LATER_FEATURES, KnowledgeBlock, QueueBlock
from app.config_trust import reasons
from app.config_values import size_or_zero
from app.discovery import DEFAULT_IDENTITY, STORES_NAME, Located
from domain.settings import (
    EmbeddingsSettings,
    McpSettings,
    NotifySettings,
    QueueSettings,
    RootSettings,
    ScheduleSettings,
    ServerSettings,
    Settings,
)

_BLOCK_KEYS = ("knowledge", *KnowledgeBlock.__struct_fields__)


def assemble(located: Located, environ: Mapping[str, str], *, cwd: Path, absent: AbsentRoots) -> Loaded:
    """Raises ConfigurationError with everything that is wrong, file, line and key of each."""
    document = read_document(located.config_path) if located.config_path is not None else None
    raw = document.block if document is not None else None
    values, variables, problems = overlay(raw or {}, environ)
    sources = (document.sources if document is not None else Sources()).overlaid(variables)
    block, wrong = convert_block(values)
    problems += wrong
    problems += block_problems(block)
    places = Places(cwd, located.config_path.parent if located.config_path else None, environ.get("HOME", ""))
    roots, wrong = roots_of(block.paths, sources, places)
    problems += wrong
    schedules, wrong = _schedules(block, roots, sources, places)
    problems += wrong
    settings = msgspec.structs.replace(_settings(located, block, roots, sources, places), schedules=schedules)
    if has_control_characters(block.directory):
        problems.append(Problem("directory", "must not hold control characters"))
    problems += [] if block.identity else identity_problems(settings.identity)
    refuse(problems, sources)

    settings = _switched_off(settings, document, sources)
    missing = absent_roots(roots)
    if settings.enabled:
        refuse(list(place_problems(roots, settings.home, missing if absent == "refuse" else {})), sources)
    found = located.how == "found"
    return Loaded(
        located,
        settings,
        sources,
        block,
        notes=_notes(block, environ, roots, missing),
        later_features=tuple(name for name in LATER_FEATURES if getattr(block, name)),
        needs_trust=reasons(block, roots, sources) if found else (),
        digest=document.digest if document is not None else "",
    )


def _settings(
    located: Located,
    block: KnowledgeBlock,
    roots: tuple[RootSettings, ...],
    sources: Sources,
    places: Places,
) -> Settings:
    identity, home = block.identity, located.home
    if located.config_path is not None:
        identity = identity or located.config_path.stem
        home = located.config_path.parent / STORES_NAME / identity
    if block.directory:
        home = places.absolute(block.directory, from_file=sources.is_from_file("directory"))
    return Settings(
        identity=identity or (DEFAULT_IDENTITY if located.how == "directory" else home.name),
        home=home,
        config_path=located.config_path,
        configured=located.config_path is not None,
        enabled=block.enabled,
        description=block.description,
        roots=roots,
        top_k=block.top_k,
        max_injected_tokens=block.max_injected_tokens,
        max_file_bytes=size_or_zero(block.max_file_bytes),
        substring_index=block.substring_index,
        change_detection=block.change_detection,
        disk_reserve_bytes=size_or_zero(block.disk_reserve),
        allow_network_filesystem=block.allow_network_filesystem,
        queue=_queue(block.queue, sources, places),
        mcp=_mcp(block),
        server=_server(block, sources, places),
        embeddings=_embeddings(block),
        notify=_notify(block),
    )


def _schedules(
    block: KnowledgeBlock, roots: tuple[RootSettings, ...], sources: Sources, places: Places
) -> tuple[tuple[ScheduleSettings, ...], list[Problem]]:
    if not block.schedules:
        return (), []
    from app.config_schedules import schedules_of

    return schedules_of(block.schedules, roots, sources, places)


def _queue(block: QueueBlock, sources: Sources, places: Places) -> QueueSettings:
    password_file = None
    if block.password_file:
        password_file = places.absolute(block.password_file, from_file=sources.is_from_file("queue.password_file"))
    return QueueSettings(block.url, block.files_per_job, block.workers, password_file)


def _server(block: KnowledgeBlock, sources: Sources, places: Places) -> ServerSettings:
    if block.server is None:
        return ServerSettings()
    from app.config_server import server_settings

    return server_settings(block.server, sources, places)


def _mcp(block: KnowledgeBlock) -> McpSettings:
    if block.mcp is None:
        return McpSettings()
    from app.mcp_exposure import listed

    return McpSettings(listed(block.mcp.tools), block.mcp.allow_write, block.mcp.profile, block.mcp.port)


def _notify(block: KnowledgeBlock) -> NotifySettings | None:
    if block.notify is None:
        return None
    from app.config_notify import notify_settings

    return notify_settings(block.notify)


def _embeddings(block: KnowledgeBlock) -> EmbeddingsSettings | None:
    """Presence of the block is the switch (S1-10)."""
    if block.embeddings is None:
        return None
    from app.config_embeddings import embeddings_settings

    return embeddings_settings(block.embeddings)


def _switched_off(settings: Settings, document: ConfigurationDocument | None, sources: Sources) -> Settings:
    """Off without a block unless a variable says otherwise, and the words for why."""
    if document is not None and document.block is None:
        if sources.variables.get("enabled") and settings.enabled:
            return settings
        return msgspec.structs.replace(settings, enabled=False, disabled_because=_no_block(document.other_keys))
    if settings.enabled:
        return settings
    return msgspec.structs.replace(settings, disabled_because=f"enabled is false ({sources.origin('enabled')})")


def _no_block(keys: tuple[str, ...]) -> str:
    """A key that belongs into the block, or a misspelt block, is named."""
    for key in keys:
        if key in _BLOCK_KEYS[1:]:
            return f"the file holds no knowledge block; {shown(key)} stands at the top level instead of below it"
        if nearest(key, ["knowledge"]):
            return f"the file holds no knowledge block; the nearest key is {shown(key)}"
    return "the file holds no knowledge block"


def _notes(
    block: KnowledgeBlock,
    environ: Mapping[str, str],
    roots: tuple[RootSettings, ...],
    missing: Mapping[int, str],
) -> tuple[str, ...]:
    notes = [f"{shown(str(roots[index].path))} {words} (paths[{index}])" for index, words in missing.items()]
    names = {"embeddings.api_key_env": block.embeddings.api_key_env if block.embeddings else ""}
    if block.server is not None:
        names["server.read_token_env"] = block.server.read_token_env
        names["server.operate_token_env"] = block.server.operate_token_env
    for index, schedule in enumerate(block.schedules):
        names[f"schedules[{index}].heartbeat_url_env"] = schedule.heartbeat_url_env
    if block.notify is not None:
        names["notify.url_env"] = block.notify.url_env
    notes += [f"{key}: the variable {name} is not set" for key, name in names.items() if name and not environ.get(name)]
    if block.server is not None:
        from app.config_server import server_notes

        notes += server_notes(block.server)
    return tuple(notes)
