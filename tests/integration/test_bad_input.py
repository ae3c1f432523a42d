"""A folder of bad input, indexed whole: every file ends in one outcome, and what is stored comes back byte for byte."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.settings import MAX_FILE_BYTES
from store.port import Visibility
from store.sqlite import SqliteStore
from tests.support.audit import audit
from tests.support.runs import Base, base_in, nothing_left
from tests.support.trees import make_raw_file, make_tree

pytestmark = pytest.mark.redis

GOOD: dict[str, str | bytes] = {
    # T2: names
    "a\x1b]0;title\x07.md": "# Escape\n",
    "b\nnewline.md": "# Newline\n",
    "c\u202egnp.md": "# Right to left\n",
    "-rf.md": "# Dash\n",
    "e#0.md": "# Hash\n",
    " f .md": "# Blanks\n",
    "g\\h.md": "# Backslash\n",
    "i'\";DROP TABLE documents;--.md": "# Quotes\n",
    "%2e%2e.md": "# Percent\n",
    "\U0001f600.MD": "# Emoji\n",
    "n" * 240 + ".md": "# Long name\n",
    # T3: two spellings of one name
    "\u00e9.md": "# Composed\n",
    "e\u0301.md": "# Decomposed\n",
    # T7: characters
    "nul.md": b"# Nul\n\na\x00b\n",
    "cr.md": b"# Cr\r\rlone\rreturns\r",
    "bom.md": b"\xef\xbb\xbf# Bom\n\ntext\n",
    "separators.md": "# Separators\n\na\u2028b\u2029c\x85d\x0be\x0cf\n",
    "controls.md": bytes(range(1, 32)) + b"\n# Controls\n",
    "c1.md": "# C1\n\n\x9b31mred\x9d0;t\x9c\n",
    "tags.md": "# Tags\n\n\U000e0041\ufe0f\u200b\n",
    "combining.md": "# Zalgo\n\n" + "e" + "\u0301" * 3000 + "\n",
    # T8, T9: structure
    "spaces.md": " " * 200_000 + "x",
    "brackets.md": "[" * 200_000,
    "stars.md": "*" * 200_000,
    "comment.md": "<!--" * 50_000,
    "hashes.md": "#" * 200_000,
    "headings.md": "# x\n" * 20_000,
    "list.md": "".join(f"{'  ' * depth}- x\n" for depth in range(400)),
    "quotes.md": "> " * 10_000 + "x\n",
    "fence.md": "```\n" + "# not a heading\n" * 5000,
    "table.md": "| a | b |\n|---|---|\n" + "| x | y |\n" * 5000,
    "frontmatter.md": "---\na: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n---\ntext\n",
    "aliases.md": "---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\ntext\n",
    "tagged.md": "---\na: !!python/object/apply:os.system ['true']\n---\ntext\n",
    "unclosed.md": "---\ntitle: x\n" * 1000,
    "surrogate.md": '---\ntitle: "\\ud800"\n---\ntext\n',
    "dates.md": "---\ndate: 2024-02-30\nother: 9999-99-99T99:99:99Z\n---\ntext\n",
    "limit.md": "x" * MAX_FILE_BYTES,
    "/".join(["d"] * 200) + "/deep.md": "# Deep\n",
}
BAD: dict[str, bytes] = {
    "invalid.md": b"# Invalid\n\n" + b"fine " * 100 + b"\xc3\x28",
    "utf16.md": "# Utf 16\n".encode("utf-16"),
    "over.md": b"x" * (MAX_FILE_BYTES + 1),
    "empty.md": b"",
    "blank.md": b" \n\t\r\n\n",
}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = base_in(tmp_path)
    with nothing_left(made):
        yield made


@pytest.fixture
def docs(tmp_path: Path) -> Iterator[Path]:
    outside = make_tree(tmp_path / "outside", {"secret.md": "# Secret\n\nkept apart\n"})
    root = make_tree(tmp_path / "docs", GOOD | BAD)
    (root / "link.md").symlink_to(outside / "secret.md")
    (root / "linked").symlink_to(outside)
    (root / "circle").symlink_to(root)
    (root / "hard.md").hardlink_to(outside / "secret.md")
    os.mkfifo(root / "pipe.md")
    make_raw_file(root, b"bad\xff.md")
    make_raw_file(root, b"\xed\xa0\x80.md")
    with (root / "sparse.md").open("wb") as file:
        file.truncate(2**33)
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.open(root, os.O_RDONLY)
        try:
            listener.bind(f"/proc/self/fd/{folder}/socket.md")
        finally:
            os.close(folder)
        yield root


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs sockets by way of /proc")
@pytest.mark.parametrize("processes", [0, 1])
def test_a_folder_of_bad_input(base: Base, docs: Path, processes: int, capfd: pytest.CaptureFixture[str]) -> None:
    """T1..T9: nothing hangs, nothing fails, nothing is printed, nothing outside is read."""
    report = base.index(docs, worker_processes=processes)
    assert report.failures == ()
    assert {reason: number for reason, (number, _) in report.skips.items()} == {
        "name_not_utf8": 2,
        "not_a_file": 2,
        "symlink": 1,
        "not_utf8": 2,
        "too_large": 2,
        "empty": 2,
    }
    assert report.counts == {"added": len(GOOD) + 1, "skipped": 11}
    assert (report.state, report.exit_status) == ("done", 0)
    assert set(base.stored_keys()) == {f"docs/{name}" for name in (*GOOD, "hard.md")}
    assert base.found("kept") == ["docs/hard.md"]
    assert capfd.readouterr() == ("", "")
    assert all(first.encode() for _, first in report.skips.values())
    store = SqliteStore(base.layout.database, base_id=None)
    try:
        for name, content in GOOD.items():
            text = store.reader().text(f"docs/{name}", visibility=Visibility.everything())
            assert text is not None
            assert text.encode() == (content.encode() if isinstance(content, str) else content), name
    finally:
        store.close()
    assert audit(base.layout.database) == []
    base.settle()
    again = base.index()
    assert again.counts == {"unchanged": len(GOOD) + 1, "skipped": 11}
    assert again.skips == report.skips


def test_hostile_files_named_one_by_one(base: Base, docs: Path) -> None:
    """T1, T2: what cannot be walked to cannot be named either; a strange name is a name."""
    base.index(docs)
    base.settle()
    for raw, counts in (
        (b"bad\xff.md", {"skipped": 1}),
        (b"pipe.md", {"skipped": 1}),
        (b"link.md", {"skipped": 1}),
        (b"b\nnewline.md", {"unchanged": 1}),
        (b"-rf.md", {"unchanged": 1}),
        (b"e#0.md", {"unchanged": 1}),
    ):
        report = base.index(Path(os.fsdecode(os.path.join(os.fsencode(docs), raw))))  # noqa: PTH118
        assert report.counts == counts, raw
    assert len(base.stored_keys()) == len(GOOD) + 1
