"""Serve plans over HTTP by the Open Inference Protocol (v2): `python -m examples.serving.server NAME=FILE.plan ...`.

KServe speaks the protocol, Uvicorn HTTP; requests that wait together become one run (`batching`). SIGINT or SIGTERM
ends the server: it takes no new connection, answers what it has begun, and says how many requests shared a run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from kserve import InferRequest, ModelRepository, errors
from kserve.protocol.dataplane import DataPlane
from kserve.protocol.model_repository_extension import ModelRepositoryExtension
from kserve.protocol.rest.v2_endpoints import register_v2_endpoints
from starlette.requests import Request

import smartmem_rules as sm
from examples.serving.leaving import Leaving
from examples.serving.served import ServedPlan

GRACE = 30
"""Seconds that running requests have when the server ends."""
NO_REQUEST = "this is no request of the Open Inference Protocol"


class Decoding(DataPlane):
    """KServe's protocol, whose mistakes in reading a request are the client's."""

    def decode(self, body: Any, headers: Any, *more: Any, **named: Any) -> tuple[InferRequest, dict[str, Any]]:
        """The request.

        Raises:
            InvalidInput: it is not one of the protocol.
        """
        try:
            request: tuple[InferRequest, dict[str, Any]] = super().decode(body, headers, *more, **named)
        except errors.InvalidInput:
            raise
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise errors.InvalidInput(f"{NO_REQUEST}: {error!r}") from error
        return request


class Fixed(ModelRepositoryExtension):
    """The models are those of the command line: nobody who can send a request unloads one."""

    async def load(self, model_name: str) -> None:
        """Refuse.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("models are loaded when the server starts, and stay")

    unload = load


async def refused(request: Request, error: Exception) -> JSONResponse:
    """The answer to a body that is not the protocol's, in the protocol's words."""
    assert isinstance(error, RequestValidationError)
    said = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in error.errors())
    return JSONResponse(
        status_code=400, content={"error": f"this is no request of the Open Inference Protocol: {said}"}
    )


HANDLERS = {
    errors.InvalidInput: 400,
    errors.ModelNotFound: 404,
    errors.ModelNotReady: 503,
    errors.ServerNotReady: 503,
    errors.InferenceError: 500,
    NotImplementedError: 501,
    Exception: 500,
}


def application(models: Sequence[ServedPlan]) -> FastAPI:
    """The application that serves some models."""
    known = ModelRepository()
    for model in models:
        known.update(model)

    @contextlib.asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        for model in models:
            model.load()
        yield
        for model in models:
            await model.finish()
            counts = model.batcher.counts
            print(
                f"{model.name}: {counts.requests} requests in {counts.runs} runs; {counts.left} left before theirs",
                flush=True,
            )

    app = FastAPI(title="smartmem", lifespan=running, docs_url=None, redoc_url=None)
    register_v2_endpoints(app, Decoding(model_registry=known), Fixed(model_registry=known))
    app.add_exception_handler(RequestValidationError, refused)
    for kind, status in HANDLERS.items():
        app.add_exception_handler(kind, _answering(status))
    app.add_middleware(Leaving)
    return app


def _answering(status: int) -> Any:
    async def answer(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse(status_code=status, content={"error": str(error)})

    return answer


async def serve(models: Sequence[ServedPlan], host: str, port: int) -> None:
    """Serve until a signal ends it; prints where, once it answers. Port 0 takes a free one."""
    with socket.create_server((host, port)) as listening:
        config = uvicorn.Config(application(models), log_level="warning", timeout_graceful_shutdown=GRACE)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        if server.started:
            print(f"serving on http://{host}:{listening.getsockname()[1]}", flush=True)
        await task


def main() -> int:
    """Serve the plans of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plans", nargs="+", metavar="NAME=FILE.plan")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080, help="0 takes a free one, which the first line names")
    parser.add_argument("--wait", type=float, default=2.0, help="milliseconds that a request waits for others")
    parser.add_argument("--waiting", type=int, default=256, help="requests that may wait; one more gets status 503")
    arguments = parser.parse_args()
    models = []
    for one in arguments.plans:
        name, equals, file = one.partition("=")
        if not name or not equals:
            parser.error(f"{one!r} is not NAME=FILE.plan")
        try:
            models.append(ServedPlan(name, sm.load(file), arguments.wait / 1e3, arguments.waiting))
        except sm.SmartmemError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    with contextlib.suppress(KeyboardInterrupt):  # Uvicorn raises the signal again when all is finished
        asyncio.run(serve(models, arguments.host, arguments.port))
    return 0


if __name__ == "__main__":
    sys.exit(main())
