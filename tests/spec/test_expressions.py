import pickle
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.formats.record_format import FieldType
from transom.spec.expressions import (
    FUNCTIONS,
    MAX_DEPTH,
    MAX_LENGTH,
    Expression,
    ExpressionError,
    compile,
    condition,
    quote,
)

COLUMNS: dict[str, FieldType] = {
    "path": "string",
    "agent": "string",
    "status": "integer",
    "bytes": "integer",
    "took": "number",
    "ok": "boolean",
    "event_time": "timestamp",
}


def exactly(text: str) -> str:
    return rf"\A{re.escape(text)}\Z"


@pytest.mark.parametrize(
    ("text", "sql", "kind"),
    [
        ("path = '/'", "(`path` = '/')", "boolean"),
        ("path <> '/'", "(`path` <> '/')", "boolean"),
        ("path != '/'", "(`path` <> '/')", "boolean"),
        ("status < 400", "(`status` < 400L)", "boolean"),
        ("status <= took", "(`status` <= `took`)", "boolean"),
        ("took > 1.5", "(`took` > 1.5D)", "boolean"),
        ("took >= 1e3", "(`took` >= 1000.0D)", "boolean"),
        ("path is null", "(`path` IS NULL)", "boolean"),
        ("path is not null", "(NOT (`path` IS NULL))", "boolean"),
        ("ok is true", "(`ok` IS TRUE)", "boolean"),
        ("ok is not false", "(NOT (`ok` IS FALSE))", "boolean"),
        ("path is distinct from agent", "(NOT (`path` <=> `agent`))", "boolean"),
        ("path is not distinct from null", "(`path` <=> NULL)", "boolean"),
        (
            "status = 404 and lower(path) like '%fckeditor%'",
            "((`status` = 404L) AND (lower(`path`) LIKE '%fckeditor%'))",
            "boolean",
        ),
        (
            "ok or status = 1 and not ok",
            "(`ok` OR ((`status` = 1L) AND (NOT `ok`)))",
            "boolean",
        ),
        ("(ok or ok) and ok", "((`ok` OR `ok`) AND `ok`)", "boolean"),
        ("ok or (ok or ok)", "(`ok` OR `ok` OR `ok`)", "boolean"),
        ("status in (200, 304)", "(`status` IN (200L, 304L))", "boolean"),
        ("path not in ('/', '/x')", "(NOT (`path` IN ('/', '/x')))", "boolean"),
        ("status between 200 and 299", "(`status` BETWEEN 200L AND 299L)", "boolean"),
        ("status not between 200 and 299", "(NOT (`status` BETWEEN 200L AND 299L))", "boolean"),
        ("path not like 'a%'", "(NOT (`path` LIKE 'a%'))", "boolean"),
        ("path not ilike 'a%'", "(NOT (`path` ILIKE 'a%'))", "boolean"),
        ("path not rlike 'a'", "(NOT (`path` RLIKE 'a'))", "boolean"),
        ("not path like 'a'", "(NOT (`path` LIKE 'a'))", "boolean"),
        ("ok is not distinct from not ok", "(`ok` <=> (NOT `ok`))", "boolean"),
        ("path ilike 'a%'", "(`path` ILIKE 'a%')", "boolean"),
        (r"path like '100\%'", r"(`path` LIKE '100\\%')", "boolean"),
        ("path rlike '(/[a-z]+)+(a+){2}'", "(`path` RLIKE '(/[a-z]+)+(a+){2}')", "boolean"),
        ("path rlike '(?=(a))b++'", "(`path` RLIKE '(?=(a))b++')", "boolean"),
        (r"path rlike '^/\d+'", r"(`path` RLIKE '^/\\d+')", "boolean"),
        ("regexp_like(path, 'a$')", "(`path` RLIKE 'a\\u0024')", "boolean"),
        ("status + 1", "try_add(`status`, 1L)", "integer"),
        ("status - took", "try_subtract(`status`, `took`)", "number"),
        ("status * 2 % 3", "try_mod(try_multiply(`status`, 2L), 3L)", "integer"),
        ("bytes / status", "try_divide(`bytes`, `status`)", "number"),
        ("-status", "try_subtract(0L, `status`)", "integer"),
        ("path || '?'", "(`path` || '?')", "string"),
        (
            "case when ok then 1 when status = 2 then 2.5 end",
            "(CASE WHEN `ok` THEN 1L WHEN (`status` = 2L) THEN 2.5D END)",
            "number",
        ),
        (
            "case status when 1 then 'a' else null end",
            "(CASE `status` WHEN 1L THEN 'a' ELSE NULL END)",
            "string",
        ),
        ("if(ok, 1, status)", "if(`ok`, 1L, `status`)", "integer"),
        ("cast(path as bigint)", "try_cast(`path` AS BIGINT)", "integer"),
        ("cast(path as int)", "try_cast(`path` AS BIGINT)", "integer"),
        ("cast(status as string)", "try_cast(`status` AS STRING)", "string"),
        ("cast(status as double)", "try_cast(`status` AS DOUBLE)", "number"),
        ("cast(path as boolean)", "try_cast(`path` AS BOOLEAN)", "boolean"),
        ("cast(path as timestamp)", "try_cast(`path` AS TIMESTAMP)", "timestamp"),
        (
            "event_time >= timestamp '2015-05-17 10:00:00'",
            "(`event_time` >= timestamp_micros(1431856800000000L))",
            "boolean",
        ),
        ("timestamp '2015-05-17T15:30:00+05:30'", "timestamp_micros(1431856800000000L)", "timestamp"),
        ("abs(took)", "abs(`took`)", "number"),
        ("abs(status)", "try_cast(abs(CAST(`status` AS DECIMAL(20, 0))) AS BIGINT)", "integer"),
        ("floor(took) + ceil(took)", "try_add(floor(`took`), ceil(`took`))", "integer"),
        ("ceil(status)", "`status`", "integer"),
        ("coalesce(bytes, 0)", "coalesce(`bytes`, 0L)", "integer"),
        ("greatest(bytes, took)", "greatest(`bytes`, `took`)", "number"),
        ("least(path, agent)", "least(`path`, `agent`)", "string"),
        ("length(path)", "CAST(length(`path`) AS BIGINT)", "integer"),
        ("lower(upper(trim(path)))", "lower(upper(trim(`path`)))", "string"),
        ("substring(path, 2)", "substring(`path`, 2)", "string"),
        ("substring(path, -3, 2)", "substring(`path`, -3, 2)", "string"),
        ("split_part(path, '/', -1)", "split_part(`path`, '/', -1)", "string"),
        ("starts_with(path, '/a')", "startswith(`path`, '/a')", "boolean"),
        ("startswith(path, agent)", "startswith(`path`, `agent`)", "boolean"),
        ("ends_with(path, '.gz')", "endswith(`path`, '.gz')", "boolean"),
        ("contains(path, 'x')", "contains(`path`, 'x')", "boolean"),
        ("\"path\" = '/'", "(`path` = '/')", "boolean"),
        ("true", "TRUE", "boolean"),
    ],
)
def test_expression_is_compiled_to_spark_sql(text: str, sql: str, kind: str) -> None:
    expression = compile(text, COLUMNS)
    assert (expression.sql, expression.type) == (sql, kind)
    assert expression.text == text


