"""Other words of the index with a term's stem: what `any form` has found besides the word itself."""

from retrieval.match_answer import RelatedForm
from store.enumeration_port import EnumerationSnapshot
from store.port import Visibility

MAX_FORMS = 5
MIN_BEGINNING_CHARS = 2  # half of the vocabulary begins with a common letter
MAX_SCANNED = 5_000  # words with the same beginning; 3,000 of them cost 35 ms
_LAST_CHARACTER = "\U0010ffff"
_CHANGED_ENDINGS = ("i", "e")  # Porter makes `happi` of happy and `file` of filing: the stem begins neither


def related_forms(snapshot: EnumerationSnapshot, word: str, stem: str) -> tuple[RelatedForm, ...]:
    """The most common first; without `word`, which is as the vocabulary spells it.

    For a caller from whom no document is hidden.
    """
    beginning = stem[:-1] if stem.endswith(_CHANGED_ENDINGS) and stem.isascii() else stem
    if len(beginning) < MIN_BEGINNING_CHARS:
        return ()
    near = dict(
        snapshot.words_between(beginning, beginning + _LAST_CHARACTER, MAX_SCANNED, visibility=Visibility.everything())
    )
    near.pop(word, None)
    stems = snapshot.stems(list(near))
    forms = [RelatedForm(other, chunks) for other, chunks in near.items() if stems[other] == (stem,)]
    forms.sort(key=lambda form: (-form.chunks, form.word))
    return tuple(forms[:MAX_FORMS])
