"""What twelve spellings of dates and twelve of numbers become, through each door to a table.

    python bench/tables/spellings.py [--quick]

Prints a table of docs/coverage_and_width.md, in some minutes. The target follows the column, as a
date a season. A forest is fitted on 600 rows from a CSV, a Parquet file, JSON lines and a frame of
pandas, and predicts 400 later rows, with values that most training rows do not have. Coverage and
width are those of calibrated 90 % intervals.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, fit_table
from hdiforest.metrics import coverage_score, mean_width_score

sys.path.insert(0, str(Path(__file__).parents[1]))
import study

N_TRAIN, N_LATER, LEVEL = 600, 400, 0.9
Write = Callable[[Any], str]


def comma(text: str) -> str:
    """Exchange points and commas."""
    return text.translate(str.maketrans(".,", ",."))


NUMBERS: dict[str, Write] = {
    "1234.5 as text": lambda v: f"{v:.1f}",
    "1234.5 with blanks around": lambda v: f" {v:.1f} ",
    "1,234.5": lambda v: f"{v:,.1f}",
    "1.234,5": lambda v: comma(f"{v:,.1f}"),
    "1 234,5": lambda v: comma(f"{v:,.1f}").replace(".", " "),
    "1'234.5": lambda v: f"{v:,.1f}".replace(",", "'"),
    "1234,5": lambda v: comma(f"{v:.1f}"),
    "12.3%": lambda v: f"{v / 100:.3f}%",
    "$1,234.50": lambda v: f"${v:,.2f}",
    "1.234,50 €": lambda v: comma(f"{v:,.2f}") + " €",
    "1234.5 m2": lambda v: f"{v:.1f} m2",
    "1,234 in every cell": lambda v: f"{1000 + v:,.0f}",
}
DATES: dict[str, Write] = {
    form: lambda day, form=form: day.strftime(form)  # type: ignore[misc]
    for form in (
        "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d", "%d-%b-%y",
        "%d %B %Y", "%b %d, %Y", "%d/%m/%Y %H:%M", "%Y-%m-%d %I:%M %p",
    )
}  # fmt: skip
# Days from the first to the twelfth alone.
DATES["%d/%m/%Y, no day after the 12th"] = lambda day: day.replace(day=1 + day.day % 12).strftime(
    "%d/%m/%Y"
)
# How a table is written, and read again as pandas reads it.
DOORS: dict[str, tuple[str, Callable[..., Any], Callable[..., pd.DataFrame]]] = {
    "CSV": (".csv", partial(pd.DataFrame.to_csv, index=False), pd.read_csv),
    "Parquet": (".parquet", pd.DataFrame.to_parquet, pd.read_parquet),
    "JSON lines": (
        ".jsonl",
        partial(pd.DataFrame.to_json, orient="records", lines=True),
        partial(pd.read_json, lines=True, dtype=False, convert_dates=False),
    ),
}


def measured(table: pd.DataFrame, door: str, folder: Path, **options: Any) -> tuple[str, str]:
    """Return what the column became, and coverage and width; or why it was refused."""
    source: Any = table[:N_TRAIN]
    later = table[N_TRAIN:]
    if door in DOORS:
        ending, write, read = DOORS[door]
        write(source, folder / f"train{ending}")
        write(later, folder / f"later{ending}")
        source, later = folder / f"train{ending}", read(folder / f"later{ending}")
    forest = RandomForestRegressor(60, min_samples_leaf=5, random_state=0)
    try:
        model: HDIForestRegressor = fit_table(source, "y", estimator=forest, **options)
    except ValueError as error:
        found = "dates" if "dates" in str(error) else "numbers"
        return f"refused: {found} in two ways", ""
    ends = model.predict_interval(later, LEVEL)
    share, width = coverage_score(later["y"], ends), mean_width_score(ends)
    became = str(model._fitted_forest().encoder).partition(", x")[0]  # such as c (dates as %Y)
    return became.partition("(")[2].removesuffix(")") or "numbers", f"{share:.2f}, {width:.1f}"


def said(found: dict[str, str]) -> str:
    """Return what each door gave, once if all gave the same."""
    each = {what: [door for door in found if found[door] == what] for what in found.values()}
    if len(each) == 1:
        return next(iter(each))
    return "; ".join(f"{what} ({', '.join(doors)})" for what, doors in each.items())


def rows() -> Iterator[list[str]]:
    rng = np.random.default_rng(0)
    n = N_TRAIN + N_LATER
    x, noise = rng.normal(size=n), rng.normal(size=n)
    share = rng.random(n)
    numbers = 20 + 5000 * share**2
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta((1200 * share).astype(int), "D")
    y = 5 * np.sin(12 * share) + x + noise
    with tempfile.TemporaryDirectory() as folder:
        for cells, spellings in ((days, DATES), (numbers, NUMBERS)):
            for name, write in spellings.items():
                table = pd.DataFrame({"c": list(map(write, cells)), "x": x, "y": y})
                found = {d: measured(table, d, Path(folder)) for d in (*DOORS, "a frame")}
                became, figures = (
                    said({door: pair[i] for door, pair in found.items()}) for i in (0, 1)
                )
                _, category = measured(table, "a frame", Path(folder), categorical=["c"])
                yield [f"`{name}`", became, figures, category]


def main() -> None:
    few = {"DATES": dict(list(DATES.items())[:1]), "NUMBERS": dict(list(NUMBERS.items())[:1])}
    study.chosen(study.parser(__doc__), globals(), **few)
    warnings.simplefilter("ignore")  # of categories that are new
    doors = ", ".join([*DOORS, "a frame"])
    head = ["cells", f"become, from {doors}", "coverage, width", "as categories"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows():
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
