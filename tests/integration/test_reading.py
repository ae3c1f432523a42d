"""Reading files below a root: no link is followed, no size believed, nothing blocks."""

import os
import socket
from pathlib import Path

import pytest
from msgspec.structs import astuple

from domain.files import Reason
from tests.support.scratch import scratch_directory
from tests.support.trees import OtherOs, as_nobody, make_tree, mode
from workers import reading
from workers.reading import FileRead, NotRead, RootReader

CAP = 1000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", {"a.md": "alpha", "sub/b.md": "beta", "sub/deep/c.md": "gamma"})


def read(root: Path, relative: str, cap: int = CAP) -> FileRead | NotRead:
    with RootReader(root, max_file_bytes=cap) as reader:
        return reader.read(relative)


def refused(root: Path, relative: str) -> tuple[Reason, bool]:
    answer = read(root, relative)
    assert isinstance(answer, NotRead)
    return answer.reason, answer.is_failure


def raw(answer: FileRead | NotRead) -> bytes:
    assert isinstance(answer, FileRead), answer
    return answer.raw


def test_a_file_is_read_with_what_fstat_said(root: Path) -> None:
    answer = read(root, "a.md")
    status = (root / "a.md").stat()
    assert isinstance(answer, FileRead)
    assert answer.raw == b"alpha"
    assert astuple(answer.stat)[:3] == (5, status.st_mtime_ns, status.st_ctime_ns)
    assert answer.observed_ns >= status.st_mtime_ns


def test_one_reader_goes_through_a_tree_in_any_order(root: Path) -> None:
    """Directories of the last path stay open: never the wrong ones."""
    make_tree(root, {"sub/deep/b.md": "other b", "other/b.md": "third b"})
    expected = {
        "a.md": b"alpha",
        "sub/b.md": b"beta",
        "sub/deep/c.md": b"gamma",
        "sub/deep/b.md": b"other b",
        "other/b.md": b"third b",
    }
    order = [*expected, *reversed(expected), "sub/b.md", "a.md", "sub/deep/b.md", "other/b.md"]
    with RootReader(root, max_file_bytes=CAP) as reader:
        for relative in order:
            assert raw(reader.read(relative)) == expected[relative]
            assert isinstance(reader.read("sub/no/where.md"), NotRead)


def test_a_reader_leaves_nothing_open(root: Path) -> None:
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208
    with RootReader(root, max_file_bytes=CAP) as reader:
        for relative in ("a.md", "sub/deep/c.md", "sub/no.md", "no/a.md", "sub"):
            reader.read(relative)
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize(("size", "is_read"), [(CAP - 1, True), (CAP, True), (CAP + 1, False), (10 * CAP, False)])
def test_the_cap(root: Path, size: int, is_read: bool) -> None:
    """S0-18: exactly the cap is read."""
    (root / "a.md").write_bytes(b"x" * size)
    answer = read(root, "a.md")
    if is_read:
        assert len(raw(answer)) == size
    else:
        assert isinstance(answer, NotRead)
        assert (answer.reason, answer.is_failure) == (Reason.TOO_LARGE, False)
        assert answer.stat.size_bytes == size


def test_a_sparse_terabyte_is_not_read(root: Path) -> None:
    """T6."""
    with (root / "a.md").open("r+b") as file:
        try:
            file.truncate(2**40)
        except OSError:
            pytest.skip("this file system has no sparse files of this size")
    assert refused(root, "a.md") == (Reason.TOO_LARGE, False)


@pytest.mark.skipif(not Path("/proc/cpuinfo").is_file(), reason="needs files that claim to be empty")
def test_a_file_that_claims_to_be_empty_is_read_up_to_the_cap() -> None:
    """T6, P31: bytes read count, not the size."""
    proc = Path("/proc")
    assert proc.joinpath("cpuinfo").stat().st_size == 0
    text = raw(read(proc, "version", 100_000))
    assert text == Path("/proc/version").read_bytes()
    assert refused_with_cap(proc, "version", len(text) - 1) is Reason.TOO_LARGE
    assert raw(read(proc, "version", len(text))) == text


def refused_with_cap(root: Path, relative: str, cap: int) -> Reason:
    answer = read(root, relative, cap)
    assert isinstance(answer, NotRead)
    return answer.reason


@pytest.mark.parametrize(("grown_by", "is_read"), [(10, True), (CAP - 5, True), (CAP - 4, False), (50 * CAP, False)])
def test_a_file_that_grows_while_it_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch, grown_by: int, is_read: bool
) -> None:
    """T6: it grows right after it was asked for its size."""

    def fstat_then_grow(descriptor: int) -> os.stat_result:
        status = os.fstat(descriptor)
        with (root / "a.md").open("ab") as file:
            file.write(b"+" * grown_by)
        return status

    monkeypatch.setattr(reading, "os", OtherOs(fstat=fstat_then_grow))
    answer = read(root, "a.md")
    if is_read:
        assert raw(answer) == b"alpha" + b"+" * grown_by
        assert isinstance(answer, FileRead)
        assert answer.stat.size_bytes == 5  # so that the next run looks again
    else:
        assert isinstance(answer, NotRead)
        assert answer.reason is Reason.TOO_LARGE


