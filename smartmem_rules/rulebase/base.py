"""The rules that an optimization works with: the built-in ones and the user's."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Collection, Iterable, Iterator, MutableMapping, Sequence
from copy import copy
from dataclasses import field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from smartmem_rules.language import cache as kept, syntax as s
from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.export import Export
from smartmem_rules.language.blocks.fuse import FuseBlock
from smartmem_rules.language.blocks.keys import BlockRecord
from smartmem_rules.language.blocks.level import LayoutWeights, Level
from smartmem_rules.language.blocks.matrix import Matrix
from smartmem_rules.language.blocks.schedule import Schedule
from smartmem_rules.language.blocks.strategy import Strategy, one_by_one
from smartmem_rules.language.choices import MEMBER_SEPARATOR, families_of
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.expansion import Names, expanded_modules, with_rulesets
from smartmem_rules.language.fixes import advice, did_you_mean, nearest, replacement
from smartmem_rules.language.parsing.parser import parse_file
from smartmem_rules.language.parsing.source import read_source
from smartmem_rules.language.schema import typed
from smartmem_rules.records import dataclass
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.digests import KnownDigests
from smartmem_rules.rulebase.identity import Identities
from smartmem_rules.rulebase.packed import PackedOperators

TAG = "tag:"
"""Begins the name that stands for all rules with a tag."""


@dataclass(kw_only=True, slots=True)
class RuleBase:
    """All items of all files, by kind; `operators` lists the overloads of a name in the order they are tried.

    Attributes:
        digests: of the built-in rules, from the cache; None for other rule bases.
    """

    operators: MutableMapping[str, list[s.Operator]] = field(default_factory=dict)
    functions: dict[str, s.Function] = field(default_factory=dict)
    predicates: dict[str, s.Predicate] = field(default_factory=dict)
    constants: dict[str, s.Constant] = field(default_factory=dict)
    rulesets: dict[str, s.Ruleset] = field(default_factory=dict)
    rewrites: list[s.Rewrite] = field(default_factory=list)
    eliminates: list[s.Eliminate] = field(default_factory=list)
    index_rules: list[s.IndexRule] = field(default_factory=list)
    keeps: list[s.Keep] = field(default_factory=list)
    analyses: dict[str, s.Analysis] = field(default_factory=dict)
    tables: dict[str, s.Table] = field(default_factory=dict)
    devices: dict[str, Device] = field(default_factory=dict)
    matrices: dict[str, Matrix] = field(default_factory=dict)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    strategies: dict[str, Strategy] = field(default_factory=dict)
    levels: dict[str, Level] = field(default_factory=dict)
    layouts: dict[str, LayoutWeights] = field(default_factory=dict)
    fuses: dict[str, FuseBlock] = field(default_factory=dict)
    exports: dict[str, Export] = field(default_factory=dict)
    digests: KnownDigests | None = None

    def rule_names(self) -> set[str]:
        """The names that can be switched off one by one."""
        return {rule.name for rule in self.rules()}

    def families(self) -> set[str]:
        """The names of rules, and of the families that they belong to."""
        return {part for name in self.rule_names() for part in _with_families(name)}

    def switchable(self) -> set[str]:
        """All that `disable` may name: rules, families, `tag:WORD`, schedules, and `fuse` blocks."""
        return {
            *self.families(),
            *self.schedules,
            *self.fuses,
            *(f"{TAG}{tag}" for rule in self.rules() for tag in rule.tags),
        }

    def rules(self) -> list[s.Rule]:
        """All rules."""
        return [*self.rewrites, *self.eliminates, *self.index_rules, *self.keeps]

    @property
    def deferred(self) -> frozenset[str]:
        """Operators of constants that `keep` rules leave to the plan, and none of them to the run."""
        left = {rule.operator for rule in self.keeps if not rule.defers}
        return frozenset(rule.operator for rule in self.keeps if rule.defers and rule.operator not in left)

    def copy(self) -> RuleBase:
        """One that can be changed by itself."""
        copied = RuleBase(**{part.name: copy(getattr(self, part.name)) for part in fields(self)})
        if not isinstance(self.operators, PackedOperators):  # whose copy can be changed by itself
            copied.operators = {name: list(overloads) for name, overloads in self.operators.items()}
        return copied


def load_rules(extra_paths: Iterable[str | Path] = (), disable: Collection[str] = ()) -> RuleBase:
    """The built-in rules with the user's files and their imports, without what is named in `disable`.

    Overloads of the user's files are tried before the built-in ones.  A name in `disable` is that of a rule, of a
    family (all its rules), `tag:WORD` (all rules with this tag), a schedule, or a `fuse` block.
    Raises LanguageError with all errors of all files, or when a name in `disable` is none of these.
    """
    shipped = sorted(rules_path().rglob("*.smr"))
    extra = list(extra_paths)
    base = _with_files(shipped, extra) if extra else _built_in(tuple(map(_version, shipped))).copy()
    _switch_off(base, disable)
    return base


@lru_cache(maxsize=2)
def _built_in(versions: tuple[_Version, ...]) -> RuleBase:
    """The rule base of the built-in files, from the cache where their texts were checked before."""
    shipped = [Path(version.path) for version in versions]
    texts = (text for path in shipped for text in (str(path), read_source(path).text))
    key = kept.digest_of("rule base", *texts)
    known = kept.read_pickle(key)
    if isinstance(known, RuleBase):
        return known
    base = _checked(load_modules(shipped), [])
    if kept.folder() is not None:
        with contextlib.suppress(pickle.PicklingError, RecursionError):
            base.digests = KnownDigests.of(base)  # which looks at operators, so these are packed afterwards
            base.operators = PackedOperators(base.operators)
        kept.write_pickle(key, base)
    return base


def _with_files(shipped: Sequence[Path], extra: Iterable[str | Path]) -> RuleBase:
    """The rule base of the built-in files and a user's."""
    built_in = load_modules(shipped)
    known = {Path(module.span.file).resolve() for module in built_in}
    user = load_modules([path for path in map(Path, extra) if path.resolve() not in known], known)
    try:
        _built_in(tuple(map(_version, shipped)))
    except LanguageError:  # reported together with what is wrong with the user's
        return _checked(built_in, user)
    return _checked(built_in, user, right={module.span.file for module in built_in})


