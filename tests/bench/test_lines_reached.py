"""The report on lines that tests reach: shares by folder, and ranges of lines without a test."""

import json

from ..oracle import scripts_of

with scripts_of(""):
    import lines_reached


def test_python_and_cpp_are_counted_together(tmp_path, capsys):
    python = {"hdicore/a.py": {"executed_lines": [1, 2, 8], "missing_lines": [3, 5, 9]}}
    lines = [{"line_number": n, "count": count} for n, count in [(4, 0), (4, 7), (6, 0)]]
    (tmp_path / "python.json").write_text(json.dumps({"files": python}))
    cpp = {"files": [{"file": "src_cpp/pmf/b.cpp", "lines": lines}]}
    (tmp_path / "cpp.json").write_text(json.dumps(cpp))
    report = tmp_path / "report.md"
    lines_reached.main(
        [str(tmp_path / "python.json"), str(tmp_path / "cpp.json"), "-o", str(report)]
    )
    printed = capsys.readouterr().out
    assert "| hdicore | 6 | 50.0 % |\n| src_cpp/pmf | 2 | 50.0 % |" in printed
    assert printed.endswith(
        "| Python | 6 | 50.0 % |\n| C++ | 2 | 50.0 % |\n| together | 8 | 50.0 % |\n"
    )
    assert "* `hdicore/a.py`: 3-5, 9\n* `src_cpp/pmf/b.cpp`: 6\n" in report.read_text()
