"""The walk: which files of a root are met, in which order, and what is left out."""

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.files import Reason
from domain.settings import EXTENSIONS
from scheduler.ignore_rules import scope_of_root
from scheduler.walk import WalkedFile, WalkReport, WalkRules, walk, walk_files
from tests.support.scratch import scratch_directory
from tests.support.trees import as_nobody, make_raw_file, make_tree, mode

Walked = tuple[dict[str, Reason | None], WalkReport]


def rules_of(
    root: Path, *, home: Path = Path("/nowhere"), include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()
) -> WalkRules:
    return WalkRules(
        root=root.resolve(),
        prefix="docs/",
        extensions=EXTENSIONS,
        exclude_dirs=frozenset({"memory"}),
        home=home,
        scope=scope_of_root(include, exclude),
    )


def run(rules: WalkRules, start: str = "") -> Walked:
    report = WalkReport()
    return {file.key: file.skip for file in walk(rules, report, start=start)}, report


def look(rules: WalkRules, *relative: str) -> Walked:
    report = WalkReport()
    return {file.key: file.skip for file in walk_files(rules, report, relative)}, report


def test_what_is_met_of_a_file(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "docs", {"a.md": "four"})
    (file,) = walk(rules_of(root), WalkReport())
    status = (root / "a.md").stat()
    assert file == WalkedFile("docs/a.md", file.stat, None)
    assert file.stat.size_bytes == 4
    assert (file.stat.mtime_ns, file.stat.ctime_ns) == (status.st_mtime_ns, status.st_ctime_ns)


