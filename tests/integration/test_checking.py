"""Checking the files of a page: what is to be stored of each, or why nothing is."""

import json
from pathlib import Path

import pytest

from domain.files import FileCheck, FileFailure, Page, Reason
from domain.markdown.frontmatter import metadata_of
from domain.settings import MAX_FILE_BYTES
from store.write_port import DocumentWrite, RecheckWrite, SkipWrite
from tests.support.trees import make_tree
from workers import spool
from workers.checking import Checked, CheckRules, FinishedPage, check_page
from workers.chunker import cut
from workers.hashing import content_hash, file_hash, text_hash


def rules_of(root: Path, **changes: object) -> CheckRules:
    fields: dict[str, object] = {
        "root_path": root.resolve(),
        "generation": 7,
        "max_file_bytes": MAX_FILE_BYTES,
        "substring_index": "auto",
    }
    return CheckRules(**(fields | changes))  # type: ignore[arg-type]


def page_of(*files: FileCheck) -> Page:
    return Page(1, "docs", files)


def check_all(root: Path, names: list[str], **changes: object) -> FinishedPage:
    page = page_of(*(FileCheck(f"docs/{name}") for name in names))
    return check_page(page, 3, rules_of(root, **changes))


def check_one(tmp_path: Path, content: bytes, name: str = "a.md", known: bytes = b"", **changes: object) -> Checked:
    root = make_tree(tmp_path / "docs", {name: content})
    finished = check_page(page_of(FileCheck(f"docs/{name}", known)), 3, rules_of(root, **changes))
    assert (finished.run, finished.number, finished.root) == (3, 1, "docs")
    items: list[Checked] = [*finished.documents, *finished.rechecks, *finished.skips, *finished.failures]
    assert len(items) == 1
    return items[0]


def text_of(checked: Checked) -> str:
    """The document's text, put together again from its rows: lead and body are the last two of each."""
    assert isinstance(checked, DocumentWrite), checked
    return "".join(row[-2] + row[-1] for row in checked.chunks) + checked.tail


def test_a_document_is_stored_with_what_was_read(tmp_path: Path) -> None:
    raw = b"---\ntitle: The title\ntags: [x]\n---\n# Head\n\nText.\n"
    checked = check_one(tmp_path, raw)
    assert isinstance(checked, DocumentWrite)
    assert (checked.key, checked.root, checked.generation) == ("docs/a.md", "docs", 7)
    assert checked.title == "The title"
    assert metadata_of(checked.chunks[0][-2]) == {"title": "The title", "tags": ["x"]}  # kept once, in the lead
    assert checked.warnings == "[]"
    assert checked.file_hash == file_hash(raw)
    assert checked.text_bytes == len(raw) == checked.stat.size_bytes
    assert checked.checked_ns == checked.observed_ns >= checked.stat.mtime_ns
    assert text_of(checked).encode() == raw


def test_an_equal_hash_is_a_recheck_and_no_more(tmp_path: Path) -> None:
    """S0-20, R26."""
    raw = b"# Head\n"
    checked = check_one(tmp_path, raw, known=file_hash(raw))
    assert isinstance(checked, RecheckWrite)
    assert checked.file_hash == file_hash(raw)
    assert isinstance(check_one(tmp_path, raw, known=file_hash(b"other")), DocumentWrite)


def test_an_equal_hash_is_a_recheck_whatever_the_bytes_are(tmp_path: Path) -> None:
    assert isinstance(check_one(tmp_path, b"\xff", known=file_hash(b"\xff")), RecheckWrite)


@pytest.mark.parametrize(
    "raw",
    [
        b"a\x00b\n",
        b"# A\rB\r\rC",
        b"\xef\xbb\xbf# Head\n\ntext",
        b"\xef\xbb\xbf---\ntitle: T\n---\ntext",
        "a\u2028b\u2029c\x85d\n".encode(),
        b"one\r\ntwo\r\n\r\nthree",
        b"\x00",
        b"\x1b[31mred\x1b[0m",
        "\U0001f600\u0301 e\u0301 \u202e\n".encode(),
        b"\xef\xbb\xbf\xef\xbb\xbf# twice",
        b"```\nnever closed\n# no heading\n",
        b"---\ntitle: [broken\n---\ntext\n",
        b"---\nnever: closed\n\ntext",
        b"x",
    ],
)
@pytest.mark.parametrize("name", ["a.md", "a.txt"])
def test_odd_characters_are_text_and_come_back(tmp_path: Path, raw: bytes, name: str) -> None:
    """T7, R13: byte for byte."""
    assert text_of(check_one(tmp_path, raw, name)).encode() == raw


