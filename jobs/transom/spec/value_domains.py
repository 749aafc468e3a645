"""Domains of columns under a condition: decide by bounds of single columns whether a row can meet it.

See `transom.spec.impossible_conditions`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil, floor, inf, isinf, nextafter
from typing import Any

from transom.spec.expressions.parser import parse

EXACT = 2.0**53
"""Every whole number below it is a double."""


@dataclass(frozen=True)
class Domain:
    """The values that a column may have: between two numbers, or one of some constants; or null.

    Attributes:
        low: the smallest number.
        high: the largest number.
        whole: whether values are whole numbers.
        among: the possible texts or truth values; None is any.
        null: whether it may be null.
        not_null: whether it may have a value that is not null.
        excluded: numbers, texts and truth values that it does not have.
    """

    low: float = -inf
    high: float = inf
    whole: bool = False
    among: frozenset[object] | None = None
    null: bool = True
    not_null: bool = True
    excluded: frozenset[object] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether it contains neither a value nor null."""
        return not self.null and self._no_value

    @property
    def _no_value(self) -> bool:
        point = self.low == self.high and self.low in self.excluded
        none = self.among is not None and not self.among - self.excluded
        return not self.not_null or self.low > self.high or point or none

    def restricted(self, sign: str, other: "Domain") -> "Domain":
        """Return the domain of values that compare by `sign` with some value of another domain; not null."""
        if self.whole != other.whole:
            # Spark compares both as doubles.
            low = other.low if abs(other.low) < EXACT else -inf
            high = other.high if abs(other.high) < EXACT else inf
            other = replace(other, low=low, high=high, excluded=frozenset())
        low, high, among, excluded = self.low, self.high, self.among, self.excluded
        if sign in ("lt", "lte", "eq"):
            high = min(high, self._up_to(other.high, sign == "lt"))
        if sign in ("gt", "gte", "eq"):
            low = max(low, -self._up_to(-other.low, sign == "gt"))
        if sign == "eq":
            among = other.among if among is None else among if other.among is None else among & other.among
            excluded |= other.excluded
        if sign == "neq":
            excluded |= other._only
        comparable = not other._no_value
        while comparable and self.whole and low in excluded:
            low += 1
        while comparable and self.whole and high in excluded:
            high -= 1
        return Domain(low, high, self.whole, among, False, comparable and self.not_null, excluded)

    @property
    def _only(self) -> frozenset[object]:
        """The only possible value; empty if there are more."""
        if self.low == self.high:
            return frozenset((self.low,))
        return self.among if self.among is not None and len(self.among) == 1 else frozenset()

    def _up_to(self, bound: float, outside: bool) -> float:
        """Return the greatest number up to a bound, or below it; infinity if the bound is infinite."""
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
            self.null or other.null, self.not_null or other.not_null, self.excluded & other.excluded,
        )  # fmt: skip


Domains = Mapping[str, Domain]
_SWAPPED = {"eq": "eq", "neq": "neq", "lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte"}
_NEGATED = {"eq": "neq", "neq": "eq", "lt": "gte", "lte": "gt", "gt": "lte", "gte": "lt"}


def possible(text: str, domains: Domains) -> bool:
    """Return whether a row may meet a valid condition; True also if this is unknown.

    >>> possible("status > 5 and status < 5", {})
    False
    """
    tree = parse(text)
    narrowed = _narrowed(tree, domains, True)
    # Again, as later parts may narrow the domains of earlier ones.
    return narrowed is not None and _narrowed(tree, narrowed, True) is not None


@dataclass(frozen=True)
class Tested:
    """A condition in a stream file.

    Attributes:
        place: the path of its field.
        text: the condition.
        domains: the known domains of the columns that it reads.
        why: the reason, as text, if no row meets it.
    """

    place: str
    text: str
    domains: Domains
    why: str = ""


def because(text: str, counts: Domains, why: str) -> str:
    """Return `why` with a colon if the bounds of counts alone make a condition impossible, else ""."""
    by_itself = {name: Domain(whole=True, null=False) for name in counts}
    return f": {why}" if possible(text, by_itself) and not possible(text, counts) else ""