PARTS = st.text(st.sampled_from("ab-. /é東😀~!_0Z"), min_size=1, max_size=6).map(str.strip)
PATHS = st.lists(PARTS.filter(lambda part: part.strip("./") != "" and part[0] != "."), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(PATHS, max_size=25))
def test_the_order_is_the_bytewise_order_of_the_keys(paths: list[list[str]]) -> None:
    """C-01, R20: the walk and the stored keys merge as two streams."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made = set()
        for parts in paths:
            relative = "/".join(part.replace("/", "-") for part in parts) + ".md"
            try:
                make_tree(root, {relative: "x"})
            except (NotADirectoryError, FileExistsError, IsADirectoryError):
                continue
            made.add(f"docs/{relative}".encode())
        keys = [file.key.encode() for file in walk(rules_of(root), WalkReport())]
        assert keys == sorted(made)


def test_a_directory_sorts_as_if_it_ended_in_a_slash(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a/b.md": "", "a-b.md": "", "a.md": "", "a0.md": "", "a.md.d/c.md": ""})
    keys = [file.key for file in walk(rules_of(root), WalkReport())]
    assert keys == ["docs/a-b.md", "docs/a.md", "docs/a.md.d/c.md", "docs/a/b.md", "docs/a0.md"]


def test_only_four_extensions_in_any_case(tmp_path: Path) -> None:
    """S1-41."""
    names = ["a.md", "b.MARKDOWN", "c.Txt", "d.text", "e.rst", "f", "md", "g.md.bak", "h.pdf", "i.mdx"]
    met, report = run(rules_of(make_tree(tmp_path, dict.fromkeys(names, "x"))))
    assert list(met) == ["docs/a.md", "docs/b.MARKDOWN", "docs/c.Txt", "docs/d.text"]
    assert report.ended_well


def test_dot_directories_memory_and_stores_are_left_out(tmp_path: Path) -> None:
    """S0-14..16, S1-42: and never the root itself, whatever it is called."""
    root = make_tree(
        tmp_path / ".hidden",
        {
            "a.md": "x",
            ".git/b.md": "x",
            "memory/c.md": "x",
            "sub/memory/d.md": "x",
            "memory.md": "x",
            "own/e.md": "x",
            "other/knowledge.lock": "",
            "other/state.db": "",
            "other/f.md": "x",
            "half/knowledge.db": "",
            "half/g.md": "x",
            ".dot.md": "x",
        },
    )
    met, report = run(rules_of(root, home=root / "own"))
    assert set(met) == {"docs/.dot.md", "docs/a.md", "docs/half/g.md", "docs/memory.md"}
    assert report.ended_well


def test_links_and_special_files_are_skips_with_a_reason(tmp_path: Path) -> None:
    """S0-17, T4, T5: nothing is opened, so a FIFO blocks nobody; a hard link is a file."""
    outside = make_tree(tmp_path / "outside", {"secret.md": "x"})
    root = make_tree(tmp_path / "docs", {"real.md": "x"})
    (root / "link.md").symlink_to(outside / "secret.md")
    (root / "gone.md").symlink_to(root / "nothing")
    (root / "folder").symlink_to(outside)
    (root / "folder.md").symlink_to(outside)
    (root / "circle").symlink_to(root)
    (root / "hard.md").hardlink_to(outside / "secret.md")
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "s.md"))
        met, report = run(rules_of(root))
    assert met == {
        "docs/folder.md": Reason.SYMLINK,
        "docs/gone.md": Reason.SYMLINK,
        "docs/hard.md": None,
        "docs/link.md": Reason.SYMLINK,
        "docs/pipe.md": Reason.NOT_A_FILE,
        "docs/real.md": None,
        "docs/s.md": Reason.NOT_A_FILE,
    }
    assert report.ended_well


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    """T1: skipped and reported once in a printable form, and the walk goes on."""
    root = make_tree(tmp_path, {"a.md": "x", "z.md": "x"})
    make_raw_file(root, b"bad\xff.md")
    os.mkdir(os.path.join(os.fsencode(root), b"dir\xfe"))  # noqa: PTH102, PTH118
    make_raw_file(root, b"dir\xfe/below.md")
    met, report = run(rules_of(root))
    assert met == {"docs/a.md": None, "docs/bad\\xff.md": Reason.NAME_NOT_UTF8, "docs/z.md": None}
    assert [note for note in report.notes if "dir\\xfe" in note] == report.notes
    assert len(report.notes) == 1
    assert report.ended_well
    named, _ = look(rules_of(root), os.fsdecode(b"bad\xff.md"), os.fsdecode(b"dir\xfe/below.md"))
    assert set(named.values()) == {Reason.NAME_NOT_UTF8}
    assert all(key.encode() for key in named)


HOSTILE = ["a\x1b]0;x\x07.md", "b\nc.md", "d\u202egnp.md", "-rf.md", "e#0.md", "f#0", " g.md", "h .md", "i\\j.md"]


def test_names_with_control_characters_are_met_as_they_are(tmp_path: Path) -> None:
    """T2."""
    root = make_tree(tmp_path, dict.fromkeys(HOSTILE, "x"))
    met, _ = run(rules_of(root))
    assert set(met) == {f"docs/{name}" for name in HOSTILE if name.endswith(".md")}
    assert set(met.values()) == {None}


def test_two_spellings_of_one_name_are_two_files(tmp_path: Path) -> None:
    """T3: NFC and NFD, never normalised."""
    met, _ = run(rules_of(make_tree(tmp_path, {"\u00e9.md": "x", "e\u0301.md": "x"})))
    assert set(met) == {"docs/\u00e9.md", "docs/e\u0301.md"}


def test_a_deep_tree(tmp_path: Path) -> None:
    """T13: 200 directories below each other."""
    deep = "/".join(["d"] * 200) + "/a.md"
    met, report = run(rules_of(make_tree(tmp_path, {deep: "x"})))
    assert met == {f"docs/{deep}": None}
    assert report.directories == 201


def test_include_exclude_and_ignore_files(tmp_path: Path) -> None:
    """Left out by a rule is a reason where the file is met, and a directory left out is not entered."""
    root = make_tree(
        tmp_path,
        {
            "a.md": "x",
            "drafts/b.md": "x",
            "log.md": "x",
            ".knowledgeignore": "/log.md\n*.tmp.md\n",
            "sub/.knowledgeignore": "!keep.tmp.md\ninner/\n",
            "sub/keep.tmp.md": "x",
            "sub/other.tmp.md": "x",
            "sub/inner/c.md": "x",
            "sub/log.md": "x",
        },
    )
    met, _ = run(rules_of(root, exclude=("drafts/",)))
    assert met == {
        "docs/a.md": None,
        "docs/log.md": Reason.EXCLUDED,
        "docs/sub/keep.tmp.md": None,
        "docs/sub/log.md": None,
        "docs/sub/other.tmp.md": Reason.EXCLUDED,
    }
    taken = {key for key, skip in run(rules_of(root, include=("sub/",)))[0].items() if skip is None}
    assert taken == {"docs/sub/keep.tmp.md", "docs/sub/log.md"}


@pytest.mark.parametrize(
    "relative",
    [
        "a.md",
        "sub/b.md",
        ".git/c.md",
        "memory/d.md",
        "drafts/e.md",
        "sub/kept.tmp.md",
        "x.tmp.md",
        "f.rst",
        "store/g.md",
    ],
)
def test_a_part_of_a_root_is_met_as_from_the_root(tmp_path: Path, relative: str) -> None:
    """A file or folder that is named is no way round the rules: the next run from the root would remove it again."""
    files = dict.fromkeys(["a.md", "sub/b.md", ".git/c.md", "memory/d.md", "drafts/e.md", "sub/kept.tmp.md"], "x")
    files |= {"x.tmp.md": "x", "f.rst": "x", "store/g.md": "x", "store/knowledge.lock": "", "store/state.db": ""}
    files |= {".knowledgeignore": "*.tmp.md\ndrafts/\n", "sub/.knowledgeignore": "!kept.tmp.md\n"}
    files |= {"drafts/.knowledgeignore": "!e.md\n"}
    rules = rules_of(make_tree(tmp_path, files))
    whole = {key for key, skip in run(rules)[0].items() if skip is None}
    key = f"docs/{relative}"
    named, _ = look(rules, relative)
    assert list(named) == [key]
    assert (named[key] is None) is (key in whole)
    if "/" in relative:
        start = relative.rpartition("/")[0] + "/"
        below = {found for found, skip in run(rules, start)[0].items() if skip is None}
        assert below == {found for found in whole if found.startswith(f"docs/{start}")}


def test_named_files_come_in_key_order_and_absent_ones_not_at_all(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"b.md": "x", "a/c.md": "x", "a-d.md": "x"})
    os.mkfifo(root / "pipe.md")
    met, report = look(rules_of(root), "b.md", "a/c.md", "no.md", "b.md/no.md", "a-d.md", "pipe.md")
    assert list(met) == ["docs/a-d.md", "docs/a/c.md", "docs/b.md", "docs/pipe.md"]
    assert met["docs/pipe.md"] is Reason.NOT_A_FILE
    assert report.ended_well


def test_a_directory_that_vanishes_meanwhile_is_empty(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a.md": "x", "b/c.md": "x", "d.md": "x"})
    report = WalkReport()
    stream = walk(rules_of(root), report)
    assert next(stream).key == "docs/a.md"
    (root / "b" / "c.md").unlink()
    (root / "b").rmdir()
    (root / "d.md").unlink()
    assert list(stream) == []
    assert report.ended_well


@pytest.mark.parametrize("change", ["gone", "file", "link", "link above"])
def test_a_root_that_is_not_in_its_place_is_a_problem(tmp_path: Path, change: str) -> None:
    """P8, P11: absence means nothing then, and a link is not followed to another place."""
    root = make_tree(tmp_path / "above" / "docs", {"a.md": "x"})
    rules = rules_of(root)
    make_tree(tmp_path / "elsewhere" / "docs", {"a.md": "secret"})
    aside = tmp_path / "aside"
    if change == "link above":
        root.parent.rename(aside)
        root.parent.symlink_to(tmp_path / "elsewhere")
    else:
        root.rename(aside)
    if change == "file":
        root.write_text("x", "utf-8")
    elif change == "link":
        root.symlink_to(tmp_path / "elsewhere" / "docs")
    for met, report in (run(rules), run(rules, "sub/"), look(rules, "a.md")):
        assert met == {}
        assert [key for key, _ in report.problems] == ["docs/"]
        assert not report.ended_well


def in_open_place(test: Callable[[Path], None]) -> Callable[[], None]:
    """Run a test below a directory that every user may enter."""

    def run_in_place() -> None:
        with scratch_directory() as folder:
            test(folder)

    run_in_place.__name__ = test.__name__
    return run_in_place


@in_open_place
def test_a_directory_that_cannot_be_read_is_a_problem(folder: Path) -> None:
    """P8: and the walk goes on."""
    root = make_tree(folder / "docs", {"a.md": "x", "closed/b.md": "x", "d.md": "x"})
    with mode(root / "closed", 0):
        met, report = as_nobody(lambda: run(rules_of(root)))
    assert set(met) == {"docs/a.md", "docs/d.md"}
    assert [key for key, _ in report.problems] == ["docs/closed/"]


@in_open_place
def test_a_directory_that_can_be_listed_and_not_entered_is_one_problem(folder: Path) -> None:
    """P8: its files are there, so that none of them may be taken for gone."""
    root = make_tree(folder / "docs", {"a.md": "x", "listed/b.md": "x", "listed/c.md": "x", "d.md": "x"})
    with mode(root / "listed", 0o444):
        met, report = as_nobody(lambda: run(rules_of(root)))
        named, named_report = as_nobody(lambda: look(rules_of(root), "listed/b.md"))
    assert set(met) == {"docs/a.md", "docs/d.md"}
    assert [key for key, _ in report.problems] == ["docs/listed/"]
    assert named == {}
    assert not named_report.ended_well


@in_open_place
def test_a_root_that_cannot_be_read_is_a_problem(folder: Path) -> None:
    root = make_tree(folder / "docs", {"a.md": "x"})
    rules = rules_of(root)
    with mode(root, 0):
        met, report = as_nobody(lambda: run(rules))
    assert met == {}
    assert not report.ended_well
