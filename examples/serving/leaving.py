"""A client that closes its connection cancels its request."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Leaving:
    """Watches each request's connection while it is answered, and cancels it when the client has gone.

    Frameworks go on computing for clients that no longer listen. What the cancelled request awaits, a place in the
    queue, is cancelled with it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        messages: asyncio.Queue[Message] = asyncio.Queue(1)  # not more of a body than the application has read
        answering = asyncio.ensure_future(self._app(scope, messages.get, send))
        watching = asyncio.create_task(_watch(receive, messages, answering))
        try:
            await answering
        except asyncio.CancelledError:
            if not watching.done():  # it was not the client: the server itself cancels
                answering.cancel()
                raise
        finally:
            watching.cancel()


async def _watch(receive: Receive, messages: asyncio.Queue[Message], answering: asyncio.Future[None]) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            answering.cancel()
            return
        await messages.put(message)
