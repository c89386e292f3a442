"""Tables and pictures from the results that are there.

    python bench/paper/report.py [FOLDER]

Writes tables.md, figure_1.png and figure_2.png into the subfolder "report".
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import figures
import tables
import words
from comparing import at_matched_target
from frames import ORDER, read_curves, read_scores, read_settings
from protocol import CANONICAL, results_of
from published import SYSTEMS
from systems import FAMILIES
from tasks import RESULTS, study

_HOW_TO_READ = """\
Made by `python bench/paper/report.py` from the results in this folder's parent.

Means over random 80/20 splits: as many as Table 1 says, fewer where the table "Work" says so, and
no choice was made on their test parts. PICP: share of the test rows inside their closed interval.
MPIW: mean width in standard deviations of the target. ±: standard error over the splits, as if they
were independent.

Every system is tuned on the training part to reach the target PICP there; what it reaches on the
test part is printed. (short): not even the training part reached it. "Padded" readings of the
forests, QR, QR_GBDT and all systems without levels of their own may move both ends by a pad; plain
HDI-Forest, QRF, MVE and MC dropout have their level alone. IntPred is a reconstruction. "QRF, same
forest" reads the forest that was best for HDI-Forest.

Ratios of widths are geometric means over paired splits, with 95 % intervals by the corrected
resampled t-test (Nadeau and Bengio, 2003), which allows for training parts that overlap. Nothing
corrects for there being many of them: one in twenty excludes 1 by chance. (!): the mean PICPs are
further apart than 0.01 or a quarter of the rows that may be missed, so that the narrower may only
be the one that covers less."""
_OTHERS = [system for system in ORDER if system not in SYSTEMS]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=RESULTS / "evaluation")
    write(parser.parse_args(arguments).folder)


def write(folder: Path) -> Path:
    """Render all results of a folder and return where."""
    scores, curves, settings = read_scores(folder), read_curves(folder), read_settings(folder)
    shown = folder / "report"
    sections = _sections(scores, curves, settings)
    study.write_tables(shown / "tables.md", sections, _HOW_TO_READ)
    study.save_picture(figures.figure_1(), shown / "figure_1.png", dpi=130)
    study.save_picture(figures.figure_2(curves), shown / "figure_2.png", dpi=110)
    return shown


def _sections(scores: pd.DataFrame, curves: pd.DataFrame, settings: pd.DataFrame) -> dict[str, str]:
    sections = {
        "In plain words": "\n\n".join(words.summary(scores, curves)),
        "Table 1: the data sets": study.markdown(tables.table_1()),
        "Table 2: ours beside the paper's": study.markdown(tables.table_2(scores, curves)),
        "HDI / QRF where both cover as much on the test parts: ratio of widths": study.markdown(
            tables.forest_pairs_at_equal_picp(curves)
        ),
        "HDI / QRF, both tuned on the training parts: ratio of widths": study.markdown(
            tables.forest_pairs(scores)
        ),
    }
    chosen = {"the paper's PICP of HDI-Forest": at_matched_target(scores)}
    for target in CANONICAL:
        chosen[f"{target:.2f}"] = scores[np.isclose(scores["target"], target)]
    for title, rows in chosen.items():
        sections[f"MPIW ± standard error @ PICP, tuned for {title}"] = "\n\n".join(
            study.markdown(tables.widths(rows, systems)) for systems in (list(SYSTEMS), _OTHERS)
        )
    for system in ("HDI-Forest", "HDI-Forest, padded"):
        sections[f"{system} / each other system at the paper's PICP: ratio of widths"] = (
            study.markdown(tables.against_all(scores, system))
        )
    for target in CANONICAL:
        sections[f"Interval score, tuned for {target:.2f}"] = study.markdown(
            tables.interval_scores(chosen[f"{target:.2f}"], ORDER)
        )
        sections[f"MPIW @ PICP at the nominal level {target:.2f}, settings chosen for 0.90"] = (
            study.markdown(tables.nominal(curves, target))
        )
    sections["PICP of intervals of width zero, narrow, middle and wide, tuned for 0.90"] = (
        study.markdown(tables.coverage_by_width(scores))
    )
    sections["Seconds of one core to tune its family / to fit / to predict the test part"] = (
        study.markdown(tables.seconds(scores))
    )
    sections["Settings chosen, tuned for the paper's PICP"] = study.markdown(
        tables.choices(settings)
    )
    families = {name: results_of(family) for name, family in FAMILIES.items()}
    sections["Work: `python bench/paper/run.py`"] = study.markdown(tables.hours(scores, families))
    return sections


if __name__ == "__main__":
    main()
