"""What blocks may say: the keys of `device`, `schedule`, `level`, `layout` and `fuse` blocks, in one place.

The checker refuses what is not here, the reference documents it, completion offers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "number", "text", "space"]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a block.

    Attributes:
        kind: of each value; `word` and `number` are written plainly, `text` in quotes; `space`: a word, then numbers.
        least, most: how many values; no upper bound where `most` is None.
        choices: the words that are admitted; all where empty.
        refers: the kind of item that each word names, so that it must exist.
        repeats: whether several entries of this key may stand in a block.
    """

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    least: int = 1
    most: int | None = 1
    choices: tuple[str, ...] = ()
    refers: Literal["ruleset", "table", "fuse", ""] = ""
    repeats: bool = False


_DEVICE_KINDS = ("cpu", "gpu", "texture_gpu")
_FORMS = ("pointwise", "window", "reduction", "contraction", "rows", "batch", "scan", "any", "launch")


def _number(name: str, meaning: str, required: bool = False, least: int = 1, most: int | None = 1) -> Key:
    return Key(name, "number", meaning, required, least, most)


BLOCKS: dict[str, tuple[Key, ...]] = {
    "device": (
        Key("match", "text", "a regular expression that is found in `PLATFORM DEVICE`", most=None, repeats=True),
        Key(
            "fallback",
            "word",
            "device types that the profile stands in for",
            most=None,
            choices=("cpu", "gpu", "accelerator"),
        ),
        Key("kind", "word", "the class of device, for schedules", required=True, choices=_DEVICE_KINDS),
        Key("prefers", "word", "where tensors lie when memory is free to choose", True, choices=("image", "buffer")),
        _number("image2d", "largest width and height of an image", True, 2, 2),
        _number("texture_bandwidth", "GB/s through images", True),
        _number("global_bandwidth", "GB/s through buffers", True),
        _number("peak_gflops", "arithmetic in single precision, GFLOP/s", True),
        _number("launch_us", "host time of one enqueue, microseconds", True),
        _number("late_unit", "part of a round of work-items for which a unit that is late keeps the others waiting"),
        _number("vector_width", "elements of one vector", True),
        _number("units", "cores or multiprocessors, for balance; the device itself is asked at run time"),
        _number("local_memory", "bytes of one work-group", True),
        _number("resident_items", "work-items that a multiprocessor keeps busy"),
        _number("alignment", "bytes of which the parts of a buffer begin at multiples; the device itself is asked"),
        _number("allocation", "bytes of the largest buffer; the device itself is asked"),
        Key(
            "sub_buffers",
            "word",
            "`no` where the driver does not deal well with parts of a buffer: intermediates then share whole buffers",
            choices=("yes", "no"),
        ),
        Key(
            "ordered_launches",
            "word",
            "`yes` where a work-group keeps its unit from its beginning to its end, so that others may wait for it",
            choices=("yes", "no"),
        ),
        Key("matrix", "word", "how products use the device's matrix units", choices=("tf32x3",)),
        Key(
            "storage",
            "word",
            "element types in memory, the preferred one first",
            most=None,
            choices=("float32", "float16"),
        ),
        _number("solver_seconds", "time that the extraction's solver may take"),
        _number("wave", "work-items that issue an access together (for `simulate`, as what follows)"),
        _number("texture_units", "units with a texture cache of their own"),
        _number("resident_waves", "waves that a texture unit interleaves"),
        _number("cache_line", "bytes of a line, in all caches"),
        _number("texture_l1", "bytes and ways of a texture unit's cache", least=2, most=2),
        _number("l2", "bytes and ways of the cache that all share", least=2, most=2),
        _number("texture_block", "bytes and rows of the two-dimensional blocks in which images lie", least=2, most=2),
        _number("register_array", "bytes of an array that a work-item keeps in registers"),
        _number("unit_memory", "bytes of local memory that the work-groups of a multiprocessor or texture unit share"),
        _number("local_bandwidth", "GB/s in and out of local memory"),
        _number("l2_bandwidth", "GB/s out of the shared cache"),
    ),
    "schedule": (
        Key("kind", "word", "the devices that it is for", required=True, choices=(*_DEVICE_KINDS, "any")),
        Key("memory", "word", "where the operands lie", required=True, choices=("image", "buffer", "any")),
        Key(
            "template",
            "word",
            "the template of codegen/ that realises it",
            True,
            choices=("panel", "winograd", "group", "tile", "pointwise", "reduction"),
        ),
        Key("tuned", "word", "used from the level on that says `schedules tuned`", True, choices=("yes", "no")),
        _number("rows", "rows of the register block to choose from", False, 1, None),
        _number("columns", "columns of the register block to choose from", False, 1, None),
        _number("row_columns", "columns of the register block of a single row"),
        _number("most_sums", "sums of a register block that the device's registers hold"),
        Key(
            "search",
            "space",
            "sizes that tuning tries: which size of the template, and its values",
            least=2,
            most=None,
            choices=("rows", "columns", "block_rows", "tiles_per_block", "items", "places", "team"),
            repeats=True,
        ),
        Key("input", "number", "a row of the input's transform B^T (Winograd)", most=None, repeats=True),
        Key("weights", "number", "a row of the weights' transform G", most=None, repeats=True),
        _number("weights_over", "the divisor of the rows of `weights`"),
        Key("output", "number", "a row of the output's transform A^T", most=None, repeats=True),
        _number("transform_step", "what an operation of a transform costs, in steps of a vector of sums"),
        _number("weights_byte", "what a byte of the right factor costs, in the same unit"),
        Key("extents", "word", "`fixed` for a template that cannot take open extents", choices=("any", "fixed")),
        _number("panel_bytes", "bytes of staged rows"),
        _number("scratch_bytes", "bytes that one work-item keeps to itself"),
        _number("step_overhead", "what a step of the reduction costs besides, in products of a vector"),
        _number("product_latency", "from one product to the next of the same sum, in products of a vector"),
        _number("load_cost", "what loading a vector or repeating an element costs, in products of a vector"),
        _number("request_steps", "most steps of the reduction for one request of a line of the next tile of weights"),
        _number("window_rows", "most neighbouring rows whose windows are computed together"),
        _number("items", "work-items that balance the device"),
        _number("group", "work-items of a work-group that share out vectors of the output"),
        _number("places", "vectors of the output that a work-item computes"),
        _number("team", "work-items that may share a row, to choose from", False, 1, None),
        _number("team_group", "work-items of a work-group whose teams compute rows"),
        _number("vectors", "vectors of a row for each member of a team"),
        _number("few_rows", "rows are few if the device has more than one in so many of its work-items idle"),
        _number("smallest_block", "rows below which columns are split instead"),
        _number("splits", "work-groups that may share one reduction, to choose from", False, 1, None),
        Key(
            "tile",
            "number",
            "sizes of a work-group to choose from: rows, columns, step of the reduction, slices of the step, "
            "rows and columns of each sub-group of 32 work-items, steps in local memory at once (1 or 2)",
            least=7,
            most=7,
            repeats=True,
        ),
        _number("turn_cycles", "cycles of a step at least, from the request of a tile's elements to their use"),
        _number("shared_turn_cycles", "cycles that a step of a resident work-group takes from the others"),
        _number("group_cycles", "cycles of a work-group besides its steps"),
        _number("sums_per_cycle", "products that a multiprocessor adds in a cycle"),
        _number("loads_per_cycle", "elements that a multiprocessor loads in a cycle"),
        _number("meetings_per_cycle", "sums that a work-group adds in a cycle to those of the others through memory"),
        _number("resident_subgroups", "sub-groups that a multiprocessor keeps busy"),
    ),
    "level": (
        Key("rulesets", "word", "rule sets in the order in which they run", True, 0, None, refers="ruleset"),
        Key("table", "word", "the table that decides fusion", refers="table"),
        Key("views", "word", "whether consumers read through index maps", choices=("keep", "read_through")),
        Key("fuse", "word", "`fuse` blocks that go beyond the table", most=None, refers="fuse"),
        Key("layouts", "word", "how tensors are laid out", choices=("none", "reduction")),
        Key("kernels", "word", "`joint`: chosen with the layouts, by modelled time", choices=("rules", "joint")),
        Key("schedules", "word", "which schedules are admitted", choices=("default", "tuned")),
        Key("memory", "word", "textures and buffers", choices=("buffer", "preferred")),
        Key("intermediates", "word", "how they share memory", choices=("shared", "in_place")),
    ),
    "layout": (
        _number("scattered_read", "a read whose vector is gathered element by element", True),
        _number("strided_read", "a read that is contiguous along another loop", True),
        _number("scattered_write", "a write that leaves a vector's elements apart", True),
        _number("buffer_axes", "axes along which a buffer is addressed directly (SmartMem's k)"),
        _number("image_axes", "axes along which an image is addressed directly"),
        _number("copies", "further layouts in which one tensor may be kept, 0 or 1"),
        _number("copy_gain", "how often a kernel that only copies a tensor has to save what it costs"),
        _number("sweeps", "passes of the local search", True),
        _number("solver_seconds", "time that the solver may take for the choice over the whole graph"),
        _number("configurations", "ways to compute a part of the graph that compete, at most"),
        _number("further_kernels", "kernels that one of them may have more than the fusion rules make there"),
    ),
    "fuse": (
        Key("first", "word", "the form of the kernel that feeds", required=True, choices=_FORMS),
        Key("second", "word", "the form of what it feeds", required=True, choices=_FORMS),
        _number("recompute", "scalar operations that one saved access may cost"),
        _number("recompute_most", "the same, for kernels that compete where kernels are chosen jointly with layouts"),
        Key("optional", "word", "whether kernels made without the block compete there, too", choices=("yes", "no")),
        _number("scratch", "bytes of one row that are kept on chip"),
        _number("columns", "bytes of a right factor that are kept beside it; any number where absent"),
        Key(
            "template", "word", "only where a schedule of this template is admitted", choices=("panel", "group", "tile")
        ),
        _number("tolerance", "percent of the modelled time that one launch fewer may cost"),
        _number("width", "columns of a product for which what is fed is computed once"),
        Key("keeps", "word", "whether what is fed may be stored for others too", choices=("yes", "no")),
        _number("launches", "the time of a small kernel in launches: on one core of a CPU, on all of a GPU"),
        _number("waits", "the time for which a unit may wait for another one, in launches"),
    ),
}

SUBJECTS: dict[str, tuple[str, ...]] = {"schedule": ("contraction", "pointwise", "window", "reduction")}
"""What stands behind `for`, for blocks that need it."""

ACTIONS: dict[str, tuple[str, ...]] = {
    "class": ("keep", "fuse", "eliminate1", "eliminate2", "eliminate_both"),
    "mapping": ("through", "depends", "break"),
}
"""First words of the cells of a table over classes or over mapping types."""

RESULTS: dict[str, tuple[str, ...]] = {"class": ("gone",), "mapping": ("none",)}
"""Second words of cells besides the classes or mapping types themselves."""
