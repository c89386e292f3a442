"""Features as linear models and networks take them: complete, encoded and on one scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .interface import Part


def standardised(part: Part) -> Any:
    """Return a transformer fitted on the part: one-hot categories, medians for what is missing."""
    numeric = [i for i in range(part.X.shape[1]) if i not in part.categorical]
    encoded = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median"), numeric),
            ("names", OneHotEncoder(handle_unknown="ignore"), part.categorical),
        ],
        sparse_threshold=0,
    )
    prepared = make_pipeline(encoded, VarianceThreshold(), StandardScaler())
    return prepared.fit(part.X.astype(np.float64))
