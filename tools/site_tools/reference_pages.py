"""Generate the pages of the reference from the code, as a hook of MkDocs.

The pages exist only while the site is built, so none of them can be out of date.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main
import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from transom.api import RESULTS
from transom.cli.__main__ import app
from transom.features.registry import BUILT_IN, FEATURES
from transom.spec.expressions import FUNCTIONS, MAX_DEPTH, MAX_LENGTH
from transom.storage.tables import descriptions
from transom.stream import StreamFile
from transom.stream_schema import schema_text

PRESETS = Path(__file__).resolve().parents[2] / "jobs/transom/spec/presets"
Schema = Mapping[str, Any]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder `docs`."""
    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def pages() -> Mapping[str, str]:
    """Return the text of each page, by its name without the ending."""
    return {
        "stream-file": "\n\n".join(_stream_file()),
        "expressions": "\n\n".join(_expressions()),
        "presets": "\n\n".join(_presets()),
        "tables": "\n\n".join(_tables()),
        "checks": "\n\n".join(_checks()),
        "cli": "\n\n".join(_commands()),
    }


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Return a text as a cell; a bar in code does not end a cell and is not escaped."""
    parts = re.split("(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


def _table(*head: str, rows: Iterator[tuple[str, ...]]) -> str:
    return "\n".join([_row(*head), _row(*["---"] * len(head)), *(_row(*row) for row in rows)])


def _stream_file() -> Iterator[str]:
    schema = json.loads(schema_text(StreamFile))
    yield "# The stream file"
    yield (
        "Every field of a stream file, generated from the models that read it. The same rules are in "
        "`schemas/stream.schema.json`, by which an editor completes and checks a file."
    )
    yield "## Top level"
    yield _fields(schema)
    # A shorthand, such as a bare text for a column, is an alternative of the definition.
    for name in sorted(schema["$defs"]):
        definition = schema["$defs"][name]
        yield f"## {name}"
        for form in definition.get("anyOf", [definition]):
            if "properties" in form:
                yield form.get("description", "")
                yield _fields(form)
            else:
                meaning = f", {form['description']}" if "description" in form else ""
                yield f"Short form: {_type(form)}{meaning}."


def _fields(schema: Schema) -> str:
    required = schema.get("required", ())
    return _table(
        "field",
        "type",
        "default",
        "meaning",
        rows=(
            (
                f"`{name}`",
                _type(field),
                "required" if name in required else _default(field),
                field.get("description", ""),
            )
            for name, field in schema["properties"].items()
        ),
    )


def _default(field: Schema) -> str:
    default = field.get("default")
    return "" if default in (None, [], {}) else f"`{json.dumps(default, ensure_ascii=False)}`"


def _type(field: Schema) -> str:
    """Return a field's type as text, with a link if it is a model."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "anyOf" in field:
        forms = dict.fromkeys(_type(form) for form in field["anyOf"] if form.get("type") != "null")
        return " or ".join(forms)
    if "patternProperties" in field:
        (value,) = field["patternProperties"].values()
        return f"mapping of a name to {_type(value)}"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}" if "items" in field else "list"
    if field.get("type") == "object":
        value = field.get("additionalProperties")
        return f"mapping of text to {_type(value)}" if isinstance(value, dict) else "mapping"
    if "examples" in field:
        return "text such as " + " or ".join(f"`{example}`" for example in field["examples"][:2])
    return {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}.get(
        field.get("type", ""), "any value"
    )


def _expressions() -> Iterator[str]:
    yield "# Expressions"
    yield (
        "`where`, `is`, `condition` and the conditions of checks and alerts are written in a subset of SQL. "
        "Names are the columns of the stream or of the block. A division by zero, a number that is too large "
        "and a cast that fails give null: an expression never ends a run. An expression has at most "
        f"{MAX_LENGTH:,} characters, and is nested at most {MAX_DEPTH} deep."
    )
    yield (
        "A pattern of `rlike` that repeats a repeat, such as `(a+)+`, is rejected when the file is read: it "
        "could take years. So is a comparison with null, which is never true, and one of different types."
    )
    yield _table(
        "form",
        "examples",
        rows=iter(
            (
                (
                    "comparison",
                    "`= <> < <= > >=`, `is [not] distinct from`, `is [not] null`, `is [not] true`",
                ),
                ("logic", "`and`, `or`, `not`"),
                ("membership", "`[not] in (...)`, `[not] between ... and ...`"),
                ("text", "`[not] like`, `[not] ilike`, `rlike` with a constant pattern, `||`"),
                ("arithmetic", "`+ - * / %`"),
                ("choice", "`case when ... then ... else ... end`"),
                ("types", "`cast(x as string)`, `bigint`, `double`, `boolean`, `timestamp`"),
                (
                    "constants",
                    "`'text'`, `1`, `0.5`, `true`, `null`, `timestamp '2015-05-17 10:00:00'` (UTC)",
                ),
            )
        ),
    )
    yield "Functions: " + ", ".join(f"`{name}`" for name in sorted(FUNCTIONS)) + "."


def _presets() -> Iterator[str]:
    yield "# Presets"
    yield "A preset is the format, the columns and the time of a known log. A stream's `preset` names it."
    for path in sorted(PRESETS.glob("*/*.yaml")):
        yield f"## {path.parent.name}/{path.stem}"
        yield f"```yaml\n{path.read_text().strip()}\n```"


def _tables() -> Iterator[str]:
    yield "# Tables"
    yield (
        "Every table is a Delta table in `<lake>/<stream>/<table>`. All times are in UTC. The columns in "
        "italics come from the stream file."
    )
    for title, private in (("Results", False), ("Ledger and private state", True)):
        yield f"## {title}"
        if private:
            yield "These tables are not an interface: their columns may change with any version."
        for name, path in sorted(descriptions().items()):
            if (name not in RESULTS) == private:
                text = yaml.safe_load(path.read_text())
                yield f"### {name}"
                yield text["description"]
                yield _table(
                    "column",
                    "type",
                    "meaning",
                    rows=(
                        (
                            f"*{column[1:]}*" if column.startswith("*") else f"`{column}`",
                            f"`{field['type']}`",
                            field["meaning"],
                        )
                        for column, field in text["columns"].items()
                    ),
                )


def _checks() -> Iterator[str]:
    yield "# Checks"
    yield (
        "A check of severity `error` quarantines the hour, `incomplete` marks it, `warning` is reported. "
        "`checks` in the stream file changes a severity or a bound, or turns a check off."
    )
    for stage in ("ingest", *(feature.name for feature in FEATURES)):
        yield f"## {stage}"
        yield _table(
            "check",
            "severity",
            "bound",
            "rule",
            "when it fails",
            rows=(
                (
                    f"`{name}`",
                    check.severity,
                    "" if check.at_most is None else f"{check.tolerance}: {check.at_most:g}",
                    check.meaning,
                    check.advice or "",
                )
                for name, check in BUILT_IN.items()
                if check.stage == stage
            ),
        )


def _commands() -> Iterator[str]:
    yield "# Command line"
    group = typer.main.get_group(app)
    # The control character keeps the lines of the next paragraph in a terminal.
    purpose = (group.help or "").replace("\b\n", "").strip()
    yield f"```text\n{purpose}\n```"
    for name, command in group.commands.items():
        context = command.make_context(name, [], resilient_parsing=True, parent=None)
        context.info_name = f"transom {name}"
        yield f"## transom {name}"
        yield f"```text\n{command.get_help(context)}\n```"
