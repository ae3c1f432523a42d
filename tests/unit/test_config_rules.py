"""What is refused in a configuration: every rule, told with file, line and key."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.config import Loaded, load_with_sources, locate
from domain.errors import ConfigurationError

BLOCK = "knowledge:\n  enabled: true\n"
SERVER = "base_url: 'http://127.0.0.1:1/v1', model: m"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two folders of texts, as a configuration may name them."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "notes").mkdir()
    return tmp_path


def loaded(
    folder: Path, text: str, environ: Mapping[str, str] | None = None, *, name: str = "knowledge.yaml"
) -> Loaded:
    path = folder / name
    path.write_text(text, "utf-8")
    located = locate(folder, config=path, environ=environ or {})
    return load_with_sources(located, environ or {}, cwd=folder)


def refusal(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        loaded(folder, text, environ)
    assert caught.value.exit_status == 2
    return caught.value


@pytest.mark.parametrize(
    ("line", "key", "words"),
    [
        ('  enabled: "yes"', "enabled", "must be true or false, not text"),
        ("  enabled: 1", "enabled", "must be true or false, not a whole number"),
        ("  top_k: 0", "top_k", "at least 1"),
        ("  top_k: -1", "top_k", "at least 1"),
        ("  top_k: 1000000000", "top_k", "at most 1000"),
        ('  top_k: "5"', "top_k", "must be a whole number, not text"),
        ("  top_k: true", "top_k", "must be a whole number"),
        ("  top_k: 1.5", "top_k", "must be a whole number"),
        ("  top_k: .nan", "top_k", "must be a whole number"),
        ("  top_k: ~", "top_k", "must be a whole number, not nothing"),
        ("  max_injected_tokens: 0", "max_injected_tokens", "at least 1"),
        ("  max_file_bytes: 5 apples", "max_file_bytes", "unknown unit"),
        ("  max_file_bytes: 0", "max_file_bytes", "at least 1 byte"),
        ("  max_file_bytes: [1]", "max_file_bytes", "a number or text with a unit, not a list"),
        ("  substring_index: maybe", "substring_index", "must be one of auto, on, off"),
        ("  change_detection: 3", "change_detection", "must be"),
        ("  identity: a/b", "identity", "folder's name"),
        ("  identity: ..", "identity", "folder's name"),
        ('  identity: "a\\nb"', "identity", "folder's name"),
        ("  directory: /", "directory", "whole file system"),
        ('  directory: "a\\0b"', "directory", "control characters"),
        ('  paths: ["a\\0b"]', "paths[0].path", "must be the path of a folder"),
        ("  paths: docs", "paths", "must be a list, not text"),
        ("  paths: [3]", "paths[0]", "must be text or a mapping"),
        ("  paths: [{name: x}]", "paths[0].path", "the key path is missing"),
        ('  paths: [""]', "paths[0].path", "must be the path of a folder"),
        ("  paths: [/]", "paths[0]", "the whole file system"),
        ("  paths: [absent]", "paths[0]", "does not exist"),
        ("  paths: [knowledge.yaml]", "paths[0]", "is a file"),
        ("  paths: [docs, docs/]", "paths[1]", "overlaps"),
        ("  paths: [., docs]", "paths[1]", "overlaps"),
        ("  paths: [docs, .]", "paths[1]", "overlaps"),
        ("  paths: [{path: docs, role: x}]", "paths[0].role", "must be one of documents"),
        ("  paths: [{path: docs, name: a/b}]", "paths[0].name", "must not hold /"),
        ('  paths: [{path: docs, name: "a\\tb"}]', "paths[0].name", "control characters"),
        ("  paths: [{path: docs, name: ..}]", "paths[0].name", "must not hold"),
        ("  paths: [{path: docs, name: a}, {path: notes, name: a}]", "paths[1].name", "is taken by paths[0]"),
        ("  paths: [{path: docs, extensions: ['.']}]", "paths[0].extensions", "endings"),
        ("  paths: [{path: docs, exclude_dirs: [a/b]}]", "paths[0].exclude_dirs", "names of folders"),
        ("  paths: [{path: docs, exclude: ['']}]", "paths[0]", "empty pattern"),
        ("  paths: [{path: docs, watch: 'no'}]", "paths[0].watch", "must be true or false"),
        ("  paths: [{path: docs, link: 'https://h/{user}'}]", "paths[0].link", "{user}"),
        ("  paths: [{path: docs, link: 'https://h/{path'}]", "paths[0].link", "placeholder"),
        ("  paths: [{path: docs, link: 'JavaScript:alert(1)'}]", "paths[0].link", "safe to click"),
        ("  queue: {files_per_job: 0}", "queue.files_per_job", "at least 1"),
        ("  queue: {workers: -1}", "queue.workers", "at least 0"),
        ('  queue: {url: "redis://\\n"}', "queue.url", "control characters"),
        ("  queue: 3", "queue", "must be a mapping"),
        (f"  embeddings: {{{SERVER}, timeout: -5s}}", "embeddings.timeout", "must not be negative"),
        (f"  embeddings: {{{SERVER}, timeout: -5}}", "embeddings.timeout", "must not be negative"),
        (f"  embeddings: {{{SERVER}, timeout: 0}}", "embeddings.timeout", "more than nothing"),
        (f"  embeddings: {{{SERVER}, timeout: soon}}", "embeddings.timeout", "a duration such as"),
        ("  embeddings: {provider: x}", "embeddings.provider", "must be one of openai, local"),
        ("  embeddings: {model: m, base_url: 'ftp://h'}", "embeddings.base_url", "http or https"),
        ("  embeddings: {model: m, base_url: 'http://h:port'}", "embeddings.base_url", "http or https"),
        ("  embeddings: {model: m, base_url: 'http://10.0.0.1/v1'}", "embeddings.base_url", "must be https"),
        ("  embeddings: {model: m, base_url: 'http://localhost.evil/v1'}", "embeddings.base_url", "must be https"),
        (f"  embeddings: {{{SERVER}, timeout: 2h}}", "embeddings.timeout", "at most 1 h"),
        (f"  embeddings: {{{SERVER}, outage_limit: -1s}}", "embeddings.outage_limit", "must not be negative"),
        (f"  embeddings: {{{SERVER}, outage_limit: 8d}}", "embeddings.outage_limit", "at most 168 h"),
        (f"  embeddings: {{{SERVER}, batch: 0}}", "embeddings.batch", "at least 1"),
        (f"  embeddings: {{{SERVER}, batch: 65}}", "embeddings.batch", "at most 64"),
        (f"  embeddings: {{{SERVER}, concurrency: 0}}", "embeddings.concurrency", "at least 1"),
        (f"  embeddings: {{{SERVER}, requests_per_minute: -1}}", "embeddings.requests_per_minute", "at least 0"),
        (f"  embeddings: {{{SERVER}, max_batch_bytes: 1023}}", "embeddings.max_batch_bytes", "at least 1,024 bytes"),
        (f"  embeddings: {{{SERVER}, max_batch_bytes: 1GiB}}", "embeddings.max_batch_bytes", "at most 67,108,864"),
        (f"  embeddings: {{{SERVER}, min_similarity: 1.5}}", "embeddings.min_similarity", "of at most 1.0"),
        (f"  embeddings: {{{SERVER}, min_similarity: -2}}", "embeddings.min_similarity", "of at least -1.0"),
        (f"  embeddings: {{{SERVER}, min_similarity: .nan}}", "embeddings.min_similarity", "must be"),
        (
            f"  embeddings: {{{SERVER}, min_similarity: high}}",
            "embeddings.min_similarity",
            "must be a number, not text",
        ),
        (f"  embeddings: {{{SERVER}, commit: later}}", "embeddings.commit", "must be one of together, words_first"),
        (f'  embeddings: {{{SERVER}, query_prefix: "a\\0b"}}', "embeddings.query_prefix", "control characters"),
        (f'  embeddings: {{{SERVER}, document_prefix: "\\e[2J"}}', "embeddings.document_prefix", "control characters"),
        (f"  embeddings: {{{SERVER}, insecure_hosts: ['*']}}", "embeddings.insecure_hosts[0]", "exact name"),
        (f"  embeddings: {{{SERVER}, insecure_hosts: ['http://h']}}", "embeddings.insecure_hosts[0]", "exact name"),
        (f"  embeddings: {{{SERVER}, insecure_hosts: ['']}}", "embeddings.insecure_hosts[0]", "exact name"),
        ("  embeddings: {model: m}", "embeddings.base_url", "needs the server's address"),
        ("  embeddings: {base_url: 'http://127.0.0.1:1/v1'}", "embeddings.model", "needs the model's name"),
        ("  embeddings: {base_url: 'http://127.0.0.1:1/v1', model: ' '}", "embeddings.model", "needs the model's name"),
        ("  embeddings: {provider: local, base_url: 'http://127.0.0.1:1/v1'}", "embeddings.base_url", "provider local"),
        ("  embeddings: {provider: local, api_key_env: MY_KEY}", "embeddings.api_key_env", "provider local"),
        ("  embeddings: {provider: local, model: other}", "embeddings.model", "empty or wordllama-l2-supercat-256"),
        ("  embeddings: {model: m, base_url: ' http://127.0.0.1/v1'}", "embeddings.base_url", "a space"),
        ("  embeddings: {model: m, base_url: 'http://127.1/v1'}", "embeddings.base_url", "in full"),
        ("  embeddings: {model: m, base_url: 'https://169.254.169.254/v1'}", "embeddings.base_url", "link-local"),
        ("  embeddings: {model: m, base_url: 'http://[::ffff:127.0.0.1]/v1'}", "embeddings.base_url", "must be https"),
        ("  schedules: [{name: a}]", "schedules[0].cron", "the key cron is missing"),
        ("  schedules: [{name: a, cron: '* *'}]", "schedules[0].cron", "five fields"),
        ("  schedules: [{name: a, cron: '0 3 * * *', window: '1-5'}]", "schedules[0].window", "two times"),
        ("  schedules: [{name: a, cron: '0 3 * * *', jitter: -1s}]", "schedules[0].jitter", "negative"),
        ("  server: {port: 70000}", "server.port", "at most 65535"),
        ("  mcp: {allow_write: 'true'}", "mcp.allow_write", "must be true or false"),
    ],
)
def test_a_wrong_value_is_told_with_file_line_and_key(folder: Path, line: str, key: str, words: str) -> None:
    error = refusal(folder, f"knowledge:\n{line}\n")
    assert error.message.startswith(f"{folder}/knowledge.yaml:2: knowledge.{key}: ")
    assert words in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("text", "line", "words", "hint"),
    [
        (
            "knowledge:\n  top_q: 3\n",
            2,
            "knowledge.top_q: unknown key top_q; the nearest known key is top_k",
            "top_k",
        ),
        ("knowledge:\n  top-k: 3\n", 2, "the nearest known key is top_k", "top_k"),
        ("knowledge:\n  queue:\n    ulr: x\n", 3, "knowledge.queue.ulr: unknown key ulr", "url"),
        ("knowledge:\n  paths:\n    - path: docs\n      nmae: x\n", 4, "knowledge.paths[0].nmae", "name"),
        ("knowledge:\n  zzzzzz: 3\n", 2, "unknown key zzzzzz", "Known keys here: enabled, identity"),
        ("knowledge:\n  <<: {top_k: 3}\n", 2, "unknown key <<", "Known keys"),
        ("harness:\n  knowledge:\n    top_q: 3\n", 3, "harness.knowledge.top_q", "top_k"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(folder: Path, text: str, line: int, words: str, hint: str) -> None:
    error = refusal(folder, text)
    assert f"knowledge.yaml:{line}: " in error.message
    assert words in error.message
    assert hint in error.hint


def test_all_that_is_wrong_is_told_at_once(folder: Path) -> None:
    error = refusal(folder, "knowledge:\n  top_q: 1\n  top_k: 0\n  embeddings: {provider: local, timeout: -1s}\n")
    assert [line.split(": ")[0].rpartition(":")[2] for line in error.message.splitlines()] == ["2", "3", "4"]


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefghijklmnop",
        "sk_live_abcdef",
        "sk-proj-AbC",
        "ghp_0123456789abcdefABCDEF0123456789abcd",
        "hf_AbCdEfGhIjKlMnOpQrStUvWxYz",
        "AIzaSyD0123456789abcdefghijklmnopqrstu",
        "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5",
        "f3a1c59e0b7d4a6f8e2c1b0a9d8e7f6c",
        "my key",
        "a.b.c",
        "key=abc",
        "ключ",
    ],
)
@pytest.mark.parametrize("key", ["embeddings.api_key_env", "server.read_token_env", "server.operate_token_env"])
def test_a_pasted_secret_is_refused_and_not_echoed(folder: Path, secret: str, key: str) -> None:
    block, _, inner = key.partition(".")
    error = refusal(folder, f"knowledge:\n  {block}:\n    {inner}: {secret!r}\n")
    assert f"knowledge.yaml:3: knowledge.{key}: " in error.message
    assert "looks like a secret" in error.message
    assert secret not in error.message + error.hint
    variable = f"KNOWLEDGE_{block}__{inner}".upper()
    error = refusal(folder, BLOCK, {variable: secret})
    assert error.message.startswith(f"{variable}: ")
    assert secret not in error.message + error.hint


@pytest.mark.parametrize("name", ["RAG_EMBED_KEY", "OPENAI_API_KEY", "key", "_K1", "AZURE_OPENAI_API_KEY_2024_EAST_US"])
def test_names_of_variables_are_no_secrets(folder: Path, name: str) -> None:
    found = loaded(folder, f"knowledge:\n  embeddings: {{{SERVER}, api_key_env: {name}}}\n")
    assert found.notes == (f"embeddings.api_key_env: the variable {name} is not set",)
    assert loaded(folder, f"knowledge:\n  embeddings: {{{SERVER}, api_key_env: {name}}}\n", {name: "x"}).notes == ()


def test_credentials_in_an_address_are_refused_and_not_echoed(folder: Path) -> None:
    error = refusal(folder, "knowledge:\n  embeddings: {base_url: 'https://u:hunter2@h/v1'}\n")
    assert "must not hold a user name or password" in error.message
    assert "hunter2" not in error.message + error.hint


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1234/v1", "http://localhost/v1", "http://[::1]:80/v1", "https://example.org/v1"],
)
def test_addresses_that_are_fine(folder: Path, address: str) -> None:
    settings = loaded(folder, f"knowledge:\n  embeddings: {{model: m, base_url: '{address}'}}\n").settings
    assert settings.embeddings is not None
    assert settings.embeddings.base_url == address


def test_two_schedules_of_one_name(folder: Path) -> None:
    entry = "{name: a, cron: '0 3 * * *'}"
    assert "schedules[1].name" in refusal(folder, f"knowledge:\n  schedules: [{entry}, {entry}]\n").message


def test_a_circle_of_links_and_names_too_long_are_refused_not_a_crash(folder: Path) -> None:
    (folder / "circle").symlink_to("circle")
    for path in ("circle", "x" * 300):
        error = refusal(folder, f"knowledge:\n  paths: [{path}]\n  directory: {path}/index\n")
        assert "does not exist" in error.message


def test_a_variable_that_is_not_utf8_is_no_crash(folder: Path) -> None:
    assert loaded(folder, BLOCK, {"KNOWLEDGE_IDENTITY": "a\udcff"}).settings.identity == "a\udcff"
    assert "whole number" in refusal(folder, BLOCK, {"KNOWLEDGE_TOP_K": "\udcff"}).message


def test_a_flood_of_problems_is_cut(folder: Path) -> None:
    keys = "".join(f"  zz{number}: 1\n" for number in range(50))
    lines = refusal(folder, f"knowledge:\n{keys}").message.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 30 more"
