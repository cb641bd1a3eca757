"""The stable codes of all messages of the rule language, each with one sentence of explanation."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """A code never changes its meaning; a retired one is not given out again."""

    SYNTAX = "SMR0001"
    MALFORMED = "SMR0002"
    UNREADABLE = "SMR0003"
    IMPORT_NOT_FOUND = "SMR0004"
    UNKNOWN_RULE = "SMR0005"
    TOO_DEEP = "SMR0006"

    DUPLICATE_NAME = "SMR0101"
    DUPLICATE_REWRITE = "SMR0102"
    UNKNOWN_RULESET = "SMR0103"
    RULESET_ORDER = "SMR0104"
    RULESET_CYCLE = "SMR0105"
    SUBSUMED = "SMR0106"
    INVERSE_PAIR = "SMR0107"
    LOWER_CASE_CONSTANT = "SMR0108"

    UNDEFINED_NAME = "SMR0201"
    UNDEFINED_FUNCTION = "SMR0202"
    ARGUMENT_COUNT = "SMR0203"
    INDEX_COUNT = "SMR0204"
    UNKNOWN_DTYPE = "SMR0205"
    UNKNOWN_KIND = "SMR0206"
    NO_EQUATION = "SMR0207"
    RECURSIVE_FUNCTION = "SMR0208"
    UNKNOWN_CLASS = "SMR0209"
    UNKNOWN_MAPPING = "SMR0210"
    VARIADIC_NOT_LAST = "SMR0211"
    EMPTY_OPSET_RANGE = "SMR0212"
    NO_EXTENT = "SMR0213"
    CLASS_DIFFERS = "SMR0214"
    MAPPING_DIFFERS = "SMR0215"
    IMPOSSIBLE_DEFINITION = "SMR0216"
    NOT_A_VIEW = "SMR0217"
    SHADOWED_OVERLOAD = "SMR0218"
    READS_OUTSIDE = "SMR0219"
    OVERRIDE = "SMR0220"
    NAME_OF_OTHER_DOMAIN = "SMR0221"
    DIVISION_BY_ZERO = "SMR0222"
    BAD_REFERENCE = "SMR0223"
    BAD_COST = "SMR0224"
    BAD_DEFAULT = "SMR0225"
    NO_ARITHMETIC = "SMR0226"
    NOT_COMMUTATIVE = "SMR0227"
    NEGATIVE_AXIS = "SMR0228"
    HIDDEN_NAME = "SMR0229"
    LOWER_CASE_EXTENT = "SMR0230"

    UNKNOWN_OPERATOR = "SMR0301"
    OPERAND_COUNT = "SMR0302"
    UNKNOWN_ATTRIBUTE = "SMR0303"
    UNBOUND_VARIABLE = "SMR0304"
    BARE_LEFT_SIDE = "SMR0305"
    UNKNOWN_RELAXATION = "SMR0306"
    UPPER_CASE_VARIABLE = "SMR0307"
    UNKNOWN_OUTPUT = "SMR0308"
    MISSING_ATTRIBUTE = "SMR0309"
    SIDES_DIFFER = "SMR0310"
    SIDES_SOMETIMES_DIFFER = "SMR0311"
    NOT_DECREASING = "SMR0312"
    VACUOUS_GUARD = "SMR0313"
    IMPURE = "SMR0314"
    DTYPES_DIFFER = "SMR0315"
    INDEX_RULE_FORM = "SMR0316"
    SAME_SIDES = "SMR0317"
    NO_VIEW_TO_ELIMINATE = "SMR0318"
    UNUSED_LET = "SMR0319"
    COMPUTED_ON_LEFT = "SMR0320"
    KEPT_ALREADY = "SMR0321"
    NOT_JOINED = "SMR0322"
    SAME_PATTERN = "SMR0323"
    BAD_ANALYSIS = "SMR0324"
    FACT_IN_EXPRESSION = "SMR0325"
    NO_CONDITION = "SMR0326"
    ATTRIBUTE_KIND = "SMR0327"
    DROPPED_ATTRIBUTE = "SMR0328"
    INDEX_SIDES_DIFFER = "SMR0329"

    MISSING_CELL = "SMR0401"
    REPEATED_LINE = "SMR0402"
    UNKNOWN_LINE = "SMR0403"
    MISSING_LINE = "SMR0404"
    UNKNOWN_ACTION = "SMR0405"

    UNKNOWN_KEY = "SMR0501"
    MISSING_KEY = "SMR0502"
    BAD_VALUE = "SMR0503"
    REPEATED_KEY = "SMR0504"
    UNKNOWN_REFERENCE = "SMR0505"
    STRATEGY_AND_RULESETS = "SMR0506"


EXPLANATIONS: dict[Code, str] = {
    Code.SYNTAX: "The text does not follow the grammar at this place.",
    Code.MALFORMED: "The text follows the grammar, but its parts contradict each other.",
    Code.UNREADABLE: "The file does not exist, may not be read, or is not UTF-8 text.",
    Code.IMPORT_NOT_FOUND: "An imported file does not exist beside the file that imports it.",
    Code.UNKNOWN_RULE: "A rule that is to be switched off does not exist under this name.",
    Code.TOO_DEEP: "Expressions or patterns are nested deeper than anyone could follow.",
    Code.DUPLICATE_NAME: "Two items of one kind have the same name; only operators may, as overloads.",
    Code.DUPLICATE_REWRITE: "Two rewrites have the same sides and guards up to the names of their variables.",
    Code.UNKNOWN_RULESET: "A rule belongs to a rule set that no level runs and no file declares: it would never fire.",
    Code.RULESET_ORDER: "A level runs two rule sets in an order that the declaration of one of them forbids.",
    Code.RULESET_CYCLE: "A rule set is declared to run after itself, directly or through others.",
    Code.SUBSUMED: "A more general rule with no further guards does all that this rule does.",
    Code.INVERSE_PAIR: "Two directed rules take back each other's step; both at once only grow the e-graph.",
    Code.LOWER_CASE_CONSTANT: "A named constant begins with a lower-case letter, like the tensors of patterns.",
    Code.UNDEFINED_NAME: "An expression uses a name that nothing defines at this place.",
    Code.UNDEFINED_FUNCTION: "An expression calls a function that is neither built in nor defined.",
    Code.ARGUMENT_COUNT: "A function is called with more or fewer arguments than it takes.",
    Code.INDEX_COUNT: "A tensor is read or written with a number of indices that is not its rank.",
    Code.UNKNOWN_DTYPE: "A dtype is neither a variable of the operator, a class nor the name of a dtype.",
    Code.UNKNOWN_KIND: "The kind of an attribute or of a `const` input does not exist.",
    Code.NO_EQUATION: "An output of an operator is not computed by any equation.",
    Code.RECURSIVE_FUNCTION: "A function calls itself, directly or through others.",
    Code.UNKNOWN_CLASS: "The declared class of an operator does not exist.",
    Code.UNKNOWN_MAPPING: "The declared mapping type of an operator does not exist.",
    Code.VARIADIC_NOT_LAST: "A variadic input is followed by another tensor input.",
    Code.EMPTY_OPSET_RANGE: "The opset range of an `onnx` clause ends before it begins.",
    Code.NO_EXTENT: "An index of a local tensor does not say how far it runs.",
    Code.CLASS_DIFFERS: "The declared class of an operator is not the one that follows from its definition.",
    Code.MAPPING_DIFFERS: "The declared mapping type of an operator is not the one that follows from its definition.",
    Code.IMPOSSIBLE_DEFINITION: "The definition of an operator is wrong for all operand types that it admits.",
    Code.NOT_A_VIEW: "An equation is marked as a view, but computes with elements or reads more than one.",
    Code.SHADOWED_OVERLOAD: "An earlier overload of the same file accepts everything that this one does.",
    Code.READS_OUTSIDE: "A definition reads outside of a tensor for operands that it admits, or a scan later steps.",
    Code.OVERRIDE: "A definition takes the place of a built-in one, which needs the word `override`.",
    Code.NAME_OF_OTHER_DOMAIN: "An operator has the name of another domain's operator; rules mean the other one.",
    Code.DIVISION_BY_ZERO: "An expression divides by the number 0.",
    Code.BAD_REFERENCE: "The reference of an operator names no function of a module.",
    Code.BAD_COST: "A cost is none that extraction counts, is given twice, or is no number from zero on.",
    Code.BAD_DEFAULT: "The default of an attribute is no value of its kind.",
    Code.NOT_COMMUTATIVE: "An operator is said to be commutative, but the order of its operands matters.",
    Code.NO_ARITHMETIC: "A definition computes with elements of types that are stored only, or that have no fractions.",
    Code.NEGATIVE_AXIS: "An axis that may count from the end is used where only axes from 0 on are found.",
    Code.HIDDEN_NAME: "An index has the name of something that has a meaning at this place, and would hide it.",
    Code.LOWER_CASE_EXTENT: "An extent in a signature begins with a lower-case letter, like tensors and indices.",
    Code.UNKNOWN_OPERATOR: "A rule names an operator that no file defines.",
    Code.OPERAND_COUNT: "A pattern gives an operator a number of operands that none of its overloads takes.",
    Code.UNKNOWN_ATTRIBUTE: "A pattern names an attribute that no overload of the operator has.",
    Code.UNBOUND_VARIABLE: "The right side or a guard uses a name that the left side does not bind.",
    Code.BARE_LEFT_SIDE: "The left side of a rule is a single variable or number and would match everywhere.",
    Code.UNKNOWN_RELAXATION: "A word after `relaxes` is not the name of a floating-point relaxation.",
    Code.UPPER_CASE_VARIABLE: "A tensor variable of a pattern begins with an upper-case letter, or means none: `_`.",
    Code.UNKNOWN_OUTPUT: "A pattern selects an output that the operator does not have.",
    Code.MISSING_ATTRIBUTE: "The right side makes an operator without an attribute that has no default.",
    Code.SIDES_DIFFER: "The right side never has the type of the left side, so the rule could never be applied.",
    Code.SIDES_SOMETIMES_DIFFER: "For some operand types that the guards admit, the sides have different types.",
    Code.NOT_DECREASING: "A directed rule does not make its expression smaller, so with others it may run in circles.",
    Code.VACUOUS_GUARD: "No values satisfy the guards of a rule.",
    Code.IMPURE: "A guard or an attribute of the right side reads elements, fails, or depends on the search.",
    Code.DTYPES_DIFFER: "By the dtype classes of the signatures, an operand or the two sides can never fit.",
    Code.INDEX_RULE_FORM: "An index rule uses what interval arithmetic cannot decide.",
    Code.SAME_SIDES: "The two sides of a rewrite are the same, so it does nothing.",
    Code.NO_VIEW_TO_ELIMINATE: "An elimination names an operator that computes, so that it is no index map.",
    Code.UNUSED_LET: "A rule or a definition names something that it does not use: by `let`, or as a local tensor.",
    Code.COMPUTED_ON_LEFT: "A left side computes a constant, which only a right side can.",
    Code.KEPT_ALREADY: "A `keep` names an operator that another one keeps always.",
    Code.NOT_JOINED: "A left side has a pattern that shares no tensor with its other patterns.",
    Code.SAME_PATTERN: "Two patterns of a left side are the same, or differ and get the same value.",
    Code.BAD_ANALYSIS: "An analysis is no `bool` with `merge or`, or a rule derives a fact that no analysis says.",
    Code.FACT_IN_EXPRESSION: "A fact is asked for in another place than a guard of its own, about one tensor.",
    Code.NO_CONDITION: "A guard or a requirement is a number, a text or a list, so that it neither holds nor fails.",
    Code.ATTRIBUTE_KIND: "A pattern gives an attribute a value of another kind than its operator declares.",
    Code.DROPPED_ATTRIBUTE: "A left side takes any value of an attribute, and the right side has one of its own.",
    Code.INDEX_SIDES_DIFFER: "The two sides of an index rule are different numbers where its guards hold.",
    Code.MISSING_CELL: "A table has no cell for a pair of its row and column names.",
    Code.REPEATED_LINE: "A table has two rows or two columns of the same name.",
    Code.UNKNOWN_LINE: "A row or column of a table is neither a class nor a mapping type, so it is never reached.",
    Code.MISSING_LINE: "A table has no row or no column for one of the classes or mapping types.",
    Code.UNKNOWN_ACTION: "A cell of a table holds a word that means nothing there.",
    Code.UNKNOWN_KEY: "A block has no such key; the engine would never look at it.",
    Code.MISSING_KEY: "A block lacks a key that the engine needs.",
    Code.BAD_VALUE: "A key of a block has too few, too many or the wrong kind of values.",
    Code.REPEATED_KEY: "A key that may be given once is given twice.",
    Code.UNKNOWN_REFERENCE: "A block names a rule set, table or fuse block that no file defines.",
    Code.STRATEGY_AND_RULESETS: "A level names a strategy and rule sets of its own; one of them says what runs.",
}
