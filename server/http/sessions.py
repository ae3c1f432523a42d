"""Sessions of people who have signed in, in the memory of the process: a restart ends them all."""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import NamedTuple

from server.http.parts import Scope

SESSION_LIVES_S = 12 * 3600
MOST_SESSIONS = 1000  # beyond it the oldest ends
FORM_LIVES_S = 3600  # how long a sign-in form may lie open
ATTEMPTS_AT_ONCE = 5
ATTEMPTS_A_SECOND = 1.0
MOST_ADDRESSES = 10_000  # whose attempts are remembered

ClockS = Callable[[], float]


class Session(NamedTuple):
    scopes: frozenset[Scope]
    form_token: str  # what its forms and scripts send back
    ends_s: float


class Sessions:
    """By the digest of what the cookie holds: comparing it tells nothing about another."""

    def __init__(self, clock_s: ClockS = time.time) -> None:
        self._clock_s = clock_s
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def begin(self, scopes: frozenset[Scope]) -> str:
        """What its cookie holds."""
        cookie = secrets.token_urlsafe(32)
        self._sessions[_key(cookie)] = Session(scopes, secrets.token_urlsafe(24), self._clock_s() + SESSION_LIVES_S)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return cookie

    def of(self, cookie: str) -> Session | None:
        session = self._sessions.get(_key(cookie))
        if session is not None and session.ends_s <= self._clock_s():
            self.end(cookie)
            return None
        return session

    def end(self, cookie: str) -> None:
        self._sessions.pop(_key(cookie), None)


class Attempts:
    """How often an address may try a token: a few at once, then one a second."""

    def __init__(self, clock_s: ClockS = time.monotonic) -> None:
        self._clock_s = clock_s
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tries, and when they were counted

    def may_try(self, address: str) -> bool:
        """Counts as one where it may."""
        now_s, key = self._clock_s(), _neighbourhood(address)
        left, counted_s = self._left.pop(key, (float(ATTEMPTS_AT_ONCE), now_s))
        left = min(float(ATTEMPTS_AT_ONCE), left + (now_s - counted_s) * ATTEMPTS_A_SECOND)
        may = left >= 1
        self._left[key] = (left - 1 if may else left, now_s)
        while len(self._left) > MOST_ADDRESSES:
            self._left.popitem(last=False)
        return may


class FormTokens:
    """What proves that a form is one of ours, without remembering each: signed with a key of this process."""

    def __init__(self, clock_s: ClockS = time.time) -> None:
        self._clock_s = clock_s
        self._key = secrets.token_bytes(32)

    def lasting(self, of: str) -> str:
        """The same for as long as the process lives."""
        return self._signed(f"lasting {of}")

    def fresh(self) -> str:
        ends = str(int(self._clock_s() + FORM_LIVES_S))
        return f"{ends}.{self._signed(ends)}"

    def is_fresh(self, token: str) -> bool:
        ends, _, signature = token.partition(".")
        is_ours = same(signature, self._signed(ends))
        return is_ours and int(ends) > self._clock_s()

    def _signed(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def same(left: str, right: str) -> bool:
    """Takes as long whatever they differ in; nothing is the same as no token at all."""
    one, other = (text.encode("utf-8", "surrogateescape") for text in (left, right))
    return hmac.compare_digest(one, other) and bool(right)


def _key(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "surrogateescape")).digest()


def _neighbourhood(address: str) -> str:
    """An IPv6 network counts as one: whoever has one address of it has all."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(ip_network((parsed, 64), strict=False))
    return address
