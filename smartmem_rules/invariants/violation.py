"""The error of a stage whose result breaks an invariant."""

from __future__ import annotations


class InvariantError(RuntimeError):
    """A stage made something wrong: a bug of this library, found before a kernel could give a wrong answer.

    Attributes:
        stage: fusion, layout, memory or emission.
        kernel: the kernel's name, empty where none is concerned.
        tensor: the tensor's name, empty where none is concerned.
        invariant: what does not hold.
    """

    def __init__(self, stage: str, kernel: str, tensor: str, invariant: str) -> None:
        self.stage, self.kernel, self.tensor, self.invariant = stage, kernel, tensor, invariant
        where = [f"kernel {kernel}"] if kernel else []
        where += [f"tensor {tensor!r}"] if tensor else []
        super().__init__(
            f"the stage {stage} broke an invariant ({', '.join(where) or 'the plan'}): {invariant}. "
            "This is a bug of smartmem_rules; please report it with the model. A lower --level may avoid it"
        )
