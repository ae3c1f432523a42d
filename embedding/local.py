"""The model that needs no server: a vector for each word piece, out of the files of an installed package, averaged.

The package itself is never imported: that takes half a second, sets up logging, and brings what could reach for the
network. Two of its files are read; what is made of them is what the package makes of them, which a test proves.
"""

import asyncio
import json
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.errors import ConfigurationError
from domain.telemetry import SILENCE, Telemetry
from domain.tracing import UNTRACED, Tracer
from embedding.asking import embed_each
from embedding.known_models import LOCAL_MODEL
from embedding.measuring import measured
from embedding.port import EmbeddedText, Probe, QueryUnreachableError
from embedding.unit_vectors import unit_vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DIMENSION = 256
TEXTS_A_SLICE = 64  # between two looks of the event loop: some 20 ms
NO_KNOWN_WORD = "no word in it that the model knows"
_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_HINT = 'install the extra it belongs to: pip install "knowledge-service[local]", in the environment of this program'


class ModelFiles(NamedTuple):
    weights: Path
    tokenizer: Path


def model_files() -> ModelFiles:
    """Where the model lies; nothing is imported. Raises ConfigurationError where it is not installed."""
    spec = find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders or find_spec("tokenizers") is None:
        raise ConfigurationError("the local model is not installed", hint=_HINT)
    files = ModelFiles(Path(folders[0]) / _WEIGHTS, Path(folders[0]) / _TOKENIZER)
    if not (files.weights.is_file() and files.tokenizer.is_file()):
        raise ConfigurationError(
            f"the files of the local model are not where they should be, in {folders[0]}", hint=_HINT
        )
    return files


class LocalModel:
    """The model in memory; may be used from several threads at a time."""

    def __init__(self, weights: NDArray[np.float16], tokenizer: "Tokenizer") -> None:
        self._halves = weights
        self._tokenizer = tokenizer

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        """For many texts: twice the memory and 20 ms, which a single query does not need."""
        return self._halves.astype(np.float32)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Numbers of the word pieces of each text; none only for a text without a character."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [each.ids for each in encoded]

    def pooled(self, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Means of the vectors of the word pieces (texts, 256); zeros where there are none.

        Text by text: the same text has the same vector to the last bit, whatever it is embedded with.
        """
        table = self._table if len(tokens) > 1 else None
        pooled = np.zeros((len(tokens), DIMENSION), dtype=np.float32)
        for row, ids in enumerate(tokens):
            if ids:
                rows = self._halves.take(ids, axis=0).astype(np.float32) if table is None else table.take(ids, axis=0)
                pooled[row] = rows.sum(axis=0) / np.float32(len(ids))
        return pooled

    def counted_vectors(self, texts: Sequence[str]) -> tuple[list[bytes], int]:
        """The vector of each text at unit length, b"" where it has none; and the number of word pieces of all."""
        tokens = self.tokens(texts)
        return unit_vectors(self.pooled(tokens)), sum(map(len, tokens))


@cache
def local_model() -> LocalModel:
    """Load the model, once in a process: 100 ms. Raises ConfigurationError where it is not installed or damaged."""
    files = model_files()
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(files.tokenizer))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    weights = _weights(files.weights)
    if tokenizer.get_vocab_size() > len(weights):
        raise _damaged(files.weights)
    return LocalModel(weights, tokenizer)


def _weights(path: Path) -> NDArray[np.float16]:
    """The tensor of a safetensors file, mapped: 8 bytes with the length of a JSON header, that, then the numbers."""
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        header = file.read(min(header_bytes, 65_536))
    try:
        tensor = json.loads(header)[_TENSOR]
        begin, end = tensor["data_offsets"]
        pieces, dimension = tensor["shape"]
        is_known = (tensor["dtype"], dimension, end - begin) == ("F16", DIMENSION, pieces * DIMENSION * 2)
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _damaged(path) from None
    if not is_known or path.stat().st_size < 8 + header_bytes + end:
        raise _damaged(path)
    return np.memmap(path, dtype="<f2", mode="r", offset=8 + header_bytes + begin, shape=(pieces, DIMENSION))


def _damaged(path: Path) -> ConfigurationError:
    return ConfigurationError(f"{path} is damaged, or of a version that is not known here", hint=_HINT)


class LocalEmbedder:
    """An embedding.port.Embedder in this process: computes in a thread, a slice at a time, and never waits."""

    def __init__(self, document_prefix: str = "", telemetry: Telemetry = SILENCE, tracer: Tracer = UNTRACED) -> None:
        """Raises ConfigurationError where the model is not installed; it is loaded when it is first used."""
        model_files()
        self._document_prefix = document_prefix
        self._telemetry = telemetry
        self._tracer = tracer

    async def probe(self, texts: Sequence[str]) -> Probe:
        vectors = await self._vectors(texts)
        return Probe(LOCAL_MODEL, DIMENSION, normalised=True, vectors=tuple(vectors))

    async def embed_documents(self, texts: Sequence[str]) -> list[EmbeddedText]:
        """See the port; nothing is refused but a text that says nothing."""
        return await embed_each(texts, self._document_prefix, self._ask)

    async def _ask(self, texts: Sequence[str]) -> list[EmbeddedText]:
        vectors = await self._vectors(texts)
        return [EmbeddedText(vector, refusal="" if vector else NO_KNOWN_WORD) for vector in vectors]

    async def _vectors(self, texts: Sequence[str]) -> list[bytes]:
        vectors: list[bytes] = []
        for start in range(0, len(texts), TEXTS_A_SLICE):
            part = texts[start : start + TEXTS_A_SLICE]
            with measured(self._telemetry, len(part), self._tracer):
                made, _ = await asyncio.to_thread(_counted_vectors, part)
            vectors += made
        return vectors

    async def embed_query(self, text: str) -> bytes:
        (vector,) = await self._vectors([text])
        if not vector:
            raise QueryUnreachableError(NO_KNOWN_WORD)
        return vector

    async def aclose(self) -> None:
        """Nothing is held: the model stays for the process."""


def _counted_vectors(texts: Sequence[str]) -> tuple[list[bytes], int]:
    """Loads the model too where it is not yet: in the thread, off the event loop."""
    return local_model().counted_vectors(texts)
