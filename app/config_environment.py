"""The same keys as variables: `KNOWLEDGE_TOP_K`, `KNOWLEDGE_QUEUE__URL`; a misspelt one is refused.

An empty variable sets text keys to empty, which for most of them means their default.
"""

import copy
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

import msgspec

from app.config_convert import field_types, nearest, structs_in
from app.config_origins import Problem
from app.config_schema import KnowledgeBlock

PREFIX = "KNOWLEDGE_"
CONFIG_VARIABLE = "KNOWLEDGE_CONFIG"
# Kubernetes and Docker links set these for a service that is called "knowledge"
_SERVICE_LINKS = re.compile(r"KNOWLEDGE_(SERVICE_(HOST|PORT\w*)|PORT(_[0-9]+_(TCP|UDP|SCTP)\w*)?)")
_BOOLEANS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


def key_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are meant as keys of the configuration, known or not."""
    return {
        name: text
        for name, text in environ.items()
        if name.startswith(PREFIX) and name != CONFIG_VARIABLE and not _SERVICE_LINKS.fullmatch(name)
    }


def known_variables(struct: type[msgspec.Struct] = KnowledgeBlock, above: str = "") -> dict[str, tuple[str, Any]]:
    """Key and type of each variable's name, nested blocks by `__`."""
    known: dict[str, tuple[str, Any]] = {}
    for name, type_ in field_types(struct).items():
        key = f"{above}.{name}" if above else name
        nested = next(structs_in(type_), None)
        if nested is not None and not _is_list(type_):
            known |= known_variables(nested, key)
        else:
            known[PREFIX + key.replace(".", "__").upper()] = key, type_
    return known


def overlay(raw: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str], list[Problem]]:
    """The values with the variables over them, which variable set which key, and what is wrong."""
    values, set_by, problems = copy.deepcopy(dict(raw)), {}, []
    known = known_variables()
    for variable, text in sorted(key_variables(environ).items()):
        if variable not in known:
            set_by[variable] = variable  # told by its own name
            problems.append(_unknown_variable(variable, known))
            continue
        key, type_ = known[variable]
        set_by[key] = variable
        try:
            _put(values, key.split("."), _value(text, type_, key))
        except ValueError as error:
            problems.append(Problem(key, str(error)))
    return values, set_by, problems


def _unknown_variable(variable: str, known: Mapping[str, Any]) -> Problem:
    near = nearest(variable.removeprefix(PREFIX), [name.removeprefix(PREFIX) for name in known])
    near = near and PREFIX + near
    text = "unknown environment variable"
    hint = f"Did you mean {near}? Otherwise unset it." if near else f"Unset it: {PREFIX} is this program's prefix."
    return Problem(variable, text + (f"; the nearest known one is {near}" if near else ""), hint)


def _put(values: dict[str, Any], steps: list[str], value: Any) -> None:
    for step in steps[:-1]:
        inner = values.get(step)
        values[step] = inner if isinstance(inner, dict) else {}
        values = values[step]
    values[steps[-1]] = value


def _is_list(type_: Any) -> bool:
    return get_origin(_bare(type_)) is tuple


def _bare(type_: Any) -> Any:
    return get_args(type_)[0] if get_origin(type_) is Annotated else type_


def _value(text: str, type_: Any, key: str) -> Any:
    """The variable's text as the plain value that a file would hold. Raises ValueError in words."""
    bare = _bare(type_)
    if bare is bool:
        if text.strip().lower() not in _BOOLEANS:
            raise ValueError("must be true or false")
        return _BOOLEANS[text.strip().lower()]
    if bare is int:
        try:
            return int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
    if bare is float:
        try:
            return float(text)
        except ValueError:
            raise ValueError("must be a number") from None
    return _list(text, key, structured=bool(list(structs_in(type_)))) if _is_list(type_) else text


def _list(text: str, key: str, *, structured: bool) -> list[Any]:
    """A JSON list, or words between commas (folders: between colons as in PATH)."""
    if text.lstrip().startswith("["):
        import json

        try:
            entries = json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("is no valid JSON list") from None
        return list(entries)
    if structured and key != "paths":
        raise ValueError("must be a JSON list of objects")
    separator = os.pathsep if key == "paths" else ","
    return [entry.strip() for entry in text.split(separator) if entry.strip()]
