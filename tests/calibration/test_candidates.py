"""Base intervals: their coordinates, what they are averaged of, and their groups."""

import numpy as np
import pytest

from hdiforest._model.bases import BASE_LEVELS, FAMILIES, Base
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._postprocess import PostProcess


def test_names_groups_and_quantiles():
    base = Base("centred", "averaged", 0.5, 15)
    assert str(base) == "centred averaged 0.5 leaf 15"
    assert str(base._replace(min_samples_leaf=1)) == "centred averaged 0.5"
    assert base.group == ("centred", 15)
    assert base.quantiles([0.25, 0.5]) == [Base("centred", "upper", c, 15) for c in (0.25, 0.5)]
    assert [each.level for each in base.quantiles()] == list(BASE_LEVELS)
    assert {each.group for each in base.quantiles()} == {base.group}


def test_candidates_of_rows_and_of_groups():
    bases = [Base(f, "averaged", c, m) for m in (1, 5) for f in FAMILIES[:2] for c in (0.5, 0.8)]
    rng = np.random.default_rng(0)
    ends, y = np.sort(rng.normal(size=(20, 2, len(bases))), axis=1), rng.normal(size=20)
    quantiles = {base.group: rng.normal(size=(20, 19)) for base in bases}
    weights, postprocess = np.arange(1.0, 21), PostProcess.from_targets(y)
    whole = Candidates.checked(bases, ends, y, postprocess, weights, quantiles)
    for j, base in enumerate(bases):
        group = whole.of_group(base.group)
        assert set(group.bases) == {each for each in bases if each.group == base.group}
        np.testing.assert_array_equal(group.ends_of(base), ends[..., j])
    some = whole.rows(np.array([3, 1]))
    np.testing.assert_array_equal(some.ends, ends[[3, 1]])
    np.testing.assert_array_equal(some.y, y[[3, 1]])
    np.testing.assert_array_equal(some.weights, [4, 2])
    assert list(some.quantiles) == list(quantiles)
    np.testing.assert_array_equal(some.quantiles["raw", 5], quantiles["raw", 5][[3, 1]])
    with pytest.raises(ValueError, match=r"ends must hold the base raw averaged 0\.3"):
        whole.ends_of(Base("raw", "averaged", 0.3))
