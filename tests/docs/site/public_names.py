"""The one list of what is public: the packages whose `__all__` the reference shows."""

import importlib
from contextlib import suppress

PACKAGES = [
    *(
        "hdicore",
        "hdicore.batch",
        "hdicore.explain",
        "hdicore.means",
        "hdicore.monotonic",
        "hdicore.regions",
        "hdiforest",
        "hdiforest.allocation",
        "hdiforest.calibration",
        "hdiforest.exceptions",
        "hdiforest.inspection",
        "hdiforest.metrics",
        "hdiforest.survival",
        "hdiforest.monitoring",
        "hdiforest.regions",
        "hdiforest.serving",
    ),
    *("hdiforest.adapters.boosters", "hdiforest.adapters.dask"),
    "hdiforest.adapters.quantile_forest",
]
with suppress(ImportError):  # of skpro, or of what it needs
    PACKAGES.append(importlib.import_module("hdiforest.adapters.skpro").__name__)


def exported(package):
    """Return the names of a package, but its version."""
    return set(importlib.import_module(package).__all__) - {"__version__"}
