"""The small grammar of ``rule`` and ``when``: names, literals, arithmetic, comparisons, and / or / not.

The text is parsed, never executed: every node that is not listed here is refused, so a job file cannot run code.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from trimtuner.errors import InputError, nearest

Scalar: TypeAlias = str | bool | int | float | None
Value: TypeAlias = Scalar | tuple[Scalar, ...]
_Operand: TypeAlias = Value | tuple[Value, ...]  # in a list, a value may be a list itself

LONGEST_EXPRESSION = 1000  # longer than any rule a person writes; keeps the parser's recursion bounded

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_EQUALITY: dict[type[ast.cmpop], Callable[[_Operand, _Operand], bool]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}
_ORDER: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True)
class Expression:
    """A condition such as ``vm_count * vcpus in (8, 16)``, checked when made and evaluated on plain values."""

    text: str
    names: frozenset[str] = field(init=False)
    _tree: ast.expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tree = _parse(self.text)
        object.__setattr__(self, "_tree", tree)
        object.__setattr__(self, "names", frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)))

    def require_names(self, known: frozenset[str], where: str) -> None:
        """Refuse a name that will never have a value."""
        for name in sorted(self.names - known):
            listed = ", ".join(sorted(known))
            hint = nearest(name, known) or f"; a text is put in quotes: {name!r}"
            raise InputError(f"{where} {self.text!r} names {name!r}, which is none of: {listed}{hint}")

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Whether the condition is true for these values; a name without a value makes it false."""
        if not self.names <= values.keys():
            return False
        try:
            answer = self._evaluate(self._tree, values)
        except RecursionError:
            raise InputError(f"{self.text!r} is too deeply nested") from None
        if not isinstance(answer, bool):
            raise InputError(f"{self.text!r} is {answer!r}, not true or false; compare it with something")
        return answer

    def _evaluate(self, node: ast.expr, values: Mapping[str, Value]) -> _Operand:
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return value
            case ast.Name(id=name):
                return values[name]
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return tuple(self._plain(self._evaluate(element, values)) for element in elements)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._boolean(self._evaluate(operand, values))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._number(self._evaluate(operand, values))
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self._boolean(self._evaluate(part, values)) for part in parts)
            case ast.BoolOp(op=ast.Or(), values=parts):
                return any(self._boolean(self._evaluate(part, values)) for part in parts)
            case ast.BinOp(left=left, op=op, right=right):
                return self._calculate(
                    op, self._number(self._evaluate(left, values)), self._number(self._evaluate(right, values))
                )
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._compare(left, ops, comparators, values)
        raise InputError(f"{self.text!r} cannot be read here: {ast.unparse(node)!r}")

    def _calculate(self, op: ast.operator, left: float, right: float) -> float:
        try:
            return _ARITHMETIC[type(op)](left, right)
        except ZeroDivisionError:
            raise InputError(f"{self.text!r} divides by zero") from None
        except OverflowError:
            raise InputError(f"{self.text!r} leaves the range of numbers") from None

    def _compare(
        self, left: ast.expr, ops: list[ast.cmpop], comparators: list[ast.expr], values: Mapping[str, Value]
    ) -> bool:
        before = self._evaluate(left, values)
        for op, comparator in zip(ops, comparators, strict=True):
            after = self._evaluate(comparator, values)
            if not self._relation_holds(op, before, after):
                return False
            before = after
        return True

    def _relation_holds(self, op: ast.cmpop, before: _Operand, after: _Operand) -> bool:
        if type(op) in _EQUALITY:
            return _EQUALITY[type(op)](before, after)
        if type(op) in _ORDER:
            return _ORDER[type(op)](self._number(before), self._number(after))
        if not isinstance(after, tuple):
            raise InputError(f"{self.text!r}: what follows 'in' must be a list, such as [8, 16]")
        return (before in after) == isinstance(op, ast.In)

    def _number(self, value: _Operand) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{self.text!r} calculates with {value!r}, which is not a number")
        return value

    def _boolean(self, value: _Operand) -> bool:
        if not isinstance(value, bool):
            raise InputError(f"{self.text!r} uses {value!r} as true or false; compare it with something")
        return value

    def _plain(self, value: _Operand) -> Value:
        if isinstance(value, tuple):
            raise InputError(f"{self.text!r} has a list inside a list")
        return value


_ALLOWED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Tuple, ast.List, ast.BoolOp, ast.And, ast.Or),
    *(ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Compare, ast.In, ast.NotIn),
    *_ARITHMETIC,
    *_EQUALITY,
    *_ORDER,
)


def _parse(text: str) -> ast.expr:
    if not isinstance(text, str):
        raise InputError(f"a condition is a text such as \"optimizer == 'sgd'\", not {text!r}")
    if len(text) > LONGEST_EXPRESSION:
        raise InputError(f"a condition of {len(text)} characters is too long; {LONGEST_EXPRESSION} is the most")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "too deeply nested or not plain text"
        raise InputError(f"{text!r} is not a condition: {reason}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or (
            isinstance(node, ast.Constant) and not isinstance(node.value, bool | int | float | str | None)
        ):
            raise InputError(
                f"{text!r} uses {type(node).__name__}; only names, numbers, strings, lists, + - * / // %, "
                "comparisons, 'in', 'and', 'or' and 'not' are understood"
            )
    return tree.body
