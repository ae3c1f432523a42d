"""From the settings to the embedder that they ask for. What only one of them needs is imported for that one."""

from domain.errors import ConfigurationError
from domain.settings import EmbeddingsSettings
from domain.telemetry import SILENCE, Telemetry
from domain.tracing import UNTRACED, Tracer
from embedding.addresses import parse_base_url
from embedding.known_models import LOCAL_MODEL
from embedding.port import Embedder, Expected, Waiting

LOCAL_SHOWN = "this machine (local model)"


def _unheard(_words: str) -> None:
    """Nobody asked why it waits."""


def make_embedder(
    settings: EmbeddingsSettings,
    key: str | None,
    *,
    expected: Expected | None = None,
    waiting: Waiting = _unheard,
    share: float = 1.0,
    telemetry: Telemetry = SILENCE,
    tracer: Tracer = UNTRACED,
) -> Embedder:
    """The embedder of a base, to be used from one event loop and closed.

    `expected`: what the pinned identity demands of every answer; None where nothing is pinned yet. `share`: of the
    limits, where several processes keep them together. Nothing is asked of a server here. Raises ConfigurationError
    for settings that cannot be obeyed and where the local model is not installed.
    """
    if settings.provider == "local":
        if settings.model not in ("", LOCAL_MODEL):
            raise ConfigurationError(
                f"embeddings.model is {settings.model!r}, but the local model is {LOCAL_MODEL}",
                hint="leave embeddings.model out, or set embeddings.provider: openai",
            )
        from embedding.local import LocalEmbedder

        return LocalEmbedder(settings.document_prefix, telemetry, tracer)
    from embedding.client import EmbeddingClient
    from embedding.openai_embedder import OpenAIEmbedder

    client = EmbeddingClient(settings, key, expected=expected, waiting=waiting, share=share)
    client.telemetry, client.tracer = telemetry, tracer
    return OpenAIEmbedder(client, settings, server=client.host, expected=expected, telemetry=telemetry)


def host_shown(settings: EmbeddingsSettings) -> str:
    """Where texts are sent, for people: host and port, or that they stay here."""
    if settings.provider == "local":
        return LOCAL_SHOWN
    try:
        return parse_base_url(settings.base_url).shown_host
    except ValueError:  # the address may hold a password, so it is not shown
        return "the configured server"
