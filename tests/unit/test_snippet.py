from hypothesis import given
from hypothesis import strategies as st

from retrieval.matching import Span
from retrieval.snippet import ELLIPSIS, WIDTH_CHARS, make_snippet


def spans_of(text: str, *words: str) -> list[Span]:
    found = [Span(at, at + len(word), word) for word in words for at in range(len(text)) if text.startswith(word, at)]
    return sorted(found)


def test_a_short_text_is_shown_whole_on_one_line() -> None:
    text = "Start the\n  server\twith `make run`.\n"
    assert make_snippet(text, spans_of(text, "server")) == ("Start the server with `make run`.", ((10, 16),))


def test_a_long_text_is_cut_around_its_matches() -> None:
    text = "words " * 100 + "the needle is here " + "words " * 100
    line, matches = make_snippet(text, spans_of(text, "needle"))
    assert line.startswith(ELLIPSIS)
    assert line.endswith(ELLIPSIS)
    assert [line[start:end] for start, end in matches] == ["needle"]
    assert len(line) <= WIDTH_CHARS + 2


def test_the_part_with_the_most_different_matches_is_shown() -> None:
    text = "alpha alpha alpha. " + "filler " * 60 + "alpha then beta. " + "filler " * 60
    line, _ = make_snippet(text, spans_of(text, "alpha", "beta"))
    assert "alpha then beta" in line


def test_without_a_match_the_beginning_is_shown() -> None:
    line, matches = make_snippet("first line\n" + "more " * 100, [])
    assert line.startswith("first line more")
    assert matches == ()
    assert make_snippet("", []) == ("", ())


def test_a_match_at_the_very_end() -> None:
    text = "word " * 200 + "needle"
    line, matches = make_snippet(text, spans_of(text, "needle"))
    assert [line[start:end] for start, end in matches] == ["needle"]
    assert line.endswith("needle")
    assert len(line) > 100


@given(st.text(alphabet="ab \n\t\u00e9\u4e16", max_size=600), st.lists(st.integers(0, 600), max_size=20))
def test_offsets_are_inside_ascending_and_apart(text: str, cuts: list[int]) -> None:
    ends = sorted({cut for cut in cuts if cut <= len(text)})
    spans = [Span(start, end, "m") for start, end in zip(ends[::2], ends[1::2], strict=False)]
    line, matches = make_snippet(text, spans)
    assert len(line) <= WIDTH_CHARS + 2
    assert not set("\n\t").intersection(line)
    at = 0
    for start, end in matches:
        assert at <= start < end <= len(line)
        at = end
