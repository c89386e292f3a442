"""How the user layer is built: files, rooms, floors of imports, and modules entered on a trip.

    python bench/modules_entered.py [--compare REV] [--list TRIP ...]

Three tables, with a column for another commit beside the files as they stand:

* The house: files and lines, modules in the package's root, floors of the graph of imports (the
  longest chain; imports inside functions and for type checkers count) and lines of functions
  without their docstrings. A room is a folder of the package, or a module in its root. What imports
  each other in a circle stands on one floor.
* Trips: how many modules run a function of theirs while a model is fitted, saved, asked and so on,
  counted by `sys.setprofile` in a fresh process with all modules imported on the way. What a module
  does when it is imported does not count. `--list` names them.
* Imports: modules of ours and time of an import, the median of several fresh processes.

The first comparison with a commit compiles its engine, in a few minutes.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import runpy
import statistics
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import revisions

PACKAGE = "hdiforest"
Graph = dict[str, set[str]]
N_IMPORTS = 5


def module_paths(tree: Path) -> dict[str, Path]:
    """Return the files of the user layer by the names of their modules."""
    root = tree / "python"
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((root / PACKAGE).rglob("*.py"))
    }


def import_graph(paths: Mapping[str, Path], *, types: bool = True) -> Graph:
    """Return what each module imports of the others, inside functions too.

    Without `types`, what only type checkers import is left out.
    """
    return {
        name: set(imports_of(ast.parse(path.read_text()), paths, types=types))
        for name, path in paths.items()
    }


def imports_of(module: ast.Module, paths: Mapping[str, Path], *, types: bool) -> Iterator[str]:
    for node in nodes_of(module, types=types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in paths)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                part = f"{node.module}.{alias.name}"
                yield from {part if part in paths else str(node.module)} & paths.keys()


def nodes_of(node: ast.AST, *, types: bool) -> Iterator[ast.AST]:
    """Yield a node and all below it; without `types`, not what stands below TYPE_CHECKING."""
    yield node
    if types or not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
        for child in ast.iter_child_nodes(node):
            yield from nodes_of(child, types=types)


def room_of(module: str, paths: Mapping[str, Path]) -> str:
    """Return the folder in the package's root that a module is in, or the module itself there."""
    first = ".".join(module.split(".")[:2])
    return first if first in paths else PACKAGE


def room_graph(graph: Graph, paths: Mapping[str, Path]) -> Graph:
    rooms: Graph = {room_of(name, paths): set() for name in graph}
    for name, imported in graph.items():
        rooms[room_of(name, paths)] |= {room_of(other, paths) for other in imported}
    return {room: others - {room} for room, others in rooms.items()}


def reachable(graph: Graph) -> Graph:
    """Return all that each node leads to."""
    found: Graph = {}
    for node in graph:
        seen: set[str] = set()
        waiting = [node]
        while waiting:
            waiting += (new := graph[waiting.pop()] - seen)
            seen |= new
        found[node] = seen
    return found


def floors(graph: Graph) -> dict[str, int]:
    """Return the floor of each node, 1 for those that import nothing.

    Nodes of a circle share the floor above all that they import outside it.
    """
    ways = reachable(graph)
    circles = {node: {other for other in ways[node] if node in ways[other]} for node in graph}
    floor: dict[str, int] = {}
    # What is imported leads to fewer nodes than what imports it.
    for node in sorted(graph, key=lambda name: len(ways[name] - circles[name])):
        floor[node] = 1 + max((floor[other] for other in ways[node] - circles[node]), default=0)
    return floor


def highest(graph: Graph) -> int:
    return max(floors(graph).values())


def circles(graph: Graph) -> int:
    """Count the nodes that lead back to themselves."""
    return sum(node in others for node, others in reachable(graph).items())


Function = ast.FunctionDef | ast.AsyncFunctionDef
Body = Function | ast.ClassDef | ast.Module