def _checked(built_in: Sequence[s.Module], user: Sequence[s.Module], right: Collection[str] = ()) -> RuleBase:
    from smartmem_rules.rulebase.checks.checker import check  # start-up time

    own = {module.span.file for module in user}
    errors = [one for one in check([*built_in, *user], deep=own, right=right) if one.severity == "error"]
    if errors:
        raise LanguageError(errors, {module.span.file: module.text for module in (*built_in, *user)})
    return collect(user, built_in)


def load_modules(paths: Iterable[Path], known: Collection[Path] = ()) -> list[s.Module]:
    """The files and all that they import, each once, an imported file before the one that imports it.

    Files in `known` count as loaded.  Raises LanguageError with the errors of all files.
    """
    loader = _Loader(set(known))
    for path in paths:
        loader.load(path)
    if loader.errors:
        raise LanguageError(loader.errors, loader.sources)
    return loader.modules


def collect(first: Iterable[s.Module], then: Iterable[s.Module]) -> RuleBase:
    """The rule base of checked modules: overloads of `first` are tried first, all other items of `then` come first.

    Families, predicates and constants are written out.
    """
    first, then = list(first), list(then)
    families = families_of(item for module in (*then, *first) for item in module.items)
    own, other = (expanded_modules(modules, families) for modules in (first, then))
    identities = Identities.of([*other, *own])
    own, other = ([identities.identified(item) for item in items] for items in (own, other))
    names = Names.of([*own, *other])
    base = RuleBase(predicates=dict(names.predicates), constants=dict(names.constants))
    for items in (own, other):
        _add_operators(base, [names.resolved(item) for item in items if isinstance(item, s.Operator)])
    for item in (*other, *own):
        _add(base, names.resolved(item))
    _settle_phases(base)
    for name, device in base.devices.items():
        base.devices[name] = replace(device, units=tuple(base.matrices[unit] for unit in device.compute.matrix))
    return base


def _settle_phases(base: RuleBase) -> None:
    """What each level runs, with the rule sets that no level names."""
    for name, level in base.levels.items():
        own = base.strategies[level.strategy].phase if level.strategy else one_by_one(level.rulesets)
        base.levels[name] = replace(level, phases=own)
    named = frozenset(name for level in base.levels.values() for phase in level.phases for name in phase.rulesets)
    for name, level in base.levels.items():
        phases = with_rulesets(level.phases, list(base.rulesets.values()), named)
        rulesets = tuple(name for phase in phases for name in phase.rulesets)
        base.levels[name] = replace(level, phases=phases, rulesets=rulesets)


def _add_operators(base: RuleBase, operators: Iterable[s.Item]) -> None:
    """One overload for each ONNX operator that a definition stands for.

    Overloads with more constant operands come first, whichever file is loaded first: those of tensors would take
    constants, too, and make a read of a view.
    """
    named: dict[str, list[s.Operator]] = {}
    for operator in operators:
        assert isinstance(operator, s.Operator)
        named.setdefault(operator.name, []).append(operator)
    for name, definitions in named.items():
        overloads = base.operators.setdefault(name, [])
        for one in sorted(definitions, key=lambda each: -sum(i.constant is not None for i in each.inputs)):
            overloads.append(replace(one, also=()) if one.also else one)
            overloads += [replace(one, onnx=binding, also=()) for binding in one.also]


def _add(base: RuleBase, item: s.Item) -> None:
    if isinstance(item, s.Function):
        base.functions[item.name] = item
    elif isinstance(item, s.Ruleset):
        base.rulesets[item.name] = item
    elif isinstance(item, s.Rewrite):
        base.rewrites.append(item)
    elif isinstance(item, s.Eliminate):
        base.eliminates.append(item)
    elif isinstance(item, s.IndexRule):
        base.index_rules.append(item)
    elif isinstance(item, s.Analysis):
        base.analyses[item.name] = item
    elif isinstance(item, s.Keep):
        base.keeps.append(item)
    elif isinstance(item, s.Table):
        base.tables[item.name] = item
    elif isinstance(item, s.Block):
        _add_block(base, typed(item))


