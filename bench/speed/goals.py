"""The goals of the speed benchmark, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A figure to reach: at least or at most a value."""

    value: float
    at_least: bool

    def met(self, figure: float) -> bool:
        """Whether a figure reaches the goal."""
        return figure >= self.value if self.at_least else figure <= self.value

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.value:g}"


def _at_least(value: float) -> Goal:
    return Goal(value, True)


def _at_most(value: float) -> Goal:
    return Goal(value, False)


# Of every case.
COMMON = {
    "routing": _at_most(1.5),  # HDI / routing alone
    "hdi_5": _at_most(2),  # five levels / one of 0.9
    "hdi_5_half": _at_most(1.3),  # five levels / the dearest of them, 0.5
    "two_threads": _at_least(1.9),  # one thread / two
    "peer_default": _at_least(4),  # quantile-forest's default / HDI
    "one_row": _at_most(100),  # us, through the estimator
    "one_row_forest": _at_least(30),  # forest.predict / estimator
    "import": _at_most(3),  # % of the fit
    "load": _at_most(10),  # ms, a file in the page cache
    "index_forest": _at_most(1 / 4),  # bytes of the index / of the forest
    "index_peer": _at_most(1 / 8),  # bytes of the index / of quantile-forest's leaves
}
# Processor time of the default fit / of its forest alone.
FIT = {"1k": _at_most(1.6), "20k": _at_most(1.25), "100k": _at_most(1.15)}
CALIBRATED_SCORING = _at_most(1.3)  # calibrated / raw
# Of one case: forest.predict / HDI, quantile-forest exact / HDI.
AGAINST = {
    "friedman_20k_leaf1": (3, 15),
    "friedman_20k_leaf5": (3, 15),
    "friedman_20k_leaf50": (1.2, 15),
    "friedman_200k_leaf1": (2, 40),
    "friedman_200k_leaf5": (2, 40),
    "friedman_200k_leaf50": (1.2, 40),
}
# us of a call for one row through the estimator, where less than 100 is asked.
ONE_ROW = {"friedman_20k_leaf5": 15}
# forest.predict / HDI of all outputs.
OUTPUTS = {"outputs_10": 1 / 1.5, "outputs_10_leaf1": 1 / 1.5}


def goals_of(case: str) -> dict[str, Goal]:
    """All goals that a case has, by the name of the figure."""
    goals = dict(COMMON)
    if case in AGAINST:
        forest, peer_exact = AGAINST[case]
        goals |= {"forest": _at_least(forest), "peer_exact": _at_least(peer_exact)}
    if case in ONE_ROW:
        goals["one_row"] = _at_most(ONE_ROW[case])
    if case in OUTPUTS:
        goals["forest"] = _at_least(OUTPUTS[case])
    return goals
