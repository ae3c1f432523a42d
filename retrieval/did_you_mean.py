"""The nearest words of the vocabulary to a term that is nowhere. Shown, never applied unasked."""

from collections.abc import Iterator, Sequence
from string import ascii_lowercase

from retrieval.answer import DidYouMean
from store.port import SearchSnapshot, Visibility

MAX_TERMS = 3
MAX_SUGGESTIONS = 3
MIN_CHARS, MAX_CHARS = 3, 30
LONG_TERM_CHARS = 5  # shorter terms are near at distance 1 only
MAX_LOOKED_AT = 5_000  # words that begin with the same two letters: at most 15 ms over 430,000 chunks

_LAST_CHARACTER = "\U0010ffff"


def did_you_mean(snapshot: SearchSnapshot, terms: Sequence[str], visibility: Visibility) -> tuple[DidYouMean, ...]:
    """For each term that is nowhere the nearest words; none where nothing is near, which is worth telling too."""
    return tuple(DidYouMean(term, _nearest(snapshot, term, visibility)) for term in terms[:MAX_TERMS])


def _nearest(snapshot: SearchSnapshot, term: str, visibility: Visibility) -> tuple[str, ...]:
    """Words at distance 1 or 2, the nearest first, of equally near ones the commonest."""
    word = snapshot.folded(term)
    if not MIN_CHARS <= len(word) <= MAX_CHARS or any(character.isdigit() for character in word):
        return ()
    most = 2 if len(word) >= LONG_TERM_CHARS else 1
    beginning = word[:2]
    near = dict(snapshot.words_between(beginning, beginning + _LAST_CHARACTER, MAX_LOOKED_AT, visibility=visibility))
    near.update(snapshot.words_among(list(early_edits(word)), visibility=visibility))
    found = []
    letters = set(word)
    for other, count in near.items():
        # an edit changes at most one letter into another
        if abs(len(other) - len(word)) <= most and len(letters.symmetric_difference(other)) <= 2 * most:
            distance = edit_distance(word, other, most)
            if 0 < distance <= most:
                found.append((distance, -count, other))
    return tuple(other for _, _, other in sorted(found)[:MAX_SUGGESTIONS])


def early_edits(word: str) -> Iterator[str]:
    """Words at distance 1 that differ in the first two characters: the look-up by beginning misses those."""
    yield word[1] + word[0] + word[2:]
    yield word[0] + word[2] + word[1] + word[3:]
    for at in (0, 1):
        yield word[:at] + word[at + 1 :]
        for letter in ascii_lowercase:
            yield word[:at] + letter + word[at + 1 :]
            yield word[:at] + letter + word[at:]


def edit_distance(one: str, other: str, most: int) -> int:
    """Edits and swaps of neighbours (optimal string alignment); `most` + 1 stands for any more."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for row, character in enumerate(one, 1):
        current = [row]
        for column, opposite in enumerate(other, 1):
            cost = min(
                above[column] + 1,
                current[column - 1] + 1,
                above[column - 1] + (character != opposite),
            )
            if row > 1 and column > 1 and character == other[column - 2] and one[row - 2] == opposite:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, above = above, current
    return min(above[-1], most + 1)
