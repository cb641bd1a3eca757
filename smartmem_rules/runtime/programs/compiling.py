"""From kernel texts to OpenCL kernels: many texts to a program, because each program costs a fixed time to build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from smartmem_rules.errors import SmartmemError
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.ptx_target import IS_SET, asked_target
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.driver_cache import DRIVER_ROOM, driver_folder
from smartmem_rules.runtime.kept_files import free_bytes
from smartmem_rules.runtime.processor.matrix_unit import has_byte_unit
from smartmem_rules.runtime.programs.declarations import OWN_DECLARATIONS, declarations
from smartmem_rules.runtime.programs.excerpts import PRELUDE_END, excerpt
from smartmem_rules.runtime.programs.program_cache import ProgramCache
from smartmem_rules.runtime.programs.ptx_target import TargetError, with_target
from smartmem_rules.runtime.programs.shared_programs import note_use, programs_in

_TEXTS_PER_PROGRAM = 32
_COMPILE_THREADS = 8
_LOG_LINES = 30
_ROUNDING = "#pragma OPENCL FP_CONTRACT DEFAULT"
_Text = tuple[str, str, tuple[str, ...]]
"""The entry, the text and the options of a source: what makes two sources the same kernel code."""


class BuildError(SmartmemError):
    """The OpenCL compiler refused a kernel; the message has the kernel's name and the compiler's log."""


class Programs:
    """The built programs of a plan's sources."""

    def __init__(
        self,
        context: Any,
        device: Device,
        sources: Sequence[Source],
        names: Sequence[str],
        progress: Callable[[int, int], None] | None = None,
        cache: ProgramCache | None = None,
        binaries: Mapping[str, bytes] | None = None,
    ) -> None:
        """Build each distinct text once.

        Args:
            cache: where built programs are kept, by default the user's.
            binaries: built programs that a plan brings along, by their keys in a cache.
            names: the kernels' names, for error messages.
            progress: called with the numbers of distinct texts built and to build.

        Raises:
            BuildError: a text does not compile.
        """
        self._context = context
        self._device = device
        self._cache = ProgramCache.of(device) if cache is None else cache
        self._open = programs_in(context, device)
        self._binaries = binaries or {}
        self._own: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._names: dict[_Text, str] = {}
        for source, name in zip(sources, names, strict=True):
            self._names.setdefault(_text(source, device), name)
        self._built: dict[_Text, tuple[Any, str]] = {}
        chunks = _chunks(self._names, device)
        done = 0
        most = min((int(number) for number in device.workaround("compile_threads")), default=_COMPILE_THREADS)
        workers = min(most, max(1, len(chunks)))
        with ThreadPoolExecutor(workers) as pool:
            # one worker is none: the garbage collector must not drop what belongs to this thread in another one
            for built in map(self._build, chunks) if workers == 1 else pool.map(self._build, chunks):
                self._built.update(built)
                done += len(built)
                if progress is not None:
                    progress(done, len(self._names))

    @property
    def count(self) -> int:
        """How many distinct texts there are."""
        return len(self._names)

    def kernel(self, source: Source) -> Any:
        """A new kernel object with its own arguments."""
        import pyopencl as cl

        program, entry = self._built[_text(source, self._device)]
        return cl.Kernel(program, entry)

    def _build(self, chunk: Sequence[_Text]) -> dict[_Text, tuple[Any, str]]:
        if len(chunk) > 1:
            try:
                return self._build_together(chunk)
            except BuildError:
                pass  # one at a time finds the kernel at fault, or copes with texts that do not go together
        built: dict[_Text, tuple[Any, str]] = {}
        for text in chunk:
            built[text] = (self._compile(text[1], text[2], self._names[text]), text[0])
        return built

    def _build_together(self, chunk: Sequence[_Text]) -> dict[_Text, tuple[Any, str]]:
        parts: list[str] = []
        entries: dict[_Text, str] = {}
        for number, text in enumerate(chunk):
            entry = f"{text[0]}_{number}"
            entries[text] = entry
            own = _without_prelude(text[1], chunk[0][1]) if number else text[1]
            # a text may say how its own operations round, and the next one begins anew
            parts.append(f"{_ROUNDING}\n#define {text[0]} {entry}\n{own}\n#undef {text[0]}\n")
        program = self._compile("\n".join(parts), chunk[0][2], self._names[chunk[0]])
        return {text: (program, entry) for text, entry in entries.items()}

    def _compile(self, text: str, options: tuple[str, ...], name: str) -> Any:
        program = self._open.get((text, options))
        if program is None:
            program = self._open[text, options] = self._made(text, list(options), name)
        self._own[text, options] = program
        note_use(program, self._device)
        return program

    def binaries(self) -> dict[str, bytes]:
        """The programs as the driver has compiled them, by their keys in a cache; it may compile what no run needed."""
        import pyopencl as cl

        return {
            self._cache.key(text, options, self._device): program.get_info(cl.program_info.BINARIES)[0]
            for (text, options), program in self._own.items()
        }

    def _made(self, text: str, given: list[str], name: str) -> Any:
        import pyopencl as cl

        key = self._cache.key(text, given, self._device)
        kept = self._binaries.get(key) or self._cache.read(key)
        if kept is not None:
            try:
                return cl.Program(self._context, [self._device.handle], [kept]).build(options=given)
            except cl.Error:
                pass  # a driver may refuse what it made itself, after an update that did not change its version
        self._need_room()
        built = self._with_few_declarations(text, given) or self._with_all_declarations(text, given, name)
        if self._cache.folder is not None:
            self._cache.write(key, built.get_info(cl.program_info.BINARIES)[0])
        return built

    def _with_few_declarations(self, text: str, options: Sequence[str]) -> Any:
        """The program, from the declarations and the prelude that its text needs; None where that is impossible."""
        import pyopencl as cl

        known = declarations() if self._device.workaround("parses_all_declarations") else None
        if known is None or asked_target(options):
            return None
        needed = excerpt(text)
        try:
            return _build(cl.Program(self._context, known.before(needed) + needed), [*options, OWN_DECLARATIONS])
        except cl.Error:  # the text is at fault, which the driver's own declarations then show, or needs more of them
            return None

    def _with_all_declarations(self, text: str, options: Sequence[str], name: str) -> Any:
        import pyopencl as cl

        program = cl.Program(self._context, text)
        target = asked_target(options)
        try:
            built = _build(program, [*options, IS_SET] if target else options)
            return self._for_target(built, target, options) if target else built
        except cl.Error as error:
            raise BuildError(f"the kernel {name} does not compile:\n{_log(program, error)}") from error
        except TargetError as error:
            raise BuildError(f"the kernel {name} does not compile: {error}") from error

    def _for_target(self, built: Any, target: str, options: Sequence[str]) -> Any:
        """The program for a PTX target for which the driver does not compile."""
        import pyopencl as cl

        changed = with_target(built.get_info(cl.program_info.BINARIES)[0], target)
        return cl.Program(self._context, [self._device.handle], [changed]).build(options=list(options))

    def _need_room(self) -> None:
        """Refuse to compile where a driver that compiles into files would find the disk full."""
        folder = driver_folder() if self._cache.folder is None else None
        if folder is None or not folder.is_dir() or not self._device.workaround("driver_keeps_programs"):
            return
        free = free_bytes(folder)
        if free < DRIVER_ROOM:
            raise BuildError(
                f"{folder}: the OpenCL driver compiles into this folder, and its disk has {free >> 20} MiB free; make "
                f"room for {DRIVER_ROOM >> 20} MiB or name another folder in SMARTMEM_CACHE"
            )


