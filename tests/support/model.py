"""A tree of documents under random edits, in memory and on the disk at once: what an oracle of the index is asked of.

The tree in memory is the truth of a test: nothing of it is read back from the disk. Files and folders can be closed
(mode 0), replaced by links, FIFOs and folders, and edited without a trace in their size and mtime.
"""

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from tests.support.model_texts import TextSource

FOLDERS = ("", "", "a", "a/b", "a/b/c", "a-b", "c d", "deep/er/still", "memory", ".dot", "ünï")
EXTENSIONS = (".md", ".md", ".md", ".md", ".markdown", ".txt", ".text", ".MD", ".rst")
LARGEST_BYTES = 512 * 1024
SECRET = "quicksilver"  # stands only outside of the root, in what links lead to
MOST_DROPPED = 6  # files that go with their folder in one step
MOST_FILES = 140  # more are not created: the tree stays small however long the walk is

Kind = Literal["file", "link", "folder_link", "fifo"]


class Node(NamedTuple):
    """What is at a path that is no folder."""

    kind: Kind
    raw: bytes = b""
    is_open: bool = True


@dataclass(slots=True)
class ModelTree:
    """A folder under random edits; each edit says in a few words what it did, "" where there was nothing to do."""

    root: Path
    outside: Path  # a folder that links lead to
    source: random.Random
    texts: TextSource
    nodes: dict[str, Node] = field(default_factory=dict)  # by path below the root
    folders: set[str] = field(default_factory=set)
    closed_folders: set[str] = field(default_factory=set)

    def make(self) -> None:
        """The root itself, and what links lead to."""
        self.root.mkdir()
        self.outside.mkdir()
        (self.outside / "secret.md").write_text(f"# {SECRET}\n\n{SECRET} is for nobody\n", "utf-8")

    def create(self) -> str:
        folder = self.source.choice((*FOLDERS, *sorted(self.folders)))
        path = f"{folder}/" if folder else ""
        path += f"{self.texts.word()}-{self.source.randrange(40)}{self.source.choice(EXTENSIONS)}"
        if len(self.nodes) >= MOST_FILES or not self._may_stand(path):
            return ""
        return self._write(path, self.texts.document())

    def edit(self) -> str:
        path = self._some_file()
        return self._write(path, self.texts.document()) if path else ""

    def grow(self) -> str:
        path = self._some_file()
        return self._write(path, self.nodes[path].raw[: 64 * 1024] + self.texts.section()) if path else ""

    def shrink(self) -> str:
        """To the half, which may end within a word, a character or a fence."""
        path = self._some_file()
        return self._write(path, self.nodes[path].raw[: len(self.nodes[path].raw) // 2]) if path else ""

    def edit_in_silence(self) -> str:
        """As many bytes, the same inode, and the mtime of before: only the ctime and the bytes tell."""
        path = self._some_file()
        if not path:
            return ""
        changed = self.texts.as_long_as(self.nodes[path].raw)
        status = (self.root / path).stat()
        told = self._write(path, changed, in_place=True)
        os.utime(self.root / path, ns=(status.st_atime_ns, status.st_mtime_ns))
        return told

    def touch(self) -> str:
        path = self._some_file()
        if path:
            (self.root / path).touch()
        return path

    def copy(self) -> str:
        """The same content at two paths."""
        path = self._some_file()
        target = f"copy-{self.source.randrange(60)}.md"
        return self._write(target, self.nodes[path].raw) if path and self._may_stand(target) else ""

    def rename(self) -> str:
        path = self._some_node()
        folder = path.rpartition("/")[0]
        target = f"{folder}/" * bool(folder) + f"renamed-{self.source.randrange(60)}{self.source.choice(EXTENSIONS)}"
        if not path or not self._may_stand(target):
            return ""
        (self.root / path).replace(self.root / target)
        self.nodes[target] = self.nodes.pop(path)
        return f"{path} -> {target}"

    def exchange(self) -> str:
        """Two files change places."""
        one, other = self._some_file(), self._some_file()
        if not one or one == other:
            return ""
        aside = self.root / "aside"
        (self.root / one).replace(aside)
        (self.root / other).replace(self.root / one)
        aside.replace(self.root / other)
        self.nodes[one], self.nodes[other] = self.nodes[other], self.nodes[one]
        return f"{one} <-> {other}"

    def move_folder(self) -> str:
        folder = self._some_folder()
        target = f"moved-{self.source.randrange(20)}"
        if not folder or target in self.folders or target in self.nodes or self._is_closed_inside(folder):
            return ""
        (self.root / folder).rename(self.root / target)
        self.nodes = {_moved(path, folder, target): node for path, node in self.nodes.items()}
        self.folders = {_moved(path, folder, target) for path in self.folders}
        return f"{folder} -> {target}"

    def delete(self) -> str:
        path = self._some_node()
        if path:
            (self.root / path).unlink()
            del self.nodes[path]
        return path

    def delete_folder(self) -> str:
        folder = self._some_folder()
        if not folder or self._is_closed_inside(folder) or len(self._below(folder)) > MOST_DROPPED:
            return ""
        self._drop_folder(folder)
        return folder

    def replace_by_folder(self) -> str:
        """A folder that is called like a document, with a document inside."""
        path = self._some_node()
        if path:
            (self.root / path).unlink()
            del self.nodes[path]
            self._write(f"{path}/inner.md", self.texts.document())
        return path

    def replace_by_link(self) -> str:
        path = self._some_node()
        if path:
            (self.root / path).unlink()
            (self.root / path).symlink_to(self.outside / "secret.md")
            self.nodes[path] = Node("link")
        return path

    def replace_folder_by_link(self) -> str:
        folder = self._some_folder()
        if not folder or self._is_closed_inside(folder) or len(self._below(folder)) > MOST_DROPPED:
            return ""
        self._drop_folder(folder)
        (self.root / folder).symlink_to(self.outside, target_is_directory=True)
        self.nodes[folder] = Node("folder_link")
        return folder

    def replace_by_fifo(self) -> str:
        path = self._some_node()
        if path:
            (self.root / path).unlink()
            os.mkfifo(self.root / path)
            self.nodes[path] = Node("fifo")
        return path

    def close(self) -> str:
        """Nobody may read it any more."""
        path = self._some_file()
        if path:
            (self.root / path).chmod(0)
            self.nodes[path] = self.nodes[path]._replace(is_open=False)
        return path

    def open(self) -> str:
        path = next((path for path, node in self.nodes.items() if not node.is_open and not self.is_shut(path)), "")
        if path:
            (self.root / path).chmod(0o644)
            self.nodes[path] = self.nodes[path]._replace(is_open=True)
        return path

    def close_folder(self) -> str:
        """Not every time: while a folder is closed nothing is removed from the index."""
        folder = self._some_folder() if self.source.random() < 0.3 else ""
        if folder and not self.is_shut(folder):
            (self.root / folder).chmod(0)
            self.closed_folders.add(folder)
            return folder
        return ""

    def open_folder(self) -> str:
        folder = min(self.closed_folders, default="")
        if folder:
            (self.root / folder).chmod(0o755)
            self.closed_folders.remove(folder)
        return folder

    def spoil(self) -> str:
        path = self._some_file()
        return self._write(path, b"no \xff text, though it says amber") if path else ""

    def empty(self) -> str:
        path = self._some_file()
        return self._write(path, self.source.choice((b"", b" \n", b"\xef\xbb\xbf\r\n\t"))) if path else ""

    def fatten(self) -> str:
        """One byte over the largest, or exactly the largest."""
        path = self._some_file() if self.source.random() < 0.2 else ""
        size = LARGEST_BYTES + self.source.randrange(2)
        return self._write(path, b"cobalt fjord\n".ljust(size, b"\n")) if path else ""

    def open_everything(self) -> None:
        while self.open_folder():
            pass
        while self.open():
            pass

    def some_scope(self) -> str:
        """A path below the root that a run may be asked for: a file, a folder, or what was one; "" for none."""
        met = [path for path, node in self.nodes.items() if node.kind != "folder_link"]
        wanted = sorted(self.folders) if self.source.random() < 0.6 else met
        paths = sorted(path for path in wanted if not self.is_shut(path))
        return self.source.choice(paths) if paths else ""

    def is_below_link(self, path: str) -> bool:
        """Whether a link to a folder stands at the path, or above it."""
        links = [link for link, node in self.nodes.items() if node.kind == "folder_link"]
        return any(path == link or path.startswith(f"{link}/") for link in links)

    def _write(self, path: str, raw: bytes, *, in_place: bool = False) -> str:
        known = self.nodes.get(path)
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        parts = path.split("/")[:-1]
        self.folders.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
        if known is not None and not known.is_open:
            target.chmod(0o644)
        if in_place or self.source.random() < 0.5:
            target.write_bytes(raw)
        else:  # as an editor saves
            aside = self.root / "aside"
            aside.write_bytes(raw)
            aside.replace(target)
        is_open = known is None or known.is_open
        if not is_open:
            target.chmod(0)
        self.nodes[path] = Node("file", raw, is_open)
        return f"{path} ({len(raw)} bytes)"

    def _may_stand(self, path: str) -> bool:
        """Whether a new file may be made there."""
        above = [path[:at] for at, sign in enumerate(path) if sign == "/"]
        taken = {name.lower() for name in (*self.nodes, *self.folders)}  # some file systems know no other
        is_free = path.lower() not in taken
        return is_free and not self.is_shut(path) and not any(folder in self.nodes for folder in above)

    def is_shut(self, path: str) -> bool:
        return any(path == folder or path.startswith(f"{folder}/") for folder in self.closed_folders)

    def _is_closed_inside(self, folder: str) -> bool:
        return self.is_shut(folder) or any(closed.startswith(f"{folder}/") for closed in self.closed_folders)

    def _below(self, folder: str) -> list[str]:
        return [path for path in self.nodes if path.startswith(f"{folder}/")]

    def _drop_folder(self, folder: str) -> None:
        shutil.rmtree(self.root / folder)
        for path in self._below(folder):
            del self.nodes[path]
        self.folders = {path for path in self.folders if path != folder and not path.startswith(f"{folder}/")}

    def _some_file(self) -> str:
        files = sorted(path for path, node in self.nodes.items() if node.kind == "file" and not self.is_shut(path))
        return self.source.choice(files) if files else ""

    def _some_node(self) -> str:
        paths = sorted(path for path in self.nodes if not self.is_shut(path))
        return self.source.choice(paths) if paths else ""

    def _some_folder(self) -> str:
        folders = sorted(folder for folder in self.folders if not self.is_shut(folder))
        return self.source.choice(folders) if folders else ""


def _moved(path: str, folder: str, target: str) -> str:
    return target + path[len(folder) :] if path == folder or path.startswith(f"{folder}/") else path
