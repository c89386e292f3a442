"""hdiforest.adapters.quantile_forest passes quantile-forest's own tests, and answers as it does."""

import os
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest

from ...oracle import ROOT, run_python

PEERS = ROOT / "tests" / "adapters" / "peers"
# The whole suite takes minutes: tests/adapters/peers/run_quantile_forest.py runs it.
QUICK = (
    "toy or calc or utils or oob_samples or test_quantile_ranks or serialization or weight "
    "or False-False-mean-None-None or True-True-quantiles3-None-None"
)
# weighted_quantile=False, as the other algorithm of quantile-forest rounds its ranks.
ANSWERS = """
import itertools, sys, warnings
import numpy as np
import quantile_forest

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
y = np.round(3 * X[:, 0] + rng.normal(size=150), 1)
found = {}
for name, target, bootstrap in itertools.product(
    quantile_forest.__all__, (y, np.c_[y, np.round(X[:, 1], 1)]), (True, False)
):
    forest = getattr(quantile_forest, name)(
        8, max_samples_leaf=None, min_samples_leaf=4, bootstrap=bootstrap, random_state=1
    ).fit(X, target)
    for together, oob in itertools.product((True, False), {False, bootstrap}):
        options = {"aggregate_leaves_first": together, "oob_score": oob}
        key = f"{name} {target.ndim} {bootstrap} {together} {oob}"
        found[f"{key} mean"] = forest.predict(X, "mean", **options)
        for method in ("linear", "lower", "higher", "midpoint", "nearest"):
            found[f"{key} {method}"] = forest.predict(
                X, [0.0, 0.25, 0.37, 0.5, 1.0], method, weighted_quantile=False, **options
            )
        for kind in ("rank", "weak", "strict", "mean"):
            found[f"{key} rank {kind}"] = forest.quantile_ranks(X, target, kind, **options)
        near = forest.proximity_counts(X, 5, oob_score=oob)
        found[f"{key} near"] = np.concatenate([np.reshape(pairs, (-1, 2)) for pairs in near])
np.savez(sys.argv[1], **found)
print(quantile_forest.__file__)
"""


@pytest.fixture(scope="module")
def runner():
    spec = spec_from_file_location("run_quantile_forest", PEERS / "run_quantile_forest.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tests_of_quantile_forest_pass(runner, capfd):
    try:
        tests = runner.find_tests()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert runner.main(["--sources", str(tests), "--", "-k", QUICK]) == 0, capfd.readouterr().out


def test_answers_equal_those_of_quantile_forest(tmp_path):
    pytest.importorskip("quantile_forest", exc_type=ImportError)
    path = os.pathsep.join([str(PEERS), *filter(None, [os.environ.get("PYTHONPATH")])])
    run_python(ANSWERS, tmp_path / "theirs.npz")
    used = run_python(ANSWERS, tmp_path / "ours.npz", env=os.environ | {"PYTHONPATH": path})
    assert used.startswith(str(PEERS))
    theirs, ours = np.load(tmp_path / "theirs.npz"), np.load(tmp_path / "ours.npz")
    assert len(theirs) == len(ours) > 100
    for key in theirs:
        np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-6, atol=1e-9, err_msg=key)


def test_a_failed_test_and_a_missing_one_are_errors(runner, tmp_path, capfd):
    tests = "def test_one():\n    pass\n\n\ndef test_two():\n    assert False\n"
    (tmp_path / "test_quantile_forest.py").write_text(tests)
    assert runner.main(["--sources", str(tmp_path), "--", "-v"]) == 1
    assert "1 passed, 1 failed, 0 skipped" in capfd.readouterr().out
    outcome = Counter(passed=10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "run", lambda tests, options: outcome)
        assert runner.main(["--sources", str(tmp_path)]) == 1
        assert "at least 570 should pass" in capfd.readouterr().err
        outcome.update(skipped=560)
        assert runner.main(["--sources", str(tmp_path)]) == 0


def test_missing_sources_are_named(runner, tmp_path, capfd):
    assert runner.main(["--sources", str(tmp_path)]) == 2
    assert f"was not found in {tmp_path}" in capfd.readouterr().err
