"""The local model: what the package itself would answer, without importing it and without a network (R4, S1-04)."""

import asyncio
import importlib.util
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from domain.errors import ConfigurationError
from domain.settings import EmbeddingsSettings
from domain.vectors import CANARY_TEXTS, MAX_INPUT_BYTES
from embedding import local
from embedding.build import make_embedder
from embedding.known_models import LOCAL_MODEL
from embedding.local import DIMENSION, LocalEmbedder, local_model, model_files
from embedding.port import QueryUnreachableError

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    "How do I move an index to another disk?",
    "x",
    " leading and trailing blanks \n",
    "naïve café, Straße, 東京の天気, \U0001f600 emoji, \u200d joiners",
    "def f(a, b):\n\treturn a[b]  # code\n\n```\n--dry-run\n```",
    "</s> a special token <s> in a text",
    "\x00\x01 control",
    "word " * 5_000,
    *(path.read_text(encoding="utf-8")[:2_000] for path in sorted((ROOT / "docs").glob("*.md"))),
    *CANARY_TEXTS,
]

# its own loader does not find the tokenizer that it comes with, and would fetch it
THEIR_VECTORS = """
import json, pathlib, sys
import wordllama
from safetensors import safe_open
from wordllama.inference import WordLlamaInference
from wordllama.tokenizers import tokenizer_from_file
weights = pathlib.Path(wordllama.__file__).parent / "weights" / "l2_supercat_256.safetensors"
with safe_open(weights, framework="np") as file:
    embedding = file.get_tensor("embedding.weight")
model = WordLlamaInference(embedding, tokenizer_from_file("l2_supercat_tokenizer_config.json"))
texts = json.load(sys.stdin)
unit = [model.embed([text], norm=True)[0].tolist() for text in texts]
mean = model.embed(texts, batch_size=8).tolist()
json.dump([unit, mean], sys.stdout)
"""


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection, or the look-up of a name, fails the test."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the network was reached for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    local_model.cache_clear()


def array_of(vector: bytes) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    return np.frombuffer(vector, dtype="<f4")


def their_vectors() -> tuple[list[list[float]], list[list[float]]]:
    """At unit length, each text by itself; and the means, in batches."""
    theirs = subprocess.run(
        [sys.executable, "-c", THEIR_VECTORS], input=json.dumps(TEXTS), capture_output=True, text=True, check=True
    )
    unit, mean = json.loads(theirs.stdout)
    return unit, mean


async def test_its_vectors_are_those_of_the_package() -> None:
    """Within 1e-6, of single texts and of batches in which the package pads."""
    unit, mean = their_vectors()
    model = local_model()
    assert np.allclose(model.pooled(model.tokens(TEXTS)), mean, rtol=0, atol=1e-6)
    ours = await LocalEmbedder().embed_documents(TEXTS)
    for each, vector in zip(ours, unit, strict=True):
        assert np.allclose(array_of(each.vector), vector, rtol=0, atol=1e-6)


@pytest.mark.usefixtures("no_network")
async def test_it_needs_no_network() -> None:
    """S1-04: nothing leaves the machine."""
    embedder = make_embedder(EmbeddingsSettings(provider="local"), None)
    probe = await embedder.probe(CANARY_TEXTS)
    assert probe[:3] == (LOCAL_MODEL, DIMENSION, True)
    assert [len(vector) for vector in probe.vectors] == [4 * DIMENSION] * 3
    embedded = await embedder.embed_documents(TEXTS)
    assert all(each.vector for each in embedded)
    await embedder.aclose()


async def test_a_text_has_the_same_vector_to_the_last_bit_wherever_it_stands() -> None:
    """A query as a document, alone as among others: the canary would see a difference (S1-15)."""
    embedder = LocalEmbedder()
    many = await embedder.embed_documents(TEXTS * 20)
    again = await embedder.embed_documents(list(reversed(TEXTS)))
    assert [each.vector for each in again] == [each.vector for each in reversed(many[: len(TEXTS)])]
    for text, each in zip(TEXTS, many, strict=False):
        assert await embedder.embed_query(text) == each.vector
        assert abs(float(np.linalg.norm(array_of(each.vector))) - 1) < 1e-6


