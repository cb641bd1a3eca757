"""The server answers by the Open Inference Protocol, says what is wrong, and ends when all is answered."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smartmem_rules as sm
from examples.serving.model import MOST, build

httpx = pytest.importorskip("httpx", reason="the server of the example needs the extra: pip install -e '.[serving]'")
pytest.importorskip("kserve", reason="the server of the example needs the extra: pip install -e '.[serving]'")

INFER = "/v2/models/small/infer"


@pytest.fixture(scope="module")
def plan() -> sm.OptimizedPlan:
    return sm.optimize(build(), dims={"batch": (1, MOST)})


@pytest.fixture(scope="module")
def file(plan: sm.OptimizedPlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "small.plan"
    plan.save(path)
    return path


class Server:
    """The server as a process, on a free port."""

    def __init__(self, file: Path, *options: str) -> None:
        command = [sys.executable, "-m", "examples.serving.server", f"small={file}", "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.output = self.process.stdout
        line = self.output.readline()
        assert line.startswith("serving on"), line
        self.url = line.split()[-1]

    def stop(self) -> str:
        """End it as a supervisor does; what it printed."""
        self.process.send_signal(signal.SIGTERM)
        said = self.output.read()
        self.process.wait(30)
        return said


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[Server]:
    one = Server(file)
    yield one
    one.stop()


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    with httpx.Client(base_url=server.url, timeout=60) as one:
        yield one


def images(count: int = 2, seed: int = 0) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(seed).standard_normal((count, 3, 32, 32)).astype(np.float32)


def body(array: np.ndarray[Any, np.dtype[Any]], **changes: Any) -> dict[str, Any]:
    image = {"name": "image", "shape": list(array.shape), "datatype": "FP32", "data": array.ravel().tolist()}
    return {"inputs": [image | changes]}


def label(response: Any) -> np.ndarray[Any, np.dtype[Any]]:
    assert response.status_code == 200, response.text
    (output,) = response.json()["outputs"]
    assert (output["name"], output["datatype"]) == ("label", "FP32")
    return np.array(output["data"], np.float32).reshape(output["shape"])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v2/health/live", {"live": True}),
        ("/v2/health/ready", {"ready": True}),
        ("/v2/models", {"models": ["small"]}),
        ("/v2/models/small/ready", {"name": "small", "ready": True}),
    ],
)
def test_health(client: Any, path: str, expected: dict[str, Any]) -> None:
    response = client.get(path)
    assert (response.status_code, response.json()) == (200, expected)


def test_metadata(client: Any) -> None:
    said = client.get("/v2/models/small").json()
    assert said["inputs"] == [{"name": "image", "datatype": "FP32", "shape": [-1, 3, 32, 32]}]
    assert said["outputs"] == [{"name": "label", "datatype": "FP32", "shape": [-1, 10]}]


def test_the_answer_is_the_plan_s(client: Any, plan: sm.OptimizedPlan) -> None:
    array = images()
    response = client.post(INFER, json={"id": "seven", **body(array)})
    np.testing.assert_allclose(label(response), plan.run({"image": array})["label"], rtol=1e-5, atol=1e-6)
    assert response.json()["id"] == "seven"


def test_clients_share_runs_and_get_their_own_answers(server: Server, plan: sm.OptimizedPlan) -> None:
    def ask(seed: int) -> np.ndarray[Any, np.dtype[Any]]:
        return label(httpx.post(server.url + INFER, json=body(images(1 + seed % 3, seed)), timeout=60))

    with ThreadPoolExecutor(8) as clients:
        found = list(clients.map(ask, range(24)))
    for seed, array in enumerate(found):
        expected = plan.run({"image": images(1 + seed % 3, seed)})["label"]
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (body(images(), name="imag"), 400, "no input 'imag'; did you mean `image`?"),
        (body(images(), shape=[1, 3, 32, 32]), 400, "does not fit its shape"),
        (body(images(), shape=[-1, 3, 32, 32]), 400, "negative extent"),
        (body(images(), datatype="FP64"), 400, "elements of type float64; the model takes float32"),
        (body(images(), datatype="BYTES"), 400, "datatype BYTES"),
        (body(images(), datatype="FP31"), 400, "datatype FP31"),
        (body(images(), data=["a"] * 6144), 400, "does not fit its shape"),
        (body(images(), data=None), 400, "no request of the Open Inference Protocol"),
        (body(images(MOST + 1)), 400, f"is {MOST + 1}; the plan is made for 1 to {MOST}"),
        ({"inputs": body(images())["inputs"] * 2}, 400, "there twice"),
        ({**body(images()), "outputs": [{"name": "labe"}]}, 400, "no output 'labe'; the outputs are label"),
        ({"inputs": []}, 400, "'image', float32[batch, 3, 32, 32], is missing"),
        ({}, 400, "inputs: Field required"),
        ([], 400, "no request of the Open Inference Protocol"),
    ],
)
def test_wrong_requests(client: Any, sent: Any, status: int, said: str) -> None:
    response = client.post(INFER, json=sent)
    assert response.status_code == status
    assert said in response.json()["error"]


@pytest.mark.parametrize(
    ("sent", "length"),
    [(b"\0\1", "1"), (b"{}", "2"), (b"{}", "many"), (b"", "9")],
)
def test_wrong_bytes(client: Any, sent: bytes, length: str) -> None:
    response = client.post(INFER, content=sent, headers={"inference-header-content-length": length})
    assert response.status_code == 400
    assert response.json()["error"]


def test_other_models_are_not_there(client: Any) -> None:
    response = client.post("/v2/models/large/infer", json=body(images()))
    assert response.status_code == 404
    assert "large" in response.json()["error"]


def test_nobody_unloads_a_model(client: Any) -> None:
    assert client.post("/v2/repository/models/small/unload").status_code == 501
    assert client.get("/v2/models/small/ready").json()["ready"]


def left(server: Server, count: int) -> None:
    """Clients that send a request and close their connection at once."""
    host, port = server.url.removeprefix("http://").split(":")
    sent = httpx.Request("POST", server.url + INFER, json=body(images(1)))
    sent.read()
    head = f"POST {INFER} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    for _ in range(count):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"{head}Content-Length: {len(sent.content)}\r\n\r\n".encode() + sent.content)


def test_whoever_leaves_does_not_run(file: Path) -> None:
    server = Server(file, "--wait", "1500")  # they leave while they wait for others
    left(server, 3)
    time.sleep(0.5)
    assert label(httpx.post(server.url + INFER, json=body(images(MOST)), timeout=60)).shape == (MOST, 10)
    said = server.stop()
    assert "small: 1 requests in 1 runs; 3 left before theirs" in said


def test_the_end_answers_what_waits(file: Path) -> None:
    server = Server(file, "--wait", "1500")
    with ThreadPoolExecutor(2) as clients:
        asked = [clients.submit(httpx.post, server.url + INFER, json=body(images()), timeout=60) for _ in range(2)]
        time.sleep(0.5)
        said = server.stop()
        assert [label(one.result()).shape for one in asked] == [(2, 10)] * 2
    assert "small: 2 requests in 1 runs" in said


def test_too_many_are_refused(file: Path) -> None:
    server = Server(file, "--wait", "3000", "--waiting", "1")
    with ThreadPoolExecutor(1) as clients:
        asked = clients.submit(httpx.post, server.url + INFER, json=body(images()), timeout=60)
        time.sleep(0.5)
        refused = httpx.post(server.url + INFER, json=body(images()), timeout=60)
        assert refused.status_code == 503
        assert "ask again later" in refused.json()["error"]
        server.stop()
        label(asked.result())


@pytest.mark.parametrize(
    ("argument", "said"), [("small", "is not NAME=FILE.plan"), ("small=/nowhere.plan", "/nowhere.plan")]
)
def test_wrong_arguments(argument: str, said: str) -> None:
    command = [sys.executable, "-m", "examples.serving.server", argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
