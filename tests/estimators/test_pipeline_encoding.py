"""Steps of scikit-learn as data: the entries that they become, and what these make of tables."""

import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from hdiforest._estimators.pipeline_encoding import coding_of
from hdiforest._tables.columns import dictionary_of
from hdiforest._tables.frames import frame_of

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")


def one_hot_of(k, **options):
    """A coding of a column of k categories, and a table that has all of them."""
    frame = pd.DataFrame({"c": [f"category {i:04}" for i in range(k)], "x": np.arange(float(k))})
    steps = make_column_transformer((OneHotEncoder(**options), ["c"]), remainder="passthrough")
    return coding_of(make_pipeline(steps.fit(frame)), ["c", "x"]), frame, steps


def test_one_hot_columns_are_one_entry():
    coding, frame, steps = one_hot_of(60)
    assert [entry.kind for entry in coding.entries] == ["one-hot", "scaled"]
    assert coding.features[-3:] == ("c (59)", "c (60)", "x")
    assert coding.sources == ("c",) * 60 + ("x",)
    assert str(coding.entries[0]) == "c (one-hot, 60 features)"
    one, two = (len(json.dumps(one_hot_of(k)[0].facts())) for k in (60, 120))
    assert two < 2.1 * one
    frame = frame.sample(frac=1, random_state=0)
    for each in (coding, pickle.loads(pickle.dumps(coding))):
        found, counts = each.encode(frame_of(frame).arrow())
        assert_array_equal(found, steps.transform(frame).toarray())
        assert counts.unseen == {"c": 0}
    with pytest.raises(ValueError, match=r"'c' must hold no cell of an unknown .* 'new' in row 1"):
        coding.encode(frame_of({"c": ["new"], "x": [1.0]}).arrow())
    with pytest.raises(ValueError, match="'c' must hold no missing cell, but holds 'None' in row"):
        coding.encode(frame_of({"c": pa.array([None], pa.string()), "x": [1.0]}).arrow())
    with pytest.raises(ValueError, match="'c' must hold text, but is int64"):
        coding.encode(frame_of({"c": [1], "x": [1.0]}).arrow())


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("fill", [None, "a", "new"])
def test_cells_that_one_hot_columns_do_not_know(missing, fill):
    cells = pd.DataFrame({"c": pd.Series(["a", "b", "c", None if missing else "a"], dtype=object)})
    encoder = OneHotEncoder(handle_unknown="ignore")
    parts = [] if fill is None else [SimpleImputer(strategy="constant", fill_value=fill)]
    steps = make_pipeline(*parts, encoder).fit(cells if fill is None else cells.fillna(fill))
    new = pd.DataFrame({"c": pd.Series(["b", "d", "c"], dtype=object)})
    if fill is not None or missing:
        new.loc[1, "c"] = None
    found, counts = coding_of(steps, ["c"]).encode(frame_of(new).arrow())
    filled = new if fill is None else new.fillna(fill)
    assert_array_equal(found, steps.transform(filled).toarray())
    assert counts.unseen == {"c": int(fill is None and not missing)}


def test_some_of_the_one_hot_columns():
    frame = pd.DataFrame({"c": list("abcd") * 3})
    some = ColumnTransformer([("kept", "passthrough", [2, 0])])
    steps = make_pipeline(OneHotEncoder(sparse_output=False), some).fit(frame)
    coding = coding_of(steps, ["c"])
    assert [entry.kind for entry in coding.entries] == ["mapped", "mapped"]
    assert_array_equal(coding.encode(frame_of(frame).arrow())[0], steps.transform(frame))


def test_a_column_is_looked_up_once(monkeypatch):
    encoded = []

    def counted(array):
        encoded.append(array.type)
        return dictionary_of(array)

    monkeypatch.setattr("hdiforest._tables.encoder.dictionary_of", counted)
    steps = make_column_transformer(
        (OneHotEncoder(), ["city"]),
        (OrdinalEncoder(), ["city"]),
        (TargetEncoder(), ["city", "kind"]),
    )
    frame = pd.DataFrame({"city": ["Oslo", "Rome", "Lyon"] * 8, "kind": ["a", "b"] * 12})
    coding = coding_of(make_pipeline(steps.fit(frame, np.arange(24.0) + 0.5)), ["city", "kind"])
    found, _ = coding.encode(frame_of(frame).arrow())
    assert_array_equal(found, steps.transform(frame).astype(np.float32))
    assert len(encoded) == 1
    with pytest.raises(ValueError, match="'city' must hold text, but is list"):
        coding.encode(frame_of({"city": [["Paris"]], "kind": ["a"]}).arrow())
