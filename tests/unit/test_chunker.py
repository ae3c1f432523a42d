"""Each rule by which a document is cut into chunks."""

from collections.abc import Callable

import pytest

from domain.documents import CutDocument
from domain.markdown.spans import ScanTooSlowError, deadline_after
from workers.chunker import MAX_BYTES, TARGET_BYTES, WHOLE_BYTES, cut

Cut = Callable[[str], CutDocument]


@pytest.fixture
def cut_markdown() -> Cut:
    """Cuts Markdown and makes sure that the text comes back."""

    def cut_checked(text: str) -> CutDocument:
        document = cut(text, "notes/some dir/a-file.name.md", markdown=True)
        assert "".join(chunk.lead + chunk.body for chunk in document.chunks) + document.tail == text
        return document

    return cut_checked


def _bodies(document: CutDocument) -> list[str]:
    return [chunk.body for chunk in document.chunks]


def _breadcrumbs(document: CutDocument) -> list[str]:
    return [chunk.heading_path for chunk in document.chunks]


def test_headings_cut_and_make_the_breadcrumb(cut_markdown: Cut) -> None:
    document = cut_markdown("intro\n\n# A\n\none\n\n## B ##\ntwo\n\nC\n-\n\nthree\n\n# D\nfour\n")
    assert _bodies(document) == ["intro", "one", "two", "three", "four"]
    assert _breadcrumbs(document) == ["", "A", "A > B", "A > C", "D"]
    assert document.tail == "\n"


def test_leads_hold_headings_blank_lines_and_frontmatter(cut_markdown: Cut) -> None:
    document = cut_markdown("\ufeff---\ntitle: T\n---\n\n# A\n\nbody\n")
    assert document.chunks[0].lead == "\ufeff---\ntitle: T\n---\n\n# A\n\n"
    assert document.content_start == len("\ufeff---\ntitle: T\n---\n")
    assert document.chunks[0].body == "body"


