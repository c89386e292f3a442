"""What became of the columns of a table, as people read it; rows that are numbered."""

import re

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from hdiforest import fit_table

from ..cli.calls import output_of, run, write

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pytest.importorskip("safetensors")

RNG = np.random.default_rng(5)
N = 90
BOATS = pd.DataFrame({
    "length": RNG.uniform(4, 20, N),
    "built": pd.Timestamp("1999-12-31") + pd.to_timedelta(np.arange(N) * 7, "D"),
    "seen": pd.Timestamp("2001-02-03 00:00:05") + pd.to_timedelta(np.arange(N) * 997, "m"),
    "hull": np.repeat(["steel", "wood", "oak", "steel", "wood", "steel"], N // 6),
    "sail": np.arange(N) % 2 == 0,
    "name": [f"boat {i}" for i in range(N)],
    "note": "x",
    "price": RNG.gamma(3, 9, N),
})  # fmt: skip
FIT = ["--trees", 5, "--calibrate", "none", "--jobs", 1, "--target", "price"]
FOREST = RandomForestRegressor(5, random_state=0)


def lines_of(printed):
    """Texts by title of the block behind its first line."""
    block = printed.split("Columns:", 1)[-1].partition("\n\n")[0]
    return dict(re.split(r"  +", line, maxsplit=1) for line in block.splitlines()[1:])


def fitted(capsys, frame, path, *more):
    """The block of a fit of a table that is written to a file."""
    write(frame, path)
    return lines_of(output_of(capsys, ["fit", path, "-o", path.with_name("m.hdi"), *FIT, *more]))


@pytest.mark.parametrize("name", ["b.csv", "b.parquet"])
def test_every_kind_of_column_is_told(tmp_path, capsys, name):
    frame = pd.concat([BOATS.assign(length=np.nan).head(3), BOATS], ignore_index=True)
    more = ["--id", "name", "--drop", "note", "--report", tmp_path / "r.html"]
    found = fitted(capsys, frame, tmp_path / name, *more)
    ends = [str(frame[c].agg(f).date()) for c in ("built", "seen") for f in ("min", "max")]
    dates = "built ({} to {}), seen ({} to {})".format(*ends)
    expected = {
        "numbers (1)": "length",
        "booleans (1)": "sail",
        "dates (2)": dates,
        "categories (1)": "hull (3: 'steel', 'wood', ...)",
        "ids (1)": "name",
    }
    of_fit = {"left out": "note (dropped)", "missing cells": "length (3)"}
    assert found == expected | of_fit
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"<dt>dates (2)</dt><dd>{dates}</dd>" in page
    assert "note (dropped)" in page
    shown = output_of(capsys, ["inspect", tmp_path / "m.hdi"]).splitlines()
    of_file = dict(re.split(r"  +", line, maxsplit=1) for line in shown)
    assert {title: of_file[title] for title in expected} == expected


def test_with_a_date_the_option_for_later_rows_is_told(tmp_path, capsys):
    frame = BOATS.rename(columns={"built": "year built"})[["length", "year built", "price"]]
    frame.to_csv(tmp_path / "b.csv", index=False)
    call = ["fit", tmp_path / "b.csv", "-o", tmp_path / "m.hdi", "--target", "price"]
    hint = "--order 'year built' measures the coverage of later rows"
    for more, expected in (([], hint), (["--calibrate", "split"], None)):
        assert run([*call, "--trees", 20, *more]) == 0
        assert lines_of(capsys.readouterr().out).get("later rows") == expected


def test_many_columns_and_names_for_a_terminal(tmp_path, capsys):
    many = {f"x{j}": RNG.normal(size=N) for j in range(23)}
    frame = pd.DataFrame({**many, "a\x1b[2Jb": ["\x1b]0;c", "d"] * (N // 2), "price": range(N)})
    found = fitted(capsys, frame, tmp_path / "many.csv")
    assert found["numbers (23)"].endswith("x8, x9 and 13 more")
    assert found["categories (1)"] == r"a\x1b[2Jb (2: '\x1b]0;c', 'd')"


def test_fit_table_prints_it_if_asked(capsys):
    frame = BOATS[["length", "built", "hull", "price"]]
    fit_table(frame, "price", estimator=FOREST, calibration=False)
    assert capsys.readouterr().out == ""
    fit_table(frame, "price", estimator=FOREST, calibration=False, drop=["hull"], verbose=1)
    printed = capsys.readouterr().out
    assert re.search(r"^dates \(1\) +built \(1999-12-31 to 2001-09-14\)$", printed, re.M)
    assert re.search(r"^left out +hull \(dropped\)$", printed, re.M)
    assert re.search(
        r"^later rows +calibrate\(method=OutOfBag\(order=\.\.\.\)\) by built ", printed, re.M
    )


SHUFFLED = BOATS[["length", "hull", "price"]].sort_values("price").sample(frac=0.7, random_state=1)


def twice(path):
    SHUFFLED.reset_index(drop=True).to_csv(path)
    pd.read_csv(path).to_csv(path)


def as_r_does(path):
    SHUFFLED.set_axis(map(str, range(1, len(SHUFFLED) + 1))).to_csv(path, quoting=2)


NUMBERED = {
    "shuffled.parquet": SHUFFLED.to_parquet,
    "shuffled.csv": SHUFFLED.to_csv,
    "named.csv": lambda path: SHUFFLED.to_csv(path, index_label="Unnamed: 0"),
    "twice.csv": twice,
    "of_r.tsv": as_r_does,
    "levels.parquet": SHUFFLED.set_axis(
        pd.MultiIndex.from_arrays([SHUFFLED["hull"], SHUFFLED.index], names=[None, None])
    ).to_parquet,
    "dates.parquet": SHUFFLED.set_index(BOATS["built"][SHUFFLED.index].rename(None)).to_parquet,
    "range.parquet": SHUFFLED.reset_index(drop=True).to_parquet,
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERED)
def test_row_numbers_are_no_feature(tmp_path, capsys, name):
    NUMBERED[name](tmp_path / name)
    sep = ["--sep", ","] if name.endswith(".tsv") else []
    call = ["fit", tmp_path / name, "-o", tmp_path / "m.hdi", *FIT, *sep]
    found = lines_of(output_of(capsys, call))
    assert (found["numbers (1)"], found["categories (1)"][:4]) == ("length", "hull")
    assert ("(row numbers)" in found.get("left out", "")) == (name != "range.parquet")


def test_row_numbers_do_not_matter_to_a_score(tmp_path):
    SHUFFLED.to_csv(tmp_path / "t.csv")
    assert run(["fit", tmp_path / "t.csv", "-o", tmp_path / "m.hdi", *FIT]) == 0
    scored = []
    for table in ("new.csv", "numbered.csv", "numbered.parquet"):
        write = SHUFFLED.to_parquet if table.endswith("parquet") else SHUFFLED.to_csv
        write(tmp_path / table, index=table != "new.csv")
        assert run(["score", tmp_path / "m.hdi", tmp_path / table, "-o", tmp_path / "o.csv"]) == 0
        scored.append((tmp_path / "o.csv").read_bytes())
    assert scored == scored[:1] * 3


def test_the_frame_and_its_file_give_one_model(tmp_path):
    SHUFFLED.to_parquet(tmp_path / "s.parquet")
    SHUFFLED.to_csv(tmp_path / "s.csv")
    how = {"estimator": FOREST, "calibration": False}
    expected = fit_table(SHUFFLED, "price", **how).predict(BOATS)
    arrow = pa.Table.from_pandas(SHUFFLED)
    read_back = pd.read_csv(tmp_path / "s.csv")
    for table in (tmp_path / "s.parquet", tmp_path / "s.csv", arrow, read_back):
        model = fit_table(table, "price", **how)
        assert list(model.feature_names_in_) == ["length", "hull"]
        np.testing.assert_array_equal(model.predict(BOATS), expected)


@pytest.mark.parametrize(
    ("columns", "named", "expected"),
    [
        ({"": [3, 1, 7], "a": [1, 2, 3]}, (), [""]),
        ({" ": ["3", "1", "7"], "a": [1, 2, 3]}, (), []),  # text is a number or a category
        ({"": [0.5, 1.5, 2.5], "a": [1, 2, 3]}, (), []),
        ({"": [0] * 9 + [1]}, (), []),  # says something of rows
        ({"": [None, 2, 3]}, (), [""]),
        ({"a": [1, 2], "": [0, 1], "Unnamed: 0": [0, 1]}, (), []),  # not the first
        ({"": [0, 1], "Unnamed: 0.1": [1, 0], "a": [0, 1]}, (), ["", "Unnamed: 0.1"]),
        ({"Unnamed: 0": [0, 1]}, ("Unnamed: 0",), []),
        ({"id": [0, 1], "index": [0, 1], "X": [1, 2]}, (), []),
        ({"a": [1, 2], "__index_level_0__": ["x", "y"]}, (), ["__index_level_0__"]),
        ({"a": [1, 2], "__index_level_10__": [5, 5]}, ("__index_level_10__",), []),
    ],
)  # fmt: skip
def test_what_numbers_rows(columns, named, expected):
    """What is declared is kept, also as an id."""
    n_rows = len(next(iter(columns.values())))
    table = pa.table(columns | {"z": np.arange(n_rows) / 7, "price": np.arange(n_rows)})
    model = fit_table(table, "price", estimator=FOREST, calibration=False, categorical=named)
    assert [name for name in table.column_names[:-2] if name not in model.feature_names_in_] == (
        expected
    )


def test_an_index_with_a_name_is_a_column(tmp_path, capsys):
    SHUFFLED.set_index("length").to_parquet(tmp_path / "s.parquet")
    assert run(["fit", tmp_path / "s.parquet", "-o", tmp_path / "m.hdi", *FIT]) == 0
    assert lines_of(capsys.readouterr().out)["numbers (1)"] == "length"
