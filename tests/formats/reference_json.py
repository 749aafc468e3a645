"""The plain parser of a log: JSON, one object a line, or records inside one."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.formats.reference_lines import Found, Refused, text_of
from transom.formats.record_format import RecordFormat

DEEPEST_JSON = 100
TOO_DEEP = "more than 100 arrays and objects in each other"


class Number(str):
    """A number of a JSON text, as written there."""


class Json:
    """An object a line. Of two members of one name the last is taken; null is no value.

    A path is a member's name, or else names joined by dots, down through objects. A number has the text
    with which it is written, true and false have theirs, an array or object the shortest JSON text of
    the same content. Half a surrogate pair is no character and becomes the replacement character.
    """

    def __init__(self, layout: RecordFormat) -> None:
        self.layout = layout
        self.columns: set[str] = set()
        paths = [path for column in layout.fields for path in column.paths]
        more = [path for one in layout.time.more for path in one]
        self.paths = [*paths, *layout.time.paths, *layout.time.plus, *more]

    def record(self, line: object) -> Found | None:
        result = line.inside if isinstance(line, Json.Value) else self.loaded(text_of(line), DEEPEST_JSON)
        if not isinstance(result, dict):
            raise Refused("not_an_object")
        routes = [route for path in self.paths if (route := self.route(result, path))]
        nested = {".".join(route) for route in routes}
        retained = self.without(result, routes)
        rest = re.sub("[\ud800-\udfff]", "\ufffd", self.written(retained, ordered=True)) if retained else None
        names = {re.sub("[\ud800-\udfff]", "\ufffd", name) for name in result}
        return Found(
            {path: self.at(result, path) for path in self.paths}, names | nested, nested - names, rest
        )

    @dataclass
    class Value:
        """A record that has been parsed with its line."""

        inside: object

    def records(self, line: bytes) -> list["Json.Value | Refused"]:
        """Return the records of a line, or the reason why there are none."""
        path = str(self.layout.options["records"])
        around = path.count(".") + path.count("[]") + 1
        try:
            whole = self.loaded(text_of(line, 2**24), DEEPEST_JSON + around)
        except Refused as refused:
            one_line = "an object a line, not one over several lines"
            if refused.reason == "bad_json":
                refused.detail += f"; expected {one_line}"
            return [refused]
        expected = f"a list at {path}"
        lists = [part.removeprefix(".") for part in path.split("[]")[:-1]]
        holders = [("", whole, dict[str, object]())]
        for level, name in enumerate(lists):
            further = []
            encountered = not holders
            for where, holder, given in holders:
                if not isinstance(holder, dict):
                    if not where:
                        return [Refused("no_records", expected=expected)]
                    return [Refused("no_records", f"{where[:-1]} is {kind(holder)}", expected=expected)]
                # Values of the objects around the records belong to each record.
                before = "$." + "".join(f"{one}[]." for one in lists[:level])
                more = {
                    path: value
                    for path in self.paths
                    if path.startswith(before) and "[]" not in path.removeprefix(before)
                    if (value := self.inside(holder, path.removeprefix(before))) is not None
                }
                result, odd = self.list_in(holder, name)
                if odd is not None:
                    return [Refused("no_records", where + odd, expected=expected)]
                encountered = encountered or result is not None
                for index, item in enumerate(result or ()):
                    further.append((f"{where}{name}[{index}].", item, given | more))
            if not encountered:
                return [Refused("no_records", expected=expected)]
            holders = further
        found_records: list[Json.Value | Refused] = []
        for _, record, given in holders:
            value = record | given if isinstance(record, dict) else record
            too_deep = deep(self.written(value))
            found_records.append(Refused("bad_json", TOO_DEEP) if too_deep else Json.Value(value))
        return found_records

    def list_in(self, result: Mapping[str, object], path: str) -> tuple[list[object] | None, str | None]:
        """Return the list at a path, or the value in its place."""
        first, dot, rest = path.partition(".")
        name = path if path in result else first if dot and first in result else ""
        value = result[name] if name else None
        if value is None:
            return None, None
        if name == first and dot and isinstance(value, dict):
            inner, odd = self.list_in(value, rest)
            return inner, None if odd is None else f"{first}.{odd}"
        if name == path and isinstance(value, list):
            return value, None
        return None, f"{name} is {kind(value)}"

    def inside(self, result: Mapping[str, object], path: str) -> object:
        """Return the value at a path; None if it is missing."""
        route = self.route(result, path)
        value: object = result if route else None
        for name in route:
            assert isinstance(value, dict)
            value = value[name]
        return value

    def loaded(self, text: str, deepest: int) -> object:
        if deep(text, deepest):
            raise Refused("bad_json", TOO_DEEP)
        try:
            return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=self.constant)
        except json.JSONDecodeError as error:
            texts = re.sub(r"( at|: )$", "", error.msg)
            raise Refused("bad_json", f"{texts} at character {error.pos + 1}") from None
        except ValueError as error:
            raise Refused("bad_json", error) from None

    def route(self, result: Mapping[str, object], path: str) -> list[str]:
        """Return the names on the way to a path; none if the record has no such value."""
        if path in result:
            return [path]
        first, dot, rest = path.partition(".")
        inside = result.get(first)
        further = self.route(inside, rest) if dot and isinstance(inside, dict) else []
        return [first, *further] if further else []

    def without(self, result: Mapping[str, object], routes: list[list[str]]) -> dict[str, object]:
        """Return an object without the values of some routes, and without null in the objects on the way."""
        remaining: dict[str, object] = {}
        for name, value in result.items():
            further = [route[1:] for route in routes if route[0] == name]
            if [] in further:
                continue
            if further:
                assert isinstance(value, dict)
                value = self.without(value, further) or None
            if value is not None:
                remaining[name] = value
        return remaining

    def constant(self, name: str) -> object:
        raise ValueError(f"{name} is not JSON")

    def at(self, result: Mapping[str, object], path: str) -> str | None:
        while path not in result:
            first, dot, path = path.partition(".")
            inside = result.get(first)
            if not dot or not isinstance(inside, dict):
                return None
            result = inside
        value = result[path]
        if value is None:
            return None
        text = value if isinstance(value, str) else self.written(value)
        return re.sub("[\ud800-\udfff]", "\ufffd", text)

    def written(self, value: object, ordered: bool = False) -> str:
        match value:
            case Number():
                return value
            case list():
                return f"[{','.join(self.written(inner, ordered) for inner in value)}]"
            case dict():
                items = sorted(value.items()) if ordered else value.items()
                inside = (f"{self.written(name)}:{self.written(inner, ordered)}" for name, inner in items)
                return f"{{{','.join(inside)}}}"
            case _:
                return json.dumps(value, ensure_ascii=False)


def kind(value: object) -> str:
    """Return the kind of a value as text."""
    match value:
        case None:
            return "null"
        case Number():
            return "a number"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def deep(text: str, limit: int = DEEPEST_JSON) -> bool:
    """Return whether more brackets are open at once than any log has, outside of strings."""
    depth = deepest = 0
    for char in re.sub(r'"(\\.|[^"\\])*"', "", text):
        depth += (char in "[{") - (char in "]}")
        deepest = max(deepest, depth)
    return deepest > limit
