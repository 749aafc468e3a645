"""Names in recipients and silences: notifier classes of Airflow, and kinds of findings."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

from transom.core.terminal import escape_control_chars
from transom.findings.from_ledger import KINDS
from transom.spec.errors import did_you_mean
from transom.spec.stream import Stream

RULE = "must be the path of a notifier class of Airflow"


def notifier_class(recipient: str, path: str) -> Any:
    """Return the class of a recipient's notifier.

    Raises:
        ValueError: it cannot be imported, or is no notifier. The message has place, rule and value.
    """
    module, _, name = path.rpartition(".")
    place = f"notify.{recipient}.notifier: {RULE}"
    try:
        found = getattr(import_module(module), name)
    # The import runs foreign code.
    except Exception as error:
        cause = escape_control_chars(f"{type(error).__name__}: {error}")
        raise ValueError(f"{place}; got {path!r}, which cannot be imported: {cause}") from error
    if not (isinstance(found, type) and hasattr(found, "notify") and hasattr(found, "template_fields")):
        raise ValueError(f"{place}; got {path!r}, which is {type(found).__name__} {name}")
    return found


def unknown_classes(stream: Stream) -> Iterator[str]:
    """Yield the recipients whose notifier cannot be used, as text."""
    for name, recipient in stream.notify.items():
        try:
            notifier_class(name, recipient.notifier)
        except ValueError as error:
            yield str(error)


def unknown_kinds(stream: Stream) -> Iterator[str]:
    """Yield the kinds in recipients and silences that no finding has, as text."""
    sources = [feature.findings for feature in stream.features if feature.findings is not None]
    known = (*KINDS, *(resolve_name(path).kind for path in sources))
    named = [
        (f"notify.{name}.kinds[{index}]", kind)
        for name, recipient in stream.notify.items()
        for index, kind in enumerate(recipient.kinds)
    ]
    named += [(f"silence[{index}].kind", of.kind) for index, of in enumerate(stream.silence) if of.kind]
    for place, kind in named:
        if kind not in known:
            yield f"{place}: no kind {kind!r}{did_you_mean(kind, known)}"
