"""The rooms: what each folder may mention, what an import may load, how large the user layer is."""

import ast
import inspect
import re
from graphlib import CycleError, TopologicalSorter

import pytest

import hdiforest

from ..oracle import ROOT, run_python

SOURCES = {".py", ".pyi", ".pyx", ".pxd", ".hpp", ".cpp", ".h", ".c"}
FOLDERS = ("src_cpp", "hdicore", "python", "tests", "bench", "examples")
FILES = sorted(
    [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES]
    + list(ROOT.glob("*.py"))
)


def named(path):
    return str(path.relative_to(ROOT))


def files_under(folder):
    return [path for path in FILES if path.is_relative_to(ROOT / folder)]


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


@pytest.mark.parametrize("path", files_under("src_cpp"), ids=named)
def test_the_engine_knows_only_itself_and_the_standard_library(path):
    text = path.read_text()
    assert not re.search(r"python|numpy|pybind", re.sub(r"//.*", "", text), re.IGNORECASE)
    includes = re.findall(r"#include (.*)", text)
    assert len(includes) == text.count("#include")
    for include in includes:
        # What is neither C++ nor ours is an instruction set and system calls, used where they are.
        assert re.fullmatch(
            r'<[a-z_]+>|<stdint\.h>|"[a-z_]+/[a-z0-9_]+\.(hpp|h)"|<immintrin\.h>|<sched\.h>'
            r"|<sys/(mman|stat)\.h>|<fcntl\.h>|<unistd\.h>",
            include,
        )


# The rooms of the engine; each includes headers of itself and of those before it.
ROOMS = (
    *("include", "base", "kernels", "pmf", "forest", "index", "merge", "scoring"),
    *("calibrated", "model_file", "c_api"),
)


@pytest.mark.parametrize("path", files_under("src_cpp"), ids=named)
def test_the_engine_includes_one_way(path):
    room = path.relative_to(ROOT / "src_cpp").parts[0]
    allowed = {"hdicore" if name == "include" else name for name in ROOMS[: ROOMS.index(room) + 1]}
    assert set(re.findall(r'#include "(\w+)/', path.read_text())) <= allowed


BACKEND = files_under("hdicore") + files_under("python/hdicore")


@pytest.mark.parametrize("path", BACKEND, ids=named)
def test_the_backend_never_mentions_the_user_layer_or_scikit_learn(path):
    text = path.read_text()
    assert "hdiforest" not in text
    assert "sklearn" not in text


@pytest.mark.parametrize(
    "path",
    [p for p in files_under("python/hdicore") if p.suffix == ".py"],
    ids=named,
)
def test_the_backend_imports_numpy_the_standard_library_and_itself(path):
    standard = "collections dataclasses fractions functools importlib itertools math pathlib typing"
    allowed = {"numpy", "hdicore", "__future__", "warnings", *standard.split()}
    assert {module.split(".")[0] for module in imported_modules(path)} <= allowed


def test_nothing_shipped_imports_tests_or_benchmarks():
    for path in files_under("python"):
        if path.suffix == ".py":
            packages = {module.split(".")[0] for module in imported_modules(path)}
            assert packages.isdisjoint({"tests", "bench"})


def test_the_user_layer_imports_what_is_public_in_the_backend():
    for path in files_under("python/hdiforest"):
        if path.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hdicore":
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                private = [name for name in names if re.match("_(?!_)", name)]
                assert private == [], named(path)
            elif isinstance(node, ast.Import):
                assert not [a.name for a in node.names if a.name.startswith("hdicore._")]


def user_layer_imports():
    """Modules of hdiforest and what each imports of it, inside functions too.

    What only type checkers import counts as well: a module that names another's types depends on
    it.
    """
    root = ROOT / "python"
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (root / "hdiforest").rglob("*.py")
    }
    graph = {}
    for name, path in paths.items():
        graph[name] = imported = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names if alias.name in paths}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{name} imports by a relative name"
                for alias in node.names:
                    part = f"{node.module}.{alias.name}"
                    imported |= {part if part in paths else node.module} & paths.keys()
    return graph


# The rooms of the user layer; each imports from itself and from those before it.
USER_ROOMS = (
    "exceptions",
    "_utils",
    "metrics",
    "_tables",
    "displays",
    "_model",
    "calibration",
    "serving",
    "_estimators",
    "survival",
    "allocation",
    "regions",
    "inspection",
    "monitoring",
    "adapters",
    "_cli",
    "face",
)


def room_of(module):
    return (module.split(".")[1:] or ["face"])[0].replace("__main__", "face")