def test_every_function_is_compiled_by_a_test_above() -> None:
    marks = test_expression_is_compiled_to_spark_sql.pytestmark
    texts = " ".join(case[0] for case in marks[0].args[1])
    assert [name for name in FUNCTIONS if f"{name}(" not in texts] == []


def test_expression_names_the_columns_that_it_reads() -> None:
    expression = condition("status = 404 and lower(path) = path", COLUMNS)
    assert expression.columns == ("path", "status")
    assert condition("true", COLUMNS).columns == ()


@pytest.mark.parametrize("name", ["call", "show", "fetch", "explain", "execute", "rename", "vacuum"])
def test_sql_keyword_may_be_a_name(name: str) -> None:
    assert condition(f"{name} = 'accept'", {name: "string"}).sql == f"(`{name}` = 'accept')"
    assert condition(f"1 < length({name})", {name: "string"}).columns == (name,)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("", "''"),
        ("it's", r"'it\'s'"),
        (r"a\nb", r"'a\\nb'"),
        ("a\nb\tc\x00", r"'a\u000ab\u0009c\u0000'"),
        ("${spark.app.name}", r"'\u0024{spark.app.name}'"),
        ("é 日 😀", "'é 日 😀'"),
        ("\U000e0001", r"'\U000e0001'"),
    ],
)
def test_quoted_texts_read_back_unchanged_in_spark(text: str, literal: str) -> None:
    assert quote(text) == literal


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quoted_text_has_one_end_and_no_variable(text: str) -> None:
    literal = quote(text)
    # By Spark's rules: a backslash and what it escapes, or anything but a quote and a backslash.
    assert re.fullmatch(r"'([^'\\]|\\['\\]|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})*'", literal)
    assert "$" not in literal
    assert literal.isprintable()
    back = re.sub(
        r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|(.))",
        lambda m: m[3] or chr(int(m[1] or m[2], 16)),
        literal[1:-1],
    )
    assert back == text


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "is empty", 0),
        ("  ", "is empty", 0),
        ("pth = '/'", "no column 'pth'; nearest: path", 0),
        ("ok and lower(agnt) = 'x'", "no column 'agnt'; nearest: agent", 13),
        (
            "zzz = 1",
            "no column 'zzz'; known: path, agent, status, bytes, took, ok, event_time",
            0,
        ),
        (
            "Status = 1",
            "no column 'Status'; nearest: status",
            0,
        ),
        (
            'agent = "path x"',
            "no column 'path x'; nearest: path; text is in single quotes",
            8,
        ),
        ("path.x = '/'", "no column 'path.x'; nearest: path", 0),
        ("lowr(path) = 'x'", "no function 'lowr'; nearest: lower", 0),
        ("ok and sum(bytes) > 1", f"no function 'sum'; known: {', '.join(FUNCTIONS)}", 7),
        ("lower(status) = 'x'", "lower takes a string; got an integer", 6),
        ("not status", "not takes a boolean; got an integer", 4),
        ("ok and path", "and takes a boolean; got a string", 7),
        ("path + 1 > 2", "+ takes an integer or a number; got a string", 0),
        ("path || status = ''", "|| takes a string; got an integer", 8),
        ("status = '404'", "= takes parts of one type; got an integer and a string", 9),
        ("status in (1, 'a')", "in takes parts of one type; got an integer and a string", 14),
        ("status in (1, null)", "in null is never true; write is null", 0),
        ("null in (1, 2)", "in null is never true; write is null", 0),
        ("case null when 1 then ok end", "when null is never true; write is null", 0),
        ("path = null", "= null is never true; write is null", 0),
        ("path between 'a' and null", "between null is never true; write is null", 0),
        ("ok > false", "> does not order booleans", 0),
        ("ok between false and true", "between does not order booleans", 0),
        ("greatest(ok, ok)", "greatest does not order booleans", 0),
        ("greatest(status) > 1", "greatest takes at least 2 values", 0),
        ("case when status then 1 end = 1", "when takes a boolean; got an integer", 10),
        ("case when ok then 1 else 'a' end", "case takes parts of one type; got an integer and a string", 25),
        ("path like agent", "the pattern of like must be a constant text", 10),
        (r"path like 'a\b'", r"a backslash in a pattern comes only before %, _ or \ itself", 10),
        ("path like 'a\\'", r"a backslash in a pattern comes only before %, _ or \ itself", 10),
        ("path rlike '('", "no regular expression: missing ), unterminated subpattern", 12),
        ("path rlike 'a|(b*)+'", "(b*)+ repeats a repeat, which is exponential", 14),
        ("regexp_like(path, 'it''s (a+){20}')", "(a+){20} repeats a repeat, which is exponential", 18),
        ("path rlike '(?P<a>b)'", "no regular expression: (?P is Python's alone", 11),
        ("path like 'a!%' escape '!'", "escape is not part of the language", 0),
        ("path like any ('a', 'b')", "the pattern of like must be a constant text", 15),
        ("split_part(path, '/', 0)", "the number of split_part counts from 1, or from -1 at the end", 22),
        ("split_part(path, '/', status)", "the number of split_part must be a constant whole number", 22),
        ("substring(path, 1, -1)", "the length of substring must be at least 0; got -1", 20),
        ("floor(took, 2) > 1", "floor takes no decimals here", 6),
        ("ok and if ok then 1", "if needs a parenthesis: if(condition, value, value)", 7),
        ("if(ok, 1)", "if takes a condition and two values", 3),
        (
            "timestamp 'yesterday'",
            "must be a time such as '2015-05-17 10:00:00'; got 'yesterday'",
            10,
        ),
        ("cast(ok as timestamp)", "there is no cast from a boolean to a timestamp", 5),
        ("cast(path as date)", "a cast is to string, bigint, double, boolean or timestamp", 5),
        ("status is 5", "is requires null, true or false", 0),
        ("9999999999999999999 > 1", "must have at most 18 digits; got 9999999999999999999", 0),
        ("1e999 > 1", "is no number; got 1e999", 0),
        ("null", "a bare null has no type", 0),
        ("status in (select 1)", "in takes no query here", 0),
        ("(select 1) = 1", "subquery is not part of the language", 8),
        ("count(*) > 1", "no function 'count'; nearest: contains", 0),
        ("sum(bytes) over () > 1", "window is not part of the language", 0),
        ("? = 1", "placeholder is not part of the language", 0),
        ("@x = 1", "parameter is not part of the language", 0),
        ("path[0] = 'a'", "bracket is not part of the language", 0),
        ("ok; ok", "must be one expression, without a semicolon", 2),
        ("ok -- really", "comments are not allowed", 3),
        ("/* no */ ok", "comments are not allowed", 0),
        ("path in ('a' 'b')", "a text after a text; is a comma or || missing?", 13),
        ("ok xor ok", "unexpected 'xor'", 3),
        ("select 1", "unexpected 'select'", 0),
        ("ok as x", "unexpected 'as'", 3),
        ("(ok", ") is missing after 'ok'", 1),
        ("case when ok then 1", "end is missing after '1'", 18),
        ("cast(path integer) = 1", "as is missing after 'integer'", 10),
        ("ok and", "something is missing next to 'and'", 3),
        ("status between 1", "something is missing next to '1'", 15),
        ("upper(path, 'a', 'b') = 'x'", "too many values for this function: at most 1; got 3", 20),
        ("ok and floor() > 1", "floor takes a value; got none", 0),
        ("path = 'a", "a quote or a comment without its end", 7),
        ("path = '\ud800'", r"must not hold the character '\ud800'", 8),
        ("ok\nand\n  lower(pth) = ''", "no column 'pth'; nearest: path", 15),
    ],
)
def test_unsupported_expression_is_refused_with_a_caret_at_its_position(
    text: str, message: str, place: int
) -> None:
    with pytest.raises(ExpressionError) as error:
        compile(text, COLUMNS)
    assert error.value.message == message
    assert error.value.offset == place


