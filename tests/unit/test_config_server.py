"""The server and mcp blocks: what is refused, what needs trust, and the tokens they name."""

from pathlib import Path

import pytest

from app import access_tokens as module
from app.access_tokens import AccessTokens, access_tokens
from app.config import Loaded, locate, read
from app.config_report import effective_values
from domain.errors import ConfigurationError
from domain.settings import McpSettings, ServerSettings

TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"


def loaded(folder: Path, line: str, block: str = "server", *, found: bool = False, **environ: str) -> Loaded:
    path = folder / "knowledge.yaml"
    path.write_text(f"knowledge:\n  {block}: {line}\n", "utf-8")
    return read(locate(folder, config=None if found else path, environ={}), environ, cwd=folder)


def test_every_key_reaches_the_settings(tmp_path: Path) -> None:
    text = (
        "{host: 0.0.0.0, port: 9000, read_token_env: READ, operate_token_file: op, allowed_hosts: [KB.example:9000],"
        " allowed_origins: ['https://Portal.example'], auth: proxy, trusted_proxies: [10.0.0.0/24, '::1'],"
        " proxy_user_header: X-User, operators: [ann], base_path: /kb}"
    )
    assert loaded(tmp_path, text).settings.server == ServerSettings(
        host="0.0.0.0",
        port=9000,
        read_token_env="READ",
        operate_token_file=tmp_path / "op",
        allowed_hosts=("kb.example:9000",),
        allowed_origins=("https://portal.example",),
        auth="proxy",
        trusted_proxies=("10.0.0.0/24", "::1"),
        proxy_user_header="X-User",
        operators=("ann",),
        base_path="/kb",
    )
    assert loaded(tmp_path, "{profile: full, port: 9}", "mcp").settings.mcp == McpSettings((), False, "full", 9)


@pytest.mark.parametrize(
    ("line", "key", "words"),
    [
        ("{read_token_env: A, read_token_file: b}", "server.read_token_file", "goes without"),
        ("{read_token_env: f3a1c59e0b7d4a6f8e2c1b0a9d8e7f6c}", "server.read_token_env", "looks like a secret"),
        ("{operate_token_file: f3a1c59e0b7d4a6f8e2c1b0a9d8e7f6c}", "server.operate_token_file", "looks like a secret"),
        (
            "{read_token_file: f3a1c59e0Z-x_7AbCdEfGhIjKlMnOpQrStUvWxYz}",
            "server.read_token_file",
            "looks like a secret",
        ),
        ("{allowed_hosts: ['*']}", "server.allowed_hosts", "name that a browser shows"),
        ("{allowed_hosts: [a, 'https://kb.example']}", "server.allowed_hosts", "name that a browser shows"),
        ("{allowed_hosts: ['']}", "server.allowed_hosts", "name that a browser shows"),
        ("{allowed_origins: ['*']}", "server.allowed_origins", "https://portal"),
        ("{allowed_origins: ['null']}", "server.allowed_origins", "https://portal"),
        ("{allowed_origins: ['https://a.example/']}", "server.allowed_origins", "https://portal"),
        ("{trusted_proxies: [proxy]}", "server.trusted_proxies", "an address or a network"),
        ("{trusted_proxies: [0.0.0.0/0]}", "server.trusted_proxies", "every address"),
        ("{trusted_proxies: ['::/0']}", "server.trusted_proxies", "every address"),
        ("{auth: proxy}", "server.auth", "needs server.trusted_proxies"),
        ("{auth: none}", "server.auth", "must be one of"),
        ("{proxy_user_header: 'X User'}", "server.proxy_user_header", "name of a header"),
        ("{proxy_user_header: Cookie}", "server.proxy_user_header", "only the proxy sets"),
        ("{operators: [ann]}", "server.operators", "goes with auth: proxy"),
        ("{base_path: kb}", "server.base_path", "begin with /"),
        ("{base_path: /kb/}", "server.base_path", "begin with /"),
        ("{base_path: /}", "server.base_path", "begin with /"),
        ("{base_path: //kb}", "server.base_path", "begin with /"),
        ("{base_path: /a/../b}", "server.base_path", "begin with /"),
        ("{base_path: '/a?b'}", "server.base_path", "begin with /"),
        ("{port: 0}", "server.port", "at least 1"),
    ],
)
def test_what_is_refused(tmp_path: Path, line: str, key: str, words: str) -> None:
    """T29: exit 2, the key and the line named; what may be a secret is not echoed."""
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, line)
    assert f"knowledge.yaml:2: knowledge.{key}" in caught.value.message
    assert words in caught.value.message
    assert "f3a1c59e" not in caught.value.message + caught.value.hint


