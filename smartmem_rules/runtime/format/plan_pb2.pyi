from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Pair(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUOTIENT: _ClassVar[Pair]
    LEAST: _ClassVar[Pair]
    GREATEST: _ClassVar[Pair]

class Element(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ELEMENT_NONE: _ClassVar[Element]
    FLOAT16: _ClassVar[Element]
    FLOAT32: _ClassVar[Element]
    FLOAT64: _ClassVar[Element]
    BFLOAT16: _ClassVar[Element]
    INT8: _ClassVar[Element]
    INT16: _ClassVar[Element]
    INT32: _ClassVar[Element]
    INT64: _ClassVar[Element]
    UINT8: _ClassVar[Element]
    UINT16: _ClassVar[Element]
    UINT32: _ClassVar[Element]
    UINT64: _ClassVar[Element]
    BOOL: _ClassVar[Element]
    INT4: _ClassVar[Element]
    UINT4: _ClassVar[Element]
    INT2: _ClassVar[Element]
    UINT2: _ClassVar[Element]
    FLOAT8_E4M3FN: _ClassVar[Element]
    FLOAT8_E4M3FNUZ: _ClassVar[Element]
    FLOAT8_E5M2: _ClassVar[Element]
    FLOAT8_E5M2FNUZ: _ClassVar[Element]
    FLOAT8_E8M0FNU: _ClassVar[Element]
    FLOAT4_E2M1FN: _ClassVar[Element]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_NONE: _ClassVar[Role]
    INPUT: _ClassVar[Role]
    OUTPUT: _ClassVar[Role]
    CONSTANT: _ClassVar[Role]
    INTERMEDIATE: _ClassVar[Role]

class Memory(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_NONE: _ClassVar[Memory]
    BUFFER: _ClassVar[Memory]
    IMAGE: _ClassVar[Memory]
    SCRATCH: _ClassVar[Memory]

class FillingKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILLING_NONE: _ClassVar[FillingKind]
    GIVEN: _ClassVar[FillingKind]
    SIGNS: _ClassVar[FillingKind]
    OWN: _ClassVar[FillingKind]
    UNSET: _ClassVar[FillingKind]
QUOTIENT: Pair
LEAST: Pair
GREATEST: Pair
ELEMENT_NONE: Element
FLOAT16: Element
FLOAT32: Element
FLOAT64: Element
BFLOAT16: Element
INT8: Element
INT16: Element
INT32: Element
INT64: Element
UINT8: Element
UINT16: Element
UINT32: Element
UINT64: Element
BOOL: Element
INT4: Element
UINT4: Element
INT2: Element
UINT2: Element
FLOAT8_E4M3FN: Element
FLOAT8_E4M3FNUZ: Element
FLOAT8_E5M2: Element
FLOAT8_E5M2FNUZ: Element
FLOAT8_E8M0FNU: Element
FLOAT4_E2M1FN: Element
ROLE_NONE: Role
INPUT: Role
OUTPUT: Role
CONSTANT: Role
INTERMEDIATE: Role
MEMORY_NONE: Memory
BUFFER: Memory
IMAGE: Memory
SCRATCH: Memory
FILLING_NONE: FillingKind
GIVEN: FillingKind
SIGNS: FillingKind
OWN: FillingKind
UNSET: FillingKind

class Plan(_message.Message):
    __slots__ = ("model", "target", "level", "dtype", "device", "provenance", "dimensions", "formulas", "tensors", "inputs", "outputs", "slots", "texts", "launches", "counts", "workarounds", "report", "probes", "unasked", "binaries", "demands", "endings")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    FORMULAS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    LAUNCHES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    WORKAROUNDS_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    UNASKED_FIELD_NUMBER: _ClassVar[int]
    BINARIES_FIELD_NUMBER: _ClassVar[int]
    DEMANDS_FIELD_NUMBER: _ClassVar[int]
    ENDINGS_FIELD_NUMBER: _ClassVar[int]
    model: str
    target: str
    level: str
    dtype: str
    device: str
    provenance: Provenance
    dimensions: _containers.RepeatedCompositeFieldContainer[Dimension]
    formulas: _containers.RepeatedCompositeFieldContainer[Formula]
    tensors: _containers.RepeatedCompositeFieldContainer[Tensor]
    inputs: _containers.RepeatedScalarFieldContainer[int]
    outputs: _containers.RepeatedScalarFieldContainer[int]
    slots: _containers.RepeatedCompositeFieldContainer[Slot]
    texts: _containers.RepeatedScalarFieldContainer[str]
    launches: _containers.RepeatedCompositeFieldContainer[Launch]
    counts: _containers.RepeatedCompositeFieldContainer[Count]
    workarounds: _containers.RepeatedCompositeFieldContainer[Workaround]
    report: Section
    probes: _containers.RepeatedCompositeFieldContainer[Probe]
    unasked: _containers.RepeatedCompositeFieldContainer[Unasked]
    binaries: _containers.RepeatedCompositeFieldContainer[Binary]
    demands: Demands
    endings: Endings
    def __init__(self, model: _Optional[str] = ..., target: _Optional[str] = ..., level: _Optional[str] = ..., dtype: _Optional[str] = ..., device: _Optional[str] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., dimensions: _Optional[_Iterable[_Union[Dimension, _Mapping]]] = ..., formulas: _Optional[_Iterable[_Union[Formula, _Mapping]]] = ..., tensors: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., inputs: _Optional[_Iterable[int]] = ..., outputs: _Optional[_Iterable[int]] = ..., slots: _Optional[_Iterable[_Union[Slot, _Mapping]]] = ..., texts: _Optional[_Iterable[str]] = ..., launches: _Optional[_Iterable[_Union[Launch, _Mapping]]] = ..., counts: _Optional[_Iterable[_Union[Count, _Mapping]]] = ..., workarounds: _Optional[_Iterable[_Union[Workaround, _Mapping]]] = ..., report: _Optional[_Union[Section, _Mapping]] = ..., probes: _Optional[_Iterable[_Union[Probe, _Mapping]]] = ..., unasked: _Optional[_Iterable[_Union[Unasked, _Mapping]]] = ..., binaries: _Optional[_Iterable[_Union[Binary, _Mapping]]] = ..., demands: _Optional[_Union[Demands, _Mapping]] = ..., endings: _Optional[_Union[Endings, _Mapping]] = ...) -> None: ...

class Demands(_message.Message):
    __slots__ = ("names", "types", "extensions", "capability", "arrays", "arrays_capability")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    EXTENSIONS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    types: _containers.RepeatedScalarFieldContainer[str]
    extensions: _containers.RepeatedScalarFieldContainer[str]
    capability: _containers.RepeatedScalarFieldContainer[int]
    arrays: int
    arrays_capability: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, names: _Optional[_Iterable[str]] = ..., types: _Optional[_Iterable[str]] = ..., extensions: _Optional[_Iterable[str]] = ..., capability: _Optional[_Iterable[int]] = ..., arrays: _Optional[int] = ..., arrays_capability: _Optional[_Iterable[int]] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("version", "model", "rules")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    version: str
    model: bytes
    rules: bytes
    def __init__(self, version: _Optional[str] = ..., model: _Optional[bytes] = ..., rules: _Optional[bytes] = ...) -> None: ...

class Dimension(_message.Message):
    __slots__ = ("name", "low", "high", "counted")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    name: str
    low: int
    high: int
    counted: Counted
    def __init__(self, name: _Optional[str] = ..., low: _Optional[int] = ..., high: _Optional[int] = ..., counted: _Optional[_Union[Counted, _Mapping]] = ...) -> None: ...

class Counted(_message.Message):
    __slots__ = ("tensor", "launches")
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    LAUNCHES_FIELD_NUMBER: _ClassVar[int]
    tensor: int
    launches: int
    def __init__(self, tensor: _Optional[int] = ..., launches: _Optional[int] = ...) -> None: ...

class Formula(_message.Message):
    __slots__ = ("terms",)
    TERMS_FIELD_NUMBER: _ClassVar[int]
    terms: _containers.RepeatedCompositeFieldContainer[Term]
    def __init__(self, terms: _Optional[_Iterable[_Union[Term, _Mapping]]] = ...) -> None: ...

class Term(_message.Message):
    __slots__ = ("coefficient", "factors")
    COEFFICIENT_FIELD_NUMBER: _ClassVar[int]
    FACTORS_FIELD_NUMBER: _ClassVar[int]
    coefficient: int
    factors: _containers.RepeatedCompositeFieldContainer[Factor]
    def __init__(self, coefficient: _Optional[int] = ..., factors: _Optional[_Iterable[_Union[Factor, _Mapping]]] = ...) -> None: ...

class Factor(_message.Message):
    __slots__ = ("dimension", "dividend", "divisor", "pair")
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    DIVIDEND_FIELD_NUMBER: _ClassVar[int]
    DIVISOR_FIELD_NUMBER: _ClassVar[int]
    PAIR_FIELD_NUMBER: _ClassVar[int]
    dimension: int
    dividend: int
    divisor: int
    pair: Pair
    def __init__(self, dimension: _Optional[int] = ..., dividend: _Optional[int] = ..., divisor: _Optional[int] = ..., pair: _Optional[_Union[Pair, str]] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ("name", "role", "element", "shape", "storage", "layout", "bytes", "width", "height", "shown", "packed", "place")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: Role
    element: Element
    shape: _containers.RepeatedScalarFieldContainer[int]
    storage: Element
    layout: Layout
    bytes: int
    width: int
    height: int
    shown: Shape
    packed: Packed
    place: Place
    def __init__(self, name: _Optional[str] = ..., role: _Optional[_Union[Role, str]] = ..., element: _Optional[_Union[Element, str]] = ..., shape: _Optional[_Iterable[int]] = ..., storage: _Optional[_Union[Element, str]] = ..., layout: _Optional[_Union[Layout, _Mapping]] = ..., bytes: _Optional[int] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., shown: _Optional[_Union[Shape, _Mapping]] = ..., packed: _Optional[_Union[Packed, _Mapping]] = ..., place: _Optional[_Union[Place, _Mapping]] = ...) -> None: ...

class Shape(_message.Message):
    __slots__ = ("extents",)
    EXTENTS_FIELD_NUMBER: _ClassVar[int]
    extents: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, extents: _Optional[_Iterable[int]] = ...) -> None: ...

class Layout(_message.Message):
    __slots__ = ("memory", "order", "rows", "inner")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    INNER_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    order: _containers.RepeatedScalarFieldContainer[int]
    rows: int
    inner: int
    def __init__(self, memory: _Optional[_Union[Memory, str]] = ..., order: _Optional[_Iterable[int]] = ..., rows: _Optional[int] = ..., inner: _Optional[int] = ...) -> None: ...

class Packed(_message.Message):
    __slots__ = ("section", "element", "shape")
    SECTION_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    section: Section
    element: Element
    shape: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, section: _Optional[_Union[Section, _Mapping]] = ..., element: _Optional[_Union[Element, str]] = ..., shape: _Optional[_Iterable[int]] = ...) -> None: ...

class Section(_message.Message):
    __slots__ = ("offset", "size", "sum")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SUM_FIELD_NUMBER: _ClassVar[int]
    offset: int
    size: int
    sum: int
    def __init__(self, offset: _Optional[int] = ..., size: _Optional[int] = ..., sum: _Optional[int] = ...) -> None: ...

class Place(_message.Message):
    __slots__ = ("slot", "offset")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    slot: int
    offset: int
    def __init__(self, slot: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class Slot(_message.Message):
    __slots__ = ("memory", "bytes", "width", "height", "storage")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    bytes: int
    width: int
    height: int
    storage: Element
    def __init__(self, memory: _Optional[_Union[Memory, str]] = ..., bytes: _Optional[int] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., storage: _Optional[_Union[Element, str]] = ...) -> None: ...

class Launch(_message.Message):
    __slots__ = ("name", "ordered", "text", "entry", "options", "arguments", "dimensions", "global_size", "local_size", "spares", "local_bytes", "waiting")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ORDERED_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    SPARES_FIELD_NUMBER: _ClassVar[int]
    LOCAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    name: str
    ordered: bool
    text: int
    entry: str
    options: _containers.RepeatedScalarFieldContainer[str]
    arguments: _containers.RepeatedCompositeFieldContainer[Argument]
    dimensions: _containers.RepeatedScalarFieldContainer[int]
    global_size: _containers.RepeatedScalarFieldContainer[int]
    local_size: _containers.RepeatedScalarFieldContainer[int]
    spares: _containers.RepeatedCompositeFieldContainer[Spare]
    local_bytes: int
    waiting: Waiting
    def __init__(self, name: _Optional[str] = ..., ordered: bool = ..., text: _Optional[int] = ..., entry: _Optional[str] = ..., options: _Optional[_Iterable[str]] = ..., arguments: _Optional[_Iterable[_Union[Argument, _Mapping]]] = ..., dimensions: _Optional[_Iterable[int]] = ..., global_size: _Optional[_Iterable[int]] = ..., local_size: _Optional[_Iterable[int]] = ..., spares: _Optional[_Iterable[_Union[Spare, _Mapping]]] = ..., local_bytes: _Optional[int] = ..., waiting: _Optional[_Union[Waiting, _Mapping]] = ...) -> None: ...

class Waiting(_message.Message):
    __slots__ = ("noted", "element", "steps")
    NOTED_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    noted: int
    element: int
    steps: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, noted: _Optional[int] = ..., element: _Optional[int] = ..., steps: _Optional[_Iterable[str]] = ...) -> None: ...

class Spare(_message.Message):
    __slots__ = ("text", "entry", "options")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    text: int
    entry: str
    options: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, text: _Optional[int] = ..., entry: _Optional[str] = ..., options: _Optional[_Iterable[str]] = ...) -> None: ...

class Probe(_message.Message):
    __slots__ = ("launches", "fillings", "answers")
    LAUNCHES_FIELD_NUMBER: _ClassVar[int]
    FILLINGS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    launches: _containers.RepeatedScalarFieldContainer[int]
    fillings: _containers.RepeatedCompositeFieldContainer[Filling]
    answers: _containers.RepeatedCompositeFieldContainer[Answer]
    def __init__(self, launches: _Optional[_Iterable[int]] = ..., fillings: _Optional[_Iterable[_Union[Filling, _Mapping]]] = ..., answers: _Optional[_Iterable[_Union[Answer, _Mapping]]] = ...) -> None: ...

class Filling(_message.Message):
    __slots__ = ("kind", "rows", "exponent")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    EXPONENT_FIELD_NUMBER: _ClassVar[int]
    kind: FillingKind
    rows: Rows
    exponent: int
    def __init__(self, kind: _Optional[_Union[FillingKind, str]] = ..., rows: _Optional[_Union[Rows, _Mapping]] = ..., exponent: _Optional[int] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("argument", "rows", "bound")
    ARGUMENT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    argument: int
    rows: Rows
    bound: float
    def __init__(self, argument: _Optional[int] = ..., rows: _Optional[_Union[Rows, _Mapping]] = ..., bound: _Optional[float] = ...) -> None: ...

class Rows(_message.Message):
    __slots__ = ("element", "width", "count", "different", "numbers")
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DIFFERENT_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    element: Element
    width: int
    count: int
    different: Section
    numbers: Section
    def __init__(self, element: _Optional[_Union[Element, str]] = ..., width: _Optional[int] = ..., count: _Optional[int] = ..., different: _Optional[_Union[Section, _Mapping]] = ..., numbers: _Optional[_Union[Section, _Mapping]] = ...) -> None: ...

class Binary(_message.Message):
    __slots__ = ("key", "section")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SECTION_FIELD_NUMBER: _ClassVar[int]
    key: str
    section: Section
    def __init__(self, key: _Optional[str] = ..., section: _Optional[_Union[Section, _Mapping]] = ...) -> None: ...

class Unasked(_message.Message):
    __slots__ = ("launch", "reason")
    LAUNCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    launch: int
    reason: str
    def __init__(self, launch: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Argument(_message.Message):
    __slots__ = ("tensor", "written")
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    tensor: int
    written: bool
    def __init__(self, tensor: _Optional[int] = ..., written: bool = ...) -> None: ...

class Count(_message.Message):
    __slots__ = ("output", "axis", "count")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    AXIS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    output: int
    axis: int
    count: int
    def __init__(self, output: _Optional[int] = ..., axis: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class Endings(_message.Message):
    __slots__ = ("number", "loops")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LOOPS_FIELD_NUMBER: _ClassVar[int]
    number: int
    loops: _containers.RepeatedCompositeFieldContainer[Loop]
    def __init__(self, number: _Optional[int] = ..., loops: _Optional[_Iterable[_Union[Loop, _Mapping]]] = ...) -> None: ...

class Loop(_message.Message):
    __slots__ = ("name", "steps")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    name: str
    steps: int
    def __init__(self, name: _Optional[str] = ..., steps: _Optional[int] = ...) -> None: ...

class Workaround(_message.Message):
    __slots__ = ("effect", "value", "driver", "versions")
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    effect: str
    value: str
    driver: str
    versions: str
    def __init__(self, effect: _Optional[str] = ..., value: _Optional[str] = ..., driver: _Optional[str] = ..., versions: _Optional[str] = ...) -> None: ...
