"""Addresses as they may be shown: without the password."""

import re

MASK = "***"
_AUTHORITY = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)?(?P<credentials>.*)@", re.DOTALL)
_QUERY_SECRET = re.compile(r"(?P<name>[?&;][^=&;]*(?:pass|pwd|secret|token|key)[^=&;]*=)[^&;#]*", re.IGNORECASE)


def mask_url(url: str) -> str:
    """`redis://user:secret@host` as `redis://user:***@host`; malformed addresses rather lose more.

    Everything between the scheme and the last `@` counts as credentials, for people forget to escape.
    """
    shown = url
    if authority := _AUTHORITY.match(url):
        user, colon, _ = authority["credentials"].partition(":")
        credentials = f"{user}:{MASK}" if colon else MASK
        shown = f"{authority['scheme'] or ''}{credentials}@{url[authority.end() :]}"
    return _QUERY_SECRET.sub(rf"\g<name>{MASK}", shown)
