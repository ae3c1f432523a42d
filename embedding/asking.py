"""What every embedder does before it asks its model: each text once, nothing that says nothing, nothing too long."""

from collections.abc import Awaitable, Callable, Sequence

from domain.markdown.borders import utf8_size
from domain.vectors import MAX_INPUT_BYTES
from embedding.port import EmbeddedText
from embedding.splitting import bounded_parts, joined, reason_not_to_ask

Ask = Callable[[Sequence[str]], Awaitable[Sequence[EmbeddedText]]]
"""Asks a model about texts, each fit to be asked about; one result a text, in order."""


async def embed_each(texts: Sequence[str], document_prefix: str, ask: Ask) -> list[EmbeddedText]:
    """One result a text, in order. A text that is there several times is asked about once; a blank one is refused
    unasked (S0-28), and one over MAX_INPUT_BYTES is cut into parts that each keep the prefix (R21)."""
    distinct = list(dict.fromkeys(texts))
    embedded = dict(zip(distinct, await _embed_distinct(distinct, document_prefix, ask), strict=True))
    return [embedded[text] for text in texts]


async def _embed_distinct(texts: Sequence[str], document_prefix: str, ask: Ask) -> list[EmbeddedText]:
    results: dict[int, EmbeddedText] = {}
    asked: list[int] = []
    for at, text in enumerate(texts):
        if reason := reason_not_to_ask(text):
            results[at] = EmbeddedText(b"", refusal=reason)
        elif utf8_size(text) > MAX_INPUT_BYTES:
            parts = bounded_parts(text, document_prefix, MAX_INPUT_BYTES)
            results[at] = joined(parts, await _embed_distinct([part.text for part in parts], document_prefix, ask))
        else:
            asked.append(at)
    results |= dict(zip(asked, await ask([texts[at] for at in asked]), strict=True))
    return [results[at] for at in range(len(texts))]
