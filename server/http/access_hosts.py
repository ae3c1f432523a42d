"""Under which name the service is asked, from which page, through which proxy: rules about headers alone.

A page of another site can make a browser send requests here, and can have its own name lead here (DNS rebinding). The
first shows in Origin, the second in Host; neither can be changed by a page.
"""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal, NamedTuple

from starlette.datastructures import Headers
from starlette.types import Scope

from domain.settings import ServerSettings

LOOPBACK_NAMES = frozenset({"127.0.0.1", "[::1]", "localhost"})
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:(?P<port>[0-9]{1,5}))?")
_USUAL_PORT = {"http": "80", "https": "443"}
MAX_HOST_CHARS = 300

Network = IPv4Network | IPv6Network
From = Literal["own", "allowed", "unknown", "foreign"]
"""Of which page a request is: one of ours, of an allowed origin, none that says so (a program), of another site."""


class HostRules(NamedTuple):
    names: frozenset[str]  # as in Host, lower case; "name" with any port, "name:port" with that one
    origins: frozenset[str]  # beside the own one
    proxies: tuple[Network, ...]  # whose forwarded headers are believed


class Addressed(NamedTuple):
    """How a request came: what the client has typed, and where the client is."""

    scheme: str
    host: str  # as the client named it, lower case; "" = not at all, or malformed
    is_allowed: bool  # every name that it was asked under is one of ours
    by_proxy: bool  # its peer is a trusted proxy
    client: str  # address


def host_rules(server: ServerSettings) -> HostRules:
    own = f"[{server.host}]" if ":" in server.host else server.host.lower()
    return HostRules(
        names=LOOPBACK_NAMES | {own} | set(server.allowed_hosts),
        origins=frozenset(_plain_origin(origin) for origin in server.allowed_origins),
        proxies=tuple(ip_network(network, strict=False) for network in server.trusted_proxies),
    )


def addressed(rules: HostRules, scope: Scope, headers: Headers) -> Addressed:
    """Forwarded headers count only from a trusted proxy. Its own Host must be one of ours all the same: a page that has
    its name lead to this machine would else speak with the proxy's voice."""
    peer = str((scope.get("client") or ("",))[0])
    host = _one(headers.getlist("host"))
    scheme, named, client = scope["scheme"], host, peer
    by_proxy = _is_in(peer, rules.proxies)
    if by_proxy:
        forwarded = _last(headers.getlist("x-forwarded-host"))
        named = forwarded.lower() if forwarded else host
        proto = _last(headers.getlist("x-forwarded-proto")).lower()
        scheme = proto if proto in _USUAL_PORT else scheme
        client = _client_before(headers.getlist("x-forwarded-for"), rules.proxies) or peer
    return Addressed(scheme, named, all(_is_ours(rules, name) for name in {host, named}), by_proxy, client)


def page_of(rules: HostRules, asked: Addressed, headers: Headers) -> From:
    """Whose page has sent this, by Origin and, where a browser leaves that out or hides it, by Sec-Fetch-Site."""
    origins = headers.getlist("origin")
    if len(origins) > 1:
        return "foreign"
    site = headers.get("sec-fetch-site", "")
    if not origins or origins == ["null"]:  # null: a form of a page whose policy is to send no referrer
        if site == "same-origin":
            return "own"
        return "foreign" if origins else "unknown"
    origin = _plain_origin(origins[0].lower())
    if origin == _plain_origin(f"{asked.scheme}://{asked.host}"):
        return "own"
    return "allowed" if origin in rules.origins else "foreign"


def shown_host(host: str) -> str:
    """A Host header in a message: what is no name is not repeated."""
    return host if _HOST.fullmatch(host) else ""


def _one(values: Sequence[str]) -> str:
    host = values[0].strip().lower() if len(values) == 1 else ""
    return host if len(host) <= MAX_HOST_CHARS else ""


def _last(values: Sequence[str]) -> str:
    """Of a list that each proxy adds to, what the nearest one says."""
    return values[-1].rpartition(",")[2].strip() if values else ""


def _is_ours(rules: HostRules, host: str) -> bool:
    found = _HOST.fullmatch(host)
    return found is not None and (found["name"] in rules.names or host in rules.names)


def _plain_origin(origin: str) -> str:
    scheme, _, host = origin.partition("://")
    return f"{scheme}://{host.removesuffix(':' + _USUAL_PORT.get(scheme, '-'))}"


def _client_before(lists: Sequence[str], proxies: Sequence[Network]) -> str:
    """The last address that is no trusted proxy: what stands before it anybody can write."""
    for entry in reversed([entry.strip() for text in lists for entry in text.split(",")]):
        if _address(entry) is None:
            return ""
        if not _is_in(entry, proxies):
            return entry
    return ""


def _is_in(text: str, networks: Sequence[Network]) -> bool:
    address = _address(text)
    return address is not None and any(address in network for network in networks)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
