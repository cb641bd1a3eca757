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
from smartmem_rules.runtime.programs.kept_texts import Home, Joined, KeptTexts, KernelText
from smartmem_rules.runtime.programs.program_cache import ProgramCache
from smartmem_rules.runtime.programs.ptx_target import TargetError, with_target
from smartmem_rules.runtime.programs.shared_programs import note_use, programs_in

_TEXTS_PER_PROGRAM = 32
_COMPILE_THREADS = 8
_LOG_LINES = 30
_ROUNDING = "#pragma OPENCL FP_CONTRACT DEFAULT"


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
        texts: ProgramCache | None = None,
    ) -> None:
        """Build each distinct text once.

        Args:
            cache: where built programs are kept, by default the user's.
            texts: where it is kept in which program a text was built, by default the user's; none with a `cache`.
            binaries: built programs that a plan brings along, by their keys in a cache.
            names: the kernels' names, for error messages.
            progress: called with the numbers of distinct texts built and to build.

        Raises:
            BuildError: a text does not compile.
        """
        self._context = context
        self._device = device
        self._cache = ProgramCache.of(device) if cache is None else cache
        self._kept_texts = KeptTexts(device, ProgramCache(None) if cache is not None and texts is None else texts)
        self._open = programs_in(context, device)
        self._binaries = binaries or {}
        self._names: dict[KernelText, str] = {}
        for source, name in zip(sources, names, strict=True):
            self._names.setdefault(_text(source, device), name)
        self._built: dict[KernelText, tuple[Any, str]] = {}
        self._chunks = chunks = _chunks(self._names, device)
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

    def _build(self, chunk: Sequence[KernelText]) -> dict[KernelText, tuple[Any, str]]:
        """The program and the name in it of each text: as they were built together, or in parts, or anew."""
        joined = _joined(chunk)
        program = self._known(self._key(joined), joined.options)
        if program is not None:
            return {text: (program, entry) for text, entry in joined.entries.items()}
        found = self._kept_apart(chunk)
        rest = [text for text in chunk if text not in found]
        return {**found, **self._build_anew(rest)} if rest else found

    def _kept_apart(self, chunk: Sequence[KernelText]) -> dict[KernelText, tuple[Any, str]]:
        """Of the texts those that are in programs of other plans, or in a program each."""
        found: dict[KernelText, tuple[Any, str]] = {}
        for text in chunk:
            home = self._kept_texts.home(text) or Home(self._key(_joined([text])), text.entry)
            program = self._known(home.program, text.options) or self._of_driver(home, text)
            if program is not None:
                found[text] = (program, home.entry)
        return found

    def _of_driver(self, home: Home, text: KernelText) -> Any:
        """The program of a kernel, by its source: the driver has it compiled already, unless it forgot it."""
        source = self._kept_texts.source(home)
        if source is None:
            return None
        try:
            program = self._open[home.program] = self._made(source, text.options, self._names[text])
        except BuildError:  # of a kernel beside it, maybe
            return None
        note_use(program, self._device)
        return program

    def _build_anew(self, texts: Sequence[KernelText]) -> dict[KernelText, tuple[Any, str]]:
        try:
            return self._compile(_joined(texts))
        except BuildError:
            if len(texts) == 1:
                raise
        built: dict[KernelText, tuple[Any, str]] = {}
        for text in texts:  # one at a time finds the kernel at fault, or copes with texts that do not go together
            built.update(self._compile(_joined([text])))
        return built

    def _compile(self, joined: Joined) -> dict[KernelText, tuple[Any, str]]:
        """The program of some texts, which other plans find from now on."""
        import pyopencl as cl

        key = self._key(joined)
        built = self._made(joined.text, joined.options, self._names[next(iter(joined.entries))])
        if self._cache.folder is not None:
            self._cache.write(key, built.get_info(cl.program_info.BINARIES)[0])
        self._kept_texts.keep(joined, key)
        self._open[key] = built
        note_use(built, self._device)
        return {text: (built, entry) for text, entry in joined.entries.items()}

    def _made(self, text: str, options: Sequence[str], name: str) -> Any:
        self._need_room()
        return self._with_few_declarations(text, options) or self._with_all_declarations(text, options, name)

    def _known(self, key: str, options: Sequence[str]) -> Any:
        """The program of a key, if it is open in this process, or the plan brings it along, or it is kept."""
        import pyopencl as cl

        program = self._open.get(key)
        if program is None:
            binary = self._binaries.get(key) or self._cache.read(key)
            if binary is None:
                return None
            try:
                program = cl.Program(self._context, [self._device.handle], [binary]).build(options=list(options))
            except cl.Error:  # a driver may refuse what it made itself, after an update that did not change its version
                return None
            self._open[key] = program
        note_use(program, self._device)
        return program

    def _key(self, joined: Joined) -> str:
        return self._cache.key(joined.text, joined.options, self._device)

    def binaries(self) -> dict[str, bytes]:
        """The programs as the driver has compiled them, by their keys in a cache; it may compile what no run needed."""
        import pyopencl as cl

        found: dict[str, bytes] = {}
        for chunk in self._chunks:
            joined = _joined(chunk)
            program = self._known(self._key(joined), joined.options)
            # kernels in programs of other plans are compiled here: a plan brings the programs that its texts make
            built = self._build_anew(chunk) if program is None else {text: (program, "") for text in chunk}
            together = len({id(program) for program, _ in built.values()}) == 1
            for text, (program, _) in built.items():
                key = self._key(joined if together else _joined([text]))
                found[key] = program.get_info(cl.program_info.BINARIES)[0]
        return found

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


