"""Domains of columns under a condition: whether a row can meet it, by bounds of single columns.

A condition narrows the domains of the columns that it compares. If a domain becomes empty, no row meets the
condition. Parts that are not understood narrow nothing, so a condition that some row meets is never called
impossible.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import ceil, floor, inf, isinf, nextafter
from typing import Any

from transom.spec.expressions.parser import parse

EXACT = 2.0**53
"""Below this every whole number is a double."""


@dataclass(frozen=True)
class Domain:
    """The values that a column may have: between two numbers, or one of some constants; or null.

    Attributes:
        low, high: the bounds.
        whole: whether values are whole numbers.
        among: the possible texts or truth values; None is any.
        null: whether it may be null.
        some: whether it may have a value that is not null.
        but: excluded values.
    """

    low: float = -inf
    high: float = inf
    whole: bool = False
    among: frozenset[object] | None = None
    null: bool = True
    some: bool = True
    but: frozenset[object] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether it contains neither a value nor null."""
        return not self.null and self._no_value

    @property
    def _no_value(self) -> bool:
        point = self.low == self.high and self.low in self.but
        none = self.among is not None and not self.among - self.but
        return not self.some or self.low > self.high or point or none

    def restricted(self, sign: str, other: "Domain") -> "Domain":
        """Return the domain of values that meet a comparison with some value of another domain, without
        null."""
        if self.whole != other.whole:
            # Spark compares both as doubles.
            low = other.low if abs(other.low) < EXACT else -inf
            other = replace(
                other, low=low, high=other.high if abs(other.high) < EXACT else inf, but=frozenset()
            )
        domain = replace(self, null=False)
        if sign in ("<", "<=", "="):
            domain = replace(domain, high=min(self.high, self._up_to(other.high, sign == "<")))
        if sign in (">", ">=", "="):
            domain = replace(domain, low=max(self.low, -self._up_to(-other.low, sign == ">")))
        if sign == "=":
            either = [values for values in (self.among, other.among) if values is not None]
            among = frozenset.intersection(*either) if either else None
            domain = replace(domain, among=among, but=self.but | other.but)
        if sign == "<>":
            domain = replace(domain, but=self.but | other._only)
        if other._no_value:
            return replace(domain, some=False)
        low, high = domain.low, domain.high
        while self.whole and low in domain.but:
            low += 1
        while self.whole and high in domain.but:
            high -= 1
        return replace(domain, low=low, high=high)

    @property
    def _only(self) -> frozenset[object]:
        """The only possible value; empty if there are more."""
        if self.low == self.high:
            return frozenset((self.low,))
        return self.among if self.among is not None and len(self.among) == 1 else frozenset()

    def _up_to(self, bound: float, outside: bool) -> float:
        """Return the greatest number up to a bound, or below it; infinity where there is none."""
        if isinf(bound):
            return inf
        if self.whole:
            return ceil(bound) - 1 if outside else floor(bound)
        return nextafter(bound, -inf) if outside else bound

    def joined(self, other: "Domain") -> "Domain":
        """Return a domain that contains both."""
        among = None if self.among is None or other.among is None else self.among | other.among
        return Domain(
            min(self.low, other.low), max(self.high, other.high), self.whole and other.whole, among,
            self.null or other.null, self.some or other.some, self.but & other.but,
        )  # fmt: skip


Domains = Mapping[str, Domain]


_SIGNS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}


_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


_DENIED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def possible(text: str, domains: Domains) -> bool:
    """Return whether a row may meet a condition; also True if this is unknown.

    Args:
        text: a condition that compiles.
        domains: the known domains of columns.
    """
    tree = parse(text)
    narrowed = _narrowed(tree, domains, True)
    # Again, with the domains from later parts.
    return narrowed is not None and _narrowed(tree, narrowed, True) is not None


@dataclass(frozen=True)
class Tested:
    """A condition of a stream's file.

    Attributes:
        place: the path of its field.
        text: the condition, which compiles.
        domains: the known domains of the columns that it reads.
        why: the reason, as text, if no row meets it.
    """

    place: str
    text: str
    domains: Domains
    why: str = ""


def because(text: str, counts: Domains, why: str) -> str:
    """Return the reason, where bounds of counts alone make a condition impossible."""
    by_itself = {name: Domain(whole=True, null=False) for name in counts}
    return f": {why}" if possible(text, by_itself) and not possible(text, counts) else ""


