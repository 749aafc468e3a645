"""The stream of an invalid file: the name that it declares, in any place."""

from pathlib import Path

import pytest

from transom.spec.yaml_file import declared_name
from transom.stream_files import names_of, streams

SOUND = "name: web\npreset: apache/combined\nsource: {path: 'landing/x.log'}\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name: web\n", "web"),
        ("source: {name: other}\nname: 'web' # ours\n", "web"),
        ("source:\n  name: other\n  more: [1, {name: third}]\nname: web\n", "web"),
        ('"name": web\nbroken: [', "web"),
        ("columns: *name\nname: web\n", "web"),
        ("- name: web\n", None),
        ("text: |\n  name: web\n", None),
        ("name: [web]\n", None),
        ("name:\n", None),
        ("name:\nweb: 1\n", None),
        ("{name: web\nmore: 1\n", None),
        ("a: [\nname: web\n", "web"),
        ("web", None),
        ("", None),
    ],
)
def test_declared_name_is_found_in_an_invalid_text(text: str, name: str | None) -> None:
    assert declared_name(text) == name


def test_files_of_one_name_are_found_in_a_folder_with_a_comma(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a, b"
    folder.mkdir()
    for file in ("one.yaml", "two.yaml"):
        (folder / file).write_text(SOUND)
    monkeypatch.setenv("TRANSOM_STREAMS", str(folder))
    sound, (error,) = streams()
    assert not sound
    assert names_of(error) == ["web"]
    assert str(error).startswith(f"{folder}/one.yaml, {folder}/two.yaml: name: must be that of one stream")