def _without_prelude(text: str, first: str) -> str:
    """A text without the beginning that the first one of its program has, too: compilers read every copy of it."""
    prelude, end, own = text.partition(PRELUDE_END)
    return own if end and first.startswith(prelude + end) else text


def _build(program: Any, options: Sequence[str]) -> Any:
    # one cache is enough: False turns pyopencl's off
    return program.build(options=list(options), cache_dir=False)


def _text(source: Source, device: Device) -> _Text:
    """What a source is compiled from."""
    return source.entry, source.text, options_of(source, device)


def options_of(source: Source, device: Device) -> tuple[str, ...]:
    """The options with which a source is compiled: its own, and those that the device's driver needs."""
    joined = device.workaround("option_of_joined") if _SHARED in source.text else ()
    units = device.workaround("option_of_byte_unit") if _BYTE_UNIT in source.text and has_byte_unit() else ()
    return (*source.options, *device.workaround("option"), *joined, *units)


_BYTE_UNIT = "#ifdef SMR_BYTE_TILES"
"""How products of bytes begin that a processor's matrix unit may compute (codegen/contraction_panel.cl)."""
_SHARED = "__local float smr_local["
"""How launches of several kernels declare the local memory that these part (codegen/composed.cl)."""


def _chunks(texts: Iterable[_Text], device: Device) -> list[list[_Text]]:
    by_options: dict[tuple[str, ...], list[_Text]] = {}
    for text in texts:
        by_options.setdefault(text[2], []).append(text)
    size = _TEXTS_PER_PROGRAM if device.kind == "cpu" else 4
    return [group[at : at + size] for group in by_options.values() for at in range(0, len(group), size)]


def _log(program: Any, error: Exception) -> str:
    """The compiler's messages, without pyopencl's own words around them."""
    import pyopencl as cl

    try:
        logs = [program.get_build_info(device, cl.program_build_info.LOG) for device in program.devices]
        text = "\n".join(log.strip() for log in logs if log and log.strip())
    except cl.Error:
        text = ""
    lines = (text or str(error)).splitlines()
    if len(lines) > _LOG_LINES:
        lines = [*lines[:_LOG_LINES], f"... and {len(lines) - _LOG_LINES} lines more"]
    return "\n".join(lines)
