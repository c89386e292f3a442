"""The command hdiforest: its subcommands and its one-line errors."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from hdiforest._cli.arguments import (
    UsageError,
    command_parser,
    require_distinct,
    require_writable,
    text_form,
)
from hdiforest._cli.console import CALIBRATED_LEVELS, report_error, report_warning, say
from hdiforest._cli.prediction import calibration_of, kind_and_levels
from hdiforest._utils.optional import need

if TYPE_CHECKING:
    from hdiforest._estimators.hdi_forest import HDIForestRegressor


_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end. Libraries handle it like Ctrl-C.

    Parameters
    ----------
    number : int
        The signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` in the main thread when a signal comes that is not ignored yet."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    # nohup and background jobs of shells ignore some signals; a handler that is None is not ours.
    ours = [n for n in numbers if signal.getsignal(n) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, _stop) for number in ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, _: FrameType | None) -> None:
    if not _unwinding():
        raise Stopped(number)


def _unwinding() -> bool:
    """Return whether an earlier signal is being handled, which the next one must not interrupt."""
    error = sys.exception()
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; ``sys.argv[1:]`` if None.

    Returns
    -------
    int
        0; 1 if something failed; 2 if the arguments are wrong; 128 and the signal's number if
        stopped. Failures are one line on standard error.
    """
    with warnings.catch_warnings():
        warnings.showwarning = report_warning
        with stoppable():  # around the message too, which a second signal must not interrupt
            return _code_of(argv)


def _code_of(argv: Sequence[str] | None) -> int:
    try:
        options = command_parser().parse_args(argv)
        RUNS[options.command](options)
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else 1
    except Stopped as stop:
        return report_error(str(stop), 128 + stop.number)
    except UsageError as error:
        return report_error(str(error), 2)
    except OSError as error:
        return report_error(_sentence(error), 1)
    except (ValueError, ImportError) as error:
        return report_error(str(error), 1)
    except MemoryError:
        return report_error("not enough memory", 1)
    return 0


def _sentence(error: OSError) -> str:
    if error.strerror is None or error.filename is None:
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"


def _run_fit(options: Any) -> None:
    from hdiforest._cli.fit import (
        fit_and_calibrate,
        new_forest,
        out_of_bag_record,
        out_of_bag_report,
    )
    from hdiforest._estimators.hdi_forest import HDIForestRegressor, attach_encoder
    from hdiforest._tables.training_table import read_training_table

    need("safetensors")
    require_writable(options.output, options.train)
    if options.report is not None:
        need("matplotlib.figure")
        require_writable(options.report, options.train)
        require_distinct(options.report, options.output)
    if options.groups is not None and options.calibrate not in ("cv+", "split"):
        raise UsageError("--groups needs --calibrate cv+ or --calibrate split")
    if options.boost and options.weights != "all":
        raise UsageError(f"--boost needs --weights all, got --weights {options.weights}")
    _refuse_without_calibration(options, boost=False, objective="width")
    table = read_training_table(
        options.train,
        options.target,
        text_form(options),
        drop=options.drop,
        ids=options.id,
        categorical=[name for name in options.categorical if name != "auto"],
        sample_weight=options.sample_weight,
        groups=options.groups,
    )
    forest = new_forest(
        options.extra_trees,
        n_estimators=options.trees,
        min_samples_leaf=options.min_samples_leaf,
        max_depth=options.max_depth,
        max_features=options.max_features,
        max_samples=options.max_samples,
        random_state=options.seed,
        n_jobs=_n_jobs(options),
    )
    model = HDIForestRegressor(
        forest, weights=options.weights, calibration=False, n_jobs=_n_jobs(options)
    )
    not_calibrated = fit_and_calibrate(
        model,
        table,
        options.calibrate,
        coverages=options.coverage,
        boost=options.boost,
        objective=options.objective,
        folds=options.folds,
        seed=options.seed,
    )
    record = out_of_bag_record(model)
    report = out_of_bag_report(model, record)
    attach_encoder(model, table.encoder)
    written = _saved(model, options)
    if options.report is not None:
        from hdiforest._cli.page import write_page

        write_page(
            options.report,
            model,
            record,
            train=options.train,
            target=options.target,
            output=options.output,
            not_calibrated=not_calibrated,
        )
        written += f"\nReport written to {options.report}"
    _tell(model, f"{report}\n\n{not_calibrated}{written}")


def _refuse_without_calibration(options: Any, **unset: Any) -> None:
    """Refuse options of a calibration that is not wanted, if they are not `unset`."""
    for name, value in {"coverage": None, **unset}.items():
        if options.calibrate == "none" and getattr(options, name) != value:
            raise UsageError(f"--{name} must not be given with --calibrate none")


