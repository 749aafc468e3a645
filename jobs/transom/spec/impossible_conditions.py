"""Conditions that no row can meet, as far as bounds of single columns tell.

A condition narrows what is known of the columns that it compares, as for a row that meets it; where nothing
is left of one, there is no such row. What is not understood narrows nothing, so a condition that a row meets
is never called impossible.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil, floor, inf, isinf
from typing import TYPE_CHECKING, Any

from transom.spec.expressions.parser import parse

if TYPE_CHECKING:
    from transom.spec.stream import Stream

EXACT = 2.0**53
"""Below it a whole number is the same as a double."""


@dataclass(frozen=True)
class Domain:
    """The values that a column may have: between two numbers, or one of some constants; or null.

    Attributes:
        low, high: the bounds.
        whole: whether values are whole numbers.
        among: the texts or truths that it may be; None is any.
        null: whether it may be null.
        some: whether it may be anything else.
        above, below: whether the bounds are outside.
        but: values that it is not.
    """

    low: float = -inf
    high: float = inf
    whole: bool = False
    among: frozenset[object] | None = None
    null: bool = True
    some: bool = True
    above: bool = False
    below: bool = False
    but: frozenset[object] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether there is neither such a value nor a null."""
        return not self.null and self._no_value

    @property
    def _no_value(self) -> bool:
        point = self.low == self.high and (self.above or self.below or self.low in self.but)
        none = self.among is not None and not self.among - self.but
        return not self.some or self.low > self.high or point or none

    def restricted(self, sign: str, other: "Domain") -> "Domain":
        """Return the values that meet a comparison with some value of another domain; no null does."""
        if self.whole != other.whole:
            # Spark compares both as doubles.
            low = other.low if abs(other.low) < EXACT else -inf
            other = replace(
                other, low=low, high=other.high if abs(other.high) < EXACT else inf, but=frozenset()
            )
        found = replace(self, null=False)
        if sign in ("<", "<=", "="):
            found = found._at_most(other.high, other.below or sign == "<")
        if sign in (">", ">=", "="):
            found = found._at_least(other.low, other.above or sign == ">")
        if sign == "=":
            either = [one for one in (self.among, other.among) if one is not None]
            among = frozenset.intersection(*either) if either else None
            found = replace(found, among=among, but=self.but | other.but)
        if sign == "<>":
            found = replace(found, but=self.but | other._only)
        if other._no_value:
            return replace(found, some=False)
        return found._rounded() if found.whole else found

    @property
    def _only(self) -> frozenset[object]:
        """The one value that it can be; nothing where there are more."""
        if self.low == self.high:
            return frozenset((self.low,))
        return self.among if self.among is not None and len(self.among) == 1 else frozenset()

    def _at_most(self, high: float, outside: bool) -> "Domain":
        if high > self.high or (high == self.high and not outside):
            return self
        return replace(self, high=high, below=outside and not isinf(high))

    def _at_least(self, low: float, outside: bool) -> "Domain":
        if low < self.low or (low == self.low and not outside):
            return self
        return replace(self, low=low, above=outside and not isinf(low))

    def _rounded(self) -> "Domain":
        """Return the same whole numbers, with bounds that are inside."""
        low, high = self.low, self.high
        if not isinf(low):
            low = floor(low) + 1 if self.above else ceil(low)
            while low in self.but:
                low += 1
        if not isinf(high):
            high = ceil(high) - 1 if self.below else floor(high)
            while high in self.but:
                high -= 1
        return replace(self, low=low, high=high, above=False, below=False)

    def joined(self, other: "Domain") -> "Domain":
        """Return a domain that holds both."""
        among = None if self.among is None or other.among is None else self.among | other.among
        below = {one.below for one in (self, other) if one.high == max(self.high, other.high)}
        above = {one.above for one in (self, other) if one.low == min(self.low, other.low)}
        return Domain(
            min(self.low, other.low), max(self.high, other.high), self.whole and other.whole, among,
            self.null or other.null, self.some or other.some, all(above), all(below), self.but & other.but,
        )  # fmt: skip


Domains = Mapping[str, Domain]
_SIGNS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DENIED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def possible(text: str, domains: Domains) -> bool:
    """Return whether a row may meet a condition; True as well where this cannot be told.

    Args:
        text: a condition that has been compiled.
        domains: of columns of which something is known.
    """
    tree = parse(text)
    narrowed = _narrowed(tree, domains, True)
    # Once more with what later parts say.
    return narrowed is not None and _narrowed(tree, narrowed, True) is not None


@dataclass(frozen=True)
class Tested:
    """A condition of a stream's file.

    Attributes:
        place: the path of its field.
        text: the condition, which has been compiled.
        domains: what is known of the columns that it reads.
        why: the reason, in words, if no row meets it.
    """

    place: str
    text: str
    domains: Domains
    why: str = ""


def impossible(stream: "Stream") -> Iterator[str]:
    """Yield, in words, which conditions of a stream no row can meet."""
    tested = [Tested("where", stream.where, event_domains(stream))] if stream.where is not None else []
    for feature in stream.features:
        tested += feature.conditions(stream)
    for one in tested:
        if not possible(one.text, one.domains):
            yield f"{one.place}: no row can meet {' '.join(one.text.split())!r}{one.why}"


