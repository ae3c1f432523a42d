"""What an index must hold after each run over a random tree, in plain Python: documents, texts, and who has a word.

The rules are those that the documentation gives to users (R29, R33, R34), written once more: files are taken in by
their name and their bytes; what cannot be read keeps its old version; while a folder cannot be read nothing is removed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tests.support.model import LARGEST_BYTES, ModelTree, Node
from tests.support.model_texts import all_words, text_words

ROOT_NAME = "docs"
Stored = dict[str, bytes]
"""By path below the root: the bytes of the document."""


@dataclass(slots=True)
class Oracle:
    """What is stored, step by step. `stored` is what must be in the index now."""

    tree: ModelTree
    stored: Stored = field(default_factory=dict)

    def after_run(self, scope: str = "") -> tuple[Stored, bool]:
        """What a run that ends will have stored, and whether it can do all that it was asked for. `scope`: a path below
        the root that it is asked for, alone; "" for the whole root."""
        is_gone = bool(scope) and scope not in self.tree.nodes and scope not in self.tree.folders
        met = {path: node for path, node in self._met() if _is_within(path, scope)}
        is_hindered = any(_is_within(folder, scope) for folder in self._unread_folders())
        stored = dict(self.stored)
        for path, node in met.items():
            if node.kind == "file" and not node.is_open:
                continue  # it keeps its old version
            if node.kind == "file" and is_text(node.raw):
                stored[path] = node.raw
            elif not is_hindered:
                stored.pop(path, None)
        sees_absence = (not scope or is_gone) and not is_hindered and (bool(met) or is_gone)
        if sees_absence:
            stored = {path: raw for path, raw in stored.items() if path in met or not _is_within(path, scope)}
        has_failed = any(node.kind == "file" and not node.is_open for node in met.values())
        return stored, not is_hindered and not has_failed and (sees_absence or bool(scope) or not self.stored)

    def after_removal(self, path: str) -> Stored:
        """What `rm` of a document or a folder leaves."""
        return {stored: raw for stored, raw in self.stored.items() if not _is_within(stored, path)}

    def strays(self, found: Mapping[str, bytes], after: Stored) -> list[str]:
        """Paths at which a run that was killed has left neither what was stored before nor what it was to store."""
        paths = {*self.stored, *after, *found}
        return sorted(path for path in paths if found.get(path) not in (self.stored.get(path), after.get(path)))

    def match(self, word: str) -> set[str]:
        """Keys of the documents that hold a word in their text or headings."""
        return self._holding(word, text_words)

    def search(self, word: str) -> set[str]:
        """The same, and those that are called so."""
        return self._holding(word, all_words)

    def _holding(self, word: str, words_in: Callable[[bytes, str], frozenset[str]]) -> set[str]:
        return {key_of(path) for path, raw in self.stored.items() if word in words_in(raw, path)}

    def _met(self) -> Iterable[tuple[str, Node]]:
        """Files, links and FIFOs with a name that is indexed, which a walk of the root comes by."""
        for path, node in self.tree.nodes.items():
            is_named = path.lower().endswith((".md", ".markdown", ".txt", ".text"))
            if is_named and _is_entered(path) and not any(_is_within(path, f) for f in self.tree.closed_folders):
                yield path, node

    def _unread_folders(self) -> list[str]:
        return [folder for folder in self.tree.closed_folders if _is_entered(f"{folder}/")]


def key_of(path: str) -> str:
    return f"{ROOT_NAME}/{path}"


def is_text(raw: bytes) -> bool:
    """Whether a file of these bytes is a document: UTF-8 with something in it, and not too large."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return False
    return len(raw) <= LARGEST_BYTES and bool(text.strip("\ufeff \t\r\n"))


def _is_entered(path: str) -> bool:
    """Whether all folders above are entered: none is hidden, none is called memory."""
    return not any(folder.startswith(".") or folder == "memory" for folder in path.split("/")[:-1])


def _is_within(path: str, scope: str) -> bool:
    return not scope or path == scope or path.startswith(f"{scope}/")
