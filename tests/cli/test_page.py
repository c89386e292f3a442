"""The page that `hdiforest fit --report` writes: its numbers, its safety, its looks."""

import base64
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor, IntervalDisplay, WidthDisplay
from hdiforest.metrics import coverage_score

from .calls import failure, run

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
Figure = pytest.importorskip("matplotlib.figure").Figure

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a $x_1$ & b",
    "été",
    "日本",
]
TARGET = "</title><b onload='x'>$\\frac{1}{$"


class Elements(HTMLParser):
    """The tags of a page, their attributes, and the text between them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    X, y = make_friedman1(300, 5, noise=1, random_state=0)
    pq.write_table(pa.table([*X.T, y], [*HOSTILE, TARGET]), folder / "train.parquet")
    call = ["fit", folder / "train.parquet", "--target", TARGET, "--trees", 60]
    assert run([*call, "-o", folder / "model.hdi", "--report", folder / "report.html"]) == 0
    assert run([*call, "-o", folder / "plain.hdi"]) == 0
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_numbers_are_those_of_the_model(folder, page):
    table = pq.read_table(folder / "train.parquet")
    X, y = np.stack([table[name] for name in HOSTILE], axis=1), np.asarray(table[TARGET])
    forest = RandomForestRegressor(60, min_samples_leaf=5, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(X, y)
    calibration = HDIForestRegressor.load(folder / "model.hdi").calibration_
    assert calibration._repr_html_() in page
    record = page.partition("<th>raw HDI inside</th>")[2]
    cells = [re.findall("<td>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", record)]
    for level, own in zip([0.5, 0.8, 0.9, 0.95, 0.99], cells, strict=False):
        ends = model.oob_.interval(level)
        shown = [f"{coverage_score(y, ends):.3f}", f"{np.diff(ends).mean():.3g}"]
        assert own == [f"{level:g}", *shown]
    most = 100 * model.estimator_.feature_importances_.max()
    assert re.findall(r'class="value">(.*?) %<', page)[0] == f"{most:.1f}"


@pytest.mark.parametrize(("scale", "calibrated"), [(1, True), (1e5, False)])
def test_pictures_are_of_the_intervals_that_score_writes(monkeypatch, tmp_path, scale, calibrated):
    X, y = make_friedman1(300, 5, noise=1, random_state=0)
    pq.write_table(pa.table([*X.T, y * scale], [*"abcde", "price (EUR)"]), tmp_path / "t.parquet")
    drawn, labels = [], []

    def looked_at(figure, *arguments, **options):
        figure.canvas.draw()
        (ax,) = figure.axes
        labels.append((ax.get_xlabel(), ax.get_ylabel()))
        for axis in (ax.xaxis, ax.yaxis):
            assert axis.get_offset_text().get_text() == ""
            texts = [label for label in axis.get_ticklabels() if label.get_text()]
            assert not any("e+" in label.get_text() for label in texts)
            ends = [label.get_window_extent() for label in texts]
            for one, next_ in pairwise(sorted(ends, key=lambda box: (box.x0, box.y0))):
                assert not one.overlaps(next_) or axis is ax.yaxis
        boxes = [ax.get_window_extent(), ax.get_legend().get_window_extent()]
        assert boxes[1].x1 <= figure.bbox.x1
        return savefig(figure, *arguments, **options)

    for display in (IntervalDisplay, WidthDisplay):
        make = display.from_predictions

        def keep(y_true, ends, *, make=make, **given):
            drawn.append(np.reshape(ends, (len(y_true), 2)))
            return make(y_true, ends, **given)

        monkeypatch.setattr(display, "from_predictions", keep)
    savefig = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", looked_at)
    call = ["fit", tmp_path / "t.parquet", "--target", "price (EUR)", "--trees", 60]
    call += ["--coverage", "0.8", "0.9"] if calibrated else ["--calibrate", "none"]
    call += ["-o", tmp_path / "m.hdi", "--training-rows", "--report", tmp_path / "r.html"]
    assert run(call) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    captions = re.findall("<figcaption>(.*?)</figcaption>", page)
    name = "90 % calibrated interval" if calibrated else "90 % HDI"
    assert all(name in caption for caption in captions[1:])
    assert ("after the calibration" in captions[0]) == calibrated
    assert page.count("<img") == 4
    assert ("cross check" in page) == calibrated
    assert "are not shown" not in page
    assert "Not calibrated" not in page
    model = HDIForestRegressor.load(tmp_path / "m.hdi")
    expected = model.oob_.interval(0.9, kind="calibrated" if calibrated else "hdi")
    for ends in drawn:
        np.testing.assert_array_equal(ends, expected)
    assert len(drawn) == 3
    assert labels[1][1] == "price (EUR)"
    assert labels[2][0] == "width of the 90 % interval, price (EUR)"


def test_the_model_is_the_same_with_a_report(folder):
    assert (folder / "model.hdi").read_bytes() == (folder / "plain.hdi").read_bytes()


def test_names_of_the_table_never_become_html(page):
    found = Elements(page)
    allowed = (
        "html head meta title style body h1 h2 p dl dt dd div table caption thead tbody tr th "
    )
    assert {*found.tags} <= {*(allowed + "th td figure img figcaption code").split()}
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    for name in [*HOSTILE, f"Intervals for {TARGET}"]:
        assert name in found.text


def test_the_page_needs_nothing_outside_it(page):
    found = Elements(page)
    sources = [value for name, value in found.attributes if name in ("src", "href")]
    assert len(sources) == 4
    for source in sources:
        kind, _, data = source.partition(";base64,")
        assert kind == "data:image/svg+xml"
        picture = base64.b64decode(data).decode()
        assert picture.count("<path") > 10
        assert "<script" not in picture
        assert not re.findall(r'(?:href|src)="(?!#)', picture)
    assert "url(" not in page
    assert "@import" not in page


def test_the_same_fit_writes_the_same_page(folder, page, tmp_path):
    call = ["fit", folder / "train.parquet", "--target", TARGET, "--trees", 60]
    again = tmp_path / "again.html"
    again.write_text("what was there")
    assert run([*call, "-o", folder / "model.hdi", "--report", again]) == 0
    assert again.read_text(encoding="utf-8") == page
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def test_a_report_that_cannot_be_written_is_refused_before_the_fit(capsys, folder, tmp_path):
    train, output = folder / "train.parquet", tmp_path / "model.hdi"
    call = ["fit", train, "--target", TARGET, "-o", output, "--report"]
    link = tmp_path / "link"
    link.symlink_to(output)
    for report, code, message in [
        (output, 2, f"the report {output} must not be the model file"),
        (link, 2, f"the report {link} must not be the model file"),
        (train, 2, f"the output {train} must not be one of the inputs"),
        (tmp_path, 2, f"the output {tmp_path} is a folder"),
        (tmp_path / "no" / "r.html", 1, "there is no folder"),
    ]:
        assert message in failure(capsys, [*call, report], code)
        assert not output.exists()


@pytest.mark.parametrize("more", [["--calibrate", "cv+", "--folds", 3], ["--trees", 2]])
def test_every_way_to_fit_has_a_report(folder, tmp_path, more):
    report = tmp_path / "report.html"
    call = ["fit", folder / "train.parquet", "--target", TARGET, "--trees", 10, *more]
    assert run([*call, "-o", tmp_path / "model.hdi", "--report", report]) == 0
    found = report.read_text(encoding="utf-8")
    # Out of bag there are no intervals of folds.
    assert found.count("<img") == (1 if more[1] == "cv+" else 4)
    assert ("are not shown" in found) == (more[1] == "cv+")
    assert ("cross check" in found) == (more[1] == "cv+")
    assert ("Not calibrated" in found) == (more[0] == "--trees")


def test_a_forest_without_a_record_has_a_report(tmp_path):
    """Of one row, which every tree saw."""
    (tmp_path / "t.csv").write_text("a,b,c,d,e,y\n1,2,3,4,5,6\n")
    report = tmp_path / "report.html"
    call = ["fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.hdi"]
    assert run([*call, "--trees", 5, "--report", report]) == 0
    found = report.read_text(encoding="utf-8")
    assert "No out-of-bag record" in found
    assert found.count('class="name"') == 5
    assert "<img" not in found


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_shows_the_page(folder, tmp_path, width):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium found")
    image = pytest.importorskip("PIL.Image")
    shot = tmp_path / "shot.png"
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
        *("--disable-extensions", "--disable-background-networking"),
        *(f"--user-data-dir={tmp_path / 'user'}", f"--window-size={width},2600"),
        f"--screenshot={shot}",
    ]
    address = (folder / "report.html").as_uri()
    subprocess.run([chromium, *options, address], check=True, capture_output=True, timeout=200)
    with image.open(shot) as opened:
        pixels = np.asarray(opened.convert("RGB")).reshape(-1, width, 3)
    ink = (pixels < 128).any(axis=2)
    assert 0.005 < ink.mean() < 0.5
    by_band = ink[:2400].reshape(24, 100, width).mean(axis=(1, 2))
    assert (by_band > 0.0005).sum() > 18  # text and pictures from top to bottom
    blue = (np.abs(pixels.astype(int) - [0x00, 0x72, 0xB2]) < 12).all(axis=2)
    assert blue.sum() > width  # bars and marks inside the pictures, which shrink with the page
    assert not ink[:, width - 4 :].any()  # nothing runs over the edge
