"""Which addresses of a model's server may be used (R17, S1-57). Light: every command's configuration is checked here.

What passes is of so narrow a grammar that no two parsers can read it differently: the host that is judged is the host
that is asked. No name is looked up: loopback is 127/8, ::1 or the name localhost, and nothing that leads there.
"""

import ipaddress
import re
from collections.abc import Collection
from typing import NamedTuple

_ADDRESS = re.compile(
    r"(?P<scheme>https?)://"
    r"(?:(?P<name>[a-z0-9_](?:[a-z0-9._-]*[a-z0-9._])?)|\[(?P<bracketed>[0-9a-f:.]+)\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[a-z0-9._~!$&'()*+,;=:@%/-]*)?",
    re.IGNORECASE | re.ASCII,
)
_UNSEEN = re.compile(r"[\x00-\x20\x7f-\xa0\s\\]")
_AUTHORITY = re.compile(r"[a-z][a-z0-9+.-]*://(?P<authority>[^/?#]*)", re.IGNORECASE)
_LINK_LOCAL = (ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fe80::/10"))
_LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))

_IP = ipaddress.IPv4Address | ipaddress.IPv6Address


class ServerAddress(NamedTuple):
    """An address that passed the grammar; whether it may be used is another question."""

    scheme: str  # http or https
    host: str  # lower case; of an IPv6 literal without the brackets
    port: int | None  # None: the scheme's own
    path: str  # no slash at its end

    @property
    def shown_host(self) -> str:
        """For people: host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """Where texts are posted (S1-25)."""
        return f"{self.scheme}://{self.shown_host}{self.path}/embeddings"


def check_base_url(url: str, insecure_hosts: Collection[str] = ()) -> str:
    """What is wrong with the address, in words that go on from its key ("must ..."); "" when nothing is.

    `insecure_hosts`: exact names of hosts that may be spoken to without TLS. The words never repeat the address, which
    may hold a password.
    """
    if problem := _grammar_problem(url):
        return problem
    address = parse_base_url(url)
    if address.port is not None and not 0 < address.port < 65536:
        return "must have a port between 1 and 65535"
    literal = _literal(address.host)
    if literal is None and (":" in address.host or _ends_in_a_number(address.host)):
        return "must spell out the number of a host in full, such as 127.0.0.1"
    if literal is not None and _is_link_local(literal):
        return "must not be a link-local address"
    if address.scheme == "https" or is_loopback(address.host):
        return ""
    if address.host in {name.lower() for name in insecure_hosts}:
        return ""
    return "must be https, for it is not this machine; in a private network, name the host in embeddings.insecure_hosts"


def parse_base_url(url: str) -> ServerAddress:
    """The parts of an address; ValueError, without the address, where it is outside the grammar."""
    parts = _ADDRESS.fullmatch(url)
    if parts is None:
        raise ValueError("not an address of a server")
    port = int(parts["port"]) if parts["port"] else None
    host = (parts["name"] or parts["bracketed"]).lower()
    return ServerAddress(parts["scheme"].lower(), host, port, (parts["path"] or "").rstrip("/"))


def is_loopback(host: str) -> bool:
    """Of a host in lower case, an IPv6 literal without its brackets."""
    literal = _literal(host)
    return host == "localhost" if literal is None else _is_in(literal, _LOOPBACK)


def _grammar_problem(url: str) -> str:
    if _UNSEEN.search(url):
        return "must not hold a backslash, a space or a control character"
    authority = _AUTHORITY.match(url)
    if authority is not None and "@" in authority["authority"]:
        return "must not hold a user name or password; put the key in a variable and its name in api_key_env"
    if "?" in url or "#" in url:
        return "must not hold ? or #"
    if not url.isascii():
        return "must be ASCII: write a name of other letters in its xn-- form"
    if _ADDRESS.fullmatch(url) is None:
        return "must be an http or https address, such as http://127.0.0.1:1234/v1"
    return ""


def _literal(host: str) -> _IP | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _ends_in_a_number(host: str) -> bool:
    """Resolvers take such names for addresses: 127.1, 2130706433, 0x7f000001, 0177.0.0.1."""
    last = host.rstrip(".").rpartition(".")[2]
    return re.fullmatch(r"[0-9]+|0x[0-9a-f]*", last) is not None


def _is_link_local(literal: _IP) -> bool:
    mapped = literal.ipv4_mapped if isinstance(literal, ipaddress.IPv6Address) else None
    return _is_in(mapped or literal, _LINK_LOCAL)


def _is_in(literal: _IP, networks: Collection[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    return any(literal in network for network in networks if network.version == literal.version)
