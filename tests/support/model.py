"""A model of a tree of documents and of what an index of it must hold, for tests that edit both at random."""

import hashlib
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from store.connection import open_reader

WORDS = ("amber", "basalt", "cobalt", "delta", "ember", "fjord", "garnet", "harbor", "indigo", "jasper", "krypton")
HIDDEN = ".knowledgeignore"


@dataclass(slots=True)
class ModelTree:
    """A folder under random edits; `documents` is the oracle: key -> the bytes that must be stored."""

    root: Path
    source: random.Random
    name: str = "docs"
    history: list[str] = field(default_factory=list)

    def documents(self) -> dict[str, str]:
        """What a run over the tree must store: every UTF-8 Markdown file with a word in it, by its SHA-256."""
        found: dict[str, str] = {}
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if not name.startswith(".") and name != "memory"]
            for name in names:
                raw = (Path(folder) / name).read_bytes()
                if name.endswith(".md") and raw.strip() and b"\xff" not in raw and len(raw) <= 512 * 1024:
                    relative = (Path(folder) / name).relative_to(self.root).as_posix()
                    found[f"{self.name}/{relative}"] = hashlib.sha256(raw).hexdigest()
        return found

    def step(self) -> None:
        """One random edit."""
        edits = (self.create, self.create, self.edit, self.edit, self.shrink, self.rename, self.delete, self.touch)
        edit = self.source.choice((*edits, self.move_folder, self.spoil, self.empty))
        edit()
        self.history.append(edit.__name__)

    def create(self) -> None:
        folder = self.root / self.source.choice(("", "a", "a/b", "a-b", "c d", "memory", ".dot"))
        folder.mkdir(parents=True, exist_ok=True)
        self._write(folder / f"{self.source.choice(WORDS)}{self.source.randrange(40)}.md", self._text())

    def edit(self) -> None:
        path = self._some_file()
        if path is not None:
            self._write(path, self._text())

    def shrink(self) -> None:
        path = self._some_file()
        if path is not None:
            raw = path.read_bytes()
            self._write(path, raw[: len(raw) // 2])

    def rename(self) -> None:
        path = self._some_file()
        if path is not None:
            path.replace(path.with_name(f"renamed{self.source.randrange(1000)}.md"))

    def delete(self) -> None:
        path = self._some_file()
        if path is not None:
            path.unlink()

    def touch(self) -> None:
        path = self._some_file()
        if path is not None:
            path.touch()

    def move_folder(self) -> None:
        folder = self.root / "a"
        if folder.is_dir():
            folder.rename(self.root / f"moved{len(self.history)}")

    def spoil(self) -> None:
        path = self._some_file()
        if path is not None:
            self._write(path, b"no \xff text")

    def empty(self) -> None:
        path = self._some_file()
        if path is not None:
            self._write(path, b" \n")

    def _some_file(self) -> Path | None:
        files = sorted(path for path in self.root.rglob("*.md") if path.is_file())
        return self.source.choice(files) if files else None

    def _text(self) -> bytes:
        parts = [f"# {self.source.choice(WORDS)}\n"]
        for _ in range(self.source.randrange(6)):
            words = " ".join(self.source.choices(WORDS, k=self.source.randrange(1, 120)))
            parts.append(f"\n## {self.source.choice(WORDS)} {self.source.randrange(9)}\n\n{words}\n")
        return "".join(parts).encode()

    @staticmethod
    def _write(path: Path, raw: bytes) -> None:
        path.write_bytes(raw)


def stored_documents(database: Path) -> dict[str, str]:
    """What a store holds: key -> SHA-256 of the text put together from its chunks."""
    connection = open_reader(database)
    try:
        found: dict[str, str] = {}
        for document, key, tail in connection.execute("SELECT id, key, tail FROM documents").fetchall():
            rows = connection.execute("SELECT lead, body FROM chunks WHERE document = ? ORDER BY ordinal", (document,))
            text = "".join(piece for row in rows.fetchall() for piece in row) + tail
            found[key] = hashlib.sha256(text.encode()).hexdigest()
        return found
    finally:
        connection.close()


def searched(database: Path) -> dict[str, list[tuple[str, int]]]:
    """For every word of the model: the chunks that full text finds, as (key, ordinal)."""
    connection = open_reader(database)
    try:
        return {
            word: connection.execute(
                "SELECT key, ordinal FROM chunks_fts JOIN chunks ON chunks.id = chunks_fts.rowid"
                " JOIN documents ON documents.id = chunks.document WHERE chunks_fts MATCH ? ORDER BY key, ordinal",
                (word,),
            ).fetchall()
            for word in WORDS
        }
    finally:
        connection.close()
