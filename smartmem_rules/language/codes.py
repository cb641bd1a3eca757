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

    UNKNOWN_OPERATOR = "SMR0301"
    OPERAND_COUNT = "SMR0302"
    UNKNOWN_ATTRIBUTE = "SMR0303"
    UNBOUND_VARIABLE = "SMR0304"
    BARE_LEFT_SIDE = "SMR0305"
    UNKNOWN_RELAXATION = "SMR0306"
    UPPER_CASE_VARIABLE = "SMR0307"
    UNKNOWN_OUTPUT = "SMR0308"
    MISSING_ATTRIBUTE = "SMR0309"

    MISSING_CELL = "SMR0401"
    REPEATED_LINE = "SMR0402"


EXPLANATIONS: dict[Code, str] = {
    Code.SYNTAX: "The text does not follow the grammar at this place.",
    Code.MALFORMED: "The text follows the grammar, but its parts contradict each other.",
    Code.UNREADABLE: "The file does not exist, may not be read, or is not UTF-8 text.",
    Code.IMPORT_NOT_FOUND: "An imported file does not exist beside the file that imports it.",
    Code.UNKNOWN_RULE: "A rule that is to be switched off does not exist under this name.",
    Code.TOO_DEEP: "Expressions or patterns are nested deeper than anyone could follow.",
    Code.DUPLICATE_NAME: "Two items of one kind have the same name; only operators may, as overloads.",
    Code.DUPLICATE_REWRITE: "Two rewrites have the same sides and guards up to the names of their variables.",
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
    Code.UNKNOWN_OPERATOR: "A rule names an operator that no file defines.",
    Code.OPERAND_COUNT: "A pattern gives an operator a number of operands that none of its overloads takes.",
    Code.UNKNOWN_ATTRIBUTE: "A pattern names an attribute that no overload of the operator has.",
    Code.UNBOUND_VARIABLE: "The right side or a guard uses a name that the left side does not bind.",
    Code.BARE_LEFT_SIDE: "The left side of a rule is a single variable or number and would match everywhere.",
    Code.UNKNOWN_RELAXATION: "A word after `relaxes` is not the name of a floating-point relaxation.",
    Code.UPPER_CASE_VARIABLE: "A tensor variable of a pattern begins with an upper-case letter, like an operator.",
    Code.UNKNOWN_OUTPUT: "A pattern selects an output that the operator does not have.",
    Code.MISSING_ATTRIBUTE: "The right side makes an operator without an attribute that has no default.",
    Code.MISSING_CELL: "A table has no cell for a pair of its row and column names.",
    Code.REPEATED_LINE: "A table has two rows or two columns of the same name.",
}