def test_a_byte_order_mark_hides_neither_heading_nor_frontmatter(tmp_path: Path) -> None:
    """T7, R13, R16."""
    heading = check_one(tmp_path, b"\xef\xbb\xbf# Head\n\ntext")
    assert isinstance(heading, DocumentWrite)
    assert heading.title == "Head"
    matter = check_one(tmp_path, b"\xef\xbb\xbf---\ntitle: Mine\n---\ntext")
    assert isinstance(matter, DocumentWrite)
    assert matter.title == "Mine"


def test_a_broken_frontmatter_is_a_warning(tmp_path: Path) -> None:
    """R15."""
    checked = check_one(tmp_path, b"---\ntitle: [broken\n---\n\n# Head\n\ntext\n")
    assert isinstance(checked, DocumentWrite)
    assert json.loads(checked.warnings)
    assert metadata_of(checked.chunks[0][-2]) == {}


def test_a_frontmatter_with_what_no_store_holds(tmp_path: Path) -> None:
    """Lone surrogates and numbers that JSON has not: neither the store nor the spool refuses the document."""
    raw = b'---\ntitle: "\\ud800 x"\na: .nan\nb: 1e999\nc: 123456789012345678901234567890\n---\ntext\n'
    checked = check_one(tmp_path, raw)
    assert isinstance(checked, DocumentWrite)
    metadata = json.dumps(dict(metadata_of(raw.decode())), ensure_ascii=False)
    (checked.title + metadata).encode()
    json.loads(metadata, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    spool.write_page(tmp_path, "1-1-1.page", FinishedPage(1, 1, "docs", documents=(checked,)))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", Reason.EMPTY),
        (b" \t\r\n\n\f\v", Reason.EMPTY),
        (b"\xef\xbb\xbf\n", Reason.EMPTY),
        (b"\xff", Reason.NOT_UTF8),
        (b"# Head\n\nfine until \xc3\x28 here", Reason.NOT_UTF8),
        (b"overlong \xc0\xaf", Reason.NOT_UTF8),
        (b"surrogate \xed\xa0\x80", Reason.NOT_UTF8),
        ("utf-16".encode("utf-16"), Reason.NOT_UTF8),
    ],
)
def test_what_is_no_text_is_skipped(tmp_path: Path, raw: bytes, reason: Reason) -> None:
    """S0-19, T7."""
    checked = check_one(tmp_path, raw)
    assert isinstance(checked, SkipWrite)
    assert checked.reason is reason
    assert checked.stat.size_bytes == len(raw)


