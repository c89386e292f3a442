"""Run quantile-forest's own tests, unmodified, on hdiforest.adapters.quantile_forest.

    python tests/adapters/peers/run_quantile_forest.py [--sources PATH] [-- options of pytest]

PATH is a checkout of zillow/quantile-forest, its package or its tests; by default
$HDICORE_QUANTILE_FOREST or the installed package. The package beside this file stands in for
quantile-forest. Tests that do not apply are left out. Exits with 1 if a test fails, or if the whole
suite has fewer tests than it had at commit 731dc5c; with 2 if there are no tests.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ADAPTER = HERE / "quantile_forest" / "__init__.py"
N_TESTS = 570  # 567 of test_quantile_forest.py and 3 of test_utils.py
# What is left out, as pytest names it, and why.
NOT_APPLICABLE = {
    "test_quantile_forest.py::test_missing_values": "it wants an error, but missing values are "
    "accepted, as scikit-learn's forests accept them",
}
# Stops if the module under test were not the adapter.
START = """
import sys, pytest, quantile_forest
adapter, *options = sys.argv[1:]
if quantile_forest.__file__ != adapter:
    sys.exit(f"{quantile_forest.__file__} comes before the adapter on sys.path")
sys.exit(pytest.main(options))
"""


def find_tests(sources: str | None = None) -> Path:
    """Folder of quantile-forest's tests.

    Raises
    ------
    FileNotFoundError
        If there is none, with a sentence that says where it was looked for.
    """
    sources = sources or os.environ.get("HDICORE_QUANTILE_FOREST")
    if not sources:
        try:
            sources = distribution("quantile-forest").locate_file("")
        except PackageNotFoundError:
            raise FileNotFoundError(
                "quantile-forest is not installed; give its sources by --sources or "
                "$HDICORE_QUANTILE_FOREST"
            ) from None
    for folder in (".", "tests", "quantile_forest/tests"):
        if (Path(sources, folder) / "test_quantile_forest.py").is_file():
            return Path(sources, folder)
    raise FileNotFoundError(f"test_quantile_forest.py was not found in {sources}")


def run(tests: Path, options: list[str]) -> Counter[str]:
    """Number of tests by outcome: passed, failed, skipped."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Without the __init__.py beside them, which makes pytest import the package they lie in.
        for path in tests.glob("test_*.py"):
            shutil.copy(path, folder)
        (folder / "pytest.ini").write_text("[pytest]\n")
        report = folder / "report.xml"
        command = [sys.executable, "-P", "-c", START, ADAPTER, "-q", f"--junitxml={report}"]
        command += [f"--deselect={name}" for name in NOT_APPLICABLE]
        path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": path}
        subprocess.run([*command, *options], cwd=folder, env=environment)
        if not report.exists():
            return Counter(failed=1)
        marks = {"failure": "failed", "error": "failed", "skipped": "skipped"}
        return Counter(
            next((marks[mark.tag] for mark in case if mark.tag in marks), "passed")
            for case in ElementTree.parse(report).iter("testcase")
        )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", help="checkout, package or tests of quantile-forest")
    parser.add_argument("options", nargs="*", metavar="-- options", help="options of pytest")
    arguments = parser.parse_args(argv)
    try:
        tests = find_tests(arguments.sources)
    except FileNotFoundError as error:
        print(f"run_quantile_forest.py: {error}.", file=sys.stderr)
        return 2
    found = run(tests, arguments.options)
    for name, reason in NOT_APPLICABLE.items():
        print(f"does not apply: {name} ({reason})")
    print(
        f"{found['passed']} passed, {found['failed']} failed, {found['skipped']} skipped: {tests}"
    )
    wanted = 1 if arguments.options else N_TESTS
    if found["passed"] + found["skipped"] < wanted:
        print(f"run_quantile_forest.py: at least {wanted} should pass.", file=sys.stderr)
        return 1
    return int(found["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
