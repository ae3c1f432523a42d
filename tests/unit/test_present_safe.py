"""What a terminal is shown of text that nobody vouched for (S1-56, T2, T11, T12)."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.present_safe import display, json_safe, name, one_line, segment, typed

ESC, BEL, ST, CSI_8, OSC_8 = "\x1b", "\x07", "\x1b\\", "\x9b", "\x9d"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"a{ESC}[31mred{ESC}[0m", "ared"),
        (f"a{CSI_8}31mred", "ared"),
        (f"{ESC}]0;title{BEL}after", "after"),
        (f"{ESC}]8;;http://evil{ST}link{ESC}]8;;{ST}", "link"),
        (f"{OSC_8}52;c;aGVsbG8=\x9cafter", "after"),
        (f"{ESC}]52;c;never ended", "52;c;never ended"),
        (f"{ESC}Pq sixel{ST}after", "after"),
        (f"{ESC}cafter", "after"),
        (f"{ESC}(0after", "after"),
        ("pass\x08\x08\x08\x08word", "pass word"),
        ("real\rfake", "real fake"),
        ("a\x00b\x7fc\x85d", "a b c d"),
        ("a\u202egnp.exe", "a<U+202E>gnp.exe"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("vs\U000e0100", "vs<U+E0100>"),
        ("filler\u3164", "filler<U+3164>"),
        ("heart\u2764\ufe0f", "heart\u2764"),
        ("soft\u00adhyphen", "softhyphen"),
        ("private\ue000", "private<U+E000>"),
        ("lone\udc80", "lone<U+DC80>"),
        ("two\nlines\tand  blanks ", "two lines and blanks"),
        ("größe 日本語", "größe 日本語"),
    ],
)
def test_one_line(text: str, expected: str) -> None:
    assert one_line(text) == expected


def test_one_line_is_cut() -> None:
    assert one_line("abcdef", limit=4) == "abc…"


def test_display_keeps_newlines_and_tabs() -> None:
    assert display(f"a\r\n\tb{ESC}[2J\nc") == "a\n\tb\nc"


def test_segment_keeps_its_blanks() -> None:
    assert segment(" a\nb ") == " a b "


@pytest.mark.parametrize("raw", ["a\x1b]0;x\x07.md", "a\nb.md", "\u202eevil.md", "plain.md", "-x#0.md"])
def test_a_name_is_shown_whole_and_can_be_typed_again(raw: str) -> None:
    assert name(raw).isprintable()
    assert typed(name(raw)) == raw


@given(st.text())
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    for shown in (one_line(text), name(text), segment(text), display(text).replace("\n", "").replace("\t", "")):
        assert all(char.isprintable() or char.isspace() for char in shown)
        assert not any(char < " " or "\x7f" <= char < "\xa0" for char in shown)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_says_the_same_and_is_harmless(text: str) -> None:
    safe = json_safe(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(safe) == {"text": text}
    assert not any(char < " " or "\x7f" <= char < "\xa0" for char in safe)


@pytest.mark.parametrize("piece", [ESC + "[", ESC + "]", OSC_8, ESC + "[1;", ESC + "P", ESC])
def test_cleaning_is_linear(piece: str) -> None:
    began = time.process_time()
    one_line(piece * 100_000)
    assert time.process_time() - began < 3
