"""Finished pages on their way through the spool."""

import errno
from pathlib import Path

import pytest
from msgspec.structs import replace

from domain.errors import DiskFullError, KnowledgeError, StorageError
from domain.files import FileCheck, Page
from tests.support.trees import make_tree
from tests.support.writing import finished
from workers.checking import CheckRules, FinishedPage, check_page
from workers.spool import SpoolError, drop_page, read_page, spool_name, write_page

NAME = spool_name(1, 2, 3)


def real_page(root: Path) -> FinishedPage:
    make_tree(
        root,
        {
            "a.md": "---\ntitle: \u00c4\ntags: [x, 1, null]\n---\n# A\n\ntext \u6771\u4eac \x00 \U0001f600\n",
            "b.md": b"\xff",
            "c.md": "",
            "d.md": "known",
        },
    )
    files = [FileCheck(f"docs/{name}.md") for name in "abcde"]
    return check_page(Page(2, "docs", tuple(files)), 1, CheckRules(root.resolve(), 7, 1000, "on"))


def test_a_page_comes_back_as_it_went(tmp_path: Path) -> None:
    page = real_page(tmp_path / "docs")
    assert page.documents
    assert page.skips
    assert page.failures
    write_page(tmp_path, NAME, page)
    read = read_page(tmp_path, NAME)
    assert read is not None
    documents = tuple(replace(write, chunks=tuple(write.chunks)) for write in read.documents)
    assert replace(read, documents=documents) == page
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [NAME]


def test_a_file_that_is_gone_is_no_page(tmp_path: Path) -> None:
    """R35: gone means done, or planned again."""
    assert read_page(tmp_path, NAME) is None
    write_page(tmp_path, NAME, finished(2, ["docs/a"]))
    drop_page(tmp_path, NAME)
    drop_page(tmp_path, NAME)
    assert read_page(tmp_path, NAME) is None


def test_every_attempt_has_a_file_of_its_own() -> None:
    names = {spool_name(run, page, attempt) for run in (1, 11) for page in (1, 11) for attempt in (1, 11)}
    assert len(names) == 8


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"\x80", b"\x91" * 100_000, b"\xff" * 100, b"\x93\x01\x02\x03"])
def test_anything_else_is_a_spool_error(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / NAME).write_bytes(raw)
    with pytest.raises(SpoolError, match=NAME):
        read_page(tmp_path, NAME)


def test_half_a_page_is_a_spool_error(tmp_path: Path) -> None:
    write_page(tmp_path, NAME, real_page(tmp_path / "docs"))
    raw = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(raw[: len(raw) // 2])
    with pytest.raises(SpoolError):
        read_page(tmp_path, NAME)


def test_a_page_is_never_seen_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written aside, and the name appears with the last byte."""
    seen: list[object] = []
    rename = Path.replace

    def look_first(self: Path, target: Path) -> Path:
        seen.append(read_page(tmp_path, NAME))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", look_first)
    write_page(tmp_path, NAME, finished(2, ["docs/a"]))
    assert seen == [None]


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EDQUOT, DiskFullError), (errno.EIO, StorageError)]
)
def test_a_disk_that_says_no_is_an_error_of_ours_and_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[KnowledgeError]
) -> None:
    """P23, P24: a full disk is told apart, since it is waited for."""

    def refused(path: Path, raw: bytes) -> None:
        path.write_bytes(raw[:10])
        raise OSError(number, "refused")

    monkeypatch.setattr("workers.spool.write_private", refused)
    with pytest.raises(kind) as told:
        write_page(tmp_path, NAME, finished(1))
    assert type(told.value) is kind
    assert list(tmp_path.iterdir()) == []
