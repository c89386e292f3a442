"""The subcommand fit with --event: from a table of times to a calibrated survival model."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import ShuffleSplit

from hdiforest._cli.arguments import UsageError, in_options
from hdiforest._model.censoring import as_target
from hdiforest._utils.checks import CallError, count_text
from hdiforest.calibration import OutOfBag
from hdiforest.calibration._candidates import DEFAULT_COVERAGES
from hdiforest.survival._forest import HDISurvivalForest

# Options that a survival forest does not understand, by what they are where they are not given.
_REFUSED: dict[str, Any] = {"objective": OutOfBag.objective, "weights": "all", "diagnostics": False}
_REFUSED |= dict.fromkeys(("by", "groups", "mean", "order", "report", "sample_weight"))
_METHODS = ("oob", "split", "none")


def check_survival(options: Any) -> None:
    """Raise UsageError if options do not go with --event."""
    for name, default in _REFUSED.items():
        if getattr(options, name) != default:
            raise UsageError(f"--{name.replace('_', '-')} must not be given with --event")
    if options.calibrate not in _METHODS:
        needed = "oob, split or none"
        raise UsageError(f"--calibrate must be {needed} with --event, got {options.calibrate}")


def fit_survival(options: Any, table: Any, forest: Any) -> tuple[HDISurvivalForest, str]:
    """Fit a survival forest to a `TrainingTable` with events, calibrate it, and say so."""
    model = HDISurvivalForest(forest, n_jobs=options.jobs, random_state=options.seed)
    rows: tuple[Any, ...] = ()
    if options.calibrate == "split":
        splitter = ShuffleSplit(1, test_size=1 / 5, random_state=options.seed)
        kept, apart = next(splitter.split(table.y))
        held_out, table = table.rows(apart), table.rows(kept)
        rows = held_out.X, as_target(held_out.event, held_out.y)
    model.fit(table.X, as_target(table.event, table.y))
    n_rows, n_events = count_text(len(table.y)), count_text(int(table.event.sum()))
    trees = f"{options.trees:,} trees from {n_rows} rows with {n_events} events"
    return model, f"{trees}\n\n{_calibrate(model, rows, options)}"


def _calibrate(model: HDISurvivalForest, rows: Any, options: Any) -> str:
    """Calibrate a model; return what is said of it, or in a line why that could not be done."""
    if options.calibrate == "none":
        return ""
    try:
        model.calibrate(*rows, coverage=options.coverage or DEFAULT_COVERAGES)
    except CallError as error:  # of the number of trees
        if options.coverage is not None:
            raise UsageError(in_options(error)) from None
        return f"Not calibrated: {in_options(error)}\n\n"
    return f"{model.calibration_!r}\n\n"