@pytest.mark.parametrize(("size", "is_read"), [(524_287, True), (524_288, True), (524_289, False)])
def test_the_size_limit(tmp_path: Path, size: int, is_read: bool) -> None:
    """S0-18: 512 KiB exactly are indexed."""
    checked = check_one(tmp_path, b"word " * (size // 5) + b"x" * (size % 5))
    if is_read:
        assert len(text_of(checked)) == size
    else:
        assert isinstance(checked, SkipWrite)
        assert (checked.reason, checked.stat.size_bytes) == (Reason.TOO_LARGE, size)


@pytest.mark.parametrize(
    "unit",
    [b" ", b"[", b"*", b"<!--", b"#", b"# ", b"> ", b"- ", b"`", b"~", b"|", b"\\", b"\t", b"](", b"&", b"=", b"-"],
)
def test_the_longest_line_of_one_thing(tmp_path: Path, unit: bytes) -> None:
    """T8: it ends, and nothing of it is lost."""
    raw = (b"x" + unit * (MAX_FILE_BYTES // len(unit)))[:MAX_FILE_BYTES]
    assert text_of(check_one(tmp_path, raw)).encode() == raw
    bare = raw[1:]
    checked = check_one(tmp_path, bare)
    if bare.strip():
        assert text_of(checked).encode() == bare


def test_a_hundred_thousand_headings(tmp_path: Path) -> None:
    """T9."""
    raw = b"# x\n" * 100_000
    checked = check_one(tmp_path, raw)
    assert isinstance(checked, DocumentWrite)
    assert len(checked.chunks) <= 100_000
    assert text_of(checked).encode() == raw


def test_a_file_that_takes_too_long_fails_and_the_others_do_not(tmp_path: Path) -> None:
    """T8: the scanner looks at its deadline; the clock is injected."""
    root = make_tree(tmp_path / "docs", {"a.md": "# A\n", "b.md": "# x\n" * 5000, "c.md": "# C\n"})
    ticks = iter(range(0, 10_000_000, 100))
    page = page_of(*(FileCheck(f"docs/{name}.md") for name in "abc"))
    finished = check_page(page, 1, rules_of(root), lambda: float(next(ticks)))
    assert [(failure.key, failure.reason) for failure in finished.failures] == [("docs/b.md", Reason.TOO_SLOW)]
    assert [write.key for write in finished.documents] == ["docs/a.md", "docs/c.md"]


def test_plain_text_has_no_markdown(tmp_path: Path) -> None:
    """R36."""
    raw = b"# no heading\n\nblock\n"
    plain, marked = check_one(tmp_path, raw, "a.txt"), check_one(tmp_path, raw, "a.md")
    assert isinstance(plain, DocumentWrite)
    assert isinstance(marked, DocumentWrite)
    assert plain.title == "a"
    assert marked.title == "no heading"
    assert {row[-3] for row in plain.chunks} == {""}
    assert "no heading" in {row[-3] for row in marked.chunks}


def test_every_file_of_a_page_has_one_outcome_in_its_order(tmp_path: Path) -> None:
    names = ["bad.md", "empty.md", "good.md", "gone.md", "known.md"]
    root = make_tree(tmp_path / "docs", {"bad.md": b"\xff", "empty.md": b"", "good.md": b"# G\n", "known.md": b"k"})
    page = page_of(*(FileCheck(f"docs/{name}", file_hash(b"k") if name == "known.md" else b"") for name in names))
    finished = check_page(page, 1, rules_of(root))
    assert [write.key for write in finished.documents] == ["docs/good.md"]
    assert [write.key for write in finished.rechecks] == ["docs/known.md"]
    assert [write.key for write in finished.skips] == ["docs/bad.md", "docs/empty.md"]
    assert [failure.key for failure in finished.failures] == ["docs/gone.md"]
    assert finished.text_bytes == 4


def test_a_fault_of_ours_fails_one_file_and_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that raises is forgotten by the queue, and the run would wait for its page for ever."""

    def faulty(text: str, key: str, **options: object) -> object:
        if key.endswith("b.md"):
            raise KeyError("a fault of ours")
        return cut(text, key, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("workers.checking.cut", faulty)
    root = make_tree(tmp_path / "docs", {"a.md": "# A\n", "b.md": "# B\n", "c.md": "# C\n"})
    finished = check_all(root, ["a.md", "b.md", "c.md"])
    assert [write.key for write in finished.documents] == ["docs/a.md", "docs/c.md"]
    (failure,) = finished.failures
    assert isinstance(failure, FileFailure)
    assert (failure.key, failure.reason) == ("docs/b.md", Reason.UNEXPECTED)
    assert "KeyError" in failure.detail


def test_the_content_hash_is_of_the_canonical_text() -> None:
    """R14: frontmatter, byte order mark and newlines do not count; file_hash counts everything."""
    plain = "# A\n\ntext\n"
    variants = ["# A\r\n\r\ntext\r\n", "# A\r\rtext\r"]
    expected = content_hash(plain.encode(), plain, 0, file_hash(plain.encode()))
    assert expected == file_hash(plain.encode())
    for variant in variants:
        raw = variant.encode()
        assert content_hash(raw, variant, 0, file_hash(raw)) == expected
    headed = "\ufeff---\ntitle: T\n---\n" + plain
    raw = headed.encode()
    assert content_hash(raw, headed, headed.index("# A"), file_hash(raw)) == expected
    assert file_hash(raw) != expected
    assert len(text_hash(plain)) == 12