def own_where(stream: "Stream", path: str, where: str | None) -> Iterator[Tested]:
    """Yield the `where` of a block that takes events, unless it is the stream's."""
    if where is not None and where != stream.where:
        yield Tested(f"{path}.where", where, event_domains(stream))


def event_domains(stream: "Stream") -> dict[str, Domain]:
    """Return what is known of the columns of events: the kind of number, and what means no value."""
    known = {"event_time": Domain(null=False)}
    for name, field in stream.event_columns.items():
        if field.type == "integer":
            absent = {int(text) for text in field.missing if text.removeprefix("-").isdecimal()}
            known[name] = Domain(whole=True, but=frozenset(absent))
        elif field.type == "string":
            known[name] = Domain(but=frozenset(field.missing))
    return known


def because(text: str, counts: Domains, why: str) -> str:
    """Return the reason, where bounds of counts alone make a condition impossible."""
    by_itself = {name: Domain(whole=True, null=False) for name in counts}
    return f": {why}" if possible(text, by_itself) and not possible(text, counts) else ""


def _narrowed(node: Any, domains: Domains, truth: bool) -> Domains | None:
    """Return the domains of rows for which a condition is true, or is false; None where there is none."""
    kind = type(node).__name__
    match kind:
        case "Paren":
            return _narrowed(node.this, domains, truth)
        case "Not":
            return _narrowed(node.this, domains, not truth)
        case "And" | "Or":
            parts = list(node.flatten())
            return (_all if (kind == "And") is truth else _any)(parts, domains, truth)
        case "Boolean":
            return domains if bool(node.this) is truth else None
        case "Null":
            return None
        case "Column":
            return _kept(node, _value(node, domains).restricted("=", _constant(truth)), domains)
        case "Is":
            return _is(node, domains, truth)
        case "In":
            return _among(node, domains, truth)
        case "Between":
            low, high = node.args["low"], node.args["high"]
            behind = _compared(">=", node.this, low, domains, truth)
            if not truth:
                return _joined([behind, _compared("<=", node.this, high, domains, truth)], domains)
            return None if behind is None else _compared("<=", node.this, high, behind, truth)
    if kind in _SIGNS:
        return _compared(_SIGNS[kind], node.this, node.expression, domains, truth)
    return domains


def _all(parts: Sequence[Any], domains: Domains, truth: bool) -> Domains | None:
    narrowed: Domains | None = domains
    for part in parts:
        narrowed = None if narrowed is None else _narrowed(part, narrowed, truth)
    return narrowed


def _any(parts: Sequence[Any], domains: Domains, truth: bool) -> Domains | None:
    return _joined([_narrowed(part, domains, truth) for part in parts], domains)


def _joined(branches: Sequence[Domains | None], domains: Domains) -> Domains | None:
    """Return what is known where one of several is so."""
    left = [branch for branch in branches if branch is not None]
    if not left:
        return None
    names = {name for branch in left for name in branch}
    return {
        name: reduce(Domain.joined, [one.get(name, domains.get(name, Domain())) for one in left])
        for name in names
    }


def _kept(node: Any, domain: Domain, domains: Domains) -> Domains | None:
    """Return the domains with what is now known of one part; None where nothing is left of it."""
    while type(node).__name__ == "Paren":
        node = node.this
    if domain.empty:
        return None
    return {**domains, node.name: domain} if type(node).__name__ == "Column" else domains


def _compared(sign: str, left: Any, right: Any, domains: Domains, truth: bool) -> Domains | None:
    sign = sign if truth else _DENIED[sign]
    mine, theirs = _value(left, domains), _value(right, domains)
    narrowed = _kept(left, mine.restricted(sign, theirs), domains)
    return None if narrowed is None else _kept(right, theirs.restricted(_TURNED[sign], mine), narrowed)


def _among(node: Any, domains: Domains, truth: bool) -> Domains | None:
    if not truth:
        narrowed: Domains | None = domains
        for one in node.expressions:
            narrowed = None if narrowed is None else _compared("<>", node.this, one, narrowed, True)
        return narrowed
    return _joined([_compared("=", node.this, one, domains, True) for one in node.expressions], domains)


def _is(node: Any, domains: Domains, truth: bool) -> Domains | None:
    if type(node.expression).__name__ == "Boolean":
        return _narrowed(node.this, domains, bool(node.expression.this)) if truth else domains
    domain = _value(node.this, domains)
    return _kept(node.this, replace(domain, some=False) if truth else replace(domain, null=False), domains)


def _constant(value: object) -> Domain:
    return Domain(among=frozenset((value,)), null=False)


def _value(node: Any, domains: Domains) -> Domain:
    """Return what is known of the value of an expression."""
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
            # Of doubles there is one that is no number; only a constant is sure to be one.
            constant = value.low == value.high
            null = value.null or not constant
            return (
                Domain(-value.high, -value.low, value.whole, null=null)
                if value.whole or constant
                else Domain()
            )
        case "Add" | "Sub" as kind:
            one, other = _value(node.this, domains), _value(node.expression, domains)
            if not (one.whole and other.whole):
                return Domain()
            low, high = (other.low, other.high) if kind == "Add" else (-other.high, -other.low)
            return Domain(one.low + low, one.high + high, whole=True)
        case "Length":
            return Domain(low=0, whole=True)
    return Domain()