def _narrowed(node: Any, domains: Domains, truth: bool) -> Domains | None:
    """Return the domains of rows for which a condition is true, or false; None if there is no such row."""
    kind = type(node).__name__
    match kind:
        case "Paren":
            return _narrowed(node.this, domains, truth)
        case "Not":
            return _narrowed(node.this, domains, not truth)
        case "Boolean":
            return domains if bool(node.this) is truth else None
        case "Null":
            return None
        case "Column":
            return _with_domain(node, _value(node, domains).restricted("=", _constant(truth)), domains)
        case "Is":
            return _is(node, domains, truth)
        case "And" | "Or":
            parts = [partial(_narrowed, part, truth=truth) for part in node.flatten()]
            return _combined(parts, domains, (kind == "And") is truth)
        case "In":
            parts = [partial(_compared, "=", node.this, operand, truth=truth) for operand in node.expressions]
            return _combined(parts, domains, not truth)
        case "Between":
            ends = ((">=", node.args["low"]), ("<=", node.args["high"]))
            parts = [partial(_compared, sign, node.this, end, truth=truth) for sign, end in ends]
            return _combined(parts, domains, truth)
    if kind in _SIGNS:
        return _compared(_SIGNS[kind], node.this, node.expression, domains, truth)
    return domains


def _combined(
    parts: Iterable[Callable[[Domains], Domains | None]], domains: Domains, all_: bool
) -> Domains | None:
    """Return the domains if all conditions are met, or one of them."""
    if all_:
        narrowed: Domains | None = domains
        for part in parts:
            narrowed = None if narrowed is None else part(narrowed)
        return narrowed
    branches = [branch for part in parts if (branch := part(domains)) is not None]
    if not branches:
        return None
    names = {name for branch in branches for name in branch}
    return {
        name: reduce(Domain.joined, [branch.get(name, domains.get(name, Domain())) for branch in branches])
        for name in names
    }


def _with_domain(node: Any, domain: Domain, domains: Domains) -> Domains | None:
    """Return the domains with a new one for a column; None if it is empty."""
    while type(node).__name__ == "Paren":
        node = node.this
    if domain.empty:
        return None
    return {**domains, node.name: domain} if type(node).__name__ == "Column" else domains


def _compared(sign: str, left: Any, right: Any, domains: Domains, truth: bool) -> Domains | None:
    sign = sign if truth else _DENIED[sign]
    mine, theirs = _value(left, domains), _value(right, domains)
    narrowed = _with_domain(left, mine.restricted(sign, theirs), domains)
    return None if narrowed is None else _with_domain(right, theirs.restricted(_TURNED[sign], mine), narrowed)


def _is(node: Any, domains: Domains, truth: bool) -> Domains | None:
    if type(node.expression).__name__ == "Boolean":
        return _narrowed(node.this, domains, bool(node.expression.this)) if truth else domains
    domain = _value(node.this, domains)
    return _with_domain(
        node.this, replace(domain, some=False) if truth else replace(domain, null=False), domains
    )


def _constant(value: object) -> Domain:
    return Domain(among=frozenset((value,)), null=False)


def _value(node: Any, domains: Domains) -> Domain:
    """Return the domain of an expression."""
    match type(node).__name__:
        case "Paren":
            return _value(node.this, domains)
        case "Column":
            return domains.get(node.name, Domain())
        case "Boolean":
            return _constant(bool(node.this))
        case "Literal" if node.is_string:
            return _constant(str(node.this))
        case "Literal":
            digits = str(node.this)
            number = int(digits) if digits.isdecimal() else float(digits)
            return Domain(number, number, isinstance(number, int), null=False)
        case "Neg":
            value = _value(node.this, domains)
            # A double may be NaN, except for a constant.
            constant = value.low == value.high
            null = value.null or not constant
            return (
                Domain(-value.high, -value.low, value.whole, null=null)
                if value.whole or constant
                else Domain()
            )
        case "Add" | "Sub" as kind:
            left, right = _value(node.this, domains), _value(node.expression, domains)
            if not (left.whole and right.whole):
                return Domain()
            low, high = (right.low, right.high) if kind == "Add" else (-right.high, -right.low)
            return Domain(left.low + low, left.high + high, whole=True)
        case "Length":
            return Domain(low=0, whole=True)
    return Domain()
