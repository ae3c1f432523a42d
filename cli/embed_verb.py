"""`knowledge embed-server`: parses, and says where it listens; embedding.serving does the work."""

from typing import Annotated

import typer

from cli import terminal
from cli.verbs import verb_app
from domain.errors import UsageError
from embedding.addresses import is_loopback
from embedding.known_models import LOCAL_MODEL

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8766
MAX_NAME_CHARS = 200

app = verb_app()


@app.command("embed-server")
def embed_server_verb(
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = DEFAULT_HOST,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port to listen on; 0: a free one.")
    ] = DEFAULT_PORT,
    model_name: Annotated[
        str, typer.Option("--model-name", metavar="NAME", help="What the model is called in requests and answers.")
    ] = LOCAL_MODEL,
    allow_network: Annotated[
        bool, typer.Option("--allow-network", help="Listen where other machines can reach it; there is no password.")
    ] = False,
) -> int:
    """Serve the local model over HTTP, as OpenAI's /embeddings, until Ctrl-C."""
    if not (0 < len(model_name) <= MAX_NAME_CHARS and model_name.isprintable()):
        raise UsageError(f"--model-name must be a name of at most {MAX_NAME_CHARS} printable characters")
    if not (allow_network or is_loopback(host.lower())):
        raise UsageError(
            f"other machines could reach {host!r}, and there is no password",
            hint="leave --host out for 127.0.0.1, or add --allow-network inside a network of your own",
        )
    from embedding.serving import bound_socket, serve

    listening = bound_socket(host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}/v1"

    def say_where() -> None:
        terminal.write(f"listening on {url}\n")
        terminal.flush()

    return serve(listening, model_name, say_where)