def test_lines_count_the_frontmatter(cut_markdown: Cut) -> None:
    document = cut_markdown("---\ntitle: T\n---\n# A\n\nfirst\nsecond\n\n## B\n\n### C\nthird")
    assert [(c.start_line, c.end_line) for c in document.chunks] == [(6, 7), (12, 12)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_ends_at_lf_crlf_and_cr(end: str, cut_markdown: Cut) -> None:
    document = cut_markdown(end.join(["# A", "", "one", "two", "", "# B", "three", ""]))
    assert _breadcrumbs(document) == ["A", "B"]
    assert _bodies(document) == [f"one{end}two", "three"]
    assert [(c.start_line, c.end_line) for c in document.chunks] == [(3, 4), (7, 7)]


def test_mixed_line_ends(cut_markdown: Cut) -> None:
    document = cut_markdown("# A\r\none\rtwo\n\r\n# B\rthree\r\n")
    assert _bodies(document) == ["one\rtwo", "three"]
    assert [(c.start_line, c.end_line) for c in document.chunks] == [(2, 3), (6, 6)]


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_nothing_else_ends_a_line(char: str, cut_markdown: Cut) -> None:
    document = cut_markdown(f"a{char}# no heading\n")
    assert _breadcrumbs(document) == [""]


def test_nul_is_text(cut_markdown: Cut) -> None:
    assert _bodies(cut_markdown("# A\n\x00 a\x00b\n")) == ["\x00 a\x00b"]


@pytest.mark.parametrize("quoted", ["> # A\n> text\n", "- # A\n\n  text\n", "1. B\n   ===\n", "```\n# A\n```\n"])
def test_headings_in_quotes_lists_and_fences_do_not_cut(quoted: str, cut_markdown: Cut) -> None:
    document = cut_markdown(quoted)
    assert _breadcrumbs(document) == [""]
    assert document.title == "a-file.name"


@pytest.mark.parametrize("line", ["#", "##  ##", '## <a name="x"></a>', "### \t"])
def test_a_heading_without_words_is_none(line: str, cut_markdown: Cut) -> None:
    document = cut_markdown(f"# A\n\n{line}\n\ntext\n")
    assert _breadcrumbs(document) == ["A"]
    assert _bodies(document) == [f"{line}\n\ntext"]


def test_a_heading_without_body_and_sub_headings_is_a_chunk(cut_markdown: Cut) -> None:
    document = cut_markdown("# A\n\n## B\n\n## C\n\n# D\n\n## E\n\ntext\n\n## F\n")
    assert _breadcrumbs(document) == ["A > B", "A > C", "D > E", "D > F"]
    assert _bodies(document) == ["", "", "text", ""]
    assert [(c.start_line, c.end_line) for c in document.chunks] == [(3, 3), (5, 5), (11, 11), (13, 13)]


def test_a_setext_heading_without_body_shows_all_its_lines(cut_markdown: Cut) -> None:
    document = cut_markdown("text\n\nTwo\nlines\n=====\n")
    assert _breadcrumbs(document) == ["", "Two lines"]
    assert (document.chunks[1].start_line, document.chunks[1].end_line) == (3, 5)


@pytest.mark.parametrize("text", ["", "\ufeff", "   \n\t\n", "---\ntitle: T\n---\n", "\r"])
def test_neither_heading_nor_body_is_one_empty_chunk(text: str, cut_markdown: Cut) -> None:
    document = cut_markdown(text)
    assert _bodies(document) == [""]
    assert document.chunks[0].start_line == 1


def test_blocks_are_packed_up_to_the_target(cut_markdown: Cut) -> None:
    block = "x" * 399
    document = cut_markdown("\n\n".join([block] * 4))
    assert _bodies(document) == ["\n\n".join([block] * 2), "\n\n".join([block] * 2)]
    assert len("\n\n".join(["x" * 398] * 3)) == TARGET_BYTES - 2
    assert len(cut_markdown("\n\n".join(["x" * 398] * 3)).chunks) == 1


def test_sizes_are_bytes(cut_markdown: Cut) -> None:
    document = cut_markdown("\n\n".join(["ö" * 500, "ö" * 500]))
    assert [len(body.encode()) for body in _bodies(document)] == [1000, 1000]


def test_a_block_between_target_and_maximum_stays_whole(cut_markdown: Cut) -> None:
    block = "word " * (MAX_BYTES // 5 - 1) + "ends."
    assert len(block) == MAX_BYTES
    assert _bodies(cut_markdown(f"a\n\n{block}\n\nb")) == ["a", block, "b"]


def test_prose_is_cut_at_sentences_then_words_then_characters(cut_markdown: Cut) -> None:
    sentences = _bodies(cut_markdown("This is one sentence of several. " * 100))
    assert all(body.endswith("several.") for body in sentences)
    words = _bodies(cut_markdown("wording " * 400))
    assert all(body.startswith("wording") and body.endswith("wording") for body in words)
    characters = _bodies(cut_markdown("x" * 5000))
    assert [len(body) for body in characters] == [TARGET_BYTES] * 4 + [200]


def test_a_cut_keeps_combining_sequences_whole(cut_markdown: Cut) -> None:
    marked = "a" + "\u0301" * 20
    bodies = _bodies(cut_markdown(marked * 200))
    assert all(body.startswith("a") for body in bodies)
    assert all(len(body.encode()) <= TARGET_BYTES for body in bodies)


def test_more_marks_than_can_be_kept_are_cut(cut_markdown: Cut) -> None:
    assert len(cut_markdown("a" + "\u0301" * 5000).chunks) > 1


@pytest.mark.parametrize("block", ["```\n{}\n```", "~~~~ text\n{}\n~~~~~", "| a | b |\n|---|---|\n{}"])
def test_fences_and_tables_are_whole(block: str, cut_markdown: Cut) -> None:
    filled = block.format("\n".join("| row | of it |" for _ in range(400)))
    document = cut_markdown(f"before\n\n{filled}\n\nafter\n")
    assert _bodies(document) == ["before", filled, "after"]
    assert document.warnings == ()


def test_a_fence_with_blank_lines_is_one_block(cut_markdown: Cut) -> None:
    fence = "```\n" + "line\n\n" * 500 + "```"
    assert _bodies(cut_markdown(f"# A\n{fence}\n")) == [fence]


def test_above_the_cap_a_fence_is_cut_at_lines_and_counted(cut_markdown: Cut) -> None:
    line = "x" * 99
    document = cut_markdown("```\n" + f"{line}\n" * 1500)
    assert document.warnings == ("block_cut_at_cap",)
    assert all(len(body) <= WHOLE_BYTES and body.endswith(line) for body in _bodies(document))
    assert len(document.chunks) == 3


def test_above_the_cap_a_line_is_cut(cut_markdown: Cut) -> None:
    document = cut_markdown("```\n" + "x" * 200_000)
    assert max(map(len, _bodies(document))) == WHOLE_BYTES


def test_blocks_keep_what_stands_between_them(cut_markdown: Cut) -> None:
    text = "a\n \n\n\t\nb"
    assert _bodies(cut_markdown(text)) == [text]


def test_a_body_begins_with_its_first_lines_indentation(cut_markdown: Cut) -> None:
    assert _bodies(cut_markdown("# A\n\n    code\n")) == ["    code"]


def test_plain_text_has_no_markdown() -> None:
    text = "---\ntitle: T\n---\n# no heading\n\n```\n\ntext"
    document = cut(text, "notes/a.txt", markdown=False)
    assert _bodies(document) == [text]
    assert _breadcrumbs(document) == [""]
    assert document.metadata == {}
    assert document.title == "a"


def test_breadcrumbs_are_bounded_and_hold_their_own_heading(cut_markdown: Cut) -> None:
    words = [f"{level}{'w' * 400}" for level in range(1, 7)]
    document = cut_markdown("".join(f"{'#' * level} {word}\n\n" for level, word in enumerate(words, 1)))
    assert max(map(len, _breadcrumbs(document))) <= 1000
    for word in words:
        assert any(word[:300] in breadcrumb for breadcrumb in _breadcrumbs(document))


@pytest.mark.parametrize(
    ("text", "spaceless"),
    [
        *[(text, False) for text in ("plain", "Füße — “quoted”", "Ελληνικά")],
        *[(text, True) for text in ("漢字", "ひらがな", "ｶﾀｶﾅ", "한글", "ไทย", "ລາວ", "ខ្មែរ", "မြန်မာ")],
    ],
)
def test_text_without_spaces_is_told(text: str, spaceless: bool, cut_markdown: Cut) -> None:
    assert cut_markdown(f"# A\n\n{text}\n").chunks[0].spaceless is spaceless
    assert cut_markdown(f"# {text}\n\nplain\n").chunks[0].spaceless is spaceless


def test_broken_frontmatter_is_a_warning_and_the_rest_is_indexed(cut_markdown: Cut) -> None:
    document = cut_markdown("---\na: [\n---\n# A\nbody\n")
    assert document.warnings == ("frontmatter_unparsed",)
    assert document.metadata == {}
    assert _bodies(document) == ["body"]


def test_the_deadline_ends_a_long_scan() -> None:
    ticks = iter(range(1000))
    with pytest.raises(ScanTooSlowError, match="longer than 2 s"):
        cut("# a\n" * 5000, "notes/a.md", markdown=True, deadline=deadline_after(2, lambda: next(ticks)))


@pytest.mark.parametrize("unit", [" ", "[", "*", "<!--", "#", "`", ">", "- ", "1. ", "\\", "|", "_", "~", "a="])
def test_a_line_of_half_a_megabyte_is_cut_into_bounded_chunks(unit: str, cut_markdown: Cut) -> None:
    document = cut_markdown(unit * (512 * 1024 // len(unit)))
    assert all(len(chunk.body) <= MAX_BYTES or chunk.body[0] in "`~" for chunk in document.chunks)
    assert len(document.chunks) <= 512 * 1024 // TARGET_BYTES + 1


def test_a_hundred_thousand_headings(cut_markdown: Cut) -> None:
    assert len(cut_markdown("# a\n" * 100_000).chunks) == 100_000


@pytest.mark.parametrize("opener", [">", "- ", "> - ", "1. "])
def test_ten_thousand_containers(opener: str, cut_markdown: Cut) -> None:
    document = cut_markdown(opener * 10_000 + "x\n\n# A\ny\n")
    assert document.chunks[-1].heading_path == "A"
