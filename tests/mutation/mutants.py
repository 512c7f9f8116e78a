"""Makes small faults (mutants) in a module: mutmut's operators, and the faults that people make which it lacks.

mutmut itself cannot run here: it copies the sources below one folder and puts a switch into every function, while this
repository's root is the package, and half of its functions are decorated, run in other processes or are traced by JAX.
So the runner next to this file takes only mutmut's operators (each maps a libcst node to changed nodes) and writes one
changed copy of a module for each mutant.
"""

import dataclasses
import difflib
import random
from collections.abc import Callable, Iterable, Iterator

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

_LOGS = ("_logger", "_log", "_LOG", "logging", "warnings")
# Texts for people, types, and calls whose loss no test should notice.
_SKIPPED = (
    m.Annotation()
    | m.Raise()
    | m.Decorator()
    | m.Import()
    | m.ImportFrom()
    | m.FormattedString()
    | m.Assert()
    | m.Call(func=m.Name("InputError") | m.Attribute(attr=m.Name("add_argument")))
    | m.Call(func=m.Attribute(value=m.OneOf(*map(m.Name, _LOGS))))
    | m.DictElement(key=m.SimpleString('"help"'))
    | m.Arg(keyword=m.Name("strict") | m.Name("encoding") | m.Name("remedy"))
    | m.Call(func=m.Name("threadpool_limits"))
)


_ANY_ORDER = m.Name("min") | m.Name("max") | m.Attribute(attr=m.Name("minimum") | m.Name("maximum"))


def previous_number(node: cst.Integer) -> Iterator[cst.BaseExpression]:
    """An integer less one: mutmut only adds one."""
    if node.evaluated_value > 0:
        yield node.with_changes(value=str(node.evaluated_value - 1))


def one_side(node: cst.BinaryOperation) -> Iterator[cst.BaseExpression]:
    """A term or a factor dropped."""
    if m.matches(node.operator, m.Add() | m.Subtract() | m.Multiply() | m.Divide() | m.BitAnd() | m.BitOr()):
        yield node.left
        yield node.right


def one_condition(node: cst.BooleanOperation) -> Iterator[cst.BaseExpression]:
    """One of two conditions dropped."""
    yield node.left
    yield node.right


def swapped_arguments(node: cst.Call) -> Iterator[cst.Call]:
    """The first two positional arguments change places, where their order counts."""
    first = [] if m.matches(node.func, _ANY_ORDER) else node.args[:2]
    if len(first) == 2 and all(arg.keyword is None and not arg.star for arg in first):
        one, two = first
        yield node.with_changes(
            args=[one.with_changes(value=two.value), two.with_changes(value=one.value), *node.args[2:]]
        )


def dropped_argument(node: cst.Call) -> Iterator[cst.Call]:
    """A keyword argument left to its default."""
    for number, arg in enumerate(node.args):
        if arg.keyword is not None and not m.matches(arg, _SKIPPED):
            *most, last = [*node.args[:number], *node.args[number + 1 :]] or [None]
            yield node.with_changes(args=[*most, last.with_changes(comma=cst.MaybeSentinel.DEFAULT)] if last else [])


def negated(node: cst.If | cst.While | cst.CompIf) -> Iterator[cst.CSTNode]:
    """The opposite condition."""
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))


def unfiltered(node: cst.CompFor) -> Iterator[cst.CompFor]:
    """A comprehension without its conditions."""
    if node.ifs:
        yield node.with_changes(ifs=[])


def dropped_statement(node: cst.SimpleStatementLine) -> Iterator[cst.SimpleStatementLine]:
    """A call or an augmented assignment left out."""
    if m.matches(node, m.SimpleStatementLine(body=[m.Expr(value=m.Call() & ~_SKIPPED) | m.AugAssign()])):
        yield node.with_changes(body=[cst.Pass()])


Operator = tuple[type | tuple[type, ...], Callable[..., Iterable[cst.CSTNode]]]
OPERATORS: tuple[Operator, ...] = (
    (cst.BaseNumber, mutators.operator_number),
    (cst.Integer, previous_number),
    (cst.Name, mutators.operator_name),
    (cst.AugAssign, mutators.operator_augmented_assignment),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (cst.Call, mutators.operator_symmetric_string_methods_swap),
    (cst.Call, mutators.operator_unsymmetrical_string_methods_swap),
    (cst.Call, swapped_arguments),
    (cst.Call, dropped_argument),
    (cst.CSTNode, mutators.operator_keywords),
    (cst.CSTNode, mutators.operator_swap_op),
    (cst.IfExp, mutators.operator_if_exp),
    (cst.BinaryOperation, one_side),
    (cst.BooleanOperation, one_condition),
    ((cst.If, cst.While, cst.CompIf), negated),
    (cst.CompFor, unfiltered),
    (cst.SimpleStatementLine, dropped_statement),
)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
      path: the module below the repository's root.
      line: 1-based, where the fault is.
      operator: its name.
      code: the whole module with the fault.
      diff: a unified diff against the module.
    """

    path: str
    line: int
    operator: str
    code: str
    diff: str


def sample_mutants(path: str, source: str, count: int, seed: int) -> list[Mutant]:
    """At most ``count`` different mutants of a module, the same for the same seed, in the order of its lines."""
    wrapper = MetadataWrapper(cst.parse_module(source))
    places = wrapper.resolve(PositionProvider)
    faults = list(_faults(wrapper.module))
    random.Random(f"{seed} {path}").shuffle(faults)
    found: dict[str, Mutant] = {}
    for node, replacement, operator in faults:
        if len(found) == count:
            break
        code = wrapper.module.deep_replace(node, replacement).code
        if code != source and _compiles(code):
            diff = difflib.unified_diff(source.splitlines(), code.splitlines(), f"a/{path}", f"b/{path}", "", "", 2, "")
            found[code] = Mutant(path, places[node].start.line, operator, code, "\n".join(diff))
    return sorted(found.values(), key=lambda mutant: (mutant.line, mutant.operator))


def _faults(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode, str]]:
    if m.matches(node, _SKIPPED) or _is_docstring(node):
        return
    for kinds, operator in OPERATORS:
        if isinstance(node, kinds):
            for replacement in operator(node):
                yield node, replacement, operator.__name__.removeprefix("operator_")
    for child in node.children:
        yield from _faults(child)


def _is_docstring(node: cst.CSTNode) -> bool:
    return m.matches(node, m.SimpleStatementLine(body=[m.Expr(value=m.SimpleString() | m.ConcatenatedString())]))


def _compiles(code: str) -> bool:
    try:
        compile(code, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True