def _run_import(options: Any) -> None:
    from hdiforest._cli.fit import (
        calibrate_as_far,
        import_model,
        load_forest,
        out_of_bag_record,
        out_of_bag_report,
        read_table_of,
        require_rows,
    )

    need("safetensors")
    _refuse_without_calibration(options)
    require_writable(options.output, options.forest, options.train)
    forest = load_forest(options.forest, trusted=options.trusted, trusted_types=options.trust_types)
    table = read_table_of(
        forest,
        options.train,
        options.target,
        text_form(options),
        drop=options.drop,
        sample_weight=options.sample_weight,
    )
    require_rows(options.coverage, len(table.y))
    model = import_model(forest, table, weights=options.weights, n_jobs=_n_jobs(options))
    not_calibrated = ""
    if options.calibrate == "oob":
        not_calibrated = calibrate_as_far(
            model, options.coverage, len(table.y), method="oob", random_state=0
        )
    report = out_of_bag_report(model, out_of_bag_record(model))
    _tell(model, f"{report}\n\n{not_calibrated}{_saved(model, options)}")


def _saved(model: HDIForestRegressor, options: Any) -> str:
    model.save(options.output, training_rows=options.training_rows)
    return f"Model written to {options.output}"


def _tell(model: HDIForestRegressor, report: str) -> None:
    n_trees, n_leaves = model.scorer_.forest.n_trees, model.scorer_.forest.n_leaves.sum()
    say(
        f"{n_trees:,} trees with {n_leaves:,} leaves from {model.n_training_rows_:,} rows and "
        f"{model.n_features_in_} features\n\n{report}"
    )


def _run_score(options: Any) -> None:
    from hdiforest._cli.score import run_score

    run_score(options)


def _on_a_line(text: str) -> str:
    return f"\n{text}" if text else ""


def _run_calibrate(options: Any) -> None:
    from hdiforest._cli.fit import infinite_intervals_refused, require_rows
    from hdiforest._cli.prediction import read_labelled_table
    from hdiforest.calibration import Split

    output = options.model if options.output is None else options.output
    require_writable(output, options.table)
    model = _model_of_one_target(options)
    if model.fitted_forest().training_rows is None:
        raise ValueError(
            f"{options.model} must hold the training rows to be calibrated; fit it again with "
            "--training-rows"
        )
    X, y, counts = read_labelled_table(model, options.table, options.target, text_form(options))
    require_rows(options.coverage, len(y), options.confidence)
    known = calibration_of(model)
    usual = CALIBRATED_LEVELS if known is None else known.coverages
    with infinite_intervals_refused():
        model.calibrate(
            X,
            y,
            coverage=options.coverage or usual,
            method=Split(options.confidence),
            objective=options.objective,
            mean="boosting" if options.boost else None,
            random_state=0,
        )
    model.save(output)
    say(f"{model.calibration_!r}\n\nModel written to {output}{_on_a_line(str(counts))}")


def _run_check(options: Any) -> None:
    from hdiforest._cli.prediction import read_labelled_table
    from hdiforest._cli.report import check

    model = _model_of_one_target(options)
    kind, levels = kind_and_levels(model.fitted_forest(), options.kind, options.coverage)
    if options.coverage is None and kind == "calibrated":
        levels = list(model.calibration_.coverages)
    X, y, counts = read_labelled_table(model, options.table, options.target, text_form(options))
    found = check(model, X, y, kind, levels, counts)
    say(found.json() if options.json else f"{found.text()}{_on_a_line(str(counts))}")


def _model_of_one_target(options: Any) -> HDIForestRegressor:
    from hdiforest._estimators.hdi_forest import HDIForestRegressor

    model = HDIForestRegressor.load(options.model, n_jobs=_n_jobs(options), mapped=False)
    if model.n_outputs_ != 1:
        raise ValueError(f"{options.model} must have one target, but has {model.n_outputs_}")
    return model


def _n_jobs(options: Any) -> int:
    n_jobs: int = -1 if options.jobs is None else options.jobs
    return n_jobs


def _run_inspect(options: Any) -> None:
    from hdiforest._cli.report import contents

    found = contents(options.model)
    say(found.json() if options.json else found.text())


def _run_demo(options: Any) -> None:
    from hdiforest._cli.demo import run

    run(options.output)


RUNS = {
    "fit": _run_fit,
    "import": _run_import,
    "score": _run_score,
    "calibrate": _run_calibrate,
    "check": _run_check,
    "inspect": _run_inspect,
    "demo": _run_demo,
}
