"""The outline of a document from its breadcrumbs (server.pages.outline)."""

from server.pages.outline import Heading, outline
from store.port import StoredChunk


def chunks(*paths: str) -> list[StoredChunk]:
    return [StoredChunk("docs/a.md", number, "A", path, "", "text", 1, 1) for number, path in enumerate(paths)]


def test_each_heading_once_with_its_first_chunk() -> None:
    found = list(outline(chunks("", "A", "A > B", "A > B", "A > C > D", "E")))
    assert found == [
        Heading("A", 0, 1),
        Heading("B", 1, 2),
        Heading("C", 1, 4),
        Heading("D", 2, 4),
        Heading("E", 0, 5),
    ]


def test_a_heading_that_comes_again_is_another_one() -> None:
    assert [heading.ordinal for heading in outline(chunks("A > X", "B > X", "A > X"))] == [0, 0, 1, 1, 2, 2]


def test_no_headings() -> None:
    assert list(outline(chunks("", ""))) == []
