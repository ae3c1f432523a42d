"""Titles and names."""

import pytest

from domain.markdown.titles import MAX_NAMES_CHARS, document_names, document_title


@pytest.mark.parametrize(
    ("metadata", "heading", "title"),
    [
        ({"title": " From  frontmatter\n"}, "Heading", "From frontmatter"),
        ({"title": " "}, "Heading", "Heading"),
        ({"title": 5}, "", "some-file.v2"),
        ({}, "", "some-file.v2"),
    ],
)
def test_titles(metadata: dict[str, object], heading: str, title: str) -> None:
    assert document_title("root/dir/some-file.v2.md", metadata, heading) == title


def test_a_hidden_file_keeps_its_name() -> None:
    assert document_title("root/.md", {}, "") == ".md"


def test_names_are_a_line_a_kind() -> None:
    metadata: dict[str, object] = {
        "aliases": ["One", "Two words"],
        "tags": "solo",
        "keywords": ["a", 5, None],
        "description": "What it\nis about.",
        "author": "nobody",
    }
    assert document_names("root/sub-dir/my_file.name.md", "Title", metadata).split("\n") == [
        "Title",
        "sub dir my file name",
        "One, Two words",
        "solo",
        "a",
        "What it is about.",
    ]


def test_names_without_metadata() -> None:
    assert document_names("root/a.md", "A", {"tags": None, "aliases": []}) == "A\na"


def test_names_are_bounded() -> None:
    assert len(document_names("root/a.md", "A", {"tags": ["x" * 100] * 100})) == MAX_NAMES_CHARS
