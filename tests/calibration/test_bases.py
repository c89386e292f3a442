"""Base intervals: their coordinates, what they are averaged of, and their groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdiforest.calibration._bases import FAMILIES, KINDS, Base, Candidates, read_bases
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import BASE_LEVELS

coordinates = st.tuples(
    st.sampled_from(FAMILIES), st.sampled_from(KINDS), st.sampled_from([0.3, 0.8, 0.94])
)


def ends_of(family, kind, level, n=4):
    """Ends of n rows that tell which interval they are of."""
    at = (FAMILIES.index(family) + 1) * np.arange(1, n + 1)
    return np.stack([at - level, at + level + KINDS.index(kind)], axis=1)


@given(st.lists(coordinates, min_size=1, max_size=12))
def test_averaged_ends_are_midway_and_each_family_is_read_once(several):
    bases = [Base(*each) for each in several]
    families = []

    def read(family, kinds, levels):
        families.append(family)
        pairs = list(zip(kinds, levels, strict=True))
        assert len(set(pairs)) == len(pairs)
        assert "averaged" not in kinds
        return np.stack([ends_of(family, *pair) for pair in pairs], axis=-1)

    found = read_bases(bases, 4, read)
    assert families == list(dict.fromkeys(base.family for base in bases))
    assert found.shape == (4, 2, len(bases))
    for base, ends in zip(bases, np.moveaxis(found, -1, 0), strict=True):
        if base.kind == "averaged":
            one = ends_of(base.family, "hdi", base.level)
            other = ends_of(base.family, "equal_tailed", base.level)
            np.testing.assert_allclose(ends, (one + other) / 2, rtol=1e-15)
        else:
            np.testing.assert_array_equal(ends, ends_of(*base[:3]))


def test_an_averaged_base_is_between_its_parts():
    base = Base("raw", "averaged", 0.5, 3)
    assert base.parts == (("hdi", 0.5), ("equal_tailed", 0.5))
    assert Base("raw", "hdi", 0.5).parts == (("hdi", 0.5),)
    rng = np.random.default_rng(0)
    ends = np.sort(rng.normal(size=(100, 2, 2)), axis=1)
    found = read_bases([base], 100, lambda family, kinds, levels: ends)[..., 0]
    assert (found >= ends.min(axis=2)).all()
    assert (found <= ends.max(axis=2)).all()
    assert (found[:, 0] <= found[:, 1]).all()


def test_names_groups_and_quantiles():
    base = Base("centred", "averaged", 0.5, 15)
    assert str(base) == "centred averaged 0.5 leaf 15"
    assert str(base._replace(min_samples_leaf=1)) == "centred averaged 0.5"
    assert base.group == ("centred", 15)
    assert base.quantiles([0.25, 0.5]) == [Base("centred", "upper", c, 15) for c in (0.25, 0.5)]
    assert [each.level for each in base.quantiles()] == list(BASE_LEVELS)
    assert {each.group for each in base.quantiles()} == {base.group}
    assert base.quantiles()[3].parts == (("upper", 0.2),)


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
