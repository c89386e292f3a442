"""Tables and pictures from the results that are there.

    python bench/calibration/report.py [FOLDER]

Writes tables.md and three pictures into the subfolder "report".
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

import figures
import tables
from frames import at, read_scores
from protocol import EVALUATION, GROUPS, RESULTS, study
from systems import SYSTEMS
from systems.interface import COMPARED
from systems.ours import DEFAULT

_SPLIT_BY_SPLIT = ("all data sets", "sets that judge", "twelve more that judge")
_HOW_TO_READ = """\
Made by `python bench/calibration/report.py` from the results in this folder's parent.

Means over random splits; every choice was made on the training rows. Widths and interval scores are
in standard deviations of the target, unless they are relative to its range. Ratios are geometric
means over data sets, of means over the splits that both systems have. Other figures of two systems
compare only where they rest on the same splits: the tables "Split by split" do so, with the figures
of the second system in the columns "beside". Valid: a mean coverage of at
least the nominal one less 0.02; (short) marks the others. The best valid peer is that of each data
set, known afterwards; ours are not among them. Worst fifth: the least coverage of a fifth by width,
or of the intervals of width zero where they are at least 2 % of the rows; test rows of all splits
together. Where all intervals are equally wide (split conformal), all are one fifth. Seconds are of
one core, on a machine that did other work as well."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=RESULTS / EVALUATION.name)
    write(parser.parse_args(arguments).folder)


def write(folder: Path) -> Path:
    """Render all results of a folder and return where."""
    scores = read_scores(folder)
    shown = folder / "report"
    study.write_tables(shown / "tables.md", _sections(scores), _HOW_TO_READ)
    study.save_picture(figures.realised_coverage(scores), shown / "coverage.png", dpi=120)
    study.save_picture(figures.widths(scores, COMPARED), shown / "widths.png", dpi=110)
    study.save_picture(figures.by_width(scores, COMPARED), shown / "by_width.png", dpi=110)
    return shown


def _sections(scores: pd.DataFrame) -> dict[str, str]:
    compared = {nominal: at(scores, nominal) for nominal in COMPARED}
    sections = {}
    for nominal, rows in compared.items():
        for group, names in {"all data sets": EVALUATION.sets, **GROUPS}.items():
            members = rows[rows["set"].isin(names)]
            if len(members):
                title = f"Nominal coverage {nominal:.2f}: {group}"
                sections[title] = study.markdown(tables.headline(members, nominal))
            if len(members) and group in _SPLIT_BY_SPLIT:
                others = [(name, DEFAULT) for name in SYSTEMS if name != DEFAULT]
                beside = tables.split_by_split(members, others)
                sections[f"Split by split, {nominal:.2f}: {group}"] = study.markdown(beside)
    sections["Where peers are better"] = "\n\n".join(
        text for nominal, rows in compared.items() for text in tables.plain_words(rows, nominal)
    )
    for nominal, rows in compared.items():
        sections[f"Mean width @ coverage, {nominal:.2f}"] = study.markdown(
            tables.widths(rows, nominal)
        )
    for title, measure in {
        "Interval score": "interval_score",
        "Coverage of the worst fifth by width": "worst by width",
        "Coverage of the worst fifth by predicted value": "worst by prediction",
        "Coverage of the worst fifth by a feature": "worst by feature",
        "Mean width relative to the range": "width_of_range",
    }.items():
        for nominal, rows in compared.items():
            sections[f"{title}, {nominal:.2f}"] = study.markdown(tables.one_measure(rows, measure))
    sections["Seconds to fit"] = study.markdown(
        tables.one_measure(compared[COMPARED[0]], "fit_seconds")
    )
    return sections


if __name__ == "__main__":
    main()
