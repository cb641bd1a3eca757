"""A plan as a model of KServe: its metadata, its inputs checked before they wait, and its runs."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from kserve import InferOutput, InferRequest, InferResponse, Model
from kserve.errors import InferenceError, InvalidInput, ServerNotReady
from kserve.utils.numpy_codec import from_np_dtype, to_np_dtype

import smartmem_rules as sm
from examples.serving.batching import Arrays, Batcher, FullError, Limits
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.runtime.executor import RunError, input_types
from smartmem_rules.runtime.feeds import check_feeds
from smartmem_rules.tensor.extents import dimensions, is_symbolic, symbol
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.types import TensorType


class ServedPlan(Model):
    """Answers requests by a plan, those that wait together in one run where its first dimension is open.

    Args:
        name: under which clients know it.
        plan: whose kernels are built here.
        seconds: for which a request waits for others.
        waiting: requests that may wait.
    """

    def __init__(self, name: str, plan: sm.OptimizedPlan, seconds: float, waiting: int) -> None:
        super().__init__(name)
        plan.prepare()
        self._plan = plan
        self._inputs = input_types(plan.plan)
        self._outputs = {output: plan.plan.tensors[output].type for output in plan.plan.outputs}
        rows = rows_of(plan)
        # one thread: the device runs one batch at a time, and the next one gathers meanwhile
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="plan")
        self.batcher = Batcher(self._run, Limits(rows=rows, seconds=seconds if rows > 1 else 0.0, waiting=waiting))

    def load(self) -> bool:
        """Say that the model is ready, and begin to answer; in the server's event loop."""
        self.batcher.start()
        self.ready = True
        return True

    async def finish(self) -> None:
        """Answer what waits, and stop."""
        self.ready = False
        await self.batcher.stop()
        self._thread.shutdown()

    def get_input_types(self) -> list[dict[str, Any]]:
        """What the model takes; open extents are -1."""
        return [_described(name, type_) for name, type_ in self._inputs.items()]

    def get_output_types(self) -> list[dict[str, Any]]:
        """What the model gives."""
        return [_described(name, type_) for name, type_ in self._outputs.items()]

    async def predict(self, payload: InferRequest, headers: Mapping[str, str] | None = None) -> InferResponse:
        """The answer to one request.

        Raises:
            InvalidInput: the inputs are not what the model takes; the message says why.
            ServerNotReady: too many requests wait.
            InferenceError: the device refuses the run.
        """
        try:
            outputs = await self.batcher.outputs(self._checked(payload))
        except FullError as error:
            raise ServerNotReady(str(error)) from error
        except RunError as error:
            raise InferenceError(str(error)) from error
        asked = [one.name for one in payload.request_outputs or ()]
        unknown = [name for name in asked if name not in outputs]
        if unknown:
            raise InvalidInput(f"there is no output {unknown[0]!r}; the outputs are {', '.join(outputs)}")
        response = InferResponse(
            response_id=payload.id or str(uuid.uuid4()),  # KServe refuses a response without
            model_name=self.name,
            infer_outputs=[_output(name, outputs[name]) for name in asked or outputs],
            use_binary_outputs=payload.use_binary_outputs,
            requested_outputs=payload.request_outputs,
        )
        return response

    def _checked(self, payload: InferRequest) -> Arrays:
        names = [one.name for one in payload.inputs]
        if len(set(names)) < len(names):
            raise InvalidInput(f"an input is there twice: {', '.join(names)}")
        arrays = {}
        for one in payload.inputs:
            if to_np_dtype(one.datatype) is None or one.datatype == "BYTES":
                raise InvalidInput(f"the input {one.name!r} has the datatype {one.datatype}, which no model here takes")
            if any(extent < 0 for extent in one.shape):
                raise InvalidInput(f"the input {one.name!r} has the shape {one.shape}, with a negative extent")
            try:
                arrays[one.name] = one.as_numpy()
            except (ValueError, TypeError, OverflowError) as error:
                raise InvalidInput(f"the data of the input {one.name!r} does not fit its shape: {error}") from error
        try:
            return check_feeds(self._inputs, arrays)
        except GraphError as error:
            raise InvalidInput(str(error)) from error

    async def _run(self, inputs: Arrays) -> Arrays:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._plan.run, inputs)


def rows_of(plan: sm.OptimizedPlan) -> int:
    """How many rows one run takes; 1 where requests cannot be joined.

    They can where the first extent of each input and output is one open dimension, which no other extent has.
    """
    tensors = [plan.plan.tensors[name].type for name in (*plan.plan.inputs, *plan.plan.outputs)]
    for dimension in plan.plan.dimensions:
        others = {own for type_ in tensors for inner in type_.shape[1:] for own in dimensions(inner)}
        if dimension not in others and all(t.shape and t.shape[0] == symbol(dimension) for t in tensors):
            return dimension.high
    return 1


def _described(name: str, type_: TensorType) -> dict[str, Any]:
    shape = [-1 if is_symbolic(extent) else int(extent) for extent in type_.shape]
    return {"name": name, "datatype": from_np_dtype(storage_dtype(type_.dtype)), "shape": shape}


def _output(name: str, array: np.ndarray[Any, np.dtype[Any]]) -> InferOutput:
    output = InferOutput(name=name, shape=list(array.shape), datatype=from_np_dtype(array.dtype))
    output.set_data_from_numpy(array, binary_data=array.dtype == np.float16)  # JSON has no halves
    return output
