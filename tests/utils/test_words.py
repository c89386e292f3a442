"""Numbers, tables, errors and progress as people read them."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from hdiforest._cli.arguments import in_options
from hdiforest._utils.checks import (
    CallError,
    count_text,
    html_table,
    number_texts,
    shares,
    significant,
    size_text,
    time_text,
)
from hdiforest._utils.hints import printing, steps, telling


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        (count_text, 0, "0"),
        (count_text, 999_999, "999,999"),
        (count_text, np.int64(1_234_567), "1.23 million"),
        (count_text, 45_600_000_000, "45.6 billion"),
        (size_text, 0, "0 bytes"),
        (size_text, 4_190_000, "4.19 MB"),
        (size_text, 999_600, "1 MB"),
        (size_text, 12e9, "12 GB"),
        (time_text, 59.96, "1 min 0 s"),
        (time_text, 185.2, "3 min 5 s"),
        (time_text, 7805, "2 h 10 min"),
    ],
)
def test_three_digits_and_a_unit(text, value, expected):
    assert text(value) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (74481.0, "74,500"),
        (9.999, "10"),
        (0.0012345, "0.00123"),
        (1.2e-5, "1.2e-05"),
        (999999999999999.0, "1e+15"),
        (0, "0"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert significant(value) == text
    assert number_texts([value]) == [text]


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([74480, 1e6, 20, 160.4, -0.012345], ["74,500", "1,000,000", "20", "160", "-0.0123"]),
        ([2010, 2019, 2024], ["2010", "2019", "2024"]),
        ([123456.5, 123456.75], ["123,456", "123,457"]),
        ([3e20, 1e-7, 0.0, -0.0], ["3e+20", "1e-07", "0", "0"]),
        ([9999.9, 9999.9], ["10,000", "10,000"]),
        ([float("inf"), float("nan")], ["inf", "nan"]),
    ],
)
def test_numbers_have_as_many_digits_as_tell_them_apart(numbers, texts):
    assert number_texts(numbers) == texts


def test_tables_of_html_show_any_text():
    table = html_table([["a", "b"], ["<b>", "x & y\x1b"]], "1 < 2")
    assert "<caption>1 &lt; 2</caption>" in table
    assert "<th>a</th>" in table
    assert "<td>&lt;b&gt;</td><td>x &amp; y\\x1b</td>" in table


def test_an_error_is_said_of_calls_or_of_options():
    form = "{window} must be {least}; {calibrate}, or give {rows} {more}"
    words = {"calibrate": "call calibrate(coverage=[0.5, {}])", "rows": "X", "least": "5 {or} more"}
    error = CallError(form, "0.5 0.7", **words)
    for known in (error, pickle.loads(pickle.dumps(error))):
        assert str(known) == (
            "window must be 5 {or} more; call calibrate(coverage=[0.5, {}]), or give X more"
        )
        assert in_options(known, Path("a{b}.csv")) == (
            "--window must be 5 {or} more; give 'hdiforest fit' or 'hdiforest calibrate' "
            "--coverage 0.5 0.7, or give a{b}.csv must hold --more"
        )
    assert in_options(ValueError("kind='hdi' {window}")) == "kind='hdi' {window}"
    with pytest.raises(ValueError, match="share must be above 0") as found:
        shares("share", [0.5, 1])
    assert in_options(found.value) == "--share must be above 0 and below 1, got 1"


def test_steps_are_told_to_the_outermost_listener():
    told, inner = [], []
    with (
        telling(lambda *step: told.append(step)),
        telling(lambda *step: inner.append(step)),
    ):
        assert list(steps("work", "ab")) == ["a", "b"]
    assert told == [("work", 0, 2), ("work", 1, 2), ("work", 2, 2)]
    assert inner == []
    assert list(steps("work", "ab")) == ["a", "b"]  # nobody listens
    assert len(told) == 3


def work():
    for _ in steps("outer", range(2)):
        for _ in steps("inner", range(1)):
            pass


@pytest.mark.parametrize(
    ("verbose", "above", "lines"),
    [
        (0, 0, []),
        (1, 0, ["[Name] outer, 2 of 2"]),
        (2, 1, ["[Name] outer, 2 of 2"]),
        (1, 1, []),
        (True, 0, ["[Name] outer, 2 of 2"]),
        (2, 0, ["[Name] inner", "[Name] outer, 1 of 2", "[Name] inner", "[Name] outer, 2 of 2"]),
    ],
)
def test_lines_are_printed_as_far_as_they_are_wanted(verbose, above, lines, capsys):
    with printing("Name", verbose, above):
        work()
    printed = capsys.readouterr().out.splitlines()
    assert [line.rpartition(", ")[0] for line in printed] == lines
    assert all(line.endswith(" s") for line in printed)


@pytest.mark.parametrize("verbose", [-1, "yes", 0.5, None])
def test_other_levels_are_refused(verbose):
    with pytest.raises(ValueError, match="verbose must be a whole number from 0 on, got"):
        printing("Name", verbose)
