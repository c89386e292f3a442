"""Base intervals: their coordinates, and what they are averaged of."""

import numpy as np

from hdiforest.calibration import Base


def test_names_groups_and_quantiles():
    base = Base("centred", "averaged", 0.5, 15)
    assert str(base) == "centred averaged 0.5 leaf 15"
    assert str(base._replace(min_samples_leaf=1)) == "centred averaged 0.5"
    assert base.group == ("centred", 15)
    assert base.quantiles([0.25, 0.5]) == [Base("centred", "upper", c, 15) for c in (0.25, 0.5)]
    levels = [each.level for each in base.quantiles()]
    np.testing.assert_allclose(levels, np.arange(1, 20) / 20)
    assert {each.group for each in base.quantiles()} == {base.group}
