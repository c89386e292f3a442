"""Allocation: a mean coverage divided among rows, so that their total width is least."""

from hdiforest.allocation._allocate import allocate_coverage

__all__ = ["allocate_coverage"]
