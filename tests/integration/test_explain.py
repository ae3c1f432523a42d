"""`explain PATH` and `sources --coverage`: what they foretell is what the next run does (faults 39, R33)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.coverage import RootCoverage, coverage
from app.discovery import Located
from app.explaining import Explanation, explain
from app.explaining_query import explain_query
from app.file_places import AskedBy
from app.present_explain import explain_text
from app.wiring import readable_base
from domain.files import Reason
from domain.settings import RootSettings
from domain.status import Tier
from retrieval.answer import SearchRequest
from store.failure_port import FailureRecord
from tests.support.runs import Base, base_in, nothing_left
from tests.support.trees import as_nobody, give_to_nobody, make_tree, mode, tree_digest

FILES: dict[str, str | bytes] = {
    "same.md": "# Same\n\nstays as it is\n",
    "changed.md": "# Changed\n\nbefore\n",
    "touched.md": "# Touched\n\nnew times, same bytes\n",
    "gone.md": "# Gone\n\nsoon\n",
    "emptied.md": "# Emptied\n\nsoon\n",
    "hidden-later.md": "# Later\n\nleft out later\n",
    "grown.md": "# Grown\n",
    "bad.md": b"\xff\xfe",
    "healed.md": b"\xff\xfe",
    "empty.md": "",
    "big.md": "x" * 3_000,
    "private/x.md": "secret",
    ".knowledgeignore": "private/\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", FILES)


@pytest.fixture
def base(tmp_path: Path, root: Path) -> Iterator[Base]:
    made = base_in(tmp_path, max_file_bytes=2_000)
    with nothing_left(made):
        made.index(root)
        made.settle()
        yield made


def ask(base: Base, target: str, cwd: Path | None = None) -> Explanation:
    with readable_base(base.settings) as opened:
        return explain(opened, base.settings, target, AskedBy(cwd or base.settings.home.parent, ""))


def cover(base: Base) -> dict[str, RootCoverage]:
    with readable_base(base.settings) as opened:
        return coverage(opened, base.settings)


def change(root: Path) -> None:
    (root / "changed.md").write_text("# Changed\n\nafter\n\n## Two\n\nmore\n")
    os.utime(root / "touched.md", ns=(1, 1))
    (root / "gone.md").unlink()
    (root / "emptied.md").write_text(" \n")
    (root / "grown.md").write_text("x" * 3_000)
    (root / "healed.md").write_text("# Healed\n")
    (root / "added.md").write_text("# Added\n")
    (root / ".knowledgeignore").write_text("private/\nhidden-*\n")


STEPS = {
    "same.md": ("unchanged", None),
    "changed.md": ("update", None),
    "touched.md": ("check", None),
    "gone.md": ("remove", Reason.GONE),
    "emptied.md": ("remove", Reason.EMPTY),
    "hidden-later.md": ("remove", Reason.EXCLUDED),
    "grown.md": ("remove", Reason.TOO_LARGE),
    "bad.md": ("skip", Reason.NOT_UTF8),
    "healed.md": ("add", None),
    "empty.md": ("skip", Reason.EMPTY),
    "big.md": ("skip", Reason.TOO_LARGE),
    "private/x.md": ("skip", Reason.EXCLUDED),
    "added.md": ("add", None),
    "nope.md": ("nothing", Reason.GONE),
}


def test_what_it_foretells_is_what_the_run_does(base: Base, root: Path) -> None:
    change(root)
    before = base.stored_keys()
    told = {relative: ask(base, f"docs/{relative}").next for relative in STEPS}
    assert {relative: (step.action, step.reason) for relative, step in told.items()} == STEPS
    base.index(root)
    after = base.stored_keys()
    assert {f"docs/{r}" for r, step in told.items() if step.action == "remove"} == set(before) - set(after)
    assert {f"docs/{r}" for r, step in told.items() if step.action == "add"} == set(after) - set(before)
    for relative, step in told.items():
        if step.chunks is not None:
            assert base.rows("SELECT chunk_count FROM documents WHERE key = ?", f"docs/{relative}") == [(step.chunks,)]


def test_nothing_is_written(base: Base, root: Path) -> None:
    change(root)
    tree, database = tree_digest(root), base.layout.database.read_bytes()
    for relative in STEPS:
        ask(base, f"docs/{relative}")
    cover(base)
    assert tree_digest(root) == tree
    assert base.layout.database.read_bytes() == database


def test_states_and_reasons(base: Base, root: Path) -> None:
    (root / "new.md").write_text("# New\n")
    (root / "x.py").write_text("x = 1\n")
    expected = {
        "same.md": ("indexed", None),
        "bad.md": ("skipped", Reason.NOT_UTF8),
        "big.md": ("skipped", Reason.TOO_LARGE),
        "private/x.md": ("skipped", Reason.EXCLUDED),
        "x.py": ("skipped", Reason.EXCLUDED),
        "new.md": ("not_indexed", None),
        "nope.md": ("absent", None),
    }
    told = {relative: ask(base, f"docs/{relative}") for relative in expected}
    assert {relative: (one.state, one.reason) for relative, one in told.items()} == expected
    same = told["same.md"]
    assert same.document is not None
    assert same.trace is not None
    assert same.run is not None
    assert (same.run.id, same.run.generation, same.trace.generation) == (1, 1, 1)
    rule = told["private/x.md"].left_out
    assert rule is not None
    assert (rule.pattern, rule.source) == ("private/", str(root / ".knowledgeignore"))
    assert [told[name].exit_status for name in ("same.md", "bad.md", "nope.md")] == [0, 0, 4]


def test_a_missing_file_is_still_indexed(base: Base, root: Path) -> None:
    (root / "gone.md").unlink()
    told = ask(base, "docs/gone.md")
    assert (told.state, told.stat, told.next.action) == ("indexed", None, "remove")


def test_a_failed_file_says_how_often_and_when(base: Base, root: Path) -> None:
    """R33: the older text stays, and is told to be stale."""
    with base.state() as state:
        failures = [
            FailureRecord(f"docs/{name}", "unreadable", "Permission denied", 3, 5, 9) for name in ("same.md", "n.md")
        ]
        state.record_failures([*failures, FailureRecord("docs/same.md.more", "vanished", "", 1, 1, 1)])
    (root / "n.md").write_text("# N\n")
    stale, failed = ask(base, "docs/same.md"), ask(base, "docs/n.md")
    assert (stale.state, failed.state) == ("stale", "failed")
    assert stale.reason is failed.reason is Reason.UNREADABLE
    assert stale.failure is not None
    assert (stale.failure.tries, stale.failure.first_ns, stale.failure.last_ns) == (3, 5, 9)
    (one,) = cover(base).values()
    assert (one.failed, one.new) == (1, 0)


@pytest.mark.parametrize(
    "written",
    ["docs/same.md", "{root}/same.md", "same.md", "./same.md", "../docs/same.md", "docs/same.md#0"],
)
def test_a_file_has_many_names(base: Base, root: Path, written: str) -> None:
    told = ask(base, written.format(root=root), cwd=root)
    assert (told.key, told.state) == ("docs/same.md", "indexed")


def test_links_on_the_way(base: Base, root: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(root)
    (root / "inner").symlink_to("private")
    assert ask(base, str(tmp_path / "way" / "same.md")).key == "docs/same.md"
    (root / "inner" / "y.md").write_text("y")
    told = ask(base, "docs/inner/y.md")
    assert told.left_out is not None
    assert told.state == "skipped"


@pytest.mark.parametrize(
    "written",
    [
        "/etc/passwd",
        "docs/../../../etc/passwd",
        "..",
        "",
        "docs/\x00x",
        "\udcff",
        "docs/\udcff.md",
        "#",
        "~",
    ],
)
def test_odd_names_are_answered(base: Base, written: str) -> None:
    told = ask(base, written)
    assert told.next.action in ("nothing", "walk")
    assert told.document is None


def test_outside_is_told_from_absent(base: Base, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.md").write_text("x")
    assert ask(base, str(tmp_path / "elsewhere.md")).state == "outside"
    assert ask(base, str(tmp_path / "elsewhere2.md")).state == "absent"


def test_a_folder(base: Base, root: Path) -> None:
    whole, private = ask(base, "docs"), ask(base, str(root / "private"))
    assert (whole.state, whole.next.action, private.state, private.next.action) == (
        "folder",
        "walk",
        "folder",
        "nothing",
    )
    assert whole.below is not None
    assert (whole.below.documents, whole.below.skipped) == (len(base.stored_keys()), len(base.skipped()))
    assert private.left_out is not None


def test_a_root_that_is_not_there_keeps_its_documents(base: Base, root: Path) -> None:
    root.rename(root.with_name("away"))
    told = ask(base, "docs/same.md")
    assert (told.state, told.next.action) == ("indexed", "keep")
    (one,) = cover(base).values()
    assert (one.seen, one.leaving) == (0, 0)
    assert one.problems
    root.with_name("away").rename(root)


def test_a_root_that_left_the_configuration(base: Base, root: Path, tmp_path: Path) -> None:
    other = make_tree(tmp_path / "other", {"o.md": "# O\n"})
    moved = Base(replace(base.settings, configured=True, roots=(RootSettings(path=other),)))
    told, new = ask(moved, "docs/same.md"), ask(moved, str(other / "o.md"))
    assert (told.is_left_root, told.next.action) == (True, "keep")
    assert (new.key, new.state, new.next.action) == ("other/o.md", "not_indexed", "add")
    assert set(cover(moved)) == {"other"}


def test_single_files(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "docs", {"one.md": "# One\n", "two.md": "# Two\n"})
    base = base_in(tmp_path)
    with nothing_left(base):
        base.index(root / "one.md")
        assert ask(base, "docs/one.md").state == "indexed"
        told = ask(base, "docs/two.md")
    assert told.left_out is not None
    assert (told.state, told.left_out.kind) == ("skipped", "named_files")


def test_what_may_not_be_looked_at_is_not_gone(base: Base, root: Path, tmp_path: Path) -> None:
    """Asked as somebody who is not root: whose folder is closed knows nothing of what lies in it."""
    make_tree(root, {"closed/in.md": "# In\n"})
    base.index(root)
    for above in (tmp_path, *tmp_path.parents[:3]):
        above.chmod(0o755)
    give_to_nobody(root, base.settings.home)
    with mode(root / "closed", 0):
        action, reason, seen, problems = as_nobody(lambda: _asked(base))
    assert (action, reason) == ("keep", Reason.DIRECTORY_UNREADABLE)
    assert (seen, problems) == (7 + 4 + 1 - 1, 1)


def _asked(base: Base) -> tuple[str, Reason | None, int, int]:
    step = ask(base, "docs/closed/in.md").next
    (one,) = cover(base).values()
    return step.action, step.reason, one.seen, len(one.problems)


def test_coverage_adds_up(base: Base, root: Path) -> None:
    change(root)
    (one,) = cover(base).values()
    assert one.seen == one.indexed + one.skipped_files + one.failed + one.new
    assert (one.indexed, one.new) == (5, 1)
    assert one.skipped == {Reason.NOT_UTF8: 1, Reason.EMPTY: 1, Reason.TOO_LARGE: 1, Reason.EXCLUDED: 1} | {
        Reason.NOT_UTF8: 2
    }
    assert one.leaving == 2  # gone.md, hidden-later.md


def test_coverage_after_a_run_is_the_run(base: Base, root: Path) -> None:
    change(root)
    base.index(root)
    base.settle()
    (one,) = cover(base).values()
    assert one.indexed == len(base.stored_keys())
    assert (one.new, one.failed, one.leaving, one.changed) == (0, 0, 0, 0)
    assert one.seen == one.indexed + one.skipped_files
    stored = base.skipped().values()
    for reason in (Reason.NOT_UTF8, Reason.EMPTY, Reason.TOO_LARGE):
        assert one.skipped.get(reason, 0) == sum(one == reason for one in stored)


def test_vectors(vector_base: Base, tmp_path: Path) -> None:
    """The state of a document's vectors, and that the next run makes those that are missing."""
    root = make_tree(tmp_path / "docs", {"a.md": "# A\n\nriver\n"})
    vector_base.index(root)
    vector_base.settle()
    ready = ask(vector_base, "docs/a.md")
    assert ready.trace is not None
    assert (ready.trace.vector_state, ready.next.action) == ("ready", "unchanged")
    vector_base.execute("UPDATE documents SET vector_state = 'pending'")
    assert ask(vector_base, "docs/a.md").next.action == "embed"
    without = Base(replace(vector_base.settings, embeddings=None))
    assert ask(without, "docs/a.md").next.action == "unchanged"


def test_what_is_told_stays_short(base: Base, root: Path) -> None:
    """A query may be as long as it likes."""
    located = Located("nothing", None, base.settings.home)
    with readable_base(base.settings) as opened:
        told = explain(opened, base.settings, "docs/same.md", AskedBy(root, ""))
        trace = explain_query(opened.store, told.key, SearchRequest("x" * 9_000 + " stays"), None)
    text = explain_text(told, trace, Tier.LEXICAL, located, base.settings, 0)
    assert max(map(len, text.splitlines())) < 500
