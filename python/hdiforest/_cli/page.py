"""The report of fit as one page of HTML, with numbers and pictures."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from hdicore import __version__
from hdiforest._cli.fit import NO_RECORD, OutOfBagRecord
from hdiforest._cli.prediction import calibration_of, levels_to_show
from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._model.predict import resolve_kind_and_levels
from hdiforest._model.training_rows import WEIGHTINGS
from hdiforest._utils import Array
from hdiforest._utils.checks import printable, significant
from hdiforest._utils.files import writing
from hdiforest._utils.optional import need
from hdiforest.calibration._result import CalibrationResult
from hdiforest.displays import CalibrationDisplay, IntervalDisplay, WidthDisplay
from hdiforest.displays._common import BLUE, axes_for, out_of_bag_of, percent, plain, plain_numbers


def pictures(model: HDIForestRegressor, target: str) -> Iterator[tuple[str, str]]:
    """Yield captions and pictures of the training rows, each row by trees that did not draw it.

    The intervals are those that `hdiforest score` writes. If there are none out of bag, the only
    picture is that of coverages.

    Parameters
    ----------
    model : HDIForestRegressor
        Just fitted, with its training rows, some of which are out of bag.
    target : str
        Column of targets.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*no out-of-bag interval", UserWarning)
        yield from _pictures(model, plain(printable(target)))


def _pictures(model: HDIForestRegressor, target: str) -> Iterator[tuple[str, str]]:
    fitted = model.fitted_forest()
    kind, (level,) = resolve_kind_and_levels(fitted, None, None)
    after = "" if kind == "hdi" else ", before and after the calibration"
    yield (
        f"Nominal and realised coverage{after}. In the grey range lie 95 % of the shares that "
        "exact intervals give by chance.",
        _image(
            lambda ax: CalibrationDisplay.from_out_of_bag(
                model, coverages=levels_to_show(model), ax=ax
            ),
            (5, 4.6),
        ),
    )
    name = f"{percent(level)} {'HDI' if kind == 'hdi' else 'calibrated interval'}"
    try:
        found = out_of_bag_of(model, [level], kind, None)
    except ValueError:
        return
    widths = found.intervals[:, 1, 0] - found.intervals[:, 0, 0]
    shown: dict[str, Any] = {"coverage": level, "target_name": target}

    def draw_rows(ax: Any) -> None:
        IntervalDisplay.from_predictions(
            found.y, found.intervals, prediction=found.prediction, subsample=150, ax=ax, **shown
        )

    def draw_widths(ax: Any) -> None:
        axes_for(draw_widths, ax)
        ax.hist(widths, bins=40, color=BLUE, edgecolor="white", linewidth=0.4)
        ax.axvline(widths.mean(), color="black", linewidth=1.2, linestyle="--",
                   label=f"mean, {significant(widths.mean())}")  # fmt: skip
        ax.set(xlabel=f"width of the {name}, {target}", ylabel="training rows")
        plain_numbers(ax.xaxis)
        plain_numbers(ax.yaxis)
        ax.legend(loc="upper right", frameon=False, fontsize="small")

    def draw_thirds(ax: Any) -> None:
        WidthDisplay.from_predictions(found.y, found.intervals[..., 0], ax=ax, **shown)

    yield (
        f"Training rows sorted by their prediction, with their {name} out of bag; 150 of them, "
        "chosen at random, if there are more.",
        _image(draw_rows, (6, 4.6)),
    )
    yield f"Widths of the {name} of the training rows.", _image(draw_widths, (5, 3.6))
    yield f"Coverage of the {name} by its width.", _image(draw_thirds, (5, 3.6))


def _image(draw: Callable[[Any], Any], size: tuple[float, float]) -> str:
    matplotlib = need("matplotlib")
    # Letters as outlines, and marks with names that repeat: the same on every machine.
    with matplotlib.rc_context({"svg.hashsalt": "hdiforest", "svg.fonttype": "path"}):
        figure = need("matplotlib.figure").Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        text = io.BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # of the target
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(text.getvalue()).decode()}"


MAX_FEATURES = 30  # of which the importance is shown


