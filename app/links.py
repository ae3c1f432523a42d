"""A hit's URL, from the `link` template of its root."""

from collections.abc import Iterable, Sequence

from domain.keys import path_below_root
from domain.settings import RootSettings
from store.state_port import RootRecord


def link_templates(roots: Sequence[RootSettings], records: Iterable[RootRecord]) -> dict[str, tuple[str, str]]:
    """Root name -> (template, the root's path), for configured roots that have a template."""
    import os

    by_path = {os.path.realpath(root.path): root.link for root in roots if root.link}
    return {record.name: (by_path[record.path], record.path) for record in records if record.path in by_path}


def url_of(template: str, root_path: str, key: str, heading_path: str, start_line: int) -> str:
    """The template filled in; paths are percent-encoded, the anchor is made as GitHub makes it."""
    from urllib.parse import quote

    below = path_below_root(key)
    return template.format(
        path=quote(below),
        absolute_path=quote(f"{root_path.rstrip('/')}/{below}"),
        start_line=start_line,
        heading_anchor=quote(heading_anchor(heading_path)),
    )


def heading_anchor(heading_path: str) -> str:
    """Of the innermost heading: lower case, letters, digits, `-` and `_`, blanks as `-`."""
    heading = heading_path.rpartition(" > ")[2].strip().lower()
    kept = [char for char in heading if char.isalnum() or char in " -_"]
    return "".join(kept).replace(" ", "-")
