"""What leaves one file out, against the walk itself: both must say the same of every path of a tree."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.files import Reason
from domain.layout import DATABASE_NAME, LOCK_NAME
from domain.settings import EXTENSIONS
from scheduler.ignore_rules import scope_of_root
from scheduler.path_rules import LeftOut, what_leaves_out
from scheduler.walk import WalkReport, WalkRules, walk
from tests.support.scratch import scratch_directory
from tests.support.trees import make_raw_file, make_tree

TREE: dict[str, str | bytes] = {
    "a.md": "a",
    "a.py": "a",
    "UPPER.MD": "a",
    ".hidden.md": "a",
    ".git/a.md": "a",
    "memory/a.md": "a",
    "sub/memory/deep/a.md": "a",
    "private/a.md": "a",
    "private/sub/b.md": "b",
    "keep.tmp.md": "a",
    "t.tmp.md": "a",
    "sub/t.tmp.md": "a",
    "sub/again.tmp.md": "a",
    "sub/x.txt": "a",
    "drafts/a.md": "a",
    f"store/{LOCK_NAME}": "",
    f"store/{DATABASE_NAME}": "",
    "store/a.md": "a",
    "home/a.md": "a",
    ".knowledgeignore": "private/\n*.tmp.md\n!keep.tmp.md\n# a comment\n\n[\n",
    "sub/.knowledgeignore": "!again.tmp.md\nx.*\n",
}


def rules_of(root: Path, *, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> WalkRules:
    return WalkRules(
        root=root,
        prefix="docs/",
        extensions=EXTENSIONS,
        exclude_dirs=frozenset({"memory"}),
        home=root / "home",
        scope=scope_of_root(include, exclude),
    )


def everything_below(root: Path) -> list[str]:
    return sorted(
        os.path.relpath(os.path.join(folder, name), root)  # noqa: PTH118
        for folder, folders, names in os.walk(root)
        for name in (*names, *(one for one in folders if Path(folder, one).is_symlink()))
    )


def assert_agree(rules: WalkRules) -> None:
    met = {file.key: file.skip for file in walk(rules, WalkReport())}
    for relative in everything_below(rules.root):
        key = rules.prefix + relative.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        found = what_leaves_out(rules, relative)
        if found is None:
            assert met[key] is None, key
        elif key in met:
            assert met[key] is found.reason, key
        else:
            assert found.reason in (Reason.EXCLUDED, Reason.SYMLINK, Reason.NAME_NOT_UTF8), key
    assert sum(skip is None for skip in met.values()) == sum(
        what_leaves_out(rules, relative) is None for relative in everything_below(rules.root)
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = make_tree(tmp_path / "docs", TREE)
    (made / "link.md").symlink_to("a.md")
    (made / "linked").symlink_to("sub")
    os.mkfifo(made / "pipe.md")
    make_raw_file(made, b"raw-\xff.md")
    return made


@pytest.mark.parametrize(
    ("include", "exclude"),
    [((), ()), (("sub/",), ()), (("*.md",), ("drafts/", "!a.md")), ((), ("*.txt", "sub/*.md")), (("*.txt",), ("a*",))],
)
def test_it_agrees_with_the_walk(root: Path, include: tuple[str, ...], exclude: tuple[str, ...]) -> None:
    """S0-14..16"""
    assert_agree(rules_of(root, include=include, exclude=exclude))


NAMES = st.sampled_from(["a.md", "b.txt", "c.py", "memory", ".d", "e", "f.md", "g"])
PATTERNS = st.lists(
    st.sampled_from(["a.md", "!a.md", "e/", "*.txt", "/g/a.md", "g/**", "!g/f.md", "**/e", ""]), max_size=4
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=15),
    st.dictionaries(st.sampled_from(["", "e", "g"]), PATTERNS),
)
def test_it_agrees_with_the_walk_of_any_tree(paths: list[list[str]], ignored: dict[str, list[str]]) -> None:
    with scratch_directory() as scratch:
        root = scratch.resolve()
        for parts in paths:
            path = root.joinpath(*parts)
            if path.is_dir() or any(above.is_file() for above in path.parents):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x", encoding="utf-8")
        for folder, lines in ignored.items():
            if (root / folder).is_dir():
                (root / folder / ".knowledgeignore").write_text("\n".join(lines), encoding="utf-8")
        assert_agree(rules_of(root, exclude=("b.txt", "!e/b.txt")))


@pytest.mark.parametrize(
    ("relative", "kind", "pattern", "leaves_out"),
    [
        ("a.py", "extension", ".md, .markdown, .txt, .text", "a.py"),
        (".git/a.md", "hidden_folder", "", ".git/"),
        ("sub/memory/deep/a.md", "exclude_dirs", "memory", "sub/memory/"),
        ("private/sub/b.md", "ignore_file", "private/", "private/"),
        ("t.tmp.md", "ignore_file", "*.tmp.md", "t.tmp.md"),
        ("store/a.md", "index_folder", "", "store/"),
        ("home/a.md", "index_folder", "", "home/"),
        ("link.md", "symlink", "", "link.md"),
        ("linked/x.txt", "symlink", "", "linked/"),
        ("pipe.md", "not_a_file", "", "pipe.md"),
        ("drafts/a.md", "exclude", "drafts/", "drafts/"),
    ],
)
def test_the_rule_is_named(root: Path, relative: str, kind: str, pattern: str, leaves_out: str) -> None:
    found = what_leaves_out(rules_of(root, exclude=("nothing", "drafts/")), relative)
    assert found is not None
    assert (found.kind, found.pattern, found.path) == (kind, pattern, leaves_out)
    assert found.source == (str(root / ".knowledgeignore") if kind == "ignore_file" else "")


def test_the_innermost_file_is_named(root: Path) -> None:
    found = what_leaves_out(rules_of(root), "sub/x.txt")
    assert found == LeftOut("ignore_file", Reason.EXCLUDED, "sub/x.txt", "x.*", str(root / "sub/.knowledgeignore"))
    assert what_leaves_out(rules_of(root), "sub/again.tmp.md") is None  # named again there


def test_what_include_does_not_name(root: Path) -> None:
    found = what_leaves_out(rules_of(root, include=("sub/", "*.txt")), "a.md")
    assert found is not None
    assert (found.kind, found.pattern) == ("include", "sub/, *.txt")


def test_folders(root: Path) -> None:
    rules = rules_of(root)
    assert what_leaves_out(rules, "sub", is_folder=True) is None
    for folder in ("private", "private/sub", "memory", ".git", "store"):
        assert what_leaves_out(rules, folder, is_folder=True) is not None
    (root / LOCK_NAME).touch()
    (root / DATABASE_NAME).touch()
    assert what_leaves_out(rules, "a.md") == LeftOut("index_folder", Reason.EXCLUDED, "")


def test_a_file_that_is_not_there_is_left_out_by_its_name_alone(root: Path) -> None:
    assert what_leaves_out(rules_of(root), "nope/nope.md") is None
    assert what_leaves_out(rules_of(root), "private/nope.md") is not None