def _narrowed(node: Any, domains: Domains, truth: bool) -> Domains | None:
    """Return the domains of rows for which a condition is true, or false; None if there is no such row."""
    from sqlglot import exp  # slow, as in `parse`

    match node.key:
        case "paren":
            return _narrowed(node.this, domains, truth)
        case "not":
            return _narrowed(node.this, domains, not truth)
        case "boolean":
            return domains if bool(node.this) is truth else None
        case "null":
            return None
        case "column":
            return _with_domain(node, _value(node, domains).restricted("eq", _constant(truth)), domains)
        case "is" if node.expression.key == "boolean":
            return _narrowed(node.this, domains, bool(node.expression.this)) if truth else domains
        case "is":
            domain = _value(node.this, domains)
            domain = replace(domain, not_null=False) if truth else replace(domain, null=False)
            return _with_domain(node.this, domain, domains)
        case "and" | "or" if (node.key == "and") is truth:
            narrowed: Domains | None = domains
            for part in node.flatten():
                narrowed = None if narrowed is None else _narrowed(part, narrowed, truth)
            return narrowed
        case "and" | "or":
            branches = [_narrowed(part, domains, truth) for part in node.flatten()]
            return _union([branch for branch in branches if branch is not None], domains)
        case "in":
            equal = (exp.EQ(this=node.this, expression=operand) for operand in node.expressions)
            return _narrowed(exp.or_(*equal), domains, truth)
        case "between":
            ends = ((exp.GTE, node.args["low"]), (exp.LTE, node.args["high"]))
            inside = exp.and_(*(kind(this=node.this, expression=end) for kind, end in ends))
            return _narrowed(inside, domains, truth)
    return _compared(node, domains, truth) if node.key in _NEGATED else domains


def _union(branches: list[Domains], domains: Domains) -> Domains | None:
    """Return domains that contain those of each branch; None if there is no branch."""
    union: dict[str, Domain] = {}
    for name in {name for branch in branches for name in branch}:
        unchanged = domains.get(name, Domain())
        union[name] = reduce(Domain.joined, [branch.get(name, unchanged) for branch in branches])
    return union if branches else None


def _with_domain(node: Any, domain: Domain, domains: Domains) -> Domains | None:
    """Return the domains with a new one for a column; None if it is empty."""
    node = node.unnest()
    if domain.empty:
        return None
    return {**domains, node.name: domain} if node.key == "column" else domains


def _compared(node: Any, domains: Domains, truth: bool) -> Domains | None:
    sign, left, right = node.key if truth else _NEGATED[node.key], node.this, node.expression
    first, second = _value(left, domains), _value(right, domains)
    narrowed = _with_domain(left, first.restricted(sign, second), domains)
    swapped = second.restricted(_SWAPPED[sign], first)
    return None if narrowed is None else _with_domain(right, swapped, narrowed)


def _constant(value: object) -> Domain:
    return Domain(among=frozenset((value,)), null=False)


def _value(node: Any, domains: Domains) -> Domain:
    """Return the domain of an expression."""
    match node.key:
        case "paren":
            return _value(node.this, domains)
        case "column":
            return domains.get(node.name, Domain())
        case "boolean":
            return _constant(bool(node.this))
        case "literal" if node.is_string:
            return _constant(str(node.this))
        case "literal":
            digits = str(node.this)
            number = int(digits) if digits.isdecimal() else float(digits)
            return Domain(number, number, isinstance(number, int), null=False)
        case "neg":
            value = _value(node.this, domains)
            # A double may be NaN, except for a constant.
            constant = value.low == value.high
            if not value.whole and not constant:
                return Domain()
            return Domain(-value.high, -value.low, value.whole, null=value.null or not constant)
        case "add" | "sub":
            left, right = _value(node.this, domains), _value(node.expression, domains)
            if not (left.whole and right.whole):
                return Domain()
            low, high = (right.low, right.high) if node.key == "add" else (-right.high, -right.low)
            return Domain(left.low + low, left.high + high, whole=True)
        case "coalesce":
            values = [_value(part, domains) for part in (node.this, *node.expressions)]
            # What follows a value that is never null does not count.
            return reduce(
                lambda one, other: replace(one, null=False).joined(other) if one.null else one, values
            )
        case "length":
            return Domain(low=0, whole=True)
    return Domain()
