"""How every file that a run meets ends: added, updated, moved, unchanged, skipped, failed, removed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.settings import MAX_FILE_BYTES, RootSettings
from tests.support.audit import audit
from tests.support.runs import Base, base_in, nothing_left
from tests.support.trees import OtherOs, make_tree, mode, tree_digest
from workers import reading

pytestmark = pytest.mark.redis

FILES: dict[str, str | bytes] = {
    "a.md": "# A\n\nalpha words\n",
    "b.md": "# B\n\nbeta words\n",
    "sub/c.md": "# C\n\ngamma words\n",
    "sub/d.txt": "delta words\n",
}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = base_in(tmp_path)
    with nothing_left(made):
        yield made
    if made.layout.database.exists():
        assert audit(made.layout.database) == []


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", FILES)


def test_every_outcome_in_one_run(base: Base, docs: Path) -> None:
    """S0-20, S1-38, R33, R34: each file met is counted once."""
    make_tree(docs, {"gone.md": "# Gone\n", "old/name.md": "# Moves\n\nmoving words\n", "spoilt.md": "# Fine\n"})
    base.index(docs)
    base.settle()
    (docs / "b.md").write_text("# B\n\nbeta rewritten\n", "utf-8")
    (docs / "gone.md").unlink()
    (docs / "old" / "name.md").rename(docs / "sub" / "renamed.md")
    (docs / "spoilt.md").write_bytes(b"\xff")
    (docs / "sub" / "link.md").symlink_to(docs / "a.md")
    make_tree(docs, {"new.md": "# New\n"})
    report = base.index()
    assert report.counts == {
        "added": 1,
        "updated": 1,
        "moved": 1,
        "removed": 1,
        "unchanged": 3,
        "skipped": 2,
    }
    assert (report.state, report.exit_status, report.documents) == ("done", 0, 6)
    assert base.stored_keys() == [
        "docs/a.md",
        "docs/b.md",
        "docs/new.md",
        "docs/sub/c.md",
        "docs/sub/d.txt",
        "docs/sub/renamed.md",
    ]
    assert base.found("rewritten") == ["docs/b.md"]
    assert base.found("moving") == ["docs/sub/renamed.md"]
    assert base.skipped() == {"docs/spoilt.md": "not_utf8"}


def test_a_touched_file_is_looked_at_and_unchanged(base: Base, docs: Path) -> None:
    """R26: a recheck, and no full-text work."""
    base.index(docs)
    base.settle()
    before = base.rows("SELECT value FROM meta WHERE key = 'commit_seq'")
    (docs / "a.md").touch()
    report = base.index()
    assert report.counts == {"unchanged": 4}
    assert report.chunks_written == 0
    assert base.rows("SELECT value FROM meta WHERE key = 'commit_seq'") == before
    stat = (docs / "a.md").stat()
    assert base.rows("SELECT mtime_ns FROM documents WHERE key = 'docs/a.md'") == [(stat.st_mtime_ns,)]


def test_a_change_that_stat_does_not_show_is_found_by_hashing(base: Base, docs: Path) -> None:
    """R26: `--rehash`, and `change_detection: hash`."""
    base.index(docs)
    status = (docs / "a.md").stat()
    (docs / "a.md").write_text("# A\n\nother words\n"[: status.st_size].ljust(status.st_size), "utf-8")
    os.utime(docs / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    now = (docs / "a.md").stat()
    base.settle()
    base.execute("UPDATE documents SET ctime_ns = ? WHERE key = 'docs/a.md'", now.st_ctime_ns)
    assert base.index().counts == {"unchanged": 4}
    assert base.found("other") == []
    assert base.index(rehash=True).counts == {"unchanged": 3, "updated": 1}
    assert base.found("other") == ["docs/a.md"]
    hashing = Base(base_in(base.settings.home.parent, change_detection="hash").settings)
    assert hashing.index().counts == {"unchanged": 4}


def test_reindex_cuts_everything_anew(base: Base, docs: Path) -> None:
    """S0-21, S1-40."""
    base.index(docs)
    base.settle()
    base.execute("UPDATE chunks SET heading_path = 'spoilt'")
    base.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
    base.execute("INSERT INTO chunks_fts_exact (chunks_fts_exact) VALUES ('rebuild')")
    report = base.index(reindex=True)
    assert sum(report.counts.values()) == 4
    assert report.run.kind == "reindex"
    assert report.chunks_written == 4
    assert base.rows("SELECT count(*) FROM chunks WHERE heading_path = 'spoilt'") == [(0,)]


def test_one_named_file_is_all_that_is_looked_at(base: Base, docs: Path) -> None:
    """R29: and a path below a root removes nothing."""
    base.index(docs)
    base.settle()
    (docs / "a.md").write_text("# A\n\nchanged words\n", "utf-8")
    (docs / "b.md").unlink()
    (docs / "sub" / "c.md").write_text("# C\n\nchanged too\n", "utf-8")
    assert base.index(docs / "a.md").counts == {"updated": 1}
    assert base.index(docs / "sub").counts == {"updated": 1, "unchanged": 1}
    assert "docs/b.md" in base.stored_keys()
    assert base.index().counts == {"removed": 1, "unchanged": 3}


def test_a_named_path_that_is_gone_is_removed(base: Base, docs: Path) -> None:
    """R29: a file, or a folder with all that was below it; nothing else goes."""
    base.index(docs)
    base.settle()
    for name in ("a.md", "b.md", "sub/c.md", "sub/d.txt"):
        (docs / name).unlink()
    (docs / "sub").rmdir()
    make_tree(docs, {"still.md": "# Here\n"})
    assert base.index(docs / "a.md").counts == {"removed": 1}
    assert base.stored_keys() == ["docs/b.md", "docs/sub/c.md", "docs/sub/d.txt"]
    assert base.index(docs / "sub").counts == {"removed": 2}
    assert base.stored_keys() == ["docs/b.md"]
    report = base.index(docs / "never.md")
    assert report.counts == {}
    assert len(report.notes) == 1


def test_the_last_of_a_folders_single_files_can_go(base: Base, docs: Path) -> None:
    base.index(docs / "a.md")
    assert base.stored_keys() == ["docs/a.md"]
    (docs / "a.md").unlink()
    assert base.index(docs / "a.md").counts == {"removed": 1}
    assert base.stored_keys() == []


def test_single_files_keep_their_neighbours_out(base: Base, docs: Path) -> None:
    """R20: a single file outside every root registers its folder with that file as the only include."""
    assert base.index(docs / "a.md").counts == {"added": 1}
    assert base.index(docs / "b.md").counts == {"added": 1}
    base.settle()
    assert base.index().counts == {"unchanged": 2}
    assert base.stored_keys() == ["docs/a.md", "docs/b.md"]
    assert base.index(docs).counts == {"added": 2, "unchanged": 2}


def test_a_file_left_out_by_a_rule_goes_and_comes_back(base: Base, docs: Path) -> None:
    """R33: excluded files and folders leave the index with the next run, and come back when the rule goes."""
    base.index(docs)
    for lines, keys in (
        ("a.md\n", ["docs/b.md", "docs/sub/c.md", "docs/sub/d.txt"]),
        ("sub/\n", ["docs/a.md", "docs/b.md"]),
    ):
        (docs / ".knowledgeignore").write_text(lines, "utf-8")
        base.settle()
        report = base.index()
        assert base.stored_keys() == keys
        assert report.state == "done"
        (docs / ".knowledgeignore").unlink()
        base.settle()
        base.index()
        assert len(base.stored_keys()) == 4
        assert base.skipped() == {}


def test_a_file_that_is_excluded_is_counted_each_time(base: Base, docs: Path) -> None:
    base.index(docs)
    (docs / ".knowledgeignore").write_text("a.md\n", "utf-8")
    base.settle()
    for _ in range(2):
        report = base.index()
        assert report.counts == {"unchanged": 3, "skipped": 1}
        assert report.skips == {"excluded": (1, "docs/a.md")}
        base.settle()


def test_the_size_limit_and_a_limit_that_was_raised(base: Base, docs: Path) -> None:
    """S0-18, R33: exactly 512 KiB are indexed; a raised cap takes the file in without a touch."""
    make_tree(docs, {"limit.md": "x" * MAX_FILE_BYTES, "over.md": "y" * (MAX_FILE_BYTES + 1)})
    report = base.index(docs)
    assert report.counts == {"added": 5, "skipped": 1}
    assert report.skips == {"too_large": (1, "docs/over.md")}
    base.settle()
    assert base.index().counts == {"unchanged": 5, "skipped": 1}
    raised = base_in(base.settings.home.parent, max_file_bytes=MAX_FILE_BYTES + 1)
    assert raised.index().counts == {"unchanged": 5, "added": 1}
    raised.settle()
    assert base.index(rehash=True).counts == {"unchanged": 5, "skipped": 1}
    assert base.skipped() == {"docs/over.md": "too_large"}


def test_a_skipped_file_that_is_gone_is_forgotten(base: Base, docs: Path) -> None:
    make_tree(docs, {"bad.md": b"\xff"})
    base.index(docs)
    assert base.skipped() == {"docs/bad.md": "not_utf8"}
    (docs / "bad.md").unlink()
    base.settle()
    assert base.index().counts == {"unchanged": 4}
    assert base.skipped() == {}


def test_a_skipped_file_that_was_mended_is_added(base: Base, docs: Path) -> None:
    make_tree(docs, {"bad.md": b"\xff"})
    base.index(docs)
    (docs / "bad.md").write_text("# Mended\n", "utf-8")
    assert base.index().counts["added"] == 1
    assert base.skipped() == {}


def test_a_copy_is_added_and_nothing_has_moved(base: Base, docs: Path) -> None:
    """R34: moved is only what is gone from where it was; one new file stands for one old one."""
    base.index(docs)
    base.settle()
    make_tree(docs, {"copy.md": FILES["a.md"]})
    assert base.index().counts == {"added": 1, "unchanged": 4}
    base.settle()
    (docs / "a.md").unlink()
    (docs / "copy.md").unlink()
    make_tree(docs, {"third.md": FILES["a.md"]})
    assert base.index().counts == {"moved": 1, "removed": 1, "unchanged": 3}


def test_a_move_between_roots(tmp_path: Path, docs: Path) -> None:
    notes = make_tree(tmp_path / "notes", {"n.md": "# N\n"})
    base = base_in(tmp_path, RootSettings(path=docs), RootSettings(path=notes))
    with nothing_left(base):
        assert base.index().counts == {"added": 5}
        base.settle()
        (docs / "a.md").rename(notes / "a.md")
        assert base.index().counts == {"moved": 1, "unchanged": 4}
        assert "notes/a.md" in base.stored_keys()


def test_a_file_that_cannot_be_read_fails_and_stays(base: Base, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R33: the stored document stays, the failure is named, the exit status is 3, and it is tried again when asked."""
    base.index(docs)
    base.settle()
    (docs / "b.md").write_text("# B\n\nrewritten words\n", "utf-8")
    make_tree(docs, {"never.md": "# Never seen\n"})

    def closed(path: str, flags: int, **options: int) -> int:
        if path in ("b.md", "never.md"):
            raise PermissionError(13, "Permission denied")
        return os.open(path, flags, **options)

    with monkeypatch.context() as patched:
        patched.setattr(reading, "os", OtherOs(open=closed))
        report = base.index()
    assert report.counts == {"unchanged": 3, "failed": 2}
    assert [(failure.reason, failure.count, failure.key) for failure in report.failures] == [
        ("unreadable", 2, "docs/b.md")
    ]
    assert (report.state, report.exit_status) == ("partial", 3)
    assert base.found("beta") == ["docs/b.md"]
    assert base.failures() == {"docs/b.md": "unreadable", "docs/never.md": "unreadable"}
    assert base.index(rehash=True).counts == {"unchanged": 3, "updated": 1, "added": 1}
    assert base.failures() == {}


