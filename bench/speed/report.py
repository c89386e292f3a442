"""Shows results: tables on the terminal, the same in markdown, and a picture of the ratios."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from cases import study
from goals import goals_of
from tables import PEERS, Cell, Result, Table, of_kind, ratios, remarks_on, tables_of

HOW = "Median (least-largest) of the turns; a goal beside a figure is met (ok) or missed (NO)."
COLOURS = {"1": "#1b6ca8", "2": "#d1495b"}


def report(folder: Path) -> None:
    """Render all results of a folder, on the terminal and into it."""
    found = study.read(study.path_of(folder, "results"))
    if not found:
        raise study.NotHereError(f"{folder} holds no results; run.py measures them.")
    results = list(found.values())
    tables = tables_of(results)
    remarks = [HOW, *remarks_on(results)]
    console = Console() if sys.stdout.isatty() else Console(width=200)
    for table in tables:
        console.print(_for_terminal(table))
    for remark in remarks:
        console.print(remark, markup=False, highlight=False)
    machines = [f"* {line}" for line in _machines(results)]
    parts = [*map(_as_markdown, tables), "\n\n".join(remarks), "\n".join(machines)]
    (folder / "table.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    speed = of_kind(results, "speed")
    if speed:
        study.save_picture(_picture(speed), folder / "ratios.png", dpi=150)


def _for_terminal(table: Table) -> RichTable:
    shown = RichTable(title=table.title, title_justify="left", box=box.SIMPLE_HEAD)
    for k, column in enumerate(table.columns):
        shown.add_column(column, justify="right" if k else "left", no_wrap=k == 0)
    for row in table.rows:
        shown.add_row(*map(_coloured, row))
    return shown


def _coloured(cell: Cell) -> Text:
    text = Text(cell.text)
    if cell.goal is not None:
        text.append(f"\n{_verdict(cell)}", style="green" if cell.met else "bold red")
    return text


def _verdict(cell: Cell) -> str:
    return f"{cell.goal} {'ok' if cell.met else 'NO'}"


def _as_markdown(table: Table) -> str:
    def line(texts: list[str]) -> str:
        return f"| {' | '.join(texts)} |"

    ruler = ["---", *["---:"] * (len(table.columns) - 1)]
    rows = [
        [cell.text if cell.goal is None else f"{cell.text} {_verdict(cell)}" for cell in row]
        for row in table.rows
    ]
    lines = [line(texts) for texts in (table.columns, ruler, *rows)]
    return "\n".join([f"**{table.title}**", "", *lines])


def _machines(results: list[Result]) -> list[str]:
    """One line for each machine and set of versions, with the results made there."""
    made: dict[str, list[str]] = {}
    for result in results:
        machine = json.dumps(result["machine"]).replace('"', "").strip("{}")
        load = result["load_average"]
        at = "" if load is None else f" (load {load[0]:.2f})"
        made.setdefault(machine, []).append(f"{result['name']}{at}")
    return [f"{', '.join(names)}: {machine}" for machine, names in made.items()]


def _picture(results: list[Result]) -> Figure:
    """Draw a panel for each peer: ratio to the HDI by case and threads, and the goals."""
    figure = Figure(figsize=(22, 1.6 + 0.42 * len(results)), layout="constrained")
    panels = figure.subplots(1, len(PEERS), sharey=True, squeeze=False)[0]
    heights = np.arange(len(results))
    for axes, (peer, title) in zip(panels, PEERS.items(), strict=True):
        for at, result in zip(heights, results, strict=True):
            for threads in result["us_per_row"]:
                found = ratios(result, threads, peer)
                if found is None:
                    continue
                middle = np.median(found)
                axes.errorbar(
                    middle,
                    at + (-0.14 if threads == "1" else 0.14),
                    xerr=[[middle - found.min()], [found.max() - middle]],
                    fmt="o",
                    markersize=5,
                    capsize=3,
                    color=COLOURS.get(threads, "#555555"),
                    label=f"{threads} thread{'' if threads == '1' else 's'}",
                )
            goal = goals_of(result["case"]["name"]).get(peer)
            if goal is not None:
                axes.plot([goal.value] * 2, [at - 0.35, at + 0.35], "k", lw=2, label="goal")
        axes.axvline(1, color="#999999", lw=1, zorder=0)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_title(title, fontsize=11)
        axes.grid(axis="x", which="both", alpha=0.25)
    panels[0].set_yticks(heights, [result["case"]["name"] for result in results])
    panels[0].invert_yaxis()
    labelled = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        labelled |= dict(zip(labels, handles, strict=True))
    figure.legend(labelled.values(), labelled, loc="outside lower right", ncols=len(labelled))
    figure.suptitle("Time per row over that of one exact HDI: more is slower than hdicore")
    return figure