async def test_a_paraphrase_is_nearer_than_another_subject() -> None:
    """S1-11, with a real model."""
    embedder = LocalEmbedder()
    query = array_of(await embedder.embed_query("my automobile will not begin to run"))
    near, far = await embedder.embed_documents(["How to start the car's engine", "A recipe for sourdough bread"])
    assert float(query @ array_of(near.vector)) > float(query @ array_of(far.vector)) + 0.1


async def test_what_says_nothing_is_refused_and_no_zero_vector_is_made() -> None:
    """S0-28, S0-30."""
    blank, odd, good = await LocalEmbedder().embed_documents(["\n ", "\ud800", "good"])
    assert (blank.vector, odd.vector) == (b"", b"")
    assert blank.refusal
    assert odd.refusal
    assert good.vector
    assert local_model().counted_vectors([""]) == ([b""], 0)
    with pytest.raises(QueryUnreachableError, match="no word"):
        await LocalEmbedder().embed_query("")


async def test_a_text_that_no_word_is_known_of_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.LocalModel, "tokens", lambda self, texts: [[] for _ in texts])
    (unknown,) = await LocalEmbedder().embed_documents(["qqq"])
    assert unknown == (b"", 1, "no word in it that the model knows")


async def test_a_text_over_128_kib_is_embedded_in_parts() -> None:
    """R21."""
    text = "The keeper wrote down the weather. " * 8_000
    (whole,) = await LocalEmbedder().embed_documents([text])
    assert len(text) > 2 * MAX_INPUT_BYTES
    assert whole.parts == 3
    (same,) = await LocalEmbedder().embed_documents(["The keeper wrote down the weather."])
    assert float(array_of(whole.vector) @ array_of(same.vector)) > 0.99


async def test_the_event_loop_goes_on_while_texts_are_embedded() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    local_model()
    counting = asyncio.ensure_future(count())
    await LocalEmbedder().embed_documents([f"{number} " + TEXTS[7] for number in range(30)])
    counting.cancel()
    assert turns > 100


@pytest.mark.parametrize("missing", ["wordllama", "tokenizers"])
def test_where_it_is_not_installed_one_is_told_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(local, "find_spec", lambda name: None if name == missing else find_spec(name))
    with pytest.raises(ConfigurationError) as raised:
        make_embedder(EmbeddingsSettings(provider="local"), None)
    assert raised.value.message == "the local model is not installed"
    assert "knowledge-service[local]" in raised.value.hint


def test_a_package_without_its_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_WEIGHTS", "weights/other.safetensors")
    with pytest.raises(ConfigurationError, match="not where they should be"):
        model_files()


@pytest.mark.parametrize("damage", ["cut", "empty", "another type", "not JSON", "another name", "huge header"])
def test_weights_that_are_not_what_they_should_be_are_refused(damage: str, tmp_path: Path) -> None:
    """Never a model of noise: a cut download, another version's file."""
    whole = model_files().weights.read_bytes()
    header = whole[8 : 8 + int.from_bytes(whole[:8], "little")]
    path = tmp_path / "weights"
    path.write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "empty": b"",
            "another type": whole.replace(b'"F16"', b'"F32"', 1),
            "not JSON": whole.replace(b"{", b"[", 1),
            "another name": whole.replace(b"embedding.weight", b"embedding.wrongs", 1),
            "huge header": (1 << 60).to_bytes(8, "little") + header,
        }[damage]
    )
    with pytest.raises(ConfigurationError, match="is damaged, or of a version"):
        local._weights(path)


def test_neither_the_package_nor_what_it_brings_is_imported() -> None:
    """Importing it costs half a second and sets up logging; a query must not pay for that."""
    code = (
        "import asyncio, sys, logging\n"
        "from embedding.local import LocalEmbedder\n"
        "asyncio.run(LocalEmbedder().embed_query('hello'))\n"
        "assert not logging.getLogger().handlers\n"
        "print([name for name in ('wordllama', 'pydantic', 'requests', 'httpx', 'safetensors') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