def test_the_source_is_never_written_to(tmp_path: Path, docs: Path) -> None:
    """A root of role documents: the same to the last byte, mode and time; also where it cannot be written to."""
    (docs / "link.md").symlink_to(docs / "a.md")
    before = tree_digest(docs)
    base = base_in(tmp_path)
    base.index(docs)
    base.index(docs, reindex=True)
    base.index(docs, rehash=True, worker_processes=1)
    assert tree_digest(docs) == before


def test_a_read_only_source_is_indexed(tmp_path: Path) -> None:
    docs = make_tree(tmp_path / "docs", FILES)
    base = base_in(tmp_path)
    with mode(docs / "sub", 0o555), mode(docs, 0o555):
        before = tree_digest(docs)
        assert base.index(docs).counts == {"added": 4}
        assert tree_digest(docs) == before


def test_text_is_found_wherever_it_stands(base: Base, docs: Path) -> None:
    """The no-copy rule: at the end of a 500 KB file, in a frontmatter title, in a file name, in a heading."""
    filler = "filler sentence of no interest\n\n" * (500 * 1024 // 32)
    make_tree(
        docs,
        {
            "large.md": f"# Large\n\n{filler}the very last words: xylophone\n",
            "titled.md": "---\ntitle: Zeppelin manual\n---\n\nbody\n",
            "quokka-habits.md": "body\n",
            "headed.md": "# Nothing\n\n## Marzipan\n",
        },
    )
    base.index(docs)
    assert base.found("xylophone") == ["docs/large.md"]
    assert base.found("zeppelin") == ["docs/titled.md"]
    assert base.found("quokka") == ["docs/quokka-habits.md"]
    assert base.found("marzipan") == ["docs/headed.md"]
