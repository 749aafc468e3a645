"""Conditions that no row can meet, as far as bounds of single columns tell."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Any

from transom.expressions.syntax import parse

if TYPE_CHECKING:
    from transom.stream.model import Stream


@dataclass(frozen=True)
class Domain:
    """The values that a column may have: between two numbers, both inside, or one of some texts.

    Attributes:
        low, high: the bounds.
        whole: whether values are whole numbers.
        texts: None is any text.
    """

    low: float = -inf
    high: float = inf
    whole: bool = False
    texts: frozenset[str] | None = None

    @property
    def empty(self) -> bool:
        """Whether there is no such value."""
        return self.low > self.high or self.texts == frozenset()

    def compared(self, sign: str, value: float) -> "Domain":
        """Return the values that meet a comparison. Of what is not whole, bounds outside count as inside."""
        match sign:
            case "<":
                return replace(self, high=min(self.high, ceil(value) - 1 if self.whole else value))
            case "<=":
                return replace(self, high=min(self.high, value))
            case ">":
                return replace(self, low=max(self.low, floor(value) + 1 if self.whole else value))
            case ">=":
                return replace(self, low=max(self.low, value))
        if self.whole and value != floor(value):
            return replace(self, low=inf, high=-inf)
        return replace(self, low=max(self.low, value), high=min(self.high, value))

    def one_of(self, texts: frozenset[str]) -> "Domain":
        """Return the values that are among some texts."""
        return replace(self, texts=texts if self.texts is None else self.texts & texts)


Domains = Mapping[str, Domain]
COUNT = Domain(low=1, whole=True)
"""A window, or a granule, is a row only where it has a record."""
_SIGNS = {"EQ": "=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def possible(text: str, domains: Domains) -> bool:
    """Return whether a row may meet a condition; True as well where this cannot be told.

    Args:
        text: a condition that has been compiled.
        domains: of columns of which something is known.
    """
    return _narrowed(parse(text), domains) is not None


def impossible(stream: "Stream") -> Iterator[str]:
    """Yield, in words, which conditions of a stream no row can meet."""
    for place, text, domains, why in _conditions(stream):
        if not possible(text, domains):
            yield f"{place}: no row can meet {' '.join(text.split())!r}{why}"


def _conditions(stream: "Stream") -> Iterator[tuple[str, str, Domains, str]]:
    of_events = {name: Domain(whole=True) for name, kind in stream.event_types.items() if kind == "integer"}
    for group in ("aggregate", "patterns", "persistence", "frequency"):
        for name, block in getattr(stream, group).items():
            if block.where is not None:
                yield f"{group}.{name}.where", block.where, of_events, ""
    for name, pattern in stream.patterns.items():
        for index, step in enumerate(pattern.all_steps):
            yield f"patterns.{name}.steps[{index}].where", step.where, of_events, ""
    for name, block in stream.aggregate.items():
        counts = _counts(stream, name)
        levels = len(block.levels) - 1
        for alert, said in block.alert.items():
            low, high = (0, levels) if said.level is None else (said.level, said.level)
            domains = counts | {"count": COUNT, "level": Domain(low, high, whole=True)}
            why = (
                f"a window without a record is no row; frames over {name} find keys that are silent, with "
                "missing: satisfies and known: 1 day"
            )
            why = _why(said.when, counts | {"count": COUNT}, why)
            yield f"aggregate.{name}.alert.{alert}.when", said.when, domains, why
    for name, frame in stream.frames.items():
        domains = of_events if frame.over is None else _counts(stream, frame.over)
        for field in ("only", "where", "starts_when", "ends_when"):
            text = getattr(frame, field)
            # A reading that a known key misses satisfies `where`, whatever it says.
            if text is not None and (field != "where" or frame.known is None):
                counts = {} if frame.over is None else domains
                why = "a granule without a record is a missing reading, which has no value"
                if field == "where":
                    why += "; with missing: satisfies and known: 1 day it begins a frame"
                yield f"frames.{name}.{field}", text, domains, _why(text, counts, why)


def _why(text: str, counts: Domains, why: str) -> str:
    """The reason, where bounds of counts alone make a condition impossible."""
    by_itself = {name: Domain(whole=True) for name in counts}
    return f": {why}" if possible(text, by_itself) and not possible(text, counts) else ""


def _counts(stream: "Stream", block: str) -> dict[str, Domain]:
    """What is known of the measures of a block: how many records there are, and how many values."""
    if block not in stream.aggregate:
        return {}
    known = {"count": COUNT, "distinct": Domain(low=0, whole=True)}
    measures = stream.aggregate[block].measures.items()
    return {name: known[measure.function] for name, measure in measures if measure.function in known}


def _narrowed(node: Any, domains: Domains) -> Domains | None:
    """Return the domains of rows that meet a condition, None where there is none."""
    kind = type(node).__name__
    if kind == "Paren":
        return _narrowed(node.this, domains)
    if kind == "And":
        first = _narrowed(node.left, domains)
        return None if first is None else _narrowed(node.right, first)
    if kind == "Or":
        branches = [_narrowed(side, domains) for side in (node.left, node.right)]
        left = [branch for branch in branches if branch is not None]
        # What either of two says of a column is known of neither.
        return left[0] if len(left) == 1 else (domains if left else None)
    if kind in _SIGNS:
        return _compared(_SIGNS[kind], node.left, node.right, domains)
    if kind == "Between":
        low = _compared(">=", node.this, node.args["low"], domains)
        return None if low is None else _compared("<=", node.this, node.args["high"], low)
    if kind == "In":
        return _among(node, domains)
    return domains


def _compared(sign: str, left: Any, right: Any, domains: Domains) -> Domains | None:
    if type(left).__name__ != "Column":
        left, right, sign = right, left, _TURNED[sign]
    value = _literal(right)
    if type(left).__name__ != "Column" or value is None:
        return domains
    name = left.name.lower()
    domain = domains.get(name, Domain())
    if isinstance(value, str):
        narrowed = domain.one_of(frozenset((value,))) if sign == "=" else domain
    else:
        narrowed = domain.compared(sign, value)
    return None if narrowed.empty else {**domains, name: narrowed}


def _among(node: Any, domains: Domains) -> Domains | None:
    values = [_literal(one) for one in node.args.get("expressions") or ()]
    if type(node.this).__name__ != "Column" or not values or not all(isinstance(v, str) for v in values):
        return domains
    name = node.this.name.lower()
    narrowed = domains.get(name, Domain()).one_of(frozenset(str(value) for value in values))
    return None if narrowed.empty else {**domains, name: narrowed}


def _literal(node: Any) -> float | str | None:
    kind = type(node).__name__
    if kind == "Neg":
        value = _literal(node.this)
        return -value if isinstance(value, float) else None
    if kind != "Literal":
        return None
    return str(node.this) if node.is_string else float(node.this)
