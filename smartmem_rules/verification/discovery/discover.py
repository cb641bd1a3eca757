"""Discovers rewrites: terms of one value, without what follows from rules that are there, verified and printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from smartmem_rules.egraph.saturation import Bounds, saturate
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.discovery.enumerate_terms import Enumerator
from smartmem_rules.verification.discovery.graphs import GraphWriter
from smartmem_rules.verification.discovery.naming import name_of
from smartmem_rules.verification.proof.proofs import prove_rewrite
from smartmem_rules.verification.semantics.terms import Application, Leaf, Term, leaves, subterms
from smartmem_rules.verification.trials.outcome import Budget
from smartmem_rules.verification.trials.rewrites import test_rewrite

RULESET = "discovered"
TRIALS = 80
MOST_WAYS = 2000
"""Cases of ranks, attributes and extents in which the proof of one rule looks at both sides."""
_RELAXATIONS = ((), ("signed_zero",), ("reassociation",), ("reassociation", "infinities"), ("reassociation", "nan"),
                ("reassociation", "nan", "infinities"))  # fmt: skip
_GUARDS = ((), ("floats",), ("alike",), ("floats", "alike"))
"""What a rule asks for where it does not hold for all: floats, or operands of one shape, of which none spreads."""
_BOUNDS = Bounds(4000, 4.0, 6)


@dataclass(frozen=True, kw_only=True)
class Discovered:
    """A rewrite that holds and does not follow from the others."""

    name: str
    text: str
    rule: ast.Rewrite
    is_proved: bool
    left: Term
    right: Term


@dataclass(kw_only=True)
class Discovery:
    """What a search found."""

    rules: list[Discovered] = field(default_factory=list)
    terms: int = 0
    pairs: int = 0
    derivable: int = 0
    refuted: int = 0
    reorderings: int = 0
    working: list[ast.Rewrite] = field(default_factory=list)
    """All that was found, with the reorderings that are not printed."""
    seconds: float = 0.0


def discover(
    base: RuleBase,
    operators: Sequence[str],
    size: int,
    seed: int = 1,
    seconds: float = 120.0,
    progress: Callable[[int, int], None] | None = None,
) -> Discovery:
    """Rewrites over some operators that do not follow from the rules of a rule base.

    Args:
        operators: names of the rule base; only these make up the terms.
        size: the most operator applications on one side.
        seconds: of processor time, after which what was found so far is returned.

    Raises:
        ValueError: an operator is unknown.
    """
    began = time.process_time()
    unknown = [name for name in operators if name not in base.operators]
    if unknown:
        raise ValueError(f"the rule base has no operator {', '.join(unknown)}")
    instances = Instances(base)
    found = Enumerator(operators, size, instances, seed).run()
    discovery = Discovery(terms=found.terms, pairs=len(found.pairs))
    # of two candidates of one size the one with more names is more general: the other may follow from it
    pairs = sorted(dict.fromkeys(_oriented(p) for p in found.pairs), key=_generality)
    pairs = [
        p
        for p in pairs
        if leaves(p[1]).keys() <= {*leaves(p[0]), *(n for n, v in leaves(p[1]).items() if v.number is not None)}
    ]
    search = _Search(replace(base, rewrites=list(base.rewrites)), instances, seed, discovery)
    total, dropped = len(pairs), []
    while pairs and time.process_time() - began < seconds:
        if progress is not None:
            progress(total - len(pairs), total)
        open_pairs = underivable(pairs, search.working)
        dropped += [p for p in pairs if p not in open_pairs]
        pairs = open_pairs
        while pairs and not search.accept(*pairs.pop(0)):
            pass
    for pair in dropped:
        # beside all the others a pair may follow by way of terms that no user's model has
        if time.process_time() - began < 1.5 * seconds and underivable([pair], search.working):
            search.accept(*pair)
        else:
            discovery.derivable += 1
    discovery.seconds = time.process_time() - began
    return discovery


@dataclass
class _Search:
    """The rules so far, with those that were there before."""

    working: RuleBase
    instances: Instances
    seed: int
    discovery: Discovery

    def accept(self, left: Term, right: Term) -> bool:
        """Add a pair as a rule where it holds."""
        taken = {known.name for known in self.working.rewrites}
        rule = _verified(left, right, name_of(left, taken), self.instances, self.seed)
        if rule is None:
            self.discovery.refuted += 1
            return False
        if reorders(left, right):
            self.discovery.reorderings += 1
        else:
            self.discovery.rules.append(rule)
        self.discovery.working.append(replace(rule.rule, ruleset=RULESET))
        self.working.rewrites.append(self.discovery.working[-1])
        return True


def _oriented(pair: tuple[Term, Term]) -> tuple[Term, Term]:
    return pair if _cost(pair[0]) >= _cost(pair[1]) and isinstance(pair[0], Application) else (pair[1], pair[0])


def _generality(pair: tuple[Term, Term]) -> tuple[int, int, str]:
    names = sum(leaf.number is None for leaf in leaves(pair[0]).values())
    return _cost(pair[0]) + _cost(pair[1]), -names, str(pair)


def reorders(left: Term, right: Term) -> bool:
    """Whether both sides apply the same operators to the same leaves: associativity, of which an e-graph explodes."""

    def parts(term: Term) -> list[str]:
        return sorted(t.operator if isinstance(t, Application) else t.name for t in subterms(term))

    return parts(left) == parts(right)


def _cost(term: Term) -> int:
    return sum(isinstance(t, Application) for t in subterms(term))


def underivable(pairs: Sequence[tuple[Term, Term]], base: RuleBase) -> list[tuple[Term, Term]]:
    """The pairs whose sides equality saturation with the rules of a rule base does not make equal."""
    writer = GraphWriter()
    names = [(writer.write(left), writer.write(right)) for left, right in pairs]
    writer.graph.outputs.extend(dict.fromkeys(n for pair in names for n in pair))
    used = {t.operator for pair in pairs for side in pair for t in subterms(side) if isinstance(t, Application)}
    either = replace(base, rewrites=[*base.rewrites, *_either_order(base, sorted(used))])
    rulesets = list(dict.fromkeys(rule.ruleset for rule in either.rewrites if rule.derives is None))
    saturation = saturate(
        writer.graph, either, rulesets * 2, bounds=replace(_BOUNDS, enodes=_BOUNDS.enodes + 40 * len(pairs))
    )
    tensor_class = saturation.tensor_class
    return [p for p, (a, b) in zip(pairs, names, strict=True) if tensor_class[a] != tensor_class[b]]


def _either_order(base: RuleBase, operators: Sequence[str]) -> list[ast.Rewrite]:
    """What `commutative` says of operators, as rewrites: the engine matches both orders, but does not unite them."""
    texts = [
        f"rewrite either_order_{place} in {RULESET}  # both orders\n    {name}(a, b) => {name}(b, a)"
        for place, name in enumerate(operators)
        if any(overload.commutative for overload in base.operators[name])
    ]
    return [item for item in parse_text("\n".join(texts), "either.smr").items if isinstance(item, ast.Rewrite)]


# --- verifying and printing ----------------------------------------------------------------------------


def _verified(left: Term, right: Term, name: str, instances: Instances, seed: int) -> Discovered | None:
    """The rewrite with the fewest guards and relaxations that make it hold, proved if a proof is found."""
    for guards in _GUARDS:
        if "alike" in guards and len(_variables(left)) < 2:
            continue
        for relaxations in _RELAXATIONS:
            text = rule_text(left, right, name, relaxations, guards)
            (item,) = parse_text(text, "discovered.smr").items
            assert isinstance(item, ast.Rewrite)
            outcome = test_rewrite(item, instances, seed, Budget(TRIALS, 5.0))
            if outcome.failure is None and outcome.trials >= TRIALS // 4:
                is_proved = prove_rewrite(item, instances, MOST_WAYS).answer == "proved"
                return Discovered(name=name, text=text, rule=item, is_proved=is_proved, left=left, right=right)
    return None


def _variables(term: Term) -> list[str]:
    return [leaf.name for leaf in leaves(term).values() if leaf.number is None]


def rule_text(left: Term, right: Term, name: str, relaxations: Sequence[str], guards: Sequence[str]) -> str:
    """A rewrite as a rule file writes it."""
    renamed: dict[str, str] = {}
    for leaf in leaves(left).values():
        if leaf.number is None:
            renamed[leaf.name] = "abcxyz"[len(renamed)]
    first, second = _pattern(left, renamed), _pattern(right, renamed)
    lines = [f"rewrite {name} in algebra    # {first} = {second}", f"    {first} => {second}"]
    asked = []
    subject, *others = renamed.values()
    if "floats" in guards:
        asked.append(f'contains(["float32", "float16", "bfloat16", "float64"], dtype({subject}))')
    if "alike" in guards:
        asked += [f"shape({other}) == shape({subject})" for other in others]
    if asked:
        lines.append(f"    where {', '.join(asked)}")
    if relaxations:
        lines.append(f"    relaxes {', '.join(relaxations)}")
    return "\n".join(lines) + "\n"


def _pattern(term: Term, renamed: dict[str, str]) -> str:
    if isinstance(term, Leaf):
        return str(term.number) if term.number is not None else renamed.get(term.name, term.name)
    operands = ", ".join(_pattern(o, renamed) for o in term.operands if o is not None)
    attributes = ", ".join(f"{name} = {_attribute_name(name)}" for name in sorted(term.attributes))
    return f"{term.operator}({operands}{'; ' + attributes if attributes else ''})"


def _attribute_name(name: str) -> str:
    """One name for an attribute everywhere: what the left side binds, the right side takes over."""
    return {"axes": "t", "keepdims": "k", "axis": "t"}.get(name, f"{name}_value")
