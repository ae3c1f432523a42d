"""A JSON object in pieces: for what has lists too long to be held in memory."""

import json
from collections.abc import Iterable, Iterator, Mapping

from app.present import Json, json_text
from app.present_safe import json_safe

_END = "\n}\n"


def json_pieces(value: Json, key: str, lists: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """What `json_text` makes of the value with the lists, by their names, as its last field `key`; a text an entry.

    `value` is not empty.
    """
    yield f"{json_text(value).removesuffix(_END)},\n  {json.dumps(key)}: {{"
    for number, (name, entries) in enumerate(lists.items()):
        yield f"{',' if number else ''}\n    {json.dumps(name)}: ["
        is_empty = True
        for entry in entries:
            yield f"{'' if is_empty else ','}\n      {json_safe(json.dumps(entry, ensure_ascii=False))}"
            is_empty = False
        yield "]" if is_empty else "\n    ]"
    yield f"\n  }}{_END}" if lists else f"}}{_END}"
