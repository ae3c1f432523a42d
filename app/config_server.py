"""The `server` block: what may be wrong with it, its settings, and what of it a found file may not decide by itself.

Imported only where there is such a block. No text made here holds a token.
"""

import re
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

from app.config_origins import Problem, Sources, has_control_characters, shown
from app.config_roots import Places
from app.config_schema import ServerBlock
from app.config_values import secret_file_problems, variable_name_problems
from domain.settings import ServerSettings
from embedding.addresses import is_loopback

TOKENS = ("read_token", "operate_token")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_ORIGIN = re.compile(rf"https?://{_HOST.pattern}")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
_BASE_PATH = re.compile(r"(/[A-Za-z0-9~_-][A-Za-z0-9._~-]*)+")
_MAX_BASE_PATH_CHARS = 200
# what a header of these names says is something else, or comes from whoever asks
_NO_USER_HEADERS = {"host", "cookie", "authorization", "origin", "forwarded", "x-forwarded-for", "x-forwarded-host"}


def server_problems(block: ServerBlock, *, mcp_port: int) -> Iterator[Problem]:
    """Everything that is wrong with the block by itself; whether there is a token is found out when it is used."""
    yield from _token_problems(block)
    yield from _host_problems(block)
    yield from _proxy_problems(block)
    if block.base_path and (not _BASE_PATH.fullmatch(block.base_path) or len(block.base_path) > _MAX_BASE_PATH_CHARS):
        text = "must be empty, or begin with / and not end with one, in plain letters: /kb"
        yield Problem("server.base_path", text)
    if mcp_port and mcp_port == block.port:
        yield Problem("mcp.port", "is server.port too", "Take it out: /mcp is on the server's port then.")


def server_settings(block: ServerBlock, sources: Sources, places: Places) -> ServerSettings:
    """The block as settings; what is wrong in it is told elsewhere."""

    def path(key: str, text: str) -> Path | None:
        return places.absolute(text, from_file=sources.is_from_file(f"server.{key}")) if text else None

    return ServerSettings(
        host=block.host,
        port=block.port,
        health_host=block.health_host,
        health_port=block.health_port,
        read_token_env=block.read_token_env,
        operate_token_env=block.operate_token_env,
        read_token_file=path("read_token_file", block.read_token_file),
        operate_token_file=path("operate_token_file", block.operate_token_file),
        allowed_hosts=tuple(host.lower() for host in block.allowed_hosts),
        allowed_origins=tuple(origin.lower() for origin in block.allowed_origins),
        auth=block.auth,
        trusted_proxies=block.trusted_proxies,
        proxy_user_header=block.proxy_user_header,
        operators=block.operators,
        base_path=block.base_path,
    )


def server_notes(block: ServerBlock) -> Iterator[str]:
    if not is_loopback(block.host) and block.auth == "token" and not _names_a_token(block):
        yield (
            f"server.host: {shown(block.host)} is reached from elsewhere, and no token is configured: "
            "knowledge serve will not start"
        )


def server_trust_reasons(block: ServerBlock, sources: Sources) -> Iterator[str]:
    """What the file itself asks for: whom it lets in, and which secrets of yours it uses for that."""
    for key in ("host", "health_host"):
        address = getattr(block, key)
        if sources.is_from_file(f"server.{key}") and not is_loopback(address):
            yield f"lets others ask at {shown(address)} (server.{key})"
    for token in TOKENS:
        name, path = getattr(block, f"{token}_env"), getattr(block, f"{token}_file")
        if name and sources.is_from_file(f"server.{token}_env"):
            yield f"reads the variable {shown(name)} (server.{token}_env)"
        if path and sources.is_from_file(f"server.{token}_file"):
            yield f"lets in whoever knows what {shown(path)} holds (server.{token}_file)"
    for key in ("allowed_hosts", "allowed_origins", "trusted_proxies", "operators"):
        entries = getattr(block, key)
        if entries and sources.is_from_file(f"server.{key}"):
            yield f"trusts {shown(', '.join(entries), 100)} with what the service answers (server.{key})"
    if block.auth == "proxy" and sources.is_from_file("server.auth"):
        yield "lets a proxy say who asks (server.auth)"


def _names_a_token(block: ServerBlock) -> bool:
    return any(getattr(block, f"{token}_{kind}") for token in TOKENS for kind in ("env", "file"))


def _token_problems(block: ServerBlock) -> Iterator[Problem]:
    for token in TOKENS:
        name, path = getattr(block, f"{token}_env"), getattr(block, f"{token}_file")
        yield from variable_name_problems(name, f"server.{token}_env")
        yield from secret_file_problems(path, f"server.{token}_file")
        if has_control_characters(path):
            yield Problem(f"server.{token}_file", "must not hold control characters")
        if name and path:
            yield Problem(f"server.{token}_file", f"goes without server.{token}_env", "Keep one of them.")


def _host_problems(block: ServerBlock) -> Iterator[Problem]:
    for index, host in enumerate(block.allowed_hosts):
        if not _HOST.fullmatch(host):
            text = "must be the name that a browser shows, with or without :port, such as kb.example.org"
            yield Problem(f"server.allowed_hosts[{index}]", text, "No scheme, no path, no *.")
    for index, origin in enumerate(block.allowed_origins):
        if not _ORIGIN.fullmatch(origin):
            text = "must be scheme, name and, where it is not the usual one, port: https://portal.example.org"
            yield Problem(f"server.allowed_origins[{index}]", text, "No path, no *.")


def _proxy_problems(block: ServerBlock) -> Iterator[Problem]:
    for index, network in enumerate(block.trusted_proxies):
        key = f"server.trusted_proxies[{index}]"
        try:
            if ip_network(network, strict=False).prefixlen == 0:
                yield Problem(key, "is every address there is", "Name the proxy's own address.")
        except ValueError:
            yield Problem(key, "must be an address or a network, such as 10.0.0.7 or 10.0.0.0/24")
    if not _HEADER.fullmatch(block.proxy_user_header) or block.proxy_user_header.lower() in _NO_USER_HEADERS:
        yield Problem("server.proxy_user_header", "must be the name of a header that only the proxy sets")
    if block.auth == "proxy" and not block.trusted_proxies:
        text = "needs server.trusted_proxies: else anybody could say who asks"
        yield Problem("server.auth", text, "Name the proxy's address in server.trusted_proxies.")
    if block.operators and block.auth != "proxy":
        yield Problem("server.operators", "goes with auth: proxy", "With tokens, whoever has operate's may operate.")
