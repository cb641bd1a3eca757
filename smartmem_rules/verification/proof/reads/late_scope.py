"""Names of a definition whose values are chosen when they are first asked for: attributes, shapes, operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, overload

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, evaluate
from smartmem_rules.verification.proof.paths import Path


class Undecided(Exception):
    """A value of an element hangs on something that is not chosen."""


class LateValues(dict[str, Value]):
    """Values by name, some of which are found when they are first asked for."""

    def __init__(
        self, known: Mapping[str, Value], late: dict[str, Callable[[], Value]], found: dict[str, Value]
    ) -> None:
        super().__init__(known)
        self.late = late
        self.found = found

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.late

    def __getitem__(self, name: str) -> Value:
        if super().__contains__(name) or name not in self.late:
            return super().__getitem__(name)
        if name not in self.found:
            self.found[name] = self.late[name]()
        return self.found[name]


_Tensor = TensorName | TensorList | None


class LateTensors(dict[str, _Tensor]):
    """Tensors by name; the shapes of operands are found when they are first asked for."""

    def __init__(self, late: dict[str, Callable[[], _Tensor]]) -> None:
        super().__init__()
        self.late = late

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.late

    def __getitem__(self, name: str) -> _Tensor:
        if not super().__contains__(name) and name in self.late:
            self[name] = self.late[name]()
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The tensor of a name."""
        return super().get(name, default) if name not in self else self[name]


class LateMembers(Sequence[TensorName]):
    """The operands of a list; the type of each is found when it is first asked for."""

    def __init__(self, late: Sequence[Callable[[], TensorName]]) -> None:
        self._late = late
        self._found: dict[int, TensorName] = {}

    def __len__(self) -> int:
        return len(self._late)

    @overload
    def __getitem__(self, place: int) -> TensorName: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[TensorName]: ...

    def __getitem__(self, place: int | slice) -> TensorName | Sequence[TensorName]:
        if isinstance(place, slice):
            return [self[n] for n in range(len(self))[place]]
        number = range(len(self))[place]
        if number not in self._found:
            self._found[number] = self._late[number]()
        return self._found[number]


class LateScope(Scope):
    """A scope whose attributes are chosen when they are first used."""

    def with_values(self, **values: Value) -> Scope:
        assert isinstance(self.values, LateValues)
        known = LateValues({**dict(self.values.items()), **values}, self.values.late, self.values.found)
        return LateScope(known, self.tensors, self.functions, self.queries, self.term, self.elements)


class Chosen(Exception):
    """It was chosen whether an operand is present while an element was built: it is built anew."""


@dataclass
class Presence:
    """Which operands a way has; those of which nothing was asked may be present or absent."""

    path: Path
    optional: frozenset[str]
    unknown: set[str]
    chosen: dict[str, bool] = field(default_factory=dict)
    only_values: bool = False
    """Whether the answer decides only values of elements: then nothing is chosen."""
    is_building: bool = False

    @contextmanager
    def of_values(self) -> Iterator[None]:
        before, self.only_values = self.only_values, True
        try:
            yield
        finally:
            self.only_values = before

    def ask(self, expr: ast.Call, scope: Scope) -> Value:
        """`present(NAME)`. Raises Undecided where only values depend on what was not chosen."""
        (subject,) = expr.arguments
        if isinstance(subject, ast.Name):
            if subject.id in self.unknown:
                raise Undecided(subject.id)
            if subject.id in self.optional:
                if subject.id not in self.chosen and self.only_values:
                    raise Undecided(subject.id)
                return self.choose(subject.id)
            if subject.id in scope.tensors:
                return scope.tensors[subject.id] is not None
        return evaluate(subject, scope) is not None

    def choose(self, name: str) -> bool:
        """Whether an operand is present. Raises Chosen while elements are built."""
        if name not in self.chosen:
            self.chosen[name] = self.path.choose(2) == 0
            if self.is_building:
                raise Chosen
        return self.chosen[name]
