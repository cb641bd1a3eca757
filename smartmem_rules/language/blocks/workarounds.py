"""What a `workaround` clause of a `device` block says: a fault or habit of a driver, and what the engine does about it.

workaround option "-DSMR_NO_PREFETCH" on "rusticl" versions ">=22 <26" because "what is wrong with the driver";
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from smartmem_rules.errors import SmartmemError
from smartmem_rules.records import dataclass
from smartmem_rules.resources import templates_path

EFFECTS = {
    "environment": "sets the variable `NAME=VALUE` before the driver opens its devices, unless the user has set it",
    "environment_on_all_cores": "the same, where the process may run on all cores of the computer; `NAME=VALUE unless"
    " OTHER` does nothing where the user has set OTHER",
    "option": "an option of the OpenCL compiler for every kernel",
    "option_of_joined": "an option for launches that join kernels which share local memory",
    "option_of_byte_unit": "an option for kernels of products of bytes, where the processor has a matrix unit for them"
    " (AMX) that the process may use",
    "compile_threads": "how many programs are compiled at once",
    "driver_keeps_programs": "compiled programs are left to the driver's own cache",
    "shares_programs": "plans share an OpenCL context, and each program that another plan in use has built",
    "keeps_context_open": "one context of the device stays open as long as the process runs",
    "parses_all_declarations": "a program declares only the built-in functions that it names",
    "whole_buffers": "intermediates never lie in parts of one buffer: each place of the plan's memory is a buffer",
    "names_processor": "a processor that the driver's LLVM does not know gets the name of its level of instructions",
    "refused": "no plan runs on the driver, whose results are wrong, unless the user sets SMARTMEM_ANY_DRIVER=on",
}
"""What a workaround may do, by the word that says so."""
WITHOUT_VALUE = frozenset(
    {
        "driver_keeps_programs",
        "keeps_context_open",
        "names_processor",
        "parses_all_declarations",
        "refused",
        "shares_programs",
        "whole_buffers",
    }
)

_SWITCH = re.compile(r"\bSMR_NO_\w+")
"""What kernels leave out where they are compiled with `-D` and one of these."""


def effects_shown(word: str) -> str:
    """How an effect is written where a word is none: the option that it names, or the forms of all effects."""
    switches = {one for path in templates_path().glob("*.cl") for one in _SWITCH.findall(path.read_text())}
    meant = re.sub(r"\W", "_", word).upper().removeprefix("SMR_")
    named = [one for one in sorted(switches) if len(meant) > 3 and meant in one]
    if len(named) == 1:
        return f'write `option "-D{named[0]}"`, an option with which kernels are compiled'
    valued = [f'{one} "VALUE"' for one in EFFECTS if one not in WITHOUT_VALUE]
    return f"write one of {', '.join((*valued, *(one for one in EFFECTS if one in WITHOUT_VALUE)))}"


_SETTING = re.compile(r"[A-Za-z_]\w*=\S*( unless [A-Za-z_]\w*)?")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_BOUND = re.compile(r"(>=|<=|<|>|==)\s*(\d+(?:\.\d+)*)")


class ClauseError(SmartmemError):
    """A clause says something that has no meaning; `place` is the number of the value at fault, None for the whole."""

    def __init__(self, message: str, place: int | None, fix: str) -> None:
        super().__init__(message)
        self.place = place
        self.fix = fix


@dataclass(frozen=True, kw_only=True)
class Workaround:
    """One clause.

    Attributes:
        effect: a word of `EFFECTS`.
        value: what the effect is given, empty where it needs nothing.
        driver: a regular expression that is found in `PLATFORM DEVICE`.
        versions: bounds of the driver's version, all versions where empty.
        reason: what is wrong with the driver.
    """

    effect: str
    value: str
    driver: str
    versions: str
    reason: str

    @property
    def variable(self) -> tuple[str, str]:
        """Name and value of the variable that an `environment` clause sets."""
        name, _, value = self.value.partition(" unless ")[0].partition("=")
        return name, value

    @property
    def unless(self) -> str:
        """The variable that stops an `environment` clause where the user has set it, empty for none."""
        return self.value.partition(" unless ")[2]

    def concerns(self, name: str, version: str) -> bool:
        """Whether the clause is about a driver; one whose version cannot be told counts as concerned.

        Args:
            name: `PLATFORM DEVICE`, or the platform alone while devices are not known.
            version: any text that holds the version's number.
        """
        if re.search(self.driver, name, re.IGNORECASE) is None:
            return False
        found = _NUMBER.search(version)
        return found is None or all(_holds(found[0], *bound) for bound in _BOUND.findall(self.versions))


def workaround_of(clause: Sequence[int | float | str]) -> Workaround:
    """The clause of the values of an entry.

    It is written `workaround EFFECT ["VALUE"] on "DRIVER" [versions "BOUNDS"] because "REASON"`.

    Raises:
        ClauseError: it is none.
    """
    values = [str(value) for value in clause]
    effect = values[0]
    if effect not in EFFECTS:
        raise ClauseError(f"there is no workaround `{effect}`", 0, effects_shown(effect))
    wants_value = effect not in WITHOUT_VALUE
    words = ["on", "because"] if len(values) == 5 + wants_value else ["on", "versions", "because"]
    start = 1 + wants_value
    if len(values) != start + 2 * len(words) or values[start::2] != words:
        form = f'`workaround {effect}{" TEXT" * wants_value} on "DRIVER" versions "BOUNDS" because "REASON"`'
        shown = form.replace("TEXT", '"VALUE"')
        raise ClauseError(f"this is no clause of `workaround {effect}`", None, f"write {shown}")
    said = dict(zip(words, values[start + 1 :: 2], strict=True))
    found = Workaround(
        effect=effect,
        value=values[1] if wants_value else "",
        driver=said["on"],
        versions=said.get("versions", ""),
        reason=said["because"],
    )
    _check(found, start)
    return found


def _check(clause: Workaround, start: int) -> None:
    if clause.effect.startswith("environment") and _SETTING.fullmatch(clause.value) is None:
        raise ClauseError(f"`{clause.value}` sets no variable", 1, 'write "NAME=VALUE" or "NAME=VALUE unless OTHER"')
    if clause.effect == "compile_threads" and (not clause.value.isdigit() or int(clause.value) < 1):
        raise ClauseError(f"`{clause.value}` is no number of threads", 1, 'write "1" or more')
    if clause.effect.startswith("option") and not clause.value.startswith("-"):
        raise ClauseError(f"`{clause.value}` is no option of the OpenCL compiler", 1, "options begin with `-`")
    try:
        re.compile(clause.driver)
    except re.error as error:
        raise ClauseError(
            f"`{clause.driver}` is no regular expression: {error}",
            start + 1,
            'a driver is named by a regular expression, such as "PoCL.*"',
        ) from error
    if clause.versions and _BOUND.sub("", clause.versions).strip():
        raise ClauseError(f"`{clause.versions}` bounds no version", start + 3, _bounds_meant(clause.versions))
    if not clause.reason.strip():
        raise ClauseError(
            "a workaround gives its reason", start + 1 + 2 * (1 + bool(clause.versions)), 'write `because "REASON"`'
        )


def _bounds_meant(versions: str) -> str:
    """The bounds of all versions that begin so: `2.*`, `2.x`, `2`."""
    begin = re.fullmatch(r"={0,2}v?(\d+(?:\.\d+)*)(?:\.[*x])?", versions.strip())
    if begin is None:
        return 'write bounds as in ">=3.0 <4"'
    *parts, last = begin[1].split(".")
    return f'write bounds: ">={begin[1]} <{".".join([*parts, str(int(last) + 1)])}"'


def _holds(version: str, sign: str, bound: str) -> bool:
    ours, theirs = ([int(part) for part in one.split(".")] for one in (version, bound))
    length = max(len(ours), len(theirs))
    ours, theirs = (one + [0] * (length - len(one)) for one in (ours, theirs))
    return {
        ">=": ours >= theirs,
        "<=": ours <= theirs,
        "<": ours < theirs,
        ">": ours > theirs,
        "==": ours == theirs,
    }[sign]
