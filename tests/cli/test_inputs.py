"""Tables that the command reads as one: folders, patterns and several files."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from hdiforest import HDIForestRegressor

from ..model_files import facts_of
from .calls import failure, output_of, run, write

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("safetensors")
pq = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(0)
SALES = pd.DataFrame(
    {
        "size": RNG.normal(size=240),
        "town": RNG.choice(["Lyon", "Nice", "Metz"], 240),
        "zone": RNG.choice(["01", "2", "10"], 240),
    }
)
SALES["price"] = 3 * SALES["size"] + SALES["zone"].astype(int) + (SALES["town"] == "Nice")
FIT = ["--target", "price", "--trees", 5, "--calibrate", "none"]


@pytest.fixture(params=["csv", "parquet", "jsonl"])
def folder(request, tmp_path):
    """A table for each zone, in the order of the names of their folders; without the zone."""
    for zone, part in SALES.groupby("zone"):
        path = tmp_path / "sales" / f"zone={zone}" / f"part.{request.param}"
        write(part.drop(columns="zone"), path)
    return tmp_path / "sales"


def encoder(path):
    return facts_of(path, "encoder")["columns"]


def test_folders_are_fitted_as_one_table_with_their_keys(folder, tmp_path, capsys):
    whole = SALES.sort_values("zone", kind="stable")[["size", "town", "price", "zone"]]
    write(whole, tmp_path / "whole.csv")
    for more, zone in (
        ([], {"name": "zone", "kind": "number"}),
        (["--categorical", "zone"], {"name": "zone", "kind": "category"}),
    ):
        assert run(["fit", folder, "-o", tmp_path / "folder.hdi", *FIT, *more]) == 0
        assert run(["fit", tmp_path / "whole.csv", "-o", tmp_path / "whole.hdi", *FIT, *more]) == 0
        found = encoder(tmp_path / "folder.hdi")
        assert found == encoder(tmp_path / "whole.hdi")
        assert zone.items() <= found[-1].items()
        models = [HDIForestRegressor.load(tmp_path / f"{n}.hdi") for n in ("folder", "whole")]
        new = SALES if more else SALES.astype({"zone": int})
        ends = [model.predict_interval(new, 0.9) for model in models]
        np.testing.assert_allclose(*ends, rtol=1e-9)
        call = ["check", tmp_path / "whole.hdi", tmp_path / "whole.csv", "--target", "price"]
        of_whole = output_of(capsys, call)
        for tables in (folder, f"{folder}/zone=[012]*/*"):
            call[1:3] = [tmp_path / "folder.hdi", tables]
            assert output_of(capsys, call) == of_whole


@pytest.mark.parametrize("folder", ["parquet"], indirect=True)
def test_recalibrating_and_calibrating_on_several_tables(folder, tmp_path, capsys):
    new = SALES.sample(frac=1, random_state=1).assign(size=lambda t: t["size"] + 0.001)
    for name, part in {"new/a.csv": new[:100], "new/b.parquet": new[100:]}.items():
        write(part.astype({"zone": int}), tmp_path / name)
    model = tmp_path / "m.hdi"
    call = ["--target", "price", "-o", model]
    more = ["--training-rows", "--coverage", "0.9", "--trees", 60]
    assert run(["fit", folder, *call, *more]) == 0
    for command in ("calibrate", "recalibrate"):
        assert "240" in output_of(capsys, [command, model, tmp_path / "new", *call])
        assert run([command, model, f"{tmp_path}/new/*", *call]) == 0


def test_the_table_may_come_through_standard_input(tmp_path, monkeypatch):
    write(SALES, tmp_path / "t.csv")
    for verb, more in (("fit", ["-", *FIT, "-o", tmp_path / "m.hdi"]),
                       ("check", [tmp_path / "m.hdi", "-", "--target", "price"])):  # fmt: skip
        with (tmp_path / "t.csv").open("rb") as file:
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(fileno=file.fileno))
            assert run([verb, *more]) == 0


@pytest.mark.parametrize(
    ("tables", "more", "sentence"),
    [
        ({"b": SALES.drop(columns="town")}, [],
         r"b has no column 'town', which \S+a has; --drop town leaves it out$"),
        ({"b": SALES.assign(**{"sold on": 1})}, [],
         r"a has no column 'sold on', which \S+b has; --drop 'sold on' leaves it out$"),
        ({"b": SALES.drop(columns="price")}, [], r"b has no column 'price', which \S+a has$"),
        ({"b": SALES.assign(size="big")}, [],
         r"column 'size' (is double in \S+a, but \S*string in|holds .*, but 'big' in row 241)"),
        ({"b": SALES.assign(town=RNG.normal(size=240)), "c": SALES.drop(columns="zone")}, [],
         r"c has no column 'zone', which \S+a has"),
        ({"b": SALES.drop(columns="town"), "c": SALES.drop(columns=["zone", "price"])}, [],
         r"the 3 tables of the folder \S+ do not go together: \S+b has no column 'town', which "
         r"\S+a has; --drop town .*; \S+c has no column 'zone', .*; \S+c has no column 'price',"),
        ({"b": SALES, "c": SALES.assign(price=[*SALES["price"][1:], None])}, [],
         r"the folder \S+ \(3 tables as one\): target 'price' must .* row 720 holds a missing"),
        ({"b": SALES[:0], "c": SALES}, ["--drop", "none"], r"a has no column 'none'; it has"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables_that_do_not_go_together(tmp_path, capsys, tables, more, sentence, ending):
    for name, part in {"a": SALES, **tables}.items():
        write(part, tmp_path / "in" / f"{name}{ending}")
    call = ["fit", tmp_path / "in", *FIT, "-o", tmp_path / "m.hdi", *more]
    found = failure(capsys, call)
    assert re.search(sentence, found.replace(ending, ""))
    assert not (tmp_path / "m.hdi").exists()


def test_types_that_hold_both_are_found_and_others_are_told(tmp_path, capsys):
    call = ["fit", tmp_path / "in", *FIT, "-o", tmp_path / "m.hdi"]
    write(SALES.assign(floor=1, town=SALES["town"].astype("category")), tmp_path / "in/a.parquet")
    write(SALES.assign(floor=0.5), tmp_path / "in/b.parquet")
    write(SALES.assign(floor=None, town=None), tmp_path / "in/c.csv")
    found = failure(capsys, call)
    assert re.search(
        r"column 'town' is dictionary<.* in \S+a.parquet, but \S*string in \S+b", found
    )
    write(SALES.assign(floor=1), tmp_path / "in/a.parquet")
    assert run(call) == 0
    assert {"name": "floor", "kind": "number"} in encoder(tmp_path / "m.hdi")


def test_columns_that_some_tables_have_may_be_dropped(tmp_path):
    write(SALES.assign(note="x"), tmp_path / "in/a.csv")
    write(SALES[["price", "town", "zone", "size"]].assign(key=1), tmp_path / "in/b.csv")
    call = ["fit", tmp_path / "in", *FIT, "-o", tmp_path / "m.hdi", "--drop", "note", "--id", "key"]
    assert run(call) == 0
    assert [column["name"] for column in encoder(tmp_path / "m.hdi")] == ["size", "town", "zone"]


def test_text_of_the_first_table_stays_text(tmp_path):
    write(SALES.assign(code=["A1", "7"] * 120), tmp_path / "in/a.csv")
    write(SALES.assign(code=["B1", "08"] * 120), tmp_path / "in/b.csv")
    assert run(["fit", tmp_path / "in", *FIT, "-o", tmp_path / "m.hdi"]) == 0
    (code,) = (c for c in encoder(tmp_path / "m.hdi") if c["name"] == "code")
    assert sorted(code["values"]) == ["08", "7", "A1", "B1"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_row_numbers_of_each_table_are_no_feature(tmp_path, capsys, ending):
    for i, part in enumerate(np.array_split(np.arange(240), 5)):  # each is numbered from 0
        own = SALES.iloc[part].reset_index(drop=True)
        own.insert(0, "__index_level_0__" if ending == "parquet" else "Unnamed: 0", range(len(own)))
        write(own, tmp_path / "in" / f"{i}.{ending}")
    assert run(["fit", tmp_path / "in", *FIT, "-o", tmp_path / "m.hdi"]) == 0
    assert "(row numbers)" in capsys.readouterr().out
    names = [column["name"] for column in encoder(tmp_path / "m.hdi")]
    assert names == ["size", "town", "zone"]


def test_a_missing_table_of_several_is_named(tmp_path, capsys):
    write(SALES, tmp_path / "a.csv")
    call = ["fit", tmp_path / "a.csv", tmp_path / "b.csv", *FIT, "-o", tmp_path / "m.hdi"]
    assert "b.csv: No such file" in failure(capsys, call)
    assert "must be the only input" in failure(capsys, ["fit", "-", *call[1:]], code=2)