def _add_block(base: RuleBase, record: BlockRecord) -> None:
    match record:
        case Device():
            base.devices[record.name] = record
        case Matrix():
            base.matrices[record.name] = record
        case Schedule():
            base.schedules[record.name] = record
        case Strategy():
            base.strategies[record.name] = record
        case Level():
            base.levels[record.name] = record
        case LayoutWeights():
            base.layouts[record.name] = record
        case FuseBlock():
            base.fuses[record.name] = record
        case Export():
            base.exports[record.name] = record


def _switch_off(base: RuleBase, names: Collection[str]) -> None:
    known = base.switchable()
    unknown = [
        Diagnostic(
            Code.UNKNOWN_RULE,
            "error",
            f"there is no rule, schedule or fuse block `{name}` to switch off",
            s.NOWHERE,
            fix=advice(did_you_mean(name, known) or "`smartmem docs` writes a reference of all names"),
        )
        for name in names
        if name not in known
    ]
    if unknown:
        raise LanguageError(unknown, {})
    base.rewrites = [rule for rule in base.rewrites if not _is_off(rule, names)]
    base.eliminates = [rule for rule in base.eliminates if not _is_off(rule, names)]
    base.index_rules = [rule for rule in base.index_rules if not _is_off(rule, names)]
    base.keeps = [rule for rule in base.keeps if not _is_off(rule, names)]
    base.schedules = {name: block for name, block in base.schedules.items() if name not in names}
    base.fuses = {name: block for name, block in base.fuses.items() if name not in names}
    for name, level in base.levels.items():
        base.levels[name] = replace(level, fuse=tuple(fuse for fuse in level.fuse if fuse not in names))


def _is_off(rule: s.Rule, names: Collection[str]) -> bool:
    tags = (f"{TAG}{tag}" for tag in rule.tags)
    return any(name in names for name in (*_with_families(rule.name), *tags))


def _with_families(rule: str) -> Iterator[str]:
    """The name of a rule and those of the families around it: `a.Add.Relu`, `a.Add`, `a`."""
    parts = rule.split(MEMBER_SEPARATOR)
    for length in range(len(parts), 0, -1):
        yield MEMBER_SEPARATOR.join(parts[:length])


class _Loader:
    """Loads files once each and gathers their errors."""

    def __init__(self, loaded: set[Path]) -> None:
        self.modules: list[s.Module] = []
        self.errors: list[Diagnostic] = []
        self.sources: dict[str, str] = {}
        self._loaded = loaded

    def load(self, path: Path) -> None:
        """Load a file after its imports; what is wrong goes into `errors`."""
        resolved = path.resolve()
        if resolved in self._loaded:
            return
        self._loaded.add(resolved)
        try:
            module = _parse_version(_version(path))
        except LanguageError as error:
            self.errors += error.diagnostics
            self.sources.update(error.sources)
            return
        self.sources[module.span.file] = module.text
        for item in module.items:
            if isinstance(item, s.Import):
                self._load_import(path, item)
        self.modules.append(module)

    def _load_import(self, importer: Path, item: s.Import) -> None:
        target = importer.parent / item.path
        if target.is_file():
            self.load(target)
            return
        siblings = [sibling.name for sibling in target.parent.glob("*.smr")] if target.parent.is_dir() else []
        message = f"the imported file `{item.path}` does not exist"
        near = nearest(target.name, siblings)
        shipped = {path.relative_to(rules_path()).as_posix() for path in rules_path().rglob("*.smr")}
        built_in = nearest(item.path, shipped)
        if (rules_path() / item.path).is_file():
            fix = replacement("leave it out: the built-in rules are always loaded", item.span, "")
        elif near is not None:
            corrected = (Path(item.path).parent / near).as_posix()
            fix = replacement(f"did you mean `{near}`?", item.place("path"), f'"{corrected}"')
        elif built_in is not None:
            text = f"leave it out: it is like the built-in `{built_in}`, and the built-in rules are always loaded"
            fix = replacement(text, item.span, "")
        else:
            fix = advice(f"it is looked for beside this file: put it into `{target.parent.name or '.'}`")
        self.errors.append(Diagnostic(Code.IMPORT_NOT_FOUND, "error", message, item.span, fix=fix))


class _Version(NamedTuple):
    """A file as it was when it was looked at; a changed one has another version."""

    path: str
    state: tuple[int, ...]


def _version(path: Path) -> _Version:
    try:
        state = path.stat()
    except OSError:  # reading it says what is wrong
        return _Version(str(path), ())
    return _Version(str(path), (state.st_mtime_ns, state.st_ctime_ns, state.st_size))


@lru_cache(maxsize=256)
def _parse_version(version: _Version) -> s.Module:
    return parse_file(version.path)
