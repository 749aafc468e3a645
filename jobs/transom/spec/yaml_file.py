"""Read untrusted YAML, restricted to a subset.

No aliases (a few lines of them can expand to gigabytes), no tags, no repeated keys (the last one would
silently win), limits of size and depth. Only `true` and `false` are booleans: YAML 1.1 reads `off: true` as
`{False: True}`, `1:30` as 90 and a date as a date.
"""

import re
from pathlib import Path
from typing import Any, NoReturn

import yaml

from transom.spec.errors import Issue, SpecificationError

MAX_BYTES = 256 * 1024
_MAX_DEPTH = 20
_NAME = re.compile(
    r"""^(?P<k>["']?)name(?P=k):[ \t]+(?P<v>["']?)(?P<name>[^\s"'#&*!|>{}\[\]]+)(?P=v)[ \t]*(?:\#.*)?$""",
    re.MULTILINE,
)


class _Loader(yaml.SafeLoader):
    """The safe loader, with the rules of this module."""

    # Own resolvers, since PyYAML's `add_implicit_resolver` would change those of the parent for every user.
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose one node, unless it is an alias, has an anchor or a tag, or is nested too deeply."""
        # PyYAML's stubs leave this one out of the types.
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:
            _refuse("anchors and aliases are not allowed", event)
        if getattr(event, "tag", None) is not None:
            _refuse("tags are not allowed", event)
        if self.depth >= _MAX_DEPTH:
            _refuse(f"nested more than {_MAX_DEPTH} deep", event)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Construct a mapping with distinct text keys."""
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                _refuse("a key must be text", key)
            if key.value in keys:
                _refuse(f"the key {key.value!r} is repeated", key)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


def _refuse(problem: str, place: Any) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


# YAML 1.2's core schema, without octal and hexadecimal numbers, infinities and nan. The expressions are
# matched from the start only, hence the \Z.
for _tag, _form, _first in (
    ("bool", r"(true|false)\Z", "tf"),
    ("null", r"(~|null|)\Z", ["~", "n", ""]),
    ("int", r"[-+]?(0|[1-9][0-9]{0,17})\Z", "-+0123456789"),
    ("float", r"[-+]?[0-9]+(\.[0-9]*([eE][-+]?[0-9]{1,3})?|[eE][-+]?[0-9]{1,3})\Z", "-+0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_form), list(_first))


def read_mapping(path: str | Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises:
        SpecificationError: the file cannot be read, or as `parse_mapping`.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecificationError(str(path), [Issue("", f"cannot be read: {error.strerror}")]) from None
    return parse_mapping(content, str(path))


def parse_mapping(content: bytes | str, name: str) -> dict[str, Any]:
    """Return the mapping in a text; `name` is for errors.

    Raises:
        SpecificationError: it is larger than 256 KiB, not UTF-8, not YAML or no mapping, or breaks a rule of
            this module.
    """
    problem = ""
    try:
        raw = content.encode() if isinstance(content, str) else content
        if len(raw) > MAX_BYTES:
            problem = f"must be at most {MAX_BYTES} bytes; it has more"
        else:
            data = yaml.load(raw.decode(), _Loader)
            if isinstance(data, dict):
                return data
            kind = "nothing" if data is None else type(data).__name__
            problem = f"must hold a mapping of fields; got {kind}"
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        problem = f"must be UTF-8; got {error.object[error.start : error.end]!a} at {error.start}"
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "not YAML" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
        text = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
        problem = f"{where}: {text}"
    raise SpecificationError(name, [Issue("", problem)])


def declared_name(content: str) -> str | None:
    """Return the name declared in the text of a stream file, even if the rest is invalid.

    >>> declared_name("name: web\\nsource: [")
    'web'
    """
    match = _NAME.search(content)
    return match["name"] if match else None
