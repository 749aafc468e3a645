"""Every rule of the prose linter finds its problem, and no correct use. `make lint` runs it on all files."""

import re
from pathlib import Path

import pytest

from prose_lint.__main__ import general_problems, main
from prose_lint.style import WORDINGS, problems
from prose_lint.texts import Kind, Text, texts

WORDS = {
    "tell": ("the ledger tells why", "reports"),
    "say": ("the file says so", "essay"),
    "stand": ("what stands in the table", "n stands for a number; a stand-in; to understand"),
    "hold": ("an hour that is withheld", "a table holds rows; the lock is held"),
    "overtake": ("the run was overtaken", "taken over"),
    "mend": ("a run mends it", "amend, commend"),
    "stretch": ("a stretch of hours", "an interval"),
    "whatever": ("whatever the order", "what ever changes"),
    "ask": ("an hour that a run asked for", "a task, a mask"),
    "anew": ("compute it anew", "a new one"),
    "beside": ("a gap beside it", "nothing besides this"),
    "lie": ("the folder lies there", "it lies in the hour, and lies between the bounds; relies"),
    "come": ("what came of it", "a file comes too late"),
    "made of": ("frames are made of readings", "made by"),
    "figure": ("a figure is high", "figure 5, the paper's figures, figure-5.svg; to configure"),
    "leave out": ("nulls are left out", "left outer join"),
    "behind": ("the stages behind it", "a lookbehind"),
    "nobody": ("nobody requested it", "no run requested it"),
    "idiom": ("it waits for ever", "for every hour"),
    "weasel": ("a very long text", "every, justified"),
    "repeated": ("the the window", "a b a"),
}


def rules_of(text: str, kind: Kind = "comment", of: str = "") -> list[str]:
    return [one.rule for one in problems(Text(Path("a.md"), 1, kind, text, of))]


@pytest.mark.parametrize("rule", [wording.rule for wording in WORDINGS])
def test_rule_finds_a_word_and_no_correct_use(rule: str) -> None:
    wrong, correct = WORDS[rule]
    assert rules_of(wrong) == [rule]
    assert rules_of(correct) == []


def test_sentences_are_counted_by_kind_of_text() -> None:
    long = "word " * 41
    assert rules_of(f"{long}.") == ["sentence"]
    assert rules_of(f"{'word ' * 30}. {'word ' * 30}.") == []
    assert rules_of(f"{'word ' * 30}. {'word ' * 30}.", "page") == ["sentences"]
    # Lines of a page break anywhere.
    assert rules_of(f"{'word ' * 30}\n{'word ' * 11}: one. two. three.", "page") == ["sentence"]
    assert rules_of(f"short.\n\n- {'word ' * 20}\n- {'word ' * 20}\n\n| {long} |\n", "page") == []


def test_summary_names_the_thing() -> None:
    assert rules_of("What a run does.", "docstring", "ClassDef") == ["summary"]
    assert rules_of("Whether a run is active.", "docstring", "FunctionDef") == []
    assert rules_of("What a run does.", "docstring", "attribute") == []


def test_proselint_finds_a_cliche_in_its_line() -> None:
    found = [
        Text(Path("a.md"), 3, "comment", "Plain."),
        Text(Path("a.md"), 7, "comment", "So,\nlast but not least"),
    ]
    assert [(one.line, one.rule.split(".")[0]) for one in general_problems(found)] == [(8, "cliches")]


def test_texts_of_python_are_docstrings_comments_and_messages(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('''"""The module.

    a formula told = 1

Prose `told` here."""
X = 1
"""An attribute."""
# A comment
# of two lines.
def f(told):
    """Return it.

    Args:
        told: the value.
    """
    raise ValueError(f"{told} rows of {told!r}", "word", r"a\\d b")
''')
    found = [(text.line, text.kind, text.of, re.sub(r"\s+", " ", text.text).strip()) for text in texts(path)]
    assert found == [
        (1, "docstring", "Module", "The module. Prose code here."),
        (7, "docstring", "attribute", "An attribute."),
        (11, "docstring", "FunctionDef", "Return it. Args: name: the value."),
        (8, "comment", "", "A comment of two lines."),
        (16, "message", "", "{} rows of {}"),
    ]


def test_texts_of_yaml_are_comments_and_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "# A comment.\ndescription: told\ncolumns:\n  x: {type: string, meaning: a `told` value}\n"
    )
    assert [(text.line, text.kind, text.text) for text in texts(path)] == [
        (1, "comment", "A comment."), (2, "description", "told"), (4, "description", "a code value"),
    ]  # fmt: skip


def test_problems_are_printed_with_their_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A page\n\nAn hour that is withheld.\n\n```\ntold\n```\n")
    assert main([str(tmp_path / "a.md")]) == 1
    place, last = capsys.readouterr().out.splitlines()
    assert re.match(r"\S+/a.md:3: hold: 'withheld': kept", place)
    assert last == "prose: 1 problem in 1 file"
