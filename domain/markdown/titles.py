"""A document's title and its names: what else than its bodies it is found by."""

from collections.abc import Iterable, Mapping

MAX_NAMES_CHARS = 4_000
MAX_TITLE_CHARS = 300
_NAMED_BY = ("aliases", "tags", "keywords", "description")
_SEPARATORS = str.maketrans("/-_.", "    ")


def document_title(key: str, metadata: Mapping[str, object], first_heading: str) -> str:
    """The frontmatter's title when it is a string with words, else the first heading, else the file's name."""
    title = metadata.get("title")
    if isinstance(title, str):
        title = " ".join(title.split())
        if title:
            return title[:MAX_TITLE_CHARS].rstrip()
    return first_heading or _stem(key.rpartition("/")[2])


def document_names(key: str, title: str, metadata: Mapping[str, object]) -> str:
    """Title, path words, aliases, tags, keywords and description, one line a kind, at most 4,000 characters.

    The path's words are those below the root: without the root's name, which all its documents share.
    """
    _, _, path = key.partition("/")
    lines = [title, " ".join(_stem(path or key).translate(_SEPARATORS).split())]
    lines.extend(_one_line(metadata[name]) for name in _NAMED_BY if name in metadata)
    return "\n".join(line for line in lines if line)[:MAX_NAMES_CHARS]


def _stem(name: str) -> str:
    """A name without its extension; a name that begins with its only dot is whole."""
    stem, dot, extension = name.rpartition(".")
    return stem if dot and stem and not stem.endswith("/") and "/" not in extension else name


def _one_line(value: object) -> str:
    """A string's or a list's words; other values name nothing."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        return ", ".join(_strings(value))
    return ""


def _strings(values: Iterable[object]) -> Iterable[str]:
    return (" ".join(value.split()) for value in values if isinstance(value, str))
