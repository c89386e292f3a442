"""The methods of calibration: the one list for the estimators, the command, files and pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from hdiforest._utils.checks import alternatives
from hdiforest.calibration._folds import CVPlus, JackknifePlus
from hdiforest.calibration._method import Method
from hdiforest.calibration._out_of_bag import OutOfBag
from hdiforest.calibration._split import Split

METHODS: dict[str, type[Method]] = {
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
    elif isinstance(method, str) and method in METHODS:
        method = METHODS[method]()
    elif not isinstance(method, Method):
        classes = ", ".join(each.__name__ for each in METHODS.values())
        raise ValueError(
            f"method must be {alternatives(map(repr, METHODS))}, or an object of one of the "
            f"classes {classes}, got {method!r}"
        )
    if method.needs_rows and (X is None or y is None):
        raise ValueError(f"X and y must be given with method={method.name!r}")
    if has_rows and not method.needs_rows:
        raise ValueError(f"X and y must be None with method={method.name!r}")
    return method
