"""Include and exclude globs and `.knowledgeignore` files, in gitignore syntax."""

import os
from pathlib import Path

import pytest

from domain.errors import ConfigurationError
from scheduler.ignore_rules import IGNORE_FILE_CAP_BYTES, IGNORE_FILE_NAME, IgnoreScope, read_ignore_file, scope_of_root


def test_without_rules_everything_is_open() -> None:
    scope = scope_of_root((), ())
    assert scope.is_open
    assert scope.takes_in("any/thing.md")
    assert not scope.leaves_out("any/thing.md")


@pytest.mark.parametrize(
    ("lines", "path", "is_left_out"),
    [
        (["drafts/"], "drafts/", True),
        (["drafts/"], "deep/drafts/", True),
        (["/drafts/"], "deep/drafts/", False),
        (["*.tmp.md"], "deep/a.tmp.md", True),
        (["*", "!keep.md"], "keep.md", False),
        (["# a comment", "", "a.md"], "a.md", True),
        (["a.md"], "A.md", False),
        (["deep/**/a.md"], "deep/er/still/a.md", True),
        (["/a.md"], "deep/a.md", False),
        (["übung*.md"], "übung 1.md", True),
    ],
)
def test_exclude_is_gitignore_syntax(lines: list[str], path: str, is_left_out: bool) -> None:
    assert scope_of_root((), lines).leaves_out(path) is is_left_out


def test_include_names_what_is_taken_in() -> None:
    scope = scope_of_root(["guides/", "*.txt"], ())
    assert not scope.is_open
    assert scope.takes_in("guides/deep/a.md")
    assert scope.takes_in("b.txt")
    assert not scope.takes_in("c.md")


def test_the_innermost_file_that_speaks_of_a_path_decides() -> None:
    """`!` in a nested file takes in again what an outer one left out; silence leaves it as it is."""
    outer = scope_of_root((), ["*.log.md"])
    inner = outer.within("sub/", ["!keep.log.md", "own.md"])
    assert outer.leaves_out("sub/keep.log.md")
    assert not inner.leaves_out("sub/keep.log.md")
    assert inner.leaves_out("sub/other.log.md")
    assert inner.leaves_out("sub/own.md")
    assert not outer.leaves_out("sub/own.md")


def test_an_inner_rule_is_relative_to_its_directory() -> None:
    scope = IgnoreScope().within("sub/", ["/a.md"])
    assert scope.leaves_out("sub/a.md")
    assert not scope.leaves_out("sub/deep/a.md")


@pytest.mark.parametrize("pattern", ["!", "\\", "a\\", "[z-a]"])
def test_a_pattern_of_the_configuration_that_means_nothing_is_an_error(pattern: str) -> None:
    with pytest.raises(ConfigurationError, match="pattern"):
        scope_of_root((), [pattern])
    with pytest.raises(ConfigurationError, match="pattern"):
        scope_of_root([pattern], ())


def read(folder: Path) -> tuple[tuple[str, ...], list[str]]:
    notes: list[str] = []
    return read_ignore_file(folder, notes.append), notes


def test_lines_are_read_with_any_line_end_and_without_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / IGNORE_FILE_NAME).write_bytes(b"\xef\xbb\xbfa.md\r\n# note\n\nb.md")
    lines, notes = read(tmp_path)
    assert [line for line in lines if line] == ["a.md", "# note", "b.md"]
    assert not notes


def test_a_bad_line_is_reported_and_the_others_count(tmp_path: Path) -> None:
    (tmp_path / IGNORE_FILE_NAME).write_bytes(b"a.md\n!\n[z-a]\nb\xff.md\n")
    lines, notes = read(tmp_path)
    assert lines == ("a.md", "b\ufffd.md")
    assert len(notes) == 1
    assert "2 of its lines" in notes[0]


def test_a_file_far_too_large_is_reported_and_not_obeyed(tmp_path: Path) -> None:
    path = tmp_path / IGNORE_FILE_NAME
    path.write_bytes(b"a.md".ljust(IGNORE_FILE_CAP_BYTES, b"\n"))
    assert read(tmp_path)[0][0] == "a.md"
    path.write_bytes(b"a.md".ljust(IGNORE_FILE_CAP_BYTES + 1, b"\n"))
    lines, notes = read(tmp_path)
    assert not lines
    assert len(notes) == 1


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "absent"])
def test_only_a_regular_file_is_read(tmp_path: Path, kind: str) -> None:
    """T4: a FIFO in the place of an ignore file would block for ever; a link is not followed (S0-17)."""
    path = tmp_path / IGNORE_FILE_NAME
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        (tmp_path / "target").write_text("*.md\n", "utf-8")
        path.symlink_to(tmp_path / "target")
    elif kind == "directory":
        path.mkdir()
    lines, notes = read(tmp_path)
    assert not lines
    assert len(notes) == 1
