"""The paper's evaluation: what is predicted, how rows are split, what the paper printed."""

import importlib

import numpy as np
import pytest

from .oracle import ROOT

MODULES = ("matching", "published", "tasks")


@pytest.fixture(scope="module")
def paper():
    """The modules of bench/paper, which find each other as scripts do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench" / "paper")
        patch.syspath_prepend(ROOT / "bench")
        yield {name: importlib.import_module(name) for name in MODULES}


def test_every_task_has_its_rows_and_features(paper):
    tasks = paper["tasks"]
    shapes = {name: tasks.load(name).X.shape for name in tasks.NAMES}
    assert shapes["boston"] == (506, 13)
    assert shapes["parkinsons"] == (5875, 21)
    assert shapes["parkinsons_new_subjects"] == (5875, 19)
    assert shapes["wine"] == (1599, 11)
    assert shapes["wine_unique"] == (1359, 11)
    assert shapes["communities"] == (1994, 122)
    forest_fires = tasks.load("forest_fires")
    assert [forest_fires.features[i] for i in forest_fires.categorical] == ["month", "day"]


@pytest.mark.parametrize("name", ["boston", "parkinsons_new_subjects"])
def test_splits_are_disjoint_and_do_not_depend_on_their_number(paper, name):
    tasks = paper["tasks"]
    task = tasks.load(name)
    two, three = list(tasks.splits(task, 2)), list(tasks.splits(task, 3))
    for (train, test), again in zip(two, three, strict=False):
        assert np.array_equal(train, again[0])
        assert np.array_equal(test, again[1])
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(task.y)))
        assert abs(len(test) / len(task.y) - 0.2) < 0.05
        if task.groups is not None:
            assert not set(task.groups[train]) & set(task.groups[test])
    assert not np.array_equal(two[0][1], two[1][1])


def test_larger_data_get_fewer_splits(paper):
    tasks = paper["tasks"]
    assert tasks.n_splits("naval") == 20
    assert tasks.n_splits("protein") == 10


def test_published_means_are_those_of_the_rows(paper):
    published = paper["published"]
    tasks = paper["tasks"]
    assert set(published.TABLE_2) <= set(tasks.NAMES)
    for measure in ("picp", "mpiw"):
        rows = np.array([getattr(row, measure) for row in published.TABLE_2.values()])
        assert np.abs(rows.mean(axis=0) - getattr(published.MEANS, measure)).max() < 0.0075


def test_level_is_found_between_levels_and_past_noise(paper):
    level_reaching = paper["matching"].level_reaching
    levels = np.array([0.5, 0.7, 0.9])
    assert level_reaching(levels, np.array([0.4, 0.6, 0.8]), 0.7) == pytest.approx(0.8)
    assert level_reaching(levels, np.array([0.75, 0.72, 0.9]), 0.7) == 0.5
    assert level_reaching(levels, np.array([0.6, 0.5, 0.8]), 0.7) == pytest.approx(0.8)
    assert level_reaching(levels, np.array([0.4, 0.6, 0.8]), 0.95) == 0.9


def test_ratio_of_widths_by_hand(paper):
    width_ratio = paper["matching"].width_ratio
    same = width_ratio(np.array([2.0, 4.0]), np.array([1.0, 2.0]), 0.25)
    assert same == pytest.approx((2, 2, 2))
    # Logarithms -1 and 1: variance 2, error sqrt(2 * (1/2 + 1/4)), t of one degree of freedom.
    found = width_ratio(np.exp([-1.0, 1.0]), np.ones(2), 0.25)
    reach = 12.706204736 * np.sqrt(1.5)
    assert found == pytest.approx((1, np.exp(-reach), np.exp(reach)))