def write_page(
    path: Path,
    model: HDIForestRegressor,
    record: OutOfBagRecord | None,
    *,
    train: object,
    target: str,
    output: object,
    not_calibrated: str,
) -> None:
    """Write the report, whole or not at all.

    Parameters
    ----------
    path : path
    model : HDIForestRegressor
        Just fitted, with its training rows.
    record : OutOfBagRecord or None
    train, target, output : the table, its column of targets, and the model file; named only
    not_calibrated : str
        Why levels could not be calibrated; empty if they were.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    calibration = calibration_of(model)
    fitted = model.fitted_forest()
    facts = {
        "Training table": str(train),
        "Target": target,
        "Rows": f"{model.n_training_rows_:,}",
        "Features": f"{fitted.n_features:,}",
        "Forest": f"{type(model.estimator_).__name__}, {fitted.scorer.forest.n_trees:,} trees with "
        f"{fitted.scorer.forest.n_leaves.sum():,} leaves",
        "Leaves count": WEIGHTINGS[fitted.weights],
        "Calibration": "none"
        if calibration is None
        else f"method {calibration.method}, {calibration.n:,} rows",
        "Model file": str(output),
        "Made by": f"hdiforest {__version__}",
    }
    parts = [_coverage(levels_to_show(model), record, calibration, not_calibrated)]
    if record is not None:
        parts.append(_picture_section(model, target))
    parts.append(_importance(model))
    template = Template((files("hdiforest._cli") / "data" / "fit_report.html").read_text("utf-8"))
    page = template.substitute(
        title=_text(f"Intervals for {target}"),
        facts="".join(f"<dt>{_text(k)}</dt><dd>{_text(v)}</dd>" for k, v in facts.items()),
        body="\n".join(parts),
    )
    with writing(path) as file:
        file.write(page.encode("utf-8"))


def _coverage(
    levels: Sequence[float],
    record: OutOfBagRecord | None,
    calibration: CalibrationResult | None,
    not_calibrated: str,
) -> str:
    shown = "<h2>Coverage and width by level</h2>"
    if not_calibrated:
        shown += f'<p class="note">{_text(not_calibrated.strip())}</p>'
    if record is None:
        shown += f'<p class="note">{_text(NO_RECORD)}</p>'
    else:
        shown += (
            f"<p>Of {len(record.y):,} training rows, each predicted by the trees that did not draw "
            "it (out of bag). <code>hdiforest score</code> writes "
            f"{'the HDI' if calibration is None else 'calibrated intervals'}. The HDI are the "
            "shortest intervals of the leaves, before any calibration. Coverage is the share of "
            "targets inside; widths are means, in the unit of the target.</p>"
        )
    head = ["level"]
    kinds: list[tuple[str, Callable[[float], list[str]]]] = []
    if calibration is not None:
        kinds.append(("calibrated", lambda level: _calibrated(calibration, level)))
    if record is not None:
        kinds.append(("HDI", lambda level: _raw(record, level)))
    for kind, _ in kinds:
        head += [f"{kind}<br>coverage", f"{kind}<br>width"]
    if kinds:
        rows = [
            [f"{100 * level:g} %", *(cell for _, cells in kinds for cell in cells(level))]
            for level in levels
        ]
        shown += _table(head, rows)
    if calibration is None:
        return shown
    thirds = [
        [f"{100 * level.coverage:g} %", *map(_share, level.cross_check.thirds)]
        for level in calibration.levels
        if level.cross_check is not None
    ]
    shown += (
        "<p>Calibrated coverage is a cross-check: of intervals that were selected and widened by "
        f"other rows, ± its standard error. {_text(calibration.guarantee)}</p>"
    )
    if thirds:
        shown += (
            "<h2>Calibrated coverage by width</h2><p>The same cross-check, for the rows with the "
            "narrowest third of the intervals, the middle one, and the widest.</p>"
        )
        shown += _table(["level", "narrow", "middle", "wide"], thirds)
    return shown


def _raw(record: OutOfBagRecord, level: float) -> list[str]:
    share, width = record.at(level)
    return [_share(share), significant(width)]


def _calibrated(calibration: CalibrationResult, level: float) -> list[str]:
    if not calibration.has(level):
        return ["-", "-"]
    found = calibration.level(level)
    share = "-"
    if (check := found.cross_check) is not None:
        share = f"{_share(check.coverage)} ± {100 * check.standard_error:.1f}"
    return [share, significant(found.mean_width)]


def _picture_section(model: HDIForestRegressor, target: str) -> str:

    shown = list(pictures(model, target))
    figures = "".join(
        f'<figure><img src="{source}" alt="{_text(caption)}">'
        f"<figcaption>{_text(caption)}</figcaption></figure>"
        for caption, source in shown
    )
    note = ""
    if len(shown) == 1:
        note = (
            '<p class="note">Intervals of single training rows are not shown: those that '
            "<code>hdiforest score</code> writes are not known out of bag with --boost or "
            "--calibrate cv+.</p>"
        )
    return f'<h2>Pictures</h2>{note}<div class="pictures">{figures}</div>'


def _importance(model: HDIForestRegressor) -> str:
    shares: Array = model.estimator_.feature_importances_
    known = model.fitted_forest().feature_names
    names: Iterable[Any] = range(len(shares)) if known is None else known
    ranked = sorted(zip(shares.tolist(), names, strict=True), key=lambda pair: -pair[0])
    most = max(float(np.max(shares)), 1e-300)
    bars = "".join(
        f'<div class="name">{_text(name)}</div><div class="track"><div class="fill" '
        f'style="width: {100 * share / most:.1f}%"></div></div>'
        f'<div class="value">{100 * share:.1f} %</div>'
        for share, name in ranked[:MAX_FEATURES]
    )
    rest = len(ranked) - MAX_FEATURES
    more = "" if rest <= 0 else f"<p>{rest:,} more features are not shown.</p>"
    return (
        "<h2>Importance of the features</h2><p>Importance by impurity, scikit-learn's "
        "<code>feature_importances_</code>: the share that the splits on a feature have in the "
        "reduction of the squared error while the trees grew. It speaks of the mean and not of the "
        "width of intervals, is measured on the training rows, and favours features with many "
        f'distinct values.</p><div class="bars">{bars}</div>{more}'
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; the head holds HTML, the cells text."""
    first = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _text(text: object) -> str:
    """Return any text as HTML that shows it."""
    return escape(printable(str(text)))
