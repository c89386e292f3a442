"""Replace a model file at random moments while threads of another process score by it.

Right are the numbers of the model that was opened, old or new, and errors of one sentence. Where a
mapped file is written to in place, a call that is under way may also give other numbers or end the
process: these are counted. Where it is renamed over or was copied into memory, they are findings.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import resource
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path

import numpy as np
from outcome import Row, row_of
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.serving import BatchScorer
from models import make_rows

N_THREADS, MOST_SECONDS = 3, 10  # of a service, and of one of its calls
SIZES = {"a": 3000, "b": 3500}  # training rows of two models
OLD, NEW = "old numbers", "new numbers"
REFUSED, NOT_OPENED = "calls refused by one sentence", "openings refused by one sentence"
OTHER, ERROR = "OTHER NUMBERS", "another error"
OUTCOMES = (OLD, NEW, REFUSED, NOT_OPENED, OTHER, ERROR)
GOOD = OUTCOMES[:4]
# What happens to a call under way whose mapped file is written to in place.
KILLED = tuple(f"killed by {name}" for name in ("SIGBUS", "SIGSEGV", "SIGABRT"))
ENDLESS = "a call that did not end"
Ask = Callable[[], bytes]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=20, help="for each row (default: 20)")
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="replaced-") as scratch:
        folder = Path(scratch)
        for name, n in SIZES.items():
            X = make_rows(n)
            forest = RandomForestRegressor(40, min_samples_leaf=3, random_state=0, n_jobs=2)
            y = X.sum(axis=1) + np.random.default_rng(n).normal(size=n)
            model = HDIForestRegressor.from_forest(forest.fit(X, y), X, y)
            model.save(folder / name, training_rows=False)
        for kind in SERVICES:
            for mapped in (True, False):
                for way in WAYS:
                    tried = f"{kind}, {'mapped' if mapped else 'copied'}, {way}"
                    if options.only in tried:
                        found, n_changes = outcomes(folder, kind, mapped, way, options)
                        may_fail = mapped and way != RENAMED
                        good = (*GOOD, OTHER, ERROR, *KILLED, ENDLESS) if may_fail else GOOD
                        yield row_of(f"{tried} {n_changes} times", cases(found), good)


def cases(found: Counter[str]) -> Iterator[tuple[str, str]]:
    for outcome, n in found.items():
        yield from repeat(("one", outcome), n)


def rename_over(path: Path, new: Path, moment: random.Random) -> None:
    shutil.copyfile(new, path.with_name("aside"))
    path.with_name("aside").replace(path)


def copy_over(path: Path, new: Path, moment: random.Random) -> None:
    shutil.copyfile(new, path)


def write_over(path: Path, new: Path, moment: random.Random) -> None:
    content = new.read_bytes()
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def truncate(path: Path, new: Path, moment: random.Random) -> None:
    os.truncate(path, int(path.stat().st_size * moment.random()))
    time.sleep(moment.uniform(0, 0.05))
    rename_over(path, new, moment)


RENAMED = "renamed over"
WAYS = {
    RENAMED: rename_over,
    "cp over it": copy_over,
    "written over without truncation": write_over,
    "truncated, then renamed over": truncate,
}


def loaded(path: Path, mapped: bool, X: np.ndarray) -> tuple[int, Ask]:
    model = HDIForestRegressor.load(path, mapped=mapped)
    return model.n_training_rows_, lambda: model.predict_interval(X).tobytes()


def batch_scorer(path: Path, mapped: bool, X: np.ndarray) -> tuple[int, Ask]:
    scorer = BatchScorer(path, 0.9, mapped=mapped)
    n, columns = scorer.model.fitted.n_training_rows, {f"x{j}": x for j, x in enumerate(X.T)}

    def ask() -> bytes:
        found = scorer(columns)
        return np.column_stack([found["lower_0.9"], found["upper_0.9"]]).tobytes()

    return n, ask


SERVICES = {"loaded": loaded, "BatchScorer": batch_scorer}


class Shared:
    """What a service and the process that disturbs it both see, though the service may die."""

    def __init__(self) -> None:
        memory = np.frombuffer(mmap.mmap(-1, 8 * N_THREADS * (len(OUTCOMES) + 1) + 8), np.int64)
        self.counts, rest = memory[: N_THREADS * len(OUTCOMES)], memory[-N_THREADS - 1 :]
        self.counts = self.counts.reshape(N_THREADS, len(OUTCOMES))
        self.began, self.changes = rest[:-1], rest[-1:]  # of calls in seconds; of the file


def outcomes(
    folder: Path, kind: str, mapped: bool, way: str, options: argparse.Namespace
) -> tuple[Counter[str], int]:
    """Disturb a service for some time, and start it again whenever it dies; count both."""
    moment, path, X = random.Random(options.seed), folder / "model", make_rows(400, seed=5)
    expected = {n: loaded(folder / name, False, X)[1]() for name, n in SIZES.items()}
    shared, died = Shared(), Counter[str]()
    rename_over(path, folder / "a", moment)

    def start() -> int:
        shared.began[:] = time.monotonic()
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            serve(path, lambda: SERVICES[kind](path, mapped, X), expected, shared)
        return child

    child, end, new = start(), time.monotonic() + options.seconds, "b"
    while time.monotonic() < end:
        time.sleep(moment.uniform(0, 0.2))
        shared.changes += 1
        WAYS[way](path, folder / new, moment)
        new = "a" if new == "b" else "b"
        is_endless = time.monotonic() - shared.began.min() > MOST_SECONDS
        if is_endless:
            os.kill(child, signal.SIGKILL)
        ended, status = os.waitpid(child, 0 if is_endless else os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            name = signal.Signals(-code).name if code < 0 else f"code {code}"
            died[ENDLESS if is_endless else f"killed by {name}"] += 1
            child = start()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = Counter(dict(zip(OUTCOMES, shared.counts.sum(axis=0).tolist(), strict=True)))
    return found + died, int(shared.changes[0])


def serve(
    path: Path,
    open_model: Callable[[], tuple[int, Ask]],
    expected: dict[int, bytes],
    shared: Shared,
) -> None:
    """Score in threads until it is killed; open the model anew after errors, and now and then."""
    parent = os.getppid()
    # Changes before it was opened, training rows, model; of all threads.
    held: list[tuple[int, int, Ask] | None] = [None]

    def score(thread: int) -> None:
        moment = random.Random(thread)
        while os.getppid() == parent:
            shared.began[thread] = time.monotonic()
            outcome = NOT_OPENED
            try:
                service = held[0]
                if service is None:
                    service = held[0] = (int(shared.changes[0]), *open_model())
                changes, n, ask = service
                outcome = REFUSED
                is_right = ask() == expected[n]
                outcome = (OLD if changes != shared.changes[0] else NEW) if is_right else OTHER
            except (OSError, ValueError) as error:
                is_sentence = str(path) in str(error) and str(error).isprintable()
                outcome = outcome if is_sentence else ERROR
            except Exception:
                outcome = ERROR
            shared.counts[thread, OUTCOMES.index(outcome)] += 1
            if outcome in (REFUSED, NOT_OPENED, ERROR) or moment.random() < 0.05:
                held[0] = None
            time.sleep(moment.uniform(0, 0.02))  # calls are under way half of the time

    threads = [threading.Thread(target=score, args=(k,)) for k in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(1)