def docstring_lines(node: Body) -> int:
    if ast.get_docstring(node, clean=False) is None:
        return 0
    first = node.body[0]
    return int(first.end_lineno or 0) - first.lineno + 1


def function_lines(function: Function) -> int:
    """Return the lines of a function from its `def` on, without the docstring."""
    return int(function.end_lineno or 0) - function.lineno + 1 - docstring_lines(function)


def describe(tree: Path) -> dict[str, float]:
    """Return the figures of the house."""
    paths = module_paths(tree)
    trees = [ast.parse(path.read_text()) for path in paths.values()]
    nodes = [node for module in trees for node in ast.walk(module)]
    bodies = sorted(function_lines(node) for node in nodes if isinstance(node, Function))
    lines = [len(path.read_text().splitlines()) for path in paths.values()]
    graph = import_graph(paths)
    rooms = room_graph(graph, paths)
    in_root = [path for path in paths.values() if path.parent.name == PACKAGE]
    return {
        "files": len(paths),
        "lines": sum(lines),
        "lines of docstrings": sum(
            docstring_lines(node) for node in nodes if isinstance(node, Body)
        ),
        "median file": statistics.median(lines),
        "files below 100 lines": sum(n < 100 for n in lines),
        "modules in the root, beside __init__ and __main__": sum(
            not path.name.startswith("__") for path in in_root
        ),
        "rooms": len(rooms),
        "arrows between rooms": sum(map(len, rooms.values())),
        "rooms in circles": circles(rooms),
        "floors of rooms": highest(rooms),
        "floors of files": highest(graph),
        "floors of files, without what type checkers import": highest(
            import_graph(paths, types=False)
        ),
        "functions": len(bodies),
        "lines of a function, median": statistics.median(bodies),
        "lines of a function, 9 of 10": bodies[int(np.ceil(0.9 * len(bodies))) - 1],
        "lines of a function, longest": bodies[-1],
    }