def _joined(chunk: Sequence[KernelText]) -> Joined:
    """The program of texts that have the same options."""
    first = chunk[0]
    if len(chunk) == 1:
        return Joined(text=first.text, options=first.options, entries={first: first.entry})
    parts: list[str] = []
    entries: dict[KernelText, str] = {}
    for number, text in enumerate(chunk):
        entry = entries[text] = f"{text.entry}_{number}"
        own = _without_prelude(text.text, first.text) if number else text.text
        # a text may say how its own operations round, and the next one begins anew
        parts.append(f"{_ROUNDING}\n#define {text.entry} {entry}\n{own}\n#undef {text.entry}\n")
    return Joined(text="\n".join(parts), options=first.options, entries=entries)


def _without_prelude(text: str, first: str) -> str:
    """A text without the beginning that the first one of its program has, too: compilers read every copy of it."""
    prelude, end, own = text.partition(PRELUDE_END)
    return own if end and first.startswith(prelude + end) else text


def _build(program: Any, options: Sequence[str]) -> Any:
    # one cache is enough: False turns pyopencl's off
    return program.build(options=list(options), cache_dir=False)


def _text(source: Source, device: Device) -> KernelText:
    """What a source is compiled from."""
    return KernelText(source.entry, source.text, options_of(source, device))


def options_of(source: Source, device: Device) -> tuple[str, ...]:
    """The options with which a source is compiled: its own, and those that the device's driver needs."""
    joined = device.workaround("option_of_joined") if _SHARED in source.text else ()
    units = device.workaround("option_of_byte_unit") if _BYTE_UNIT in source.text and has_byte_unit() else ()
    return (*source.options, *device.workaround("option"), *joined, *units)


_BYTE_UNIT = "#ifdef SMR_BYTE_TILES"
"""How products of bytes begin that a processor's matrix unit may compute (codegen/contraction_panel.cl)."""
_SHARED = "__local float smr_local["
"""How launches of several kernels declare the local memory that these part (codegen/composed.cl)."""


def _chunks(texts: Iterable[KernelText], device: Device) -> list[list[KernelText]]:
    by_options: dict[tuple[str, ...], list[KernelText]] = {}
    for text in texts:
        by_options.setdefault(text.options, []).append(text)
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
