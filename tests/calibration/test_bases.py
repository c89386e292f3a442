"""Base intervals: their coordinates, what they are averaged of, and their groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdiforest.calibration._bases import (
    FAMILIES,
    KINDS,
    LEVELS,
    Base,
    Candidates,
    candidate_bases,
    positions_by_group,
    read_bases,
)
from hdiforest.calibration._postprocess import PostProcess

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


def test_candidates_have_all_coordinates():
    bases = candidate_bases(FAMILIES[:2], KINDS, LEVELS, (1, 5, 15))
    assert len(bases) == len(set(bases)) == 3 * 2 * len(KINDS) * len(LEVELS)
    assert bases[0] == Base("raw", KINDS[0], LEVELS[0], 1)
    groups = positions_by_group(bases)
    assert list(groups) == [(f, m) for m in (1, 5, 15) for f in FAMILIES[:2]]
    assert sorted(np.concatenate(list(groups.values()))) == list(range(len(bases)))
    assert all(bases[j].group == group for group, at in groups.items() for j in at)


def test_names_and_widths():
    base = Base("centred", "averaged", 0.5, 15)
    assert str(base) == "centred averaged 0.5 leaf 15"
    assert str(base._replace(min_samples_leaf=1)) == "centred averaged 0.5"
    assert base.of_width == Base("centred", "equal_tailed", 0.8, 15)
    assert base.of_width.group == base.group


def candidates():
    bases = candidate_bases(("raw", "centred"), KINDS[:3], (0.5, 0.8), (1, 5))
    rng = np.random.default_rng(0)
    ends = np.sort(rng.normal(size=(20, 2, len(bases))), axis=1)
    y = rng.normal(size=20)
    return Candidates.checked(bases, ends, y, PostProcess.from_targets(y), np.arange(1.0, 21))


def test_each_group_has_the_widths_of_its_own_equal_tailed_interval():
    whole = candidates()
    groups = whole.groups()
    assert [group.bases for group in groups] == [whole.bases[j : j + 6] for j in (0, 6, 12, 18)]
    for group in groups:
        lower, upper = whole.ends_of(group.bases[0].of_width).T
        np.testing.assert_array_equal(group.widths, upper - lower)
        for base in group.bases:
            one = whole.only(base)
            np.testing.assert_array_equal(one.widths, group.widths)
            np.testing.assert_array_equal(one.ends[..., 0], whole.ends_of(base))
            at = group.bases.index(base)
            assert one.units[0] == group.units[at]
            assert one.units[0] == pytest.approx((one.ends[:, 1] - one.ends[:, 0]).mean() / 2)
        some = group.rows(np.array([3, 1]))
        np.testing.assert_array_equal(some.widths, group.widths[[3, 1]])
        np.testing.assert_array_equal(some.weights, [4, 2])
    assert whole.widths is None


def test_without_an_equal_tailed_interval_there_are_no_widths():
    whole = candidates()
    base = Base("raw", "hdi", 0.8)
    alone = Candidates.checked([base], whole.only(base).ends, whole.y, whole.postprocess)
    assert alone.widths_of(base) is None
    assert [group.widths for group in alone.groups()] == [None]
    with pytest.raises(ValueError, match=r"ends must hold the base raw equal_tailed 0\.8"):
        alone.only(base.of_width)


def test_points_have_the_unit_one():
    ends = np.zeros((5, 2, 2))
    ends[0, 1, 1] = 5
    bases, y = candidate_bases(("raw",), ("hdi",), (0.3, 0.5)), np.zeros(5)
    found = Candidates.checked(bases, ends, y, PostProcess.from_targets(y))
    np.testing.assert_array_equal(found.units, [1, 0.5])