@contextmanager
def entered_modules(folder: Path) -> Iterator[set[str]]:
    """Collect the files of a folder that run a function, in this thread and in new ones."""
    files: set[str] = set()
    importing = threading.local()
    inside = str(folder) + os.sep

    def watch(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(inside):
            return
        depth = getattr(importing, "depth", 0)
        if code.co_name != "<module>":
            if event == "call" and depth == 0:
                files.add(code.co_filename.removeprefix(inside))
        elif not code.co_filename.endswith("__main__.py"):  # that runs the command
            importing.depth = depth + (1 if event == "call" else -1)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def draw_rows(n: int, seed: int) -> tuple[Any, Any]:
    import pandas as pd

    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    return X, X["a"] + (1 + X["b"].abs()) * rng.normal(size=n)


def run_command(*arguments: str | Path) -> None:
    sys.argv = ["hdiforest", *map(str, arguments)]
    try:
        runpy.run_module(PACKAGE, run_name="__main__")
    except SystemExit as error:
        if error.code:
            raise RuntimeError(f"hdiforest failed: {error.code}") from error


def trips(folder: Path) -> dict[str, Callable[[], Any]]:
    """Make what is needed for each trip, and return what starts it."""
    from hdiforest import HDIForestRegressor

    X, y = draw_rows(400, 0)
    X_new, y_new = draw_rows(300, 1)
    model = HDIForestRegressor(random_state=0).fit(X, y)
    path, table = folder / "model.hdi", folder / "new.parquet"
    model.save(path)
    X_new.to_parquet(table)
    return {
        "fit(frame, y)": lambda: HDIForestRegressor(random_state=0).fit(X, y),
        "predict_interval(frame)": lambda: model.predict_interval(X_new),
        "hdiforest score, Parquet": lambda: run_command(
            "score", path, table, "-o", folder / "out.parquet"
        ),
        "save": lambda: model.save(folder / "again.hdi"),
        "load": lambda: HDIForestRegressor.load(path),
        'calibrate(method="split")': lambda: model.calibrate(method="split", X=X_new, y=y_new),
    }


TRIPS = (
    "fit(frame, y)",
    "predict_interval(frame)",
    "hdiforest score, Parquet",
    "save",
    "load",
    'calibrate(method="split")',
)


def take(name: str) -> list[str]:
    """Take one trip in this process; the modules that were entered."""
    import hdiforest

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        trip = trips(Path(folder))[name]
        package = Path(str(hdiforest.__file__)).parent
        with redirect_stdout(sys.stderr), entered_modules(package) as modules:
            trip()
    return sorted(modules)


IMPORTS = {
    "import hdiforest": "import hdiforest",
    "BatchScorer": "from hdiforest.{serving} import BatchScorer",
    "HDIForestRegressor": "from hdiforest import HDIForestRegressor",
}
MEASURE_IMPORT = """
import sys, time
start = time.perf_counter()
{}
seconds = time.perf_counter() - start
ours = [name for name in sys.modules if name.split(".")[0] == "hdiforest"]
import json
print(json.dumps([seconds, len(ours), "sklearn" in sys.modules]))
"""


def result_of(tree: Path, *arguments: str | Path) -> Any:
    """Return what a process prints as JSON."""
    process = revisions.start(tree, *arguments)
    text = process.communicate()[0]
    if process.returncode:
        raise revisions.NoSuchTreeError(f"{arguments} failed in {tree}; see above.")
    return json.loads(text)


def measure_imports(tree: Path) -> dict[str, str]:
    """Return modules of ours, milliseconds, and whether scikit-learn was loaded."""
    folder = tree / "python" / PACKAGE
    has_serving = (folder / "serving").exists() or (folder / "serving.py").exists()
    figures = {}
    for name, statement in IMPORTS.items():
        code = MEASURE_IMPORT.format(
            statement.format(serving="serving" if has_serving else "batch")
        )
        runs = [result_of(tree, "-P", "-c", code) for _ in range(N_IMPORTS)]
        seconds = statistics.median(run[0] for run in runs)
        _, n_modules, with_sklearn = runs[0]
        sklearn = "with" if with_sklearn else "without"
        figures[name] = f"{n_modules} modules, {1000 * seconds:.0f} ms, {sklearn} scikit-learn"
    return figures


def show(title: str, columns: Mapping[str, Mapping[str, object]]) -> None:
    """Print a table with a line for each figure and a column for each tree."""
    table = Table("", *columns, title=title)
    first = next(iter(columns.values()))
    for name in first:
        table.add_row(name, *(number_text(figures[name]) for figures in columns.values()))
    Console().print(table)


def number_text(value: object) -> str:
    return (
        f"{value:,g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", metavar="REV", help="another commit beside the files here")
    parser.add_argument("--house", action="store_true", help="the first table alone")
    parser.add_argument("--list", nargs="+", choices=TRIPS, default=(), metavar="TRIP")
    parser.add_argument("--take", choices=TRIPS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.take:
        print(json.dumps(take(options.take)))
        return 0
    try:
        names = [*filter(None, [options.compare]), revisions.WORKTREE]
        trees = {name: revisions.built_tree(name) for name in names}
        show("the house", {name: describe(tree) for name, tree in trees.items()})
        if not options.house:
            show_trips(trees, options.list)
            show("imports", {name: measure_imports(tree) for name, tree in trees.items()})
    except revisions.NoSuchTreeError as error:
        print(f"modules_entered.py: {error}", file=sys.stderr)
        return 2
    return 0


def show_trips(trees: Mapping[str, Path], listed: Sequence[str]) -> None:
    entered = {
        name: {trip: result_of(tree, __file__, "--take", trip) for trip in TRIPS}
        for name, tree in trees.items()
    }
    show(
        "modules entered",
        {name: {trip: len(files) for trip, files in of.items()} for name, of in entered.items()},
    )
    for trip in listed:
        for name, of in entered.items():
            print(f"{trip}, {name}:", *of[trip], sep="\n  ")


if __name__ == "__main__":
    sys.exit(main())
