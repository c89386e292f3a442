"""Score on tables at addresses: an S3 server on the loopback, and files by address."""

import os
import re

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

from .calls import run

pd = pytest.importorskip("pandas")
pytest.importorskip("safetensors")
pq = pytest.importorskip("pyarrow.parquet")
fs = pytest.importorskip("pyarrow.fs")
server = pytest.importorskip("moto.server")
pytest.importorskip("flask_cors")
pytestmark = pytest.mark.skipif(not hasattr(fs, "S3FileSystem"), reason="needs pyarrow with S3")

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(200, 2)), columns=["a", "b"])
ENDS = ["lower_0.9", "upper_0.9"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.hdi"
    forest = RandomForestRegressor(5, min_samples_leaf=5, random_state=0)
    HDIForestRegressor(forest, calibration=False).fit(ROWS, ROWS["a"]).save(
        path, training_rows=False
    )
    return path


@pytest.fixture(scope="module")
def address():
    """Where the server listens, with a bucket that holds three tables."""
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    try:
        host, port = running.get_host_and_port()
        options = f"scheme=http&endpoint_override={host}:{port}&region=us-east-1"
        with pytest.MonkeyPatch.context() as patch:
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                patch.setenv(name, "test")
            patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
            for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
                patch.delenv(name, raising=False)
            system = fs.S3FileSystem(
                endpoint_override=f"{host}:{port}",
                scheme="http",
                region="us-east-1",
                allow_bucket_creation=True,
            )
            system.create_dir("tables")
            for name in ("in/a=1/x.csv", "in/a=2/y.csv", "more/z.parquet"):
                with system.open_output_stream(f"tables/{name}") as stream:
                    if name.endswith("csv"):
                        stream.write(ROWS[["b"]].to_csv(index=False).encode())
                    else:
                        ROWS.to_parquet(stream)
            yield lambda path: f"s3://{path}?{options}"
    finally:
        running.stop()


def score(*arguments):
    return run(["score", *arguments])


def test_a_folder_of_a_bucket(model, address, tmp_path, capsys):
    call = (model, address("tables/in"), "-o", tmp_path / "out")
    assert score(*call) == 0
    loaded = HDIForestRegressor.load(model)
    for name, a in (("a=1/x.csv", 1), ("a=2/y.csv", 2)):
        scored = pd.read_csv(tmp_path / "out" / name)
        expected = loaded.predict_interval(ROWS.assign(a=a), 0.9)
        np.testing.assert_allclose(scored[ENDS], expected, rtol=1e-15)
    capsys.readouterr()
    assert score(*call, "--resume") == 0
    assert "2 outputs were there and stay as they are" in capsys.readouterr().out


def test_a_file_of_a_bucket(model, address, tmp_path):
    out = tmp_path / "out.parquet"
    assert score(model, address("tables/more/z.parquet"), "-o", out) == 0
    expected = HDIForestRegressor.load(model).predict_interval(ROWS, 0.9)
    np.testing.assert_array_equal(pd.read_parquet(out)[ENDS], expected)


def test_a_pattern_of_a_bucket(model, address, tmp_path):
    assert score(model, address("tables/in/*/*.csv"), "-o", tmp_path / "out") == 0
    assert os.path.exists(tmp_path / "out" / "a=2" / "y.csv")


def test_a_bucket_without_credentials(model, address, tmp_path, capsys, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    assert score(model, address("other/in"), "-o", tmp_path / "out") in (1, 2)
    printed = capsys.readouterr().err
    assert re.match(
        r"hdiforest: error: [^\n]*(credentials are read from|there is nothing at)", printed
    )
    assert not (tmp_path / "out").exists()


def test_a_file_by_its_address(model, tmp_path):
    ROWS.to_csv(tmp_path / "in.csv", index=False)
    assert score(model, (tmp_path / "in.csv").as_uri(), "-o", tmp_path / "out.csv") == 0
