"""The demonstration: calibrated intervals of two data sets, as numbers, tables and a picture."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold

from hdiforest._cli.console import say
from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._tables.formats import write_table
from hdiforest._tables.training_table import read_training_table
from hdiforest._utils import Array, Kind
from hdiforest._utils.checks import aligned, significant
from hdiforest._utils.files import replacing
from hdiforest._utils.optional import need, pa
from hdiforest.displays import DistributionDisplay, IntervalDisplay
from hdiforest.displays._common import GREY
from hdiforest.metrics import coverage_score, mean_width_score

LEVELS = (0.8, 0.9, 0.95)
SHOWN = 0.9  # the level of the picture
ASKED = tuple(thousandth / 1000 for thousandth in range(500, 1000))  # of the forest's own intervals
KINDS: tuple[Kind, ...] = ("hdi", "equal_tailed")
HEADER = ["calibrated for", "inside", "mean width", "HDI asked for", "HDI mean width"]
HEADER += ["equal-tailed asked for", "equal-tailed mean width"]
N_FOLDS = 5
# The tables that come with the package: their targets, what these are, and what rows are.
SETS = {
    "concrete": ("compressive_strength", "compressive strength (MPa)", "concrete mixes"),
    "diamonds": ("price", "price (US dollars)", "diamonds"),
}


def run_demo(options: Any) -> None:
    """Cross-validate on both data sets, print the comparison, write tables and a picture."""
    folder: Path = options.output
    figure = need("matplotlib.figure").Figure(figsize=(15, 4.6), layout="constrained")
    folder.mkdir(parents=True, exist_ok=True)
    axes, written = figure.subplots(1, 3), []
    others = f"{N_FOLDS - 1} of {N_FOLDS} parts"
    say(f"Each row is scored by a random forest fitted and calibrated on the other {others}.")
    for name, ax in zip(SETS, axes, strict=False):
        validation = CrossValidation(name)
        say(validation.compared())
        written.append(folder / f"{name}_intervals.csv")
        with write_table(written[-1], validation.table.schema) as write:
            write(validation.table)
        validation.draw(ax)
    validation.draw_skewed(axes[-1])  # of the last data set
    written.append(folder / "intervals.png")
    with replacing(written[-1]) as partial:
        figure.savefig(partial, format="png", dpi=120)
    say("\nWritten: " + ", ".join(map(str, written)))


class CrossValidation:
    """What forests predict for the rows of a data set that they were not fitted on.

    `table` has the rows with their calibrated and equal-tailed intervals; `own`, by kind, the
    forests' own intervals, (n, 2, asked); `model` and `test` are those of the last fold.
    """

    def __init__(self, name: str) -> None:
        self.target, self.label, self.rows = SETS[name]
        self.look: dict[str, Any] = {"coverage": SHOWN, "target_name": self.label}
        with as_file(files("hdiforest._cli") / "data" / f"{name}.csv.gz") as path:
            frame, self.y, *_ = read_training_table(path, self.target)
        self.X = np.column_stack([column.to_numpy() for column in frame.columns])
        self.intervals = {kind: np.empty((len(self.y), 2, len(ASKED))) for kind in KINDS}
        tables = []
        folds = KFold(N_FOLDS, shuffle=True, random_state=0).split(self.X)
        for number, (train, self.test) in enumerate(folds):
            forest = RandomForestRegressor(min_samples_leaf=5, random_state=number, n_jobs=-1)
            self.model = HDIForestRegressor(forest, n_jobs=-1).fit(self.X[train], self.y[train])
            X, y = self.X[self.test], self.y[self.test]
            columns = {"row": self.test + 1, "part": np.full(len(y), number + 1), self.target: y}
            for kind in ("calibrated", "equal_tailed"):
                ends = self.model.predict_interval(X, LEVELS, kind=kind, output="pyarrow")
                columns |= dict(zip(ends.column_names, ends.columns, strict=True))
            tables.append(pa.table(columns))
            for kind, intervals in self.intervals.items():
                intervals[self.test] = self.model.predict_interval(X, ASKED, kind=kind)
        self.table = pa.concat_tables(tables).sort_by("row")

    def calibrated(self, level: float) -> Array:
        """Return the calibrated intervals at a level, (n, 2)."""
        return np.stack([self.table[f"{end}_{level:g}"] for end in ("lower", "upper")], axis=1)

    def compared(self) -> str:
        """Compare mean widths where all kinds of interval hold the same share of the rows."""
        rows = [HEADER]
        for level in LEVELS:
            ends = self.calibrated(level)
            share = coverage_score(self.y, ends)
            cells = [f"{level:g}", f"{share:.3f}", significant(float(mean_width_score(ends)))]
            for intervals in self.intervals.values():
                # Intervals at a higher level hold no fewer, up to some rows.
                j = np.flatnonzero(np.ravel(coverage_score(self.y, intervals)) >= share)[0]
                cells += [f"{ASKED[j]:g}", significant(float(mean_width_score(intervals[..., j])))]
            rows.append(cells)
        title = f"{self.label[0].upper()}{self.label[1:]} of {len(self.y):,} {self.rows}"
        asked = "asked for\nthe level at which they hold the same share of the rows"
        return (
            f"\n{title}, {self.X.shape[1]} features.\nThe forest's own intervals (HDI, "
            f"equal-tailed) are {asked}:\n{aligned(rows)}"
        )

    def draw(self, ax: Any) -> None:
        """Draw the calibrated intervals."""
        look = self.look | {"prediction": self.table["prediction"].to_numpy(), "ax": ax}
        IntervalDisplay.from_predictions(self.y, self.calibrated(SHOWN), **look)
        ax.set_title(f"Calibrated: {self.rows} not seen in fitting", loc="left")

    def draw_skewed(self, ax: Any) -> None:
        """Draw the distribution of the row whose equal-tailed interval the HDI shortens most."""
        j = ASKED.index(SHOWN)
        hdi, equal_tailed = (self.intervals[kind][self.test, :, j] for kind in KINDS)
        shortest, equal = np.diff(hdi).ravel(), np.diff(equal_tailed).ravel()
        one = int(np.argmax(np.where(equal > np.median(equal), 1 - shortest / equal, 0)))
        row = self.test[one]
        weights = self.model.predict_weights(self.X[[row]]).toarray()[0]
        look = self.look | {"interval": hdi[one], "bins": 30, "ax": ax}
        train = np.delete(self.y, self.test)
        DistributionDisplay.from_predictions(self.y[row], train, weights, **look)
        ax.axvspan(*equal_tailed[one], ymax=0.02, color=GREY, label="equal-tailed interval")
        ax.locator_params(axis="x", nbins=5)
        ax.legend(loc="upper right", framealpha=0.85, edgecolor="none", fontsize="small")
        widths = f"{shortest[one]:,.0f} wide, equal-tailed {equal[one]:,.0f}"
        ax.set_title(f"One diamond: HDI {widths}", loc="left", fontsize="medium")
