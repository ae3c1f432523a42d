"""The ways in which a server of embeddings fails or lies, each a function over what it should have answered."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

JSON = "application/json"
HTML_PAGE = b"<!doctype html><title>Bad gateway</title><h1>It works!</h1>"


class Piece(NamedTuple):
    """One object of an answer, as JSON."""

    at: bytes  # its index
    vector: bytes


class Answer(NamedTuple):
    status: int
    body: bytes
    content_type: str = JSON


def objects_json(pieces: Sequence[Piece]) -> bytes:
    whole = (b'{"object":"embedding","index":' + p.at + b',"embedding":' + p.vector + b"}" for p in pieces)
    return b"[" + b",".join(whole) + b"]"


def answer_json(pieces: Sequence[Piece], model: bytes) -> bytes:
    """`model` is JSON, with its quotes."""
    return b'{"object":"list","data":' + objects_json(pieces) + b',"model":' + model + b"}"


def error_json(words: str) -> bytes:
    return b'{"error":{"message":"' + words.encode() + b'","type":"server_error"}}'


Lie = Callable[[list[Piece], bytes], Answer]


def _with_index(change: Callable[[int, int], bytes]) -> Lie:
    """The object that was to have index 0 gets another; `change` is given its index and the count."""

    def lie(pieces: list[Piece], model: bytes) -> Answer:
        changed = [p._replace(at=change(0, len(pieces))) if p.at == b"0" else p for p in pieces]
        return Answer(200, answer_json(changed, model))

    return lie


def _with_vector(change: Callable[[bytes], bytes]) -> Lie:
    """The vector of the last object is another."""

    def lie(pieces: list[Piece], model: bytes) -> Answer:
        last = pieces[-1]
        return Answer(200, answer_json([*pieces[:-1], last._replace(vector=change(last.vector))], model))

    return lie


def _with_number(number: bytes) -> Lie:
    """The first number of a vector is this."""
    return _with_vector(lambda vector: b"[" + number + vector[vector.index(b",") :])


def _plain(status: int, body: bytes, content_type: str = JSON) -> Lie:
    return lambda pieces, model: Answer(status, body, content_type)


def _duplicate(pieces: list[Piece], model: bytes) -> Answer:
    if len(pieces) == 1:
        return Answer(200, answer_json([*pieces, *pieces], model))
    return Answer(200, answer_json([pieces[0]._replace(at=pieces[1].at), *pieces[1:]], model))


def _index_missing(pieces: list[Piece], model: bytes) -> Answer:
    honest = answer_json(pieces, model)
    return Answer(200, honest.replace(b'"index":' + pieces[0].at + b",", b"", 1))


def _one_more(pieces: list[Piece], model: bytes) -> Answer:
    extra = pieces[0]._replace(at=b"%d" % len(pieces))
    return Answer(200, answer_json([*pieces, extra], model))


def _one_fewer(pieces: list[Piece], model: bytes) -> Answer:
    highest = b"%d" % (len(pieces) - 1)
    return Answer(200, answer_json([p for p in pieces if p.at != highest], model))


def _data_is_object(pieces: list[Piece], model: bytes) -> Answer:
    honest = answer_json(pieces, model)
    return Answer(200, honest.replace(b'"data":[', b'"data":{"0":[', 1).replace(b'],"model"', b']},"model"', 1))


def _cut(pieces: list[Piece], model: bytes) -> Answer:
    honest = answer_json(pieces, model)
    return Answer(200, honest[: len(honest) * 2 // 3])


def _error_beside_data(pieces: list[Piece], model: bytes) -> Answer:
    honest = answer_json(pieces, model)
    return Answer(200, b'{"error":{"message":"out of memory"},' + honest[1:])


LIES: Mapping[str, Lie] = {
    "index_gap": _with_index(lambda index, count: b"%d" % (count + 7)),
    "index_out_of_range": _with_index(lambda index, count: b"%d" % count),
    "index_duplicate": _duplicate,
    "index_negative": _with_index(lambda index, count: b"-1"),
    "index_string": _with_index(lambda index, count: b'"0"'),
    "index_bool": _with_index(lambda index, count: b"false"),
    "index_float": _with_index(lambda index, count: b"0.0"),
    "index_null": _with_index(lambda index, count: b"null"),
    "index_enormous": _with_index(lambda index, count: b"9" * 400),
    "index_missing": _index_missing,
    "count_plus_one": _one_more,
    "count_minus_one": _one_fewer,
    "error_in_200": _plain(200, error_json("out of memory")),
    "error_beside_data": _error_beside_data,
    "data_is_object": _data_is_object,
    "data_is_null": _plain(200, b'{"object":"list","data":null,"model":"m"}'),
    "html": _plain(200, HTML_PAGE, "text/html"),
    "cut_json": _cut,
    "empty_body": _plain(200, b""),
    "json_string": _plain(200, b'"ok"'),
    "deep_json": _plain(200, b'{"usage":' + b"[" * 20_000 + b"]" * 20_000 + b"}"),
    "nan": _with_number(b"NaN"),
    "infinity": _with_number(b"Infinity"),
    "1e999": _with_number(b"1e999"),
    "1e39": _with_number(b"1e39"),
    "null_number": _with_number(b"null"),
    "bool_number": _with_number(b"true"),
    "string_numbers": _with_number(b'"0.25"'),
    "zero_vector": _with_vector(lambda vector: b"[" + b",".join([b"0.0"] * (vector.count(b",") + 1)) + b"]"),
    "empty_vector": _with_vector(lambda vector: b"[]"),
    "null_vector": _with_vector(lambda vector: b"null"),
    "nested_vector": _with_vector(lambda vector: b"[" + vector + b"]"),
    "wrong_dimension": _with_vector(lambda vector: vector[: vector.rindex(b",")] + b"]"),
    "base64": _with_vector(lambda vector: b'"zczMPc3MTD6amZk+zczMPgAAAD8="'),
    "status_204": _plain(204, b""),
    "status_400": _plain(400, error_json("bad request")),
    "status_500": _plain(500, error_json("out of memory")),
    "status_502": _plain(502, HTML_PAGE, "text/html"),
}
"""Answers that a client must refuse whole. "status_503" and "disconnect" are for the server: they are no answers."""