def test_each_room_imports_from_rooms_below_it_only():
    assert {room_of(module) for module in user_layer_imports()} == {*USER_ROOMS}
    upwards = [
        f"{name} imports {below}"
        for name, imported in user_layer_imports().items()
        for below in imported
        if USER_ROOMS.index(room_of(below)) > USER_ROOMS.index(room_of(name))
    ]
    assert not upwards, "what two rooms share lies in a room below both, in the order of USER_ROOMS"


# What a reader has to know of the user layer; a change that needs more says so here.
MAX_CODE_LINES, MAX_NAMES, MAX_METHODS, MAX_PARAMETERS = 14_525, 20, 12, 13
OPTIONS_OF_THE_COMMAND = {"fit_table"}  # takes them as parameters


def code_lines(path):
    """How many lines are neither blank, nor a comment, nor of a docstring."""
    text = path.read_text(encoding="utf-8")
    left_out = set()
    for node in ast.walk(ast.parse(text)):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            left_out |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and at not in left_out for at, line in lines)


def test_the_user_layer_is_small():
    lines = sum(map(code_lines, (ROOT / "python" / "hdiforest").rglob("*.py")))
    assert lines <= MAX_CODE_LINES, "the user layer has more lines of code: what can go instead?"


def is_ours(method):
    return inspect.isroutine(method) and (method.__module__ or "").startswith("hdiforest")


def test_public_names_methods_and_parameters_are_few():
    assert len(hdiforest.__all__) <= MAX_NAMES, "a name of one room stays in that room"
    for name in hdiforest.__all__:
        value = getattr(hdiforest, name)
        known = [getattr(value, n) for n in dir(value) if n[0] != "_"] if callable(value) else []
        methods = [each for each in known if is_ours(each)]
        assert len(methods) <= MAX_METHODS, f"a further method of {name}: is it not a function?"
        for each in [value, *methods] if name not in OPTIONS_OF_THE_COMMAND else ():
            taken = len(inspect.signature(each).parameters) if callable(each) else 0
            assert taken <= MAX_PARAMETERS, f"{each.__qualname__} takes {taken} parameters"


def test_no_import_of_the_user_layer_runs_in_a_circle():
    graph = user_layer_imports()
    # Of a package, of a name in a module, and inside a function.
    assert "hdiforest.serving._model_file" in graph["hdiforest._cli.report"]
    assert "hdiforest.calibration._predict" in graph["hdiforest._cli.fit_report"]
    assert "hdiforest._estimators.hdi_forest" in graph["hdiforest._cli.inputs"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


LOADED = "import sys, {}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"


def loaded_by(module, tmp_path):
    return set(run_python(LOADED.format(module), cwd=tmp_path).split())


def test_import_hdicore_loads_no_package_but_numpy(tmp_path):
    loaded = loaded_by("hdicore", tmp_path)
    assert "hdicore" in loaded
    assert not loaded & {"sklearn", "scipy", "hdiforest", "pandas", "pyarrow", "joblib"}


def test_import_hdiforest_needs_no_optional_package(tmp_path):
    optional = ["pyarrow", "matplotlib", "rich", "safetensors", "pandas", "polars", "dask", "ray"]
    blocked = "import sys; sys.modules.update(dict.fromkeys(sys.argv[1:])); import hdiforest"
    run_python(blocked, *optional, cwd=tmp_path)


def test_the_command_scores_without_scikit_learn(tmp_path):
    assert not loaded_by("hdiforest._cli.score", tmp_path) & {"sklearn", "pandas", "rich"}


def test_import_hdiforest_loads_nothing_optional_that_scikit_learn_does_not(tmp_path):
    alone = loaded_by("sklearn.ensemble, sklearn.model_selection", tmp_path)
    loaded = loaded_by("hdiforest._estimators.hdi_forest", tmp_path)
    assert {"hdiforest", "hdicore"} <= loaded
    assert not (loaded - alone) & {"pyarrow", "matplotlib", "rich", "safetensors", "pandas"}


def test_the_missing_compiled_module_is_explained(tmp_path):
    package = tmp_path / "hdicore"
    package.mkdir()
    (package / "__init__.py").write_text((ROOT / "python" / "hdicore" / "__init__.py").read_text())
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        # An editable install would find the compiled module from anywhere.
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in str(f)]\n"
        "try: import hdicore\n"
        "except ModuleNotFoundError as error: print(*error.__notes__)"
    )
    assert "pip install -e ." in run_python(code, tmp_path, cwd=tmp_path)


LICENCE = "// SPDX-License-Identifier: BSD-3-Clause"


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix in {".cpp", ".hpp", ".c", ".h"}], ids=named
)
def test_the_licence_is_a_line_of_its_own(path):
    assert LICENCE in path.read_text(encoding="utf-8").splitlines()[1:3]
