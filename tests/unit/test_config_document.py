"""Reading the file: safe, bounded, and every complaint with file and line."""

import os
from pathlib import Path

import pytest

from app.config_document import ConfigurationDocument, read_document
from domain.errors import ConfigurationError


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "knowledge.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def document(tmp_path: Path, text: str | bytes) -> ConfigurationDocument:
    return read_document(written(tmp_path, text))


def refusal(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(ConfigurationError) as caught:
        document(tmp_path, text)
    assert caught.value.exit_status == 2
    return caught.value.message


def test_values_and_the_lines_of_keys_and_entries(tmp_path: Path) -> None:
    found = document(tmp_path, "# comment\nknowledge:\n  top_k: 7\n  paths:\n    - a\n    - path: b\n      name: n\n")
    assert found.block == {"top_k": 7, "paths": ["a", {"path": "b", "name": "n"}]}
    assert dict(found.sources.lines) == {
        "": 2,
        "top_k": 3,
        "paths": 4,
        "paths[0]": 5,
        "paths[1]": 6,
        "paths[1].path": 6,
        "paths[1].name": 7,
    }


def test_scalars_are_what_they_look_like(tmp_path: Path) -> None:
    found = document(
        tmp_path,
        "knowledge: {a: yes, b: 'yes', c: 12:30, d: 2024-01-01, e: 1_000, f: 1.5, g: ~, h: 0x10, i: 1e3, j: =}",
    )
    assert found.block == {
        "a": True,
        "b": "yes",
        "c": "12:30",  # neither minutes of base 60
        "d": "2024-01-01",  # nor a date
        "e": 1000,
        "f": 1.5,
        "g": None,
        "h": 16,
        "i": "1e3",
        "j": "=",
    }


def test_the_block_below_harness(tmp_path: Path) -> None:
    found = document(tmp_path, "harness:\n  other: 1\n  knowledge:\n    top_k: 3\n")
    assert found.block == {"top_k": 3}
    assert found.sources.place("top_k").endswith("knowledge.yaml:4: harness.knowledge.top_k")


def test_two_blocks_are_refused(tmp_path: Path) -> None:
    assert "two blocks" in refusal(tmp_path, "knowledge: {}\nharness: {knowledge: {}}\n")


@pytest.mark.parametrize("text", ["", "# nothing\n", "~\n", "other: 1\n", "knowledge:\n", "harness: 3\n", "\ufeff"])
def test_a_file_without_a_block(tmp_path: Path, text: str) -> None:
    assert document(tmp_path, text).block is None


def test_other_blocks_may_hold_what_ours_may_not(tmp_path: Path) -> None:
    found = document(tmp_path, "tools: !python/object:os.system {a: &x 1, b: *x}\n1: 2\nknowledge: {top_k: 2}\n")
    assert found.block == {"top_k": 2}


def test_a_byte_order_mark_is_no_matter(tmp_path: Path) -> None:
    assert document(tmp_path, "\ufeffknowledge: {top_k: 2}").block == {"top_k": 2}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("knowledge:\n  top_k: 1\n  top_k: 2\n", 3),
        ("knowledge: {}\nother: 1\nknowledge: {}\n", 3),
        ("knowledge:\n  queue:\n    url: a\n    url: b\n", 4),
    ],
)
def test_a_key_that_stands_twice_is_refused(tmp_path: Path, text: str, line: int) -> None:
    message = refusal(tmp_path, text)
    assert f"knowledge.yaml:{line}: " in message
    assert "stands twice" in message


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("knowledge:\n\ttop_k: 5\n", 2, "a tab indents this line"),
        ("knowledge:\n  top_k: [1\n", 3, "not YAML"),
        ("knowledge: {}\n---\nknowledge: {}\n", 2, "not YAML"),
        ("- knowledge\n", 1, "must be a mapping"),
        ("knowledge:\n  - docs\n", 2, "must be a mapping"),
        ("knowledge:\n  [a, b]: 1\n", 2, "a key must be plain text"),
        ("knowledge:\n  top_k: !!python/name:os.system x\n", 2, "tag that is not supported"),
        ("knowledge:\n  top_k: !!binary aGVsbG8=\n", 2, "tag that is not supported"),
        ("knowledge:\n  top_k: !!int x\n", 2, "cannot be read as its type"),
        (b"knowledge:\n  identity: \xff\xfe\n", 2, "not UTF-8"),
    ],
)
def test_what_is_not_plain_yaml(tmp_path: Path, text: str | bytes, line: int, words: str) -> None:
    message = refusal(tmp_path, text)
    assert f"knowledge.yaml:{line}: " in message
    assert words in message


