"""The documents of a soak: made ones, or a copy of a folder; and what happens to them."""

import itertools
import random
import shutil
from collections import Counter
from pathlib import Path

SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "za")
WORDS = ["".join(parts) for parts in itertools.product(SYLLABLES, repeat=3)]  # 4,096
FOLDERS = 24
KINDS = ("edited", "created", "deleted", "renamed")
SHARES = (60, 15, 15, 10)  # of them, in a hundred; as many are created as deleted


def words_of(dice: random.Random, count: int) -> list[str]:
    """Few words often and most of them seldom, as in any language."""
    return [WORDS[min(int(dice.paretovariate(0.6)) - 1, len(WORDS) - 1)] for _ in range(count)]


def text_of(dice: random.Random) -> str:
    """One to four passages under headings; no two texts are the same."""
    parts = []
    for number in range(1, dice.randint(2, 5)):
        body = " ".join(words_of(dice, dice.randint(60, 180)))
        parts.append(f"# {' '.join(words_of(dice, 3)).title()} {number}\n\n{body} {dice.getrandbits(48):012x}.\n\n")
    return "".join(parts)


def queries(dice: random.Random, count: int) -> list[str]:
    return [" ".join(words_of(dice, dice.randint(2, 4))) for _ in range(count)]


def make_corpus(docs: Path, files: int, dice: random.Random) -> None:
    for number in range(files):
        path = docs / f"{number % FOLDERS:02}" / f"note-{number:06}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(dice), encoding="utf-8")


def copy_corpus(docs: Path, corpus: Path) -> None:
    """Only what would be indexed; the original is left as it is."""
    shutil.copytree(corpus, docs, ignore=shutil.ignore_patterns(".*"))


class Churn:
    """Changes files, a batch at a time."""

    def __init__(self, docs: Path, dice: random.Random) -> None:
        self._docs = docs
        self._dice = dice
        self._files = sorted(path for path in docs.rglob("*") if path.suffix in (".md", ".markdown", ".txt", ".text"))
        self._number = 0
        self.done: Counter[str] = Counter()

    @property
    def files(self) -> list[Path]:
        """All of them, as they are called now."""
        return list(self._files)

    def batch(self, changes: int) -> None:
        for drawn in self._dice.choices(KINDS, SHARES, k=changes):
            kind = "created" if drawn == "deleted" and len(self._files) == 1 else drawn  # one is always left
            getattr(self, f"_{kind}")()
            self.done[kind] += 1

    def _one(self) -> int:
        return self._dice.randrange(len(self._files))

    def _fresh_place(self) -> Path:
        self._number += 1
        folder = self._dice.choice(self._files).parent
        return folder / f"new-{self._number:06}.md"

    def _edited(self) -> None:
        """Most often a sentence more or less; sometimes a text that has nothing of the old one."""
        path = self._files[self._one()]
        text = path.read_text(encoding="utf-8", errors="replace")
        sentence = f"{' '.join(words_of(self._dice, 12))} {self._dice.getrandbits(48):012x}.\n"
        roll = self._dice.random()
        if roll < 0.2 or not text.strip():
            text = text_of(self._dice)
        elif roll < 0.6 and len(text) > 400:
            text = text[: len(text) * 3 // 4] + "\n\n" + sentence
        else:
            text += "\n\n" + sentence
        path.write_text(text, encoding="utf-8")

    def _created(self) -> None:
        path = self._fresh_place()
        path.write_text(text_of(self._dice), encoding="utf-8")
        self._files.append(path)

    def _deleted(self) -> None:
        self._files.pop(self._one()).unlink()

    def _renamed(self) -> None:
        at = self._one()
        self._files[at] = self._files[at].rename(self._fresh_place())
