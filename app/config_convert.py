"""From plain values to the block: unknown keys and wrong types are problems in words, all of them at once."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from app.config_origins import Problem, shown
from app.config_schema import KnowledgeBlock

_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_WRONG_TYPE = re.compile(r"Expected `(?P<expected>[^`]+)`(?P<limit>.*?)(?:, got `(?P<got>[^`]+)`)?$")


def convert_block(raw: Mapping[str, Any]) -> tuple[KnowledgeBlock, list[Problem]]:
    """The block of these values and what is wrong with them; what is wrong has its default in the block."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    known = _without_unknown(dict(raw), KnowledgeBlock, "", problems)
    for name, type_ in field_types(KnowledgeBlock).items():
        if name not in known:
            continue
        try:
            values[name] = msgspec.convert(_as_words(name, known[name]), type_)
        except msgspec.ValidationError as error:
            problems.append(_type_problem(name, type_, str(error)))
        except UnicodeEncodeError:
            problems.append(Problem(name, "holds half a character: it is no Unicode text"))
    return KnowledgeBlock(**values), problems


def field_types(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {entry.name: entry.type for entry in msgspec.structs.fields(struct)}


def structs_in(type_: Any) -> Iterator[type[msgspec.Struct]]:
    """The structs that a field's type mentions: itself, in a union, in a list."""
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        yield type_
        return
    for part in get_args(type_):
        yield from structs_in(part)


def unknown_key(key: str, known: Mapping[str, Any], where: str) -> Problem:
    """Says the nearest known key in the message, and all of them in the hint when none is near."""
    near = nearest(key.lower().replace("-", "_"), known)
    text = f"unknown key {shown(key)}" + (f"; the nearest known key is {near}" if near else "")
    hint = f"Did you mean {near}?" if near else f"Known keys here: {', '.join(known)}."
    return Problem(f"{where}.{key}" if where else key, text, hint)


def nearest(word: str, known: Iterable[str]) -> str:
    """The most similar known word, "" when none is near."""
    import difflib  # only for mistakes

    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)), "")


def _without_unknown(raw: Any, type_: Any, where: str, problems: list[Problem]) -> Any:
    """The value without unknown keys at any depth, each of them noted."""
    struct = next(structs_in(type_), None)
    if struct is None:
        return raw
    if isinstance(raw, list):
        return [_without_unknown(entry, struct, f"{where}[{n}]", problems) for n, entry in enumerate(raw)]
    if not isinstance(raw, dict):
        return raw
    known, kept = field_types(struct), {}
    for key, value in raw.items():
        if key not in known:
            problems.append(unknown_key(key, known, where))
            continue
        kept[key] = _without_unknown(value, known[key], f"{where}.{key}" if where else key, problems)
    return kept


def _as_words(name: str, value: Any) -> Any:
    """`substring_index: on` reaches us as true: YAML 1.1 reads the bare words on and off as booleans."""
    if name == "substring_index" and isinstance(value, bool):
        return "on" if value else "off"
    return value


def _type_problem(name: str, type_: Any, message: str) -> Problem:
    """msgspec's words (`Expected `int`, got `str` - at `$.url``) as ours."""
    text, _, at = message.partition(" - at `$")
    key = name + at.rstrip("`")
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", text):
        return Problem(f"{key}.{missing[1]}", f"the key {missing[1]} is missing")
    if wrong := _WRONG_TYPE.fullmatch(text):
        return Problem(key, _wrong_type(wrong))
    if text.startswith("Invalid enum value"):
        choices = _choices(type_, key)
        return Problem(key, f"must be one of {', '.join(choices)}" if choices else "is no known word")
    return Problem(key, shown(text))


def _wrong_type(wrong: re.Match[str]) -> str:
    expected = " or ".join(_NAMES.get(part, part) for part in wrong["expected"].split(" | ") if part != "null")
    if expected.startswith("a whole number or"):
        expected = "a number or text with a unit"
    limit = wrong["limit"].replace("of length >= 1", "that is not empty").replace(">=", "of at least")
    got = f", not {_NAMES.get(wrong['got'], wrong['got'])}" if wrong["got"] else ""
    return f"must be {expected}{limit.replace('<=', 'of at most')}{got}"


def _choices(type_: Any, key: str) -> tuple[str, ...]:
    """The words of a Literal, found by the last step of the key when it lies in a struct."""
    last = key.rpartition(".")[2].partition("[")[0]
    for struct in structs_in(type_):
        type_ = field_types(struct).get(last, type_)
    return tuple(_literals(type_))


def _literals(type_: Any) -> Iterator[str]:
    for part in get_args(type_):
        if isinstance(part, str):
            yield part
        else:
            yield from _literals(part)
