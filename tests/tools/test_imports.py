"""How the package is cut: no import circles, small folders, and one class of a name."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import transom

ROOT = Path(transom.__file__).parent
MOST_MODULES = 25
"""Maximum number of modules in a folder: more cannot be overlooked at a glance."""


def sources() -> dict[str, ast.Module]:
    """Return every module of the package by its name."""
    modules = {}
    for path in ROOT.rglob("*.py"):
        parts = ("transom", *path.relative_to(ROOT).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = ast.parse(path.read_text())
    return modules


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the imports of a module: at its top, inside functions, and for type checkers alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield from (f"{node.module}.{alias.name}", str(node.module))


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return modules that import each other in turn; none where there is no circle."""
    remaining = {name: set(others) for name, others in graph.items()}
    while free := [name for name, others in remaining.items() if not others]:
        for name in free:
            del remaining[name]
        for others in remaining.values():
            others.difference_update(free)
    return sorted(remaining)


def test_no_modules_import_each_other() -> None:
    modules = sources()
    graph = {
        name: {other for other in imported(tree) if other in modules} - {name, *_packages(name)}
        for name, tree in modules.items()
    }
    assert circle(graph) == []


def _packages(name: str) -> list[str]:
    """Yield the packages of a module: they are imported with it."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def test_import_circle_is_detected() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}, "e": set()}) == ["a", "b", "c", "d"]


def test_folders_are_small() -> None:
    folders = Counter(path.parent for path in ROOT.rglob("*.py"))
    assert {folder: count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_no_class_name_is_used_twice() -> None:
    names = Counter(
        node.name for tree in sources().values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []
