"""Reading the file itself: the YAML that a stream's file may use."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.spec.yaml_file import MAX_BYTES, parse_mapping, read_mapping
from transom.stream import SpecificationError, load


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nsource: {}\nname: b", "line 3, column 1: the key 'name' is repeated"),
        ("a: {b: 1, c: 2, b: 3}", "line 1, column 17: the key 'b' is repeated"),
        ("a: &x [1]\nb: 2", "line 1, column 4: anchors and aliases are not allowed"),
        ("a: 1\nb: *x", "line 2, column 4: anchors and aliases are not allowed"),
        ("a: &x {}\nb: {<<: *x}", "line 1, column 4: anchors and aliases are not allowed"),
        ("a: " + "[" * 25 + "]" * 25, "line 1, column 23: nested more than 20 deep"),
        ("1: a", "line 1, column 1: a key must be text"),
        ("true: a", "line 1, column 1: a key must be text"),
        ("[a]: b", "line 1, column 1: a key must be text"),
        ("", "must hold a mapping of fields; got nothing"),
        ("# only a comment", "must hold a mapping of fields; got nothing"),
        ("- a", "must hold a mapping of fields; got list"),
        ("web", "must hold a mapping of fields; got str"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed here"),
        ("a: [1", "line 1, column 6: expected ',' or ']', but got '<stream end>'"),
        ("a: 1\n---\nb: 2", "line 2, column 1: but found another document"),
        ("a: !!python/object:os.system x", "line 1, column 4: tags are not allowed"),
        ("a: !!int 5", "line 1, column 4: tags are not allowed"),
        ("a: !x {b: c}", "line 1, column 4: tags are not allowed"),
        ("a: \x01", "not YAML: special characters are not allowed"),
    ],
)  # fmt: skip
def test_forbidden_content_of_a_file_is_reported_with_its_line(text: str, message: str) -> None:
    with pytest.raises(SpecificationError) as error:
        parse_mapping(text, "web.yaml")
    assert str(error.value) == f"web.yaml: {message}"


def test_only_true_and_false_are_booleans_and_only_plain_numbers_are_numbers() -> None:
    text = """
    off: true
    y: [yes, no, on, off, True, null, ~, Null]
    numbers: [1, -2, +3, 0.5, 1e3, 1.5e-3]
    texts: [1:30, 2015-05-17, 2015-05-17T10:00, 0x1F, 0o17, 017, 1_000, .inf, .nan, 1., =]
    empty:
    """
    assert parse_mapping(text, "x") == {
        "off": True,
        "y": ["yes", "no", "on", "off", "True", None, None, "Null"],
        "numbers": [1, -2, 3, 0.5, 1000.0, 0.0015],
        "texts": [
            "1:30", "2015-05-17", "2015-05-17T10:00", "0x1F", "0o17", "017", "1_000", ".inf", ".nan", 1.0,
            "=",
        ],
        "empty": None,
    }  # fmt: skip


def test_number_of_many_digits_is_text() -> None:
    assert parse_mapping("a: " + "9" * 5000, "x") == {"a": "9" * 5000}


def test_size_of_a_file_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text("a: " + "x" * (MAX_BYTES - 3))
    assert len(read_mapping(path)["a"]) == MAX_BYTES - 3
    path.write_text("a: " + "x" * (MAX_BYTES - 2))
    with pytest.raises(SpecificationError) as error:
        load(path)
    assert str(error.value) == f"{path}: must be at most {MAX_BYTES} bytes; it has more"


def test_missing_or_non_utf_8_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError) as error:
        load(tmp_path / "none.yaml")
    assert str(error.value) == f"{tmp_path / 'none.yaml'}: cannot be read: No such file or directory"
    with pytest.raises(SpecificationError) as error:
        load(tmp_path)
    assert str(error.value) == f"{tmp_path}: cannot be read: Is a directory"
    path = tmp_path / "web.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(SpecificationError) as error:
        load(path)
    assert str(error.value) == f"{path}: must be UTF-8; got b'\\xff' at 3"


def test_other_users_of_yaml_are_not_affected() -> None:
    import yaml

    assert yaml.safe_load("a: off") == {"a": False}


pieces = st.sampled_from(["a", "b", ":", ": ", "\n", "  ", "- ", "[", "]", "{", "}", ",", "&x", "*x", "é",
                          "!!int ",
                          "!!timestamp ", "!!binary ", "!!set ", "!!omap ", "!x ", "'", '"', "|", ">", "#",
                          "---", "...", "%", "?", "1", "1.5", "~", "true", "<<", "\t", "\\"])  # fmt: skip


contents = st.one_of(st.text(max_size=60), st.binary(max_size=60), st.lists(pieces, max_size=20).map("".join))


@given(contents)
def test_any_content_is_a_mapping_or_a_specification_error(content: str | bytes) -> None:
    try:
        result = parse_mapping(content, "x")
    except SpecificationError as error:
        refused = str(error)
    else:
        assert all(isinstance(key, str) for key in result)
        return
    assert refused.startswith("x: ")
