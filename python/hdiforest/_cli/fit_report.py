"""The report of a fit: coverage and width of its intervals, as text and as a page of HTML."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from hdicore import __version__
from hdiforest._cli.console import facts_of, thirds
from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._model.predict import resolve_kind_and_levels
from hdiforest._utils import Array
from hdiforest._utils.checks import aligned, count_text, html_table, printable, significant
from hdiforest._utils.files import writing
from hdiforest._utils.optional import need
from hdiforest.calibration._bases import DEFAULT_COVERAGES
from hdiforest.calibration._result import CalibrationResult
from hdiforest.displays import CalibrationDisplay, IntervalDisplay, WidthDisplay
from hdiforest.displays._common import OutOfBag, out_of_bag_of, percent, plain, svg_of
from hdiforest.displays._coverage import THIRDS
from hdiforest.exceptions import OutOfBagWarning
from hdiforest.metrics import coverage_score, mean_width_score

MAX_FEATURES = 30  # of which the page shows the importance


class Report:
    """What is told of a model that was just fitted: its calibration, and its own intervals.

    These are raw ones of its training rows, unless each tree was fitted on all of them.
    `not_calibrated` says why levels could not be calibrated.
    """

    def __init__(self, model: HDIForestRegressor, not_calibrated: str = "") -> None:
        self.model, self.not_calibrated = model, not_calibrated
        self.calibration: CalibrationResult | None = model._fitted_forest().calibration
        known = () if self.calibration is None else self.calibration.coverages
        self.levels = sorted({*DEFAULT_COVERAGES, *known})
        self.record: OutOfBag | None = None
        with warnings.catch_warnings(), suppress(ValueError):  # of rows that no tree left out
            warnings.simplefilter("ignore", OutOfBagWarning)
            self.record = out_of_bag_of(model, self.levels, "hdi", None)

    def title(self) -> str:
        """Say of which rows the record is."""
        if self.record is None:
            return "No out-of-bag record: every tree saw every row."
        return f"Out-of-bag record of {count_text(len(self.record.y))} training rows:"

    def rows(self) -> list[list[str]]:
        """Return cells of the record by level, with a head; none without it."""
        if self.record is None:
            return []
        y, ends = self.record.y, self.record.intervals
        inside, width = np.ravel(coverage_score(y, ends)), np.ravel(mean_width_score(ends))
        cells = zip(self.levels, inside, width, strict=True)
        rows = [[f"{level:g}", f"{share:.3f}", significant(size)] for level, share, size in cells]
        return [["coverage", "raw HDI inside", "mean width"], *rows]

    def text(self) -> str:
        """Return the calibration and the record as text."""
        calibration = "" if self.calibration is None else f"{self.calibration!r}\n\n"
        rows = self.rows()
        return f"{calibration}{self.title()}" + (f"\n{aligned(rows)}" if rows else "")


def write_page(report: Report, options: Any, columns: dict[str, str]) -> None:
    """Write the report as a page of HTML, whole or not at all; `options` are those of run_fit.

    `columns` says what became of those of the table.
    """
    facts = {
        "training table": options.tables,
        "target": options.target,
        "features": f"{report.model._fitted_forest().n_features:,}",
        "forest": type(report.model.estimator_).__name__,
        **facts_of(report.model._fitted_forest()),
        "model file": options.output,
        "made by": f"hdiforest {__version__}",
    }
    template = Template((files("hdiforest._cli") / "data" / "fit_report.html").read_text("utf-8"))
    page = template.substitute(
        _importance(report.model),
        title=_html(f"Intervals for {options.target}"),
        facts=_listed(facts),
        columns=_listed(columns),
        body=f"{_coverage(report)}\n{_figures(report, options.target)}",
    )
    with writing(options.report) as file:
        file.write(page.encode("utf-8"))


def _listed(facts: Mapping[str, object]) -> str:
    return "".join(f"<dt>{_html(k)}</dt><dd>{_html(v)}</dd>" for k, v in facts.items())


def _coverage(report: Report) -> str:
    note = f'<p class="note">{_html(report.not_calibrated)}</p>' if report.not_calibrated else ""
    shown = f"<h2>Coverage and width by level</h2>{note}"
    if report.calibration is not None:
        shown += _scrolled(report.calibration._repr_html_())
    shown += f"<p>{_html(report.title())}</p>"
    if report.record is not None:
        shown += (
            "<p>The raw HDI are the shortest intervals of the leaves, before any calibration, of "
            "rows that are predicted by the trees that did not draw them (out of bag). Widths are "
            f"means, in the unit of the target.</p>{_scrolled(html_table(report.rows()))}"
        )
    levels = () if report.calibration is None else report.calibration.levels
    checks = [(level.coverage, level.cross_check) for level in levels]
    rows = [[f"{coverage:g}", *thirds(c.thirds)] for coverage, c in checks if c is not None]
    if rows:
        by_width = html_table([["coverage", *THIRDS], *rows])
        shown += f"<h2>Calibrated coverage by width</h2>{_scrolled(by_width)}"
    return shown


def _scrolled(table: str) -> str:
    return f'<div class="scroll">{table}</div>'


def _figures(report: Report, target: str) -> str:
    if report.record is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfBagWarning)
        shown = [
            f'<figure><img src="{source}" alt="{_html(caption)}">'
            f"<figcaption>{_html(caption)}</figcaption></figure>"
            for caption, source in pictures(report, plain(printable(target)))
        ]
    note = (
        '<p class="note">Intervals of single training rows are not shown: those that <code>'
        "hdiforest score</code> writes are not known out of bag with --mean boosting or "
        "--calibrate cv+.</p>"
    )
    seen = note if len(shown) == 1 else ""
    return f'<h2>Pictures</h2>{seen}<div class="pictures">{"".join(shown)}</div>'


def pictures(report: Report, target: str) -> Iterator[tuple[str, str]]:
    """Yield captions and pictures of training rows out of bag; one alone without intervals."""
    model, fitted = report.model, report.model._fitted_forest()
    kind, (level,) = resolve_kind_and_levels(fitted, None, None)
    after = "" if kind == "hdi" else ", before and after the calibration"
    coverages = partial(CalibrationDisplay.from_out_of_bag, model, coverages=report.levels)
    yield (
        f"Nominal and realised coverage{after}. In the grey range lie 95 % of the shares that "
        "exact intervals give by chance.",
        _image(coverages, (5, 4.6)),
    )
    if fitted.why_not_out_of_bag() is not None:
        return
    name = f"{percent(level)} {'HDI' if kind == 'hdi' else 'calibrated interval'}"
    options: dict[str, Any] = {"coverage": level, "kind": kind, "target_name": target}
    rows = partial(IntervalDisplay.from_out_of_bag, model, subsample=150, **options)
    by_width = partial(WidthDisplay.from_out_of_bag, model, **options)
    yield (
        f"Training rows sorted by their prediction, with their {name} out of bag; 150 of them, "
        "chosen at random, if there are more.",
        _image(rows, (6, 4.6)),
    )
    widths = _image(partial(by_width, what="width"), (5, 3.6))
    yield f"Widths of the {name} of the training rows.", widths
    yield f"Coverage of the {name} by its width.", _image(by_width, (5, 3.6))


def _image(draw: partial[Any], size: tuple[float, float]) -> str:
    figure = need("matplotlib.figure").Figure(figsize=size, layout="constrained")
    draw(ax=figure.subplots())
    return svg_of(figure)


def _importance(model: HDIForestRegressor) -> dict[str, str]:
    """Return the bars of the page, and how many features have none."""
    shares: Array = model.estimator_.feature_importances_
    names = model._fitted_forest().names_of_features
    ranked = sorted(zip(shares.tolist(), names, strict=True), key=lambda pair: -pair[0])
    most = max(float(np.max(shares)), 1e-300)
    bars = "".join(
        f'<div class="name">{_html(name)}</div><div class="track"><div class="fill" '
        f'style="width: {100 * share / most:.1f}%"></div></div>'
        f'<div class="value">{100 * share:.1f} %</div>'
        for share, name in ranked[:MAX_FEATURES]
    )
    rest = len(ranked) - MAX_FEATURES
    more = "" if rest <= 0 else f"<p>{rest:,} more features are not shown.</p>"
    return {"bars": bars, "more": more}


def _html(text: object) -> str:
    """Return any text as HTML that shows it."""
    return escape(printable(text))