def test_control_characters_are_refused(tmp_path: Path) -> None:
    assert "control characters" in refusal(tmp_path, "knowledge: \x00\n")


def test_an_error_never_shows_the_line_that_may_hold_a_secret(tmp_path: Path) -> None:
    message = refusal(tmp_path, "knowledge:\n  api: sk-verysecret: x: [\n")
    assert "verysecret" not in message


def test_an_alias_bomb_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    inside = "knowledge:\n" + "\n".join(f"  {line}" for line in lines)
    assert "aliases" in refusal(tmp_path, inside)


def test_a_bomb_of_few_aliases_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 3)}]" for n in range(1, 20)]
    inside = "knowledge:\n" + "\n".join(f"  {line}" for line in lines)
    assert "grow without end" in refusal(tmp_path, inside)


def test_an_alias_of_itself_is_refused(tmp_path: Path) -> None:
    assert "grow without end" in refusal(tmp_path, "knowledge: {paths: &p [*p]}\n")


def test_aliases_as_such_are_fine(tmp_path: Path) -> None:
    found = document(tmp_path, "common: &e [.md]\nknowledge: {paths: [{path: a, extensions: *e}]}\n")
    assert found.block == {"paths": [{"path": "a", "extensions": [".md"]}]}


def test_a_file_of_10_mb_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    assert "larger than 1 MiB" in refusal(tmp_path, "#" * 10_000_000)


@pytest.mark.parametrize("text", ["knowledge: " + "[" * 100_000, "knowledge:\n" + "  - - - - - - - - - - " * 20])
def test_deep_nesting_is_refused(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, text)


def test_too_many_values_are_refused(tmp_path: Path) -> None:
    assert "too many values" in refusal(tmp_path, "knowledge: [" + "a," * 60_000 + "]")


@pytest.mark.skipif(os.name != "posix", reason="mode bits")
def test_a_file_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "knowledge: {}\n")
    path.chmod(0o646)
    with pytest.raises(ConfigurationError, match="every user of this machine") as caught:
        read_document(path)
    assert "chmod o-w" in caught.value.hint
    path.chmod(0o664)
    assert read_document(path).block == {}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFO here")
@pytest.mark.timeout(10)
def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.yaml"
    os.mkfifo(path)
    with pytest.raises(ConfigurationError, match="not a regular file"):
        read_document(path)


def test_a_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no configuration file") as caught:
        read_document(tmp_path / "knowledge.yaml")
    assert "config init" in caught.value.hint


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not a regular file"):
        read_document(tmp_path)


def test_the_digest_is_that_of_the_bytes_read(tmp_path: Path) -> None:
    first = document(tmp_path, "knowledge: {}\n").digest
    assert document(tmp_path, "knowledge: {}\n").digest == first
    assert document(tmp_path, "knowledge: {} \n").digest != first


def test_control_characters_of_the_file_do_not_reach_a_terminal(tmp_path: Path) -> None:
    message = refusal(tmp_path, 'knowledge: {"\\e[31mred": 1, "\\e[31mred": 2}\n')
    assert "\x1b" not in message
    assert "\\x1b" in message
