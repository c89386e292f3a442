"""How a model is calibrated: one class for each method, with what only this method takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils.checks import alternatives, check_whole_number, one_share


@dataclass(frozen=True)
class OutOfBag:
    """Calibrate by the training rows, each predicted by the trees that did not draw it.

    Needs no new rows. No guarantee holds for every distribution.

    Parameters
    ----------
    max_rows : int, default=10000
        Largest number of training rows to use. The standard error of a coverage is then 0.3 %.
    """

    name: ClassVar[str] = "oob"
    max_rows: int = 10_000

    def __post_init__(self) -> None:
        check_whole_number("max_rows", self.max_rows, 1)


@dataclass(frozen=True)
class Split:
    """Calibrate by rows X, y that took no part in the fit.

    The coverage is then guaranteed on average over such rows.

    Parameters
    ----------
    confidence : float, optional
        The probability, over calibration rows, of at least the coverage; without it they give the
        coverage on average.
    """

    name: ClassVar[str] = "split"
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.confidence is not None:
            one_share("confidence", self.confidence)


@dataclass(frozen=True, eq=False)
class CVPlus:
    """Fit the forest again without each fold of the training rows, and predict with all of these.

    Steps and searches of an estimator are fitted again, too. A coverage of about 2c - 1 is
    guaranteed, and c is usual.

    Parameters
    ----------
    n_folds : int, default=10
        Fitting and scoring take as many times as long.
    groups : (n_training_rows,) array, optional
        Rows of one group (person, site) share a fold, so that intervals are those for new groups.
    """

    name: ClassVar[str] = "cv+"
    n_folds: int = 10
    groups: ArrayLike | None = None

    def __post_init__(self) -> None:
        check_whole_number("n_folds", self.n_folds, 2)


@dataclass(frozen=True)
class JackknifePlus:
    """Calibrate by training rows, each of which makes a forest of the trees that did not draw it.

    For each row to predict all these forests are merged. Nearly the guarantee of `CVPlus`, without
    another fit.

    Parameters
    ----------
    max_rows : int, default=1000
        Largest number of training rows to use. Each costs a merge for each row to predict.
    """

    name: ClassVar[str] = "jackknife+"
    max_rows: int = 1000

    def __post_init__(self) -> None:
        check_whole_number("max_rows", self.max_rows, 1)


Method = OutOfBag | Split | CVPlus | JackknifePlus

_METHODS: dict[str, type[Method]] = {
    method.name: method for method in (OutOfBag, Split, CVPlus, JackknifePlus)
}


def resolve_method(method: Method | str | None, X: Any, y: Any) -> Method:
    """Return the method that is meant, or ValueError if there is none or it needs other rows."""
    has_rows = X is not None or y is not None
    if y is None and (isinstance(X, int | float | list | tuple) or np.ndim(X) == 1):
        raise ValueError(
            f"X must be rows to calibrate on, got {X!r}; coverages are given by name, as coverage="
        )
    if method is None:
        method = Split() if has_rows else OutOfBag()
    elif isinstance(method, str) and method in _METHODS:
        method = _METHODS[method]()
    elif not isinstance(method, Method):
        classes = ", ".join(each.__name__ for each in _METHODS.values())
        raise ValueError(
            f"method must be {alternatives(map(repr, _METHODS))}, or an object of one of the "
            f"classes {classes}, got {method!r}"
        )
    if isinstance(method, Split) and (X is None or y is None):
        raise ValueError("X and y must be given with method='split'")
    if has_rows and not isinstance(method, Split):
        raise ValueError(f"X and y must be None with method={method.name!r}")
    return method
