"""The report of a fit: coverage and width of its intervals, as text and as a page of HTML."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from hdicore import __version__
from hdiforest._cli.console import facts_of
from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._utils.checks import aligned, count_text, html_table, printable, significant
from hdiforest._utils.files import writing
from hdiforest._utils.optional import need
from hdiforest.calibration._candidates import DEFAULT_COVERAGES
from hdiforest.calibration._predict import resolve_kind_and_levels
from hdiforest.calibration._result import CalibrationResult
from hdiforest.displays import CalibrationDisplay, IntervalDisplay, WidthDisplay
from hdiforest.displays._common import OneTarget, out_of_bag_of, percent, plain, svg_of
from hdiforest.exceptions import OutOfBagWarning
from hdiforest.metrics import coverage_score, mean_width_score


class Report:
    """What is told of a model that was just fitted: its calibration, and its own intervals.

    These are raw ones of its training rows, unless each tree was fitted on all of them.
    `not_calibrated` says why levels could not be calibrated.
    """

    def __init__(self, model: HDIForestRegressor, not_calibrated: str) -> None:
        self.model, self.not_calibrated = model, not_calibrated
        self.calibration: CalibrationResult | None = model._fitted_forest().calibration
        calibrated = () if self.calibration is None else self.calibration.coverages
        self.levels = sorted({*DEFAULT_COVERAGES, *calibrated})
        self.title = "No out-of-bag record: every tree saw every row."
        self.rows: list[list[str]] = []  # cells of the record, with a head; none without it
        with warnings.catch_warnings(), suppress(ValueError):  # of rows that no tree left out
            warnings.simplefilter("ignore", OutOfBagWarning)
            record = out_of_bag_of(OneTarget(model, None, None), self.levels, "hdi")
            self.title = f"Out-of-bag record of {count_text(len(record.y))} training rows:"
            self.rows = [["coverage", "raw HDI inside", "mean width"]]
            inside = np.ravel(coverage_score(record.y, record.intervals))
            width = np.ravel(mean_width_score(record.intervals))
            for level, share, size in zip(self.levels, inside, width, strict=True):
                self.rows.append([f"{level:g}", f"{share:.3f}", significant(size)])

    @property
    def text(self) -> str:
        """The calibration and the record as text."""
        calibration = "" if self.calibration is None else f"{self.calibration!r}\n\n"
        return f"{calibration}{self.title}" + (f"\n{aligned(self.rows)}" if self.rows else "")


def write_page(report: Report, options: Any, columns: dict[str, str]) -> None:
    """Write the report as a page of HTML, whole or not at all; `options` are those of run_fit.

    `columns` says what became of those of the table.
    """
    fitted = report.model._fitted_forest()
    facts = {
        "training table": options.tables,
        "target": options.target,
        "features": f"{fitted.n_features:,}",
        "forest": type(report.model.estimator_).__name__,
        **facts_of(fitted),
        "model file": options.output,
        "made by": f"hdiforest {__version__}",
    }
    page = _part(
        "page",
        title=_html(f"Intervals for {options.target}"),
        facts=_listed(facts),
        columns=_listed(columns),
        coverage=_coverage(report),
        pictures=_figures(report, options.target),
        bars=_importance(report.model),
    )
    with writing(options.report) as file:
        file.write(page.encode("utf-8"))


@cache
def _parts() -> dict[str, Template]:
    """Return the page, and by their names in comments the parts that it may have, or several of."""
    text = (files("hdiforest._cli") / "data" / "fit_report.html").read_text("utf-8")
    page, *others = re.split(r"\n<!-- (\w+) -->\n", text)
    named = zip(others[::2], others[1::2], strict=True)
    return {name: Template(part.rstrip()) for name, part in [("page", page), *named]}


def _part(name: str, /, **words: str) -> str:
    return _parts()[name].substitute(words)


def _listed(facts: Mapping[str, object]) -> str:
    return "".join(f"<dt>{_html(k)}</dt><dd>{_html(v)}</dd>" for k, v in facts.items())


def _coverage(report: Report) -> str:
    shown = _part("note", text=_html(report.not_calibrated)) if report.not_calibrated else ""
    if report.calibration is not None:
        shown += _part("table", table=report.calibration._repr_html_())
    shown += f"<p>{_html(report.title)}</p>"
    return shown + (_part("record", table=html_table(report.rows)) if report.rows else "")


def _figures(report: Report, target: str) -> str:
    if not report.rows:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfBagWarning)
        shown = [
            _part("picture", source=source, caption=_html(caption))
            for caption, source in _pictures(report, plain(printable(target)))
        ]
    note = _part("no_intervals") if len(shown) == 1 else ""
    return _part("pictures", note=note, pictures="".join(shown))


def _pictures(report: Report, target: str) -> Iterator[tuple[str, str]]:
    """Yield captions and pictures of training rows out of bag; one alone without intervals."""
    model, fitted = report.model, report.model._fitted_forest()
    kind, (level,) = resolve_kind_and_levels(fitted, None, None)
    after = "" if kind == "hdi" else ", before and after the calibration"
    coverages = partial(CalibrationDisplay.from_out_of_bag, model, coverages=report.levels)
    yield _part("realised", after=after), _image(coverages, (5, 4.6))
    if fitted.why_not_out_of_bag() is not None:
        return
    name = f"{percent(level)} {'HDI' if kind == 'hdi' else 'calibrated interval'}"
    options: dict[str, Any] = {"coverage": level, "kind": kind, "target_name": target}
    rows = partial(IntervalDisplay.from_out_of_bag, model, subsample=150, **options)
    by_width = partial(WidthDisplay.from_out_of_bag, model, **options)
    yield _part("rows", name=name), _image(rows, (6, 4.6))
    yield _part("widths", name=name), _image(partial(by_width, what="width"), (5, 3.6))
    yield _part("coverage_by_width", name=name), _image(by_width, (5, 3.6))


def _image(draw: partial[Any], size: tuple[float, float]) -> str:
    figure = need("matplotlib.figure").Figure(figsize=size, layout="constrained")
    draw(ax=figure.subplots())
    return svg_of(figure)


def _importance(model: HDIForestRegressor) -> str:
    """Return the bars of the features."""
    shares = model.estimator_.feature_importances_
    names = model._fitted_forest().names_of_features
    most = max(shares.max(), 1e-300)
    bars = zip(100 * shares, 100 * shares / most, names, strict=True)
    return "".join(
        _part("bar", name=_html(name), width=f"{width:.1f}", share=f"{share:.1f}")
        for share, width, name in sorted(bars, key=lambda bar: -bar[0])
    )


def _html(text: object) -> str:
    """Return any text as HTML that shows it."""
    return escape(printable(text))
