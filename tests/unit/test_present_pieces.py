"""JSON in pieces is the JSON that there would be in one."""

import json
from collections.abc import Iterator

import pytest

from app.present import json_text
from app.present_pieces import json_pieces


@pytest.mark.parametrize(
    "lists",
    [
        {},
        {"added": []},
        {"added": ["docs/a.md"], "removed": []},
        {"added": ["docs/\u202e\x1b[2J\x9b.md", 'docs/"q"\\.md', "docs/é東.md"], "moved": ["x", "y"]},
    ],
)
def test_the_pieces_are_the_whole(lists: dict[str, list[str]]) -> None:
    value = {"id": 7, "counts": {"added": 2}, "held": None}
    text = "".join(json_pieces(value, "changes", lists))
    assert text == json_text({**value, "changes": lists})
    assert json.loads(text) == {**value, "changes": lists}


def test_nothing_is_read_ahead() -> None:
    """A first run has as many entries as there are files."""
    read: list[int] = []

    def entries() -> Iterator[str]:
        for number in range(1_000_000):
            read.append(number)
            yield f"docs/{number}.md"

    pieces = json_pieces({"id": 1}, "changes", {"added": entries()})
    for _ in range(5):
        next(pieces)
    assert len(read) == 3
