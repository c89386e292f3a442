"""Inspection: what a fitted model is made of, and what stands behind its intervals."""

from hdiforest.inspection._diagnose import diagnose
from hdiforest.inspection._explain import Explanation, explain
from hdiforest.inspection._facts import predict_matches_forest, preprocessing_steps
from hdiforest.inspection._nearest import NearestRows, nearest_rows

__all__ = [
    "Explanation",
    "NearestRows",
    "diagnose",
    "explain",
    "nearest_rows",
    "predict_matches_forest",
    "preprocessing_steps",
]
