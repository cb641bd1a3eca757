"""A language client as an editor has it: a server process, requests and notifications over its stdin and stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from queue import Empty, Queue
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE = 15.0


class Client:
    """Sends one request after the other; what the server says of its own accord waits in `notices`."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "smartmem_rules.cli", "lsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.folder = folder
        self.notices: deque[dict[str, Any]] = deque()
        self._number = 0
        self._versions: dict[str, int] = {}
        self._arrived: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self) -> dict[str, Any]:
        """Shake hands; gives what the server can do."""
        root: dict[str, Any] = {"processId": None, "rootUri": self.folder.as_uri(), "capabilities": {}}
        answer = self.ask("initialize", root)
        self.tell("initialized", {})
        capabilities: dict[str, Any] = answer["capabilities"]
        return capabilities

    def stop(self) -> int:
        """End the server; gives its exit code."""
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.process.wait(10)

    def ask(self, method: str, parameters: Any) -> Any:
        """A request and its result."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        while True:
            message = self._receive()
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]
            self.notices.append(message)

    def tell(self, method: str, parameters: Any) -> None:
        """A notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": parameters})

    def diagnostics(self) -> list[dict[str, Any]]:
        """The next messages that the server sends about a file."""
        while True:
            message = self.notices.popleft() if self.notices else self._receive()
            if message.get("method") == "textDocument/publishDiagnostics":
                found: list[dict[str, Any]] = message["params"]["diagnostics"]
                return found

    def open(self, name: str, text: str) -> str:
        """Open a file that need not lie on disk; gives its address."""
        uri = (self.folder / name).as_uri()
        self._versions[uri] = 1
        document = {"uri": uri, "languageId": "smr", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return uri

    def edit(self, uri: str, begin: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace a range, lines and columns from 0."""
        self._versions[uri] += 1
        place = {"start": position(*begin), "end": position(*end)}
        document = {"uri": uri, "version": self._versions[uri]}
        self.tell(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"range": place, "text": text}]}
        )

    def at(self, method: str, uri: str, line: int, column: int, **more: Any) -> Any:
        """A request about a place, line and column from 0."""
        return self.ask(
            f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": position(line, column), **more}
        )

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        try:
            return self._arrived.get(timeout=PATIENCE)
        except Empty:
            raise TimeoutError("the server does not answer") from None

    def _listen(self) -> None:
        assert self.process.stdout is not None
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not length:
                return
            self._arrived.put(json.loads(self.process.stdout.read(length)))


def position(line: int, column: int) -> dict[str, int]:
    return {"line": line, "character": column}
