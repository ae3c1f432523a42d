"""Texts of a random tree, and which words can be found in them, by plain rules that share nothing with the product.

Every section holds a marker of its own, a word that was never written before: whatever finds the marker of a text that
is gone is a ghost (P7).
"""

import random
import re
from functools import lru_cache

# stem -> forms, by the rules of English that Porter's stemmer knows
FORMS = {
    "amber": ("amber", "ambers"),
    "basalt": ("basalt", "basalts"),
    "cobalt": ("cobalt", "cobalts"),
    "delta": ("delta", "deltas"),
    "ember": ("ember", "embers"),
    "fjord": ("fjord", "fjords"),
    "garnet": ("garnet", "garnets"),
    "harbor": ("harbor", "harbors", "harbored", "harboring"),
    "jasper": ("jasper", "jaspers"),
    "krypton": ("krypton",),
    "walk": ("walk", "walks", "walked", "walking"),
}
ALL_FORMS = tuple(form for forms in FORMS.values() for form in forms)
# ... and what is left of a form that was cut in two has the same stem
STEM_OF = {form: stem for stem, forms in FORMS.items() for form in forms} | {"harbore": "harbor", "walke": "walk"}
NOISE = ("naïve", "żółw", "東京", "日本の首都", "x", "7", "a_b", "re-entry", "`code`", "(see", "it's")
FENCE = "```\nkrypton = walk(amber)\n# no heading\n```\n"
TABLE = "| amber | jasper |\n| --- | --- |\n| fjord | 3 |\n"
_WORD = re.compile(r"[^\W_]+")
_MARKER = re.compile(rb"mk\d{7}x")
_EXCHANGED = bytes.maketrans(b"ae", b"ea")


class TextSource:
    """Random Markdown with markers that are never used twice."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self.markers: list[str] = []

    def word(self) -> str:
        return self._source.choice(ALL_FORMS)

    def document(self) -> bytes:
        """Up to six sections, some with a title of its own in front, some as other systems write them."""
        rolls = self._source.random()
        head = f"---\ntitle: {self.word()} {self.word()}\ntags: [x, y]\n---\n" if rolls < 0.15 else ""
        text = (
            head
            + f"# {self.word()} {self.word()}\n"
            + "".join(self.section().decode() for _ in range(self._source.randrange(1, 6)))
        )
        if 0.15 <= rolls < 0.25:
            text = text.replace("\n", "\r\n")
        return (b"\xef\xbb\xbf" if 0.25 <= rolls < 0.3 else b"") + text.encode()

    def section(self) -> bytes:
        """A heading, or none, and some paragraphs, one of them with a new marker."""
        choice = self._source.random
        level = "#" * self._source.randrange(1, 5)
        parts = [f"{level} {self.word()} {self._source.randrange(9)}"] if choice() < 0.8 else []
        parts += [self._paragraph() for _ in range(self._source.randrange(0, 3))]
        parts += [FENCE] * (choice() < 0.1) + [TABLE] * (choice() < 0.1)
        parts.insert(self._source.randrange(len(parts) + 1), f"{self.word()} {self._marker()} {self.word()}.")
        return ("\n" + "\n\n".join(parts) + "\n").encode()

    def as_long_as(self, raw: bytes) -> bytes:
        """Other text of as many bytes; its markers are new ones."""
        changed = _MARKER.sub(lambda _: self._marker().encode(), raw)
        return changed if changed != raw else raw.translate(_EXCHANGED)

    def _paragraph(self) -> str:
        words = self._source.choices((*ALL_FORMS, *ALL_FORMS, *NOISE), k=self._source.randrange(1, 90))
        return " ".join(words) + "."

    def _marker(self) -> str:
        self.markers.append(f"mk{len(self.markers):07}x")
        return self.markers[-1]


@lru_cache(maxsize=8192)
def text_words(raw: bytes, path: str) -> frozenset[str]:
    """The words that stand in a document's text and headings, stemmed: what `match` looks at."""
    return _stems(_split(raw, path)[1])


@lru_cache(maxsize=8192)
def all_words(raw: bytes, path: str) -> frozenset[str]:
    """The same with its names: the words of its path, and the title that its frontmatter gives it."""
    head, text = _split(raw, path)
    title = re.search(r"^title: (.*)$", head, re.MULTILINE)
    named = path.rpartition(".")[0] + " " + (title.group(1) if title else "")
    return _stems(text) | _stems(named)


def _split(raw: bytes, path: str) -> tuple[str, str]:
    """Frontmatter and the rest; texts of ours have it in one way only, and those without Markdown have none."""
    text = raw.decode()
    if path.lower().endswith((".txt", ".text")) or not text.startswith("---\n"):
        return "", text
    end = text.find("\n---\n", 3)
    return (text[:end], text[end + 5 :]) if end > 0 else ("", text)


def _stems(text: str) -> frozenset[str]:
    return frozenset(STEM_OF.get(word, word) for word in set(_WORD.findall(text.lower())))
