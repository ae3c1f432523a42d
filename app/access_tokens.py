"""The tokens of the HTTP service, as digests: what a token is stands in no value of ours, in no log and no message."""

import hashlib
import hmac
from pathlib import Path
from typing import Literal, NamedTuple

from app.config import secret
from app.config_origins import shown
from app.secret_files import secret_bytes
from domain.errors import ConfigurationError
from domain.settings import ServerSettings

MIN_TOKEN_CHARS = 16
MAX_TOKEN_BYTES = 4096
Granted = Literal["operate", "read"] | None
_HINT = "make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"


class AccessTokens(NamedTuple):
    """SHA-256 of each token that is configured, b"" of one that is not."""

    read: bytes = b""
    operate: bytes = b""

    @property
    def are_configured(self) -> bool:
        return bool(self.read or self.operate)

    def granted(self, token: str) -> Granted:
        """What this token is good for; takes as long whichever it is. `operate` includes reading."""
        digest = _digest(token.encode("utf-8", "surrogateescape"))
        may_operate = hmac.compare_digest(digest, self.operate or _NOBODY) and bool(self.operate)
        may_read = hmac.compare_digest(digest, self.read or _NOBODY) and bool(self.read)
        return "operate" if may_operate else "read" if may_read else None


def access_tokens(server: ServerSettings) -> AccessTokens:
    """Raises ConfigurationError, which names the key: a variable or file that holds no token, or too short a one; the
    same token for both."""
    read = _token("server.read_token", server.read_token_env, server.read_token_file)
    operate = _token("server.operate_token", server.operate_token_env, server.operate_token_file)
    if read and read == operate:
        raise ConfigurationError(
            "server.read_token and server.operate_token are the same token: whoever reads could operate", hint=_HINT
        )
    return AccessTokens(_digest(read) if read else b"", _digest(operate) if operate else b"")


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


_NOBODY = _digest(b"")  # compared where a token is not configured; no token is empty


def _token(key: str, variable: str, path: Path | None) -> bytes:
    """b"" where none is configured."""
    if variable:
        where, text = f"{key}_env: the variable {variable}", secret(variable) or ""
        if not text.strip():
            raise ConfigurationError(f"{where} is not set", hint=_HINT)
    elif path is not None:
        where, text = f"{key}_file: {shown(str(path))}", _file_text(f"{key}_file", path)
    else:
        return b""
    token = text.strip()  # one that comes from a file often ends in a line break
    if len(token) < MIN_TOKEN_CHARS:
        raise ConfigurationError(f"{where} holds fewer than {MIN_TOKEN_CHARS} characters", hint=_HINT)
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigurationError(f"{where} holds characters that no token has", hint=_HINT)
    return token.encode()


def _file_text(key: str, path: Path) -> str:
    raw = secret_bytes(key, path, most_bytes=MAX_TOKEN_BYTES, hint=_HINT)
    if len(raw) > MAX_TOKEN_BYTES:
        raise ConfigurationError(f"{key}: {shown(str(path))} holds more than a token", hint=_HINT)
    return raw.decode("utf-8", "replace")
