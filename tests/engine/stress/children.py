"""Work in forked children, and how each of them ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from outcome import Row, row_of

RIGHT, NO_MEMORY = "right", "MemoryError"
WRONG, WRONG_NEXT = "another answer", "another answer of the next call"
Case = Callable[[], str]  # returns one of:
WORDS = (RIGHT, NO_MEMORY, WRONG, WRONG_NEXT)
RAISED = len(WORDS)  # exit code of a child that something else came out of


def row_of_children(tried: str, cases: dict[str, Case]) -> Row:
    """Run each case in a child; only right answers and MemoryError are no findings."""
    outcomes = ((name, outcome_in_child(case)) for name, case in cases.items())
    return row_of(tried, outcomes, (RIGHT, NO_MEMORY))


def outcome_in_child(work: Case, seconds: int = 60) -> str:
    """Return the word of `WORDS` that work returned in a child, or how the child died."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writes, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        code = RAISED
        try:
            code = WORDS.index(work())
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(code)
    os.close(writes)
    with open(reads, errors="replace") as said:
        text = " ".join(said.read().split())[:120]
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGALRM:
        return f"no answer in {seconds} s"
    if code < 0:
        return f"{signal.Signals(-code).name} ({text})" if text else signal.Signals(-code).name
    if code < RAISED:
        return WORDS[code]
    return text if code == RAISED else f"exit code {code} ({text})"
