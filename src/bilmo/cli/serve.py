"""`bilmo serve`: an HTTP server and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.completion import complete_model
from bilmo.cli.options import Dictionary, EmbedDevice, Lang, Multiply, Precision

Models = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[MODEL]...",
        help="Names of installed models or paths of models, also as NAME=PATH.",
        show_default="en zh",
        autocompletion=complete_model,
    ),
]


def serve(
    models: Models = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8080,
    task: Annotated[
        list[str] | None, typer.Option(help="Folder made by `bilmo fit`, also as NAME=FOLDER. Can be repeated.")
    ] = None,
    index: Annotated[
        list[Path] | None,
        typer.Option(help="Folder made by `bilmo index` with one of the models. Can be repeated, once per model."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that clients must send as `Authorization: Bearer TOKEN`. Required if "
            "`--host` allows requests from other machines."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another name that clients may use for this server, such as that of a proxy. Can be repeated."
        ),
    ] = None,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    precision: Multiply = Precision.float32,
    device: EmbedDevice = "cpu",
) -> None:
    """Serve vectors, similar uses, expected words, probabilities and fitted tasks over HTTP, and a page for a browser.

    Without `--host`, only programs on this machine can reach the server. Requests of all clients are computed together.
    Stop the server with Ctrl-C or SIGTERM; requests in progress are finished. The guide "A server and a page" lists the
    routes.
    """
    from bilmo import progress
    from bilmo.cli.show import messages
    from bilmo.errors import need

    for module in ("fastapi", "uvicorn", "prometheus_client"):
        need(module, extra="serve", purpose="The server")

    from bilmo.web import serve as server
    from bilmo.web.limits import Limits
    from bilmo.web.served import load_all

    token = None if token_file is None else server.read_token(token_file)
    server.check_host(host, token)
    sock = server.bound(host, port)
    with sock:
        with progress.working("loading"):
            served = load_all(
                models or ["en", "zh"],
                task or [],
                index or [],
                lang=lang,
                dictionary=dictionary,
                precision=precision.value,
                device=device,
            )
        shown = f"[{host}]" if ":" in host else host
        messages.status(f"Serving {', '.join(served.models)} on http://{shown}:{sock.getsockname()[1]}")
        server.run(served, sock, limits=Limits(), hosts=server.hosts(host, allow_host or []), token=token)