def test_a_file_that_shrinks_while_it_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fstat_then_cut(descriptor: int) -> os.stat_result:
        status = os.fstat(descriptor)
        os.truncate(root / "a.md", 2)
        return status

    monkeypatch.setattr(reading, "os", OtherOs(fstat=fstat_then_cut))
    assert raw(read(root, "a.md")) == b"al"


def test_special_files_are_skipped_and_block_nobody(root: Path) -> None:
    """T4."""
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "s.md"))
        assert refused(root, "s.md") == (Reason.NOT_A_FILE, False)
    assert refused(root, "pipe.md") == (Reason.NOT_A_FILE, False)
    assert refused(root, "sub") == (Reason.NOT_A_FILE, False)
    if Path("/dev/null").exists():
        assert refused(Path("/dev"), "null") == (Reason.NOT_A_FILE, False)


def test_a_link_in_the_place_of_a_file_is_refused(root: Path, tmp_path: Path) -> None:
    """T5, S0-17."""
    make_tree(tmp_path / "outside", {"secret.md": "secret"})
    (root / "a.md").unlink()
    (root / "a.md").symlink_to(tmp_path / "outside" / "secret.md")
    assert refused(root, "a.md") == (Reason.SYMLINK, False)


@pytest.mark.parametrize("swapped", ["sub", "sub/deep"])
def test_a_directory_swapped_for_a_link_is_refused(root: Path, tmp_path: Path, swapped: str) -> None:
    """T5, P11: between walk and read, on any level of the way."""
    make_tree(tmp_path / "outside", {"c.md": "secret", "deep/c.md": "secret"})
    (root / swapped).rename(tmp_path / "aside")
    (root / swapped).symlink_to(tmp_path / "outside")
    assert refused(root, "sub/deep/c.md") == (Reason.SYMLINK, False)


def test_an_open_directory_that_is_swapped_gives_its_own_files(root: Path, tmp_path: Path) -> None:
    """T5: what is open stays what it was."""
    make_tree(tmp_path / "outside", {"b.md": "secret", "z.md": "secret"})
    make_tree(root, {"sub/z.md": "zeta"})
    with RootReader(root, max_file_bytes=CAP) as reader:
        assert raw(reader.read("sub/b.md")) == b"beta"
        (root / "sub").rename(tmp_path / "aside")
        (root / "sub").symlink_to(tmp_path / "outside")
        assert raw(reader.read("sub/z.md")) == b"zeta"


@pytest.mark.parametrize("change", ["gone", "link", "file"])
def test_a_root_that_is_not_there_makes_its_files_unreadable(root: Path, tmp_path: Path, change: str) -> None:
    """P8: a failure, so that what is stored of them stays; never a skip, which would make them go."""
    make_tree(tmp_path / "outside", {"a.md": "secret"})
    root.rename(tmp_path / "aside")
    if change == "link":
        root.symlink_to(tmp_path / "outside")
    elif change == "file":
        root.write_text("x", "utf-8")
    assert refused(root, "a.md") == (Reason.UNREADABLE, True)


def test_a_hard_link_is_a_file(root: Path, tmp_path: Path) -> None:
    """T5."""
    make_tree(tmp_path / "outside", {"b.md": "shared"})
    (root / "hard.md").hardlink_to(tmp_path / "outside" / "b.md")
    assert raw(read(root, "hard.md")) == b"shared"


def test_a_file_that_vanished_is_a_failure(root: Path) -> None:
    """R33: its stored document stays."""
    assert refused(root, "no.md") == (Reason.VANISHED, True)
    assert refused(root, "no/a.md") == (Reason.VANISHED, True)


def test_a_file_that_may_not_be_read_is_a_failure() -> None:
    """R33."""
    with scratch_directory() as folder:
        root = make_tree(folder / "docs", {"a.md": "x", "closed/b.md": "x", "c.md": "see"})
        with mode(root / "a.md", 0), mode(root / "closed", 0):
            answers = as_nobody(lambda: [refused(root, name) for name in ("a.md", "closed/b.md")])
            assert raw(as_nobody(lambda: read(root, "c.md"))) == b"see"
    assert answers == [(Reason.UNREADABLE, True)] * 2


def test_a_failing_disk_is_a_failure(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int, count: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(reading, "os", OtherOs(read=broken))
    assert refused(root, "a.md") == (Reason.UNREADABLE, True)


def test_without_directory_descriptors_a_link_is_still_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_CAN_OPEN_AT", False)
    make_tree(tmp_path / "outside", {"secret.md": "secret"})
    (root / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    assert raw(read(root, "sub/b.md")) == b"beta"
    assert refused(root, "link.md") == (Reason.SYMLINK, False)
