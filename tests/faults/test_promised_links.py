"""Links that come in the midst of it (P11, T5): a folder, or a file of an index, is exchanged for one all the while."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.wiring import readable_base, writable_base
from domain.errors import KnowledgeError
from domain.settings import EXTENSIONS, Settings
from scheduler.ignore_rules import scope_of_root
from scheduler.walk import WalkReport, WalkRules, walk
from tests.support.bases import assert_sound, build_base, keys_of, layout_of
from tests.support.depth import scaled
from tests.support.figures import Figure, NoteFigure
from tests.support.scratch import scratch_directory
from tests.support.trees import make_tree
from workers.reading import FileRead, RootReader

OURS, SECRET = b"ours", b"secret"
# a process of its own, so that it strikes within a step; both names stand at every moment (renameat2(2))
RACER = """
import ctypes, os, select, sys
library, one, other = ctypes.CDLL(None, use_errno=True), *map(os.fsencode, sys.argv[1:])
def exchange():
    if library.renameat2(-100, one, -100, other, 2):
        sys.exit(os.strerror(ctypes.get_errno()))
exchange()
exchange()
print("begun", flush=True)
times = 0
while times % 2 or not select.select([sys.stdin], [], [], 0)[0]:
    exchange()
    times += 1
print(times)
"""


@contextmanager
def exchanged_all_the_while(one: Path, other: Path) -> Iterator[list[int]]:
    """The two names are exchanged while the block runs, and stand as before then; the list is told how often."""
    command = [sys.executable, "-c", RACER, str(one), str(other)]
    racer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert racer.stdout is not None
    times: list[int] = []
    try:
        if racer.stdout.readline() != "begun\n":
            pytest.skip(f"this system cannot exchange two names in one step: {racer.communicate()[1].strip()[-100:]}")
        yield times
    finally:
        if racer.poll() is None:
            times.append(int(racer.communicate("end\n")[0]))


def test_a_swapped_folder_gives_nothing_of_what_it_points_to(note_figure: NoteFigure) -> None:
    """P11, T5: whichever of the two it meets, a reader gives a file of ours or says that a link is in the way."""
    tries = scaled(3_000, 100_000)
    seen: Counter[str] = Counter()
    begun_s = time.monotonic()
    with scratch_directory() as place:
        root = make_tree(place / "docs", {"sub/deep/a.md": OURS.decode()})
        make_tree(place / "outside", {"deep/a.md": SECRET.decode()})
        link = place / "link"
        link.symlink_to(place / "outside")
        with exchanged_all_the_while(root / "sub", link) as times:
            while seen.total() < tries or not {"ours", "symlink"} <= seen.keys():
                with RootReader(root, max_file_bytes=100) as reader:
                    answer = reader.read("sub/deep/a.md")
                if isinstance(answer, FileRead):
                    seen["ours" if answer.raw == OURS else "outside"] += 1
                else:
                    seen[answer.reason.value] += 1
    what = "reads of a file whose folder is being exchanged for a link"
    detail = f"{seen['ours']:,} gave the file, {seen['symlink']:,} met the link, exchanged {sum(times):,} times"
    seconds = time.monotonic() - begun_s
    note_figure(Figure("links-read", ("P11", "T5"), what, seen.total(), 0, seen["outside"], 10_000, seconds, detail))
    assert set(seen) == {"ours", "symlink"}


def test_a_folder_that_becomes_a_link_before_it_is_listed_is_not_listed(tmp_path: Path) -> None:
    """P11: what lies elsewhere is not met, not even by its name."""
    root = make_tree(tmp_path / "docs", {"a.md": "x", "sub/b.md": "x"})
    make_tree(tmp_path / "outside", {"secret-name.md": "x"})
    listed = 0

    def swap_before_the_second() -> None:
        nonlocal listed
        listed += 1
        if listed == 2:
            (root / "sub").rename(tmp_path / "aside")
            (root / "sub").symlink_to(tmp_path / "outside")

    rules = WalkRules(root.resolve(), "docs/", EXTENSIONS, frozenset(), Path("/nowhere"), scope_of_root((), ()))
    met = [file.key for file in walk(rules, WalkReport(heed=swap_before_the_second))]
    assert listed == 2
    assert met == ["docs/a.md"]


def opened(settings: Settings, *, to_write: bool) -> str:
    """How it has ended to open an index: "" where it is open, else the error's code."""
    try:
        if to_write:
            with writable_base(settings, "test"):
                return ""
        with readable_base(settings) as base:
            base.store.reader().identity()
            return ""
    except KnowledgeError as error:
        return error.code


def test_a_swapped_file_of_the_index_leaves_its_target_as_it_is(note_figure: NoteFigure) -> None:
    """P11: readers and writers work or are refused; nothing is written to the target, beside it, or to its modes."""
    tries = scaled(80, 5_000)
    ends: Counter[str] = Counter()
    begun_s = time.monotonic()
    with scratch_directory() as place:
        settings = build_base(place)
        keys = keys_of(settings)
        (place / "outside").mkdir()
        target = place / "outside" / "precious"
        target.write_bytes(SECRET)
        target.chmod(0o644)
        link = place / "link"
        link.symlink_to(target)
        with exchanged_all_the_while(layout_of(settings).database, link) as times:
            while ends.total() < 2 * tries or len(ends) < 2:
                ends[opened(settings, to_write=False)] += 1
                ends[opened(settings, to_write=True)] += 1
        harm = [path.name for path in (place / "outside").iterdir() if path != target]
        harm += ["content"] if target.read_bytes() != SECRET else []
        harm += ["mode"] if target.stat().st_mode & 0o777 != 0o644 else []
        what = "opening an index whose database is being exchanged for a link"
        detail = f"{ends['']:,} opened it, {ends.total() - ends['']:,} were refused, exchanged {sum(times):,} times"
        seconds = time.monotonic() - begun_s
        note_figure(Figure("links-store", ("P11",), what, ends.total(), 0, len(harm), 10_000, seconds, detail))
        assert harm == []
        assert "" in ends
        assert keys_of(settings) == keys
        assert_sound(settings)
