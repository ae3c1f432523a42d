"""The `embeddings` block: what may be wrong with it (R17, T20), and its settings.

Imported only where there is such a block. Nothing here contacts a server or looks a name up.
"""

from collections.abc import Iterator

from app.config_origins import Problem, has_control_characters
from app.config_schema import EmbeddingsBlock
from app.config_values import (
    duration_or_zero,
    duration_problems,
    size_or_zero,
    size_problems,
    variable_name_problems,
)
from domain.settings import EmbeddingsSettings
from embedding.addresses import check_base_url
from embedding.known_models import LOCAL_MODEL

MAX_TIMEOUT_S = 3600.0
MAX_OUTAGE_LIMIT_S = 7 * 24 * 3600.0
LEAST_BATCH_BYTES = 1024
MOST_BATCH_BYTES = 64 * 1024 * 1024
_NO_PREFIX_CONTROL = str.maketrans("", "", "\n\t")  # instructions of some models have lines
_URL_HINT = "Such as http://127.0.0.1:1234/v1; or set provider: local, which needs no server."


def embeddings_problems(block: EmbeddingsBlock) -> Iterator[Problem]:
    """Everything that is wrong with the block by itself."""
    yield from _number_problems(block)
    yield from variable_name_problems(block.api_key_env, "embeddings.api_key_env")
    yield from _text_problems(block)
    yield from _insecure_host_problems(block.insecure_hosts)
    match block.provider:
        case "openai":
            yield from _server_problems(block)
        case "local":
            yield from _local_problems(block)


def embeddings_settings(block: EmbeddingsBlock) -> EmbeddingsSettings:
    """The block as settings; what is wrong in it is told elsewhere. The local model gets its name."""
    return EmbeddingsSettings(
        provider=block.provider,
        base_url=block.base_url,
        model=block.model or (LOCAL_MODEL if block.provider == "local" else ""),
        api_key_env=block.api_key_env,
        timeout_s=duration_or_zero(block.timeout),
        batch=block.batch,
        max_batch_bytes=size_or_zero(block.max_batch_bytes),
        concurrency=block.concurrency,
        requests_per_minute=block.requests_per_minute,
        outage_limit_s=duration_or_zero(block.outage_limit),
        commit=block.commit,
        query_prefix=block.query_prefix,
        document_prefix=block.document_prefix,
        insecure_hosts=block.insecure_hosts,
        min_similarity=block.min_similarity,
    )


def _number_problems(block: EmbeddingsBlock) -> Iterator[Problem]:
    yield from duration_problems(block.timeout, "embeddings.timeout", zero=False, at_most_s=MAX_TIMEOUT_S)
    yield from duration_problems(block.outage_limit, "embeddings.outage_limit", at_most_s=MAX_OUTAGE_LIMIT_S)
    yield from size_problems(
        block.max_batch_bytes,
        "embeddings.max_batch_bytes",
        at_least=LEAST_BATCH_BYTES,
        at_most=MOST_BATCH_BYTES,
    )


def _text_problems(block: EmbeddingsBlock) -> Iterator[Problem]:
    if has_control_characters(block.model):
        yield Problem("embeddings.model", "must not hold control characters")
    for name, prefix in (("query_prefix", block.query_prefix), ("document_prefix", block.document_prefix)):
        if has_control_characters(prefix.translate(_NO_PREFIX_CONTROL)):
            yield Problem(f"embeddings.{name}", "must not hold control characters other than line breaks and tabs")


def _insecure_host_problems(hosts: tuple[str, ...]) -> Iterator[Problem]:
    for index, host in enumerate(hosts):
        if not host or set(host) & set("/*@?#\\ ") or has_control_characters(host):
            text = "must be the exact name of a host, without scheme, path or *"
            yield Problem(f"embeddings.insecure_hosts[{index}]", text, "Such as embedder.")


def _server_problems(block: EmbeddingsBlock) -> Iterator[Problem]:
    if not block.base_url:
        yield Problem("embeddings.base_url", "is missing: provider openai needs the server's address", _URL_HINT)
    elif problem := check_base_url(block.base_url, block.insecure_hosts):
        yield Problem("embeddings.base_url", problem)
    if not block.model.strip():
        yield Problem(
            "embeddings.model",
            "is missing: provider openai needs the model's name, as the server knows it",
            "Most servers list their models at <base_url>/models.",
        )


def _local_problems(block: EmbeddingsBlock) -> Iterator[Problem]:
    """A key that would have no effect is refused: whoever wrote it expects one."""
    for name, value in (("base_url", block.base_url), ("api_key_env", block.api_key_env)):
        if value:
            text = "has no meaning with provider local, whose model is inside this program"
            yield Problem(f"embeddings.{name}", text, f"Remove {name}, or set provider: openai.")
    if block.model and block.model != LOCAL_MODEL:
        text = f"must be empty or {LOCAL_MODEL}, the one model of provider local"
        yield Problem("embeddings.model", text, "For another model, run a server and set provider: openai.")
