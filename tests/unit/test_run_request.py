"""What a run is asked for, as it lies in state.db: nothing but checked types comes out (C-10)."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.run_request import RunRequest
from domain.errors import UsageError
from store.run_port import RunKind

texts = st.text(st.characters(exclude_characters="\0"), max_size=20)
requests = st.builds(
    RunRequest,
    kind=st.sampled_from(get_args(RunKind)),
    paths=st.lists(texts.map(lambda text: f"/{text}"), max_size=3).map(tuple),
    roots=st.lists(texts, max_size=3).map(tuple),
    reindex=st.booleans(),
    re_embed=st.booleans(),
    rehash=st.booleans(),
    allow_mass_delete=st.booleans(),
    requests_per_minute=st.integers(0, 1_000_000),
    workers=st.integers(0, 256),
    window=st.sampled_from(["", "01:00-05:00", "22:30-00:00"]),
    timezone=st.sampled_from(["UTC", "Europe/Malta"]),
    approve=st.integers(0, 2**63 - 1),
    digest=st.sampled_from(["", "0f" * 32]),
)


@given(requests)
def test_what_was_written_is_read(request: RunRequest) -> None:
    assert RunRequest.from_json(json.loads(json.dumps(request.to_json()))) == request


def test_a_key_that_is_not_there_has_its_default() -> None:
    assert RunRequest.from_json({}) == RunRequest()
    assert RunRequest.from_json({"roots": ["docs"]}) == RunRequest(roots=("docs",))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"command": "rm"}, "the key 'command' is not known"),
        ({3: 4}, "the key '3' is not known"),
        ({"kind": "backup"}, "kind must be one of index, reindex, verify, compact"),
        ({"kind": None}, "kind must be of the type str, not NoneType"),
        ({"paths": "/docs"}, "paths must be a list of texts"),
        ({"paths": [1]}, "paths must be a list of texts"),
        ({"paths": ["docs"]}, "paths must be absolute"),
        ({"paths": ["/a\0b"]}, "paths must be absolute"),
        ({"roots": {"docs": 1}}, "roots must be a list of texts"),
        ({"reindex": 1}, "reindex must be of the type bool, not int"),
        ({"allow_mass_delete": "false"}, "allow_mass_delete must be of the type bool, not str"),
        ({"workers": True}, "workers must be of the type int, not bool"),
        ({"workers": 2.0}, "workers must be of the type int, not float"),
        ({"workers": -1}, "workers must be from 0 to 256"),
        ({"requests_per_minute": 1_000_001}, "requests_per_minute must be from 0"),
        ({"approve": -5}, "approve must be from 0"),
        ({"window": "soon"}, "the window 'soon' ('UTC') must be two times"),
        ({"timezone": "Mars/Base"}, "must be an IANA name"),
        ({"digest": "../x"}, "digest must be hexadecimal"),
    ],
)
def test_what_is_not_as_it_should_be_is_refused(value: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        RunRequest.from_json(value)
    assert words in caught.value.message
    assert "ask for it again" in caught.value.hint
