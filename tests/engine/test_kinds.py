"""The table of the kinds of intervals, and what names and numbers them beside it."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import hdicore
from hdicore import LeafIndex

from .. import reference

KINDS = hdicore.kinds()
PACKAGE = Path(hdicore.__file__).parent


def numbers_in(path):
    """The numbers of kinds in a declaration for C or Cython, by name."""
    (enum,) = re.findall(r"enum hdicore_kind\b(.*?)(?:}|\n\n)", path.read_text("utf-8"), re.DOTALL)
    return {name: int(number) for name, number in re.findall(r"hdicore_(\w+) = (\d+)", enum)}


def test_published_kinds_are_what_they_were():
    both = ("lower", "upper")
    published = {
        "hdi": (0, both, True),
        "equal_tailed": (1, both, True),
        "lower": (2, ("lower",), True),
        "upper": (3, ("upper",), True),
        "averaged": (5, both, False),
    }
    for kind, facts in published.items():
        assert tuple(KINDS[kind].values()) == facts
    assert all(facts["number"] != 4 for facts in KINDS.values())  # of a kind that is gone


@pytest.mark.parametrize(
    "path", [Path(hdicore.get_include(), "hdicore", "c_api.h"), PACKAGE / "__init__.pxd"], ids=str
)
def test_c_and_cython_have_the_names_and_numbers_of_the_table(path):
    assert numbers_in(path) == {kind: facts["number"] for kind, facts in KINDS.items()}


def test_types_have_the_names_of_the_table():
    holding = [kind for kind, facts in KINDS.items() if facts["holds_coverage"]]
    stub = (PACKAGE / "_core.pyi").read_text("utf-8")
    names = re.findall(r"^Kind = Literal\[(.*)\]\nBaseKind = Literal\[Kind, (.*)\]$", stub, re.M)
    assert list(get_args(hdicore.Kind)) == holding
    assert list(get_args(hdicore.BaseKind)) == list(KINDS)
    assert re.findall(r'"(\w+)"', " ".join(*names)) == holding + [
        k for k in KINDS if k not in holding
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_facts_are_those_of_the_definition(kind):
    rng, facts, holds = np.random.default_rng(0), KINDS[kind], True
    for n in (1, 2, 7, 20, 20, 20):
        y, leaves = rng.normal(size=n) ** 3, np.zeros((n, 1), int)
        atoms = reference.merge(leaves, y, leaves[0])
        for coverage in (0.1, 0.3, 0.5, 0.9, 1.0):
            ends = LeafIndex(leaves, y).intervals(leaves[:1], coverage, kind)[0]
            assert tuple(ends) == reference.interval(atoms, coverage, kind)
            assert [*np.array(["lower", "upper"])[np.isfinite(ends)]] == [*facts["ends"]]
            holds &= ((ends[0] <= y) & (y <= ends[1])).mean() >= coverage - 1e-12
    assert holds == facts["holds_coverage"]


def test_facts_belong_to_the_caller():
    hdicore.kinds()["hdi"].clear()
    assert hdicore.kinds() == KINDS
