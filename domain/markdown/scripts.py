"""Which texts are written without blanks between words."""

import re

# Thai, Lao; Myanmar; Hangul Jamo; Khmer; CJK radicals to Hangul compatibility Jamo and Katakana extensions;
# enclosed and compatibility forms; Han; Hangul and Myanmar extensions; Hangul syllables; Han compatibility;
# half-width forms; Kana supplements; Han beyond the first plane.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u302f"
    "\u3031-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaa7f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001aff0-\U0001b16f\U00020000-\U000323af]"
)


def is_spaceless(text: str) -> bool:
    """Whether a character of Han, Hiragana, Katakana, Hangul, Thai, Lao, Khmer or Myanmar is in the text."""
    return not text.isascii() and _SPACELESS.search(text) is not None
