"""Tables 1 and 2 of Zhu, Lu, Chen (IJCAI 2019): sizes, PICP and MPIW as the paper gives them."""

from __future__ import annotations

from typing import NamedTuple

SYSTEMS = ("HDI-Forest", "QRF", "QR", "QR_GBDT", "IntPred", "QD-Ens")


# Rows and "dimensionality", which is UCI's count of attributes: some are targets or names.
TABLE_1 = {
    "boston": (506, 13),
    "parkinsons": (5875, 26),
    "wine": (1599, 11),
    "forest_fires": (517, 13),
    "concrete": (1030, 9),
    "energy": (768, 8),
    "naval": (11934, 16),
    "power_plant": (9568, 4),
    "protein": (45730, 9),
    "communities": (1994, 128),
    "online_news": (39797, 61),
}


class Published(NamedTuple):
    """One data set's row, a value for each of `SYSTEMS`."""

    picp: tuple[float, ...]
    mpiw: tuple[float, ...]  # in standard deviations of the target


TABLE_2 = {
    "boston": Published((0.93, 0.92, 0.92, 0.92, 0.92, 0.91), (1.02, 1.19, 2.28, 1.70, 1.79, 1.16)),
    "parkinsons": Published(
        (0.99, 0.99, 0.95, 0.99, 0.96, 0.98), (0.11, 0.45, 1.18, 0.88, 0.98, 0.62)
    ),
    "wine": Published((0.92, 0.92, 0.91, 0.92, 0.92, 0.92), (1.11, 3.33, 2.64, 2.47, 2.54, 2.33)),
    "forest_fires": Published(
        (0.95, 0.94, 0.95, 0.94, 0.94, 0.94), (0.81, 1.24, 1.09, 1.04, 1.03, 0.96)
    ),
    "concrete": Published(
        (0.94, 0.94, 0.94, 0.94, 0.94, 0.94), (1.18, 1.22, 2.22, 2.23, 1.87, 1.09)
    ),
    "energy": Published((0.97, 0.96, 0.95, 0.97, 0.95, 0.97), (0.39, 0.50, 1.73, 0.79, 1.56, 0.47)),
    "naval": Published((0.99, 0.96, 0.98, 0.98, 0.98, 0.98), (0.24, 0.68, 0.89, 1.34, 0.73, 0.28)),
    "power_plant": Published(
        (0.95, 0.95, 0.95, 0.95, 0.95, 0.95), (0.75, 0.78, 0.97, 0.90, 0.84, 0.86)
    ),
    "protein": Published(
        (0.95, 0.94, 0.95, 0.95, 0.95, 0.95), (1.77, 1.82, 2.76, 2.36, 2.15, 2.27)
    ),
    "communities": Published(
        (0.92, 0.92, 0.89, 0.92, 0.92, 0.87), (1.50, 1.73, 2.03, 1.69, 1.94, 1.74)
    ),
    "online_news": Published(
        (0.96, 0.96, 0.95, 0.96, 0.95, 0.96), (1.18, 1.98, 1.27, 1.72, 1.38, 1.60)
    ),
}