def test_two_listeners_need_two_ports(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"mcp\.port: is server\.port too"):
        loaded(tmp_path, "{port: 9}\n  mcp: {port: 9}")
    with pytest.raises(ConfigurationError, match=r"mcp\.profile: must be one of agent, full"):
        loaded(tmp_path, "{profile: all}", "mcp")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{host: 0.0.0.0}", "lets others ask at 0.0.0.0 (server.host)"),
        ("{health_host: '::'}", "(server.health_host)"),
        ("{read_token_env: AWS_SECRET}", "reads the variable AWS_SECRET (server.read_token_env)"),
        ("{operate_token_file: /etc/hostname}", "whoever knows what /etc/hostname holds (server.operate_token_file)"),
        ("{allowed_hosts: [evil.example]}", "evil.example"),
        ("{allowed_origins: ['https://evil.example']}", "evil.example"),
        ("{auth: proxy, trusted_proxies: [10.0.0.7]}", "lets a proxy say who asks (server.auth)"),
    ],
)
def test_what_a_found_file_may_not_open_by_itself(tmp_path: Path, line: str, words: str) -> None:
    assert words in "; ".join(loaded(tmp_path, line, found=True).needs_trust)
    assert loaded(tmp_path, line).needs_trust == ()


def test_what_needs_no_trust(tmp_path: Path) -> None:
    found = loaded(tmp_path, "{host: localhost, port: 9, base_path: /kb}", found=True, KNOWLEDGE_SERVER__HOST="0.0.0.0")
    assert found.needs_trust == ()
    assert found.settings.server.host == "0.0.0.0", "from a variable of the operator's own"


def test_an_open_place_without_a_token_is_noted(tmp_path: Path) -> None:
    (note,) = loaded(tmp_path, "{host: 0.0.0.0}").notes
    assert "knowledge serve will not start" in note
    assert loaded(tmp_path, "{host: 0.0.0.0, read_token_file: x}").notes == ()


def test_a_token_is_shown_by_name_alone(tmp_path: Path) -> None:
    found = loaded(tmp_path, "{read_token_env: MY_TOKEN}")
    rows = {row.key: row.value for row in effective_values(found, {"MY_TOKEN": TOKEN})}
    assert rows["server.read_token_env"] == "MY_TOKEN (set)"
    assert TOKEN not in str(rows)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What variables hold."""
    variables: dict[str, str] = {}
    monkeypatch.setattr(module, "secret", lambda name: variables.get(name) or None)
    return variables


def test_a_token_is_kept_as_a_digest_and_grants_what_it_is_for(tmp_path: Path, held: dict[str, str]) -> None:
    held["READ"] = f"{TOKEN}\n"
    (tmp_path / "operate").write_text(f"{OTHER}\n", "utf-8")
    tokens = access_tokens(ServerSettings(read_token_env="READ", operate_token_file=tmp_path / "operate"))
    assert TOKEN not in repr(tokens) and TOKEN.encode() not in tokens.read
    assert [tokens.granted(token) for token in (TOKEN, OTHER, "", TOKEN + "x", "é" * 20, "\udcff")] == [
        "read",
        "operate",
        None,
        None,
        None,
        None,
    ]
    assert AccessTokens().granted("") is None
    assert not access_tokens(ServerSettings()).are_configured


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TOKEN[:15], "fewer than 16"),
        ("", "fewer than 16"),
        ("sixteen characters with blanks", "characters that no token has"),
        ("schlüssel-schlüssel", "characters that no token has"),
        ("x" * 5000, "more than a token"),
        (None, "is not there"),
    ],
)
def test_a_file_that_holds_no_token_is_refused_by_its_key(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(ConfigurationError) as caught:
        access_tokens(ServerSettings(read_token_file=path))
    assert caught.value.message.startswith("server.read_token_file: ")
    assert words in caught.value.message
    assert not content or content not in caught.value.message


def test_a_variable_that_is_not_set_and_one_token_for_both_are_refused(held: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"server\.operate_token_env: the variable OPERATE is not set"):
        access_tokens(ServerSettings(operate_token_env="OPERATE"))
    held |= {"READ": TOKEN, "OPERATE": TOKEN}
    with pytest.raises(ConfigurationError, match="the same token") as caught:
        access_tokens(ServerSettings(read_token_env="READ", operate_token_env="OPERATE"))
    assert TOKEN not in caught.value.message