def test_caret_is_under_the_position_in_its_line() -> None:
    with pytest.raises(ExpressionError) as error:
        compile("ok and\n\tlower(agnt) = 'x' and\nok", COLUMNS)
    assert str(error.value) == (
        "no column 'agnt'; nearest: agent\n"
        " lower(agnt) = 'x' and\n"
        "       ^"
    )  # fmt: skip


def test_long_line_is_shown_around_the_position() -> None:
    with pytest.raises(ExpressionError) as error:
        compile("ok and " * 30 + "pth = '/'", COLUMNS)
    _, line, caret = str(error.value).split("\n")
    assert len(line) <= 100
    assert line[caret.index("^") :].startswith("pth = '/'")


def test_condition_must_be_boolean() -> None:
    with pytest.raises(ValueError, match=exactly("a condition must be a boolean; got an integer\nstatus\n^")):
        condition("status", COLUMNS)


def test_length_and_depth_are_bounded() -> None:
    alternatives = " or ".join(["status = 1"] * 100)
    assert compile(alternatives, COLUMNS).type == "boolean"  # many, but not deep
    fits = "(" * MAX_DEPTH + "ok" + ")" * MAX_DEPTH
    assert compile(fits, COLUMNS).sql == "`ok`"
    with pytest.raises(ExpressionError) as error:
        compile(f"({fits})", COLUMNS)
    assert error.value.message == f"is nested more than {MAX_DEPTH} deep"
    with pytest.raises(ExpressionError, match=r"^is nested too deeply\n"):
        compile("status" + " + 1" * 200 + " > 0", COLUMNS)
    with pytest.raises(ExpressionError, match=r"^is nested too deeply\n"):
        compile("not " * 900 + "ok", COLUMNS)
    with pytest.raises(ExpressionError) as error:
        compile("ok or " * (MAX_LENGTH // 6 + 1) + "ok", COLUMNS)
    assert error.value.message.startswith(f"must be at most {MAX_LENGTH} characters; got ")


def test_error_survives_pickling() -> None:
    with pytest.raises(ExpressionError) as error:
        compile("pth", COLUMNS)
    copy = pickle.loads(pickle.dumps(error.value))
    assert (str(copy), copy.offset) == (str(error.value), 0)


words = st.sampled_from(
    [*COLUMNS, *FUNCTIONS, "and", "or", "not", "in", "is", "null", "like", "rlike", "between", "case", "when",
     "then", "else", "end", "cast", "as", "timestamp", "select", "from", "where", "interval", "exists", "(",
     ")", ",", "=", "<", "+", "-", "/", "%", "||", "::", "[", "]", "{", "}", "'a'", "'", '"', "1", "2.5", ".",
     "*", "?", "@", ":", ";", "--", "/*", "*/", "\\", "`", "$$", "x'", "over", "distinct", "array", "map",
     "struct", "row", "if", "try_cast", "extract", "date", "->", "lambda", "for", "with", "values", "\n"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(words, max_size=14).map(" ".join)))
def test_any_text_is_an_expression_or_an_expression_error(text: str) -> None:
    try:
        expression = compile(text, COLUMNS)
    except ExpressionError as error:
        refused = error
    else:
        assert isinstance(expression, Expression)
        assert set(expression.columns) <= set(COLUMNS)
        return
    assert str(refused).count("\n") == 2
    assert 0 <= refused.offset <= len(text)


def test_parser_is_imported_on_first_use() -> None:
    code = "import sys, transom.spec.expressions; sys.exit('sqlglot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": "jobs"})
