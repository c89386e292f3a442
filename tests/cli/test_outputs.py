"""Outputs of the command: pipes, devices, long names, signals, and what dead processes left."""

import ctypes
import errno
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor

from . import calls
from .calls import command

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
fcntl = pytest.importorskip("fcntl")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes with names, signals, locks")

ROW = "0.5,-1\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    forest = RandomForestRegressor(10, min_samples_leaf=5, random_state=0)
    path = tmp_path_factory.mktemp("model") / "m.hdi"
    HDIForestRegressor(forest, calibration=False).fit(X, X["a"]).save(path, training_rows=False)
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("a,b\n" + ROW * 3000)
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "out"
    path.mkdir()
    return path


def run(*arguments):
    return calls.run(arguments)


def device(path, minor):
    """A device of our own: nothing that a failing test could take from the system."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, minor))
        path.open("wb").close()
    except OSError:
        pytest.skip("devices cannot be made here")
    return path


def in_background(call, *arguments):
    found = []
    thread = threading.Thread(target=lambda: found.append(call(*arguments)), daemon=True)
    thread.start()
    return thread, found


@pytest.mark.parametrize("name", ["out.csv.gz", "out.parquet"])
def test_a_pipe_is_written_through(model, table, folder, name):
    pipe = folder / name
    os.mkfifo(pipe)
    reader, found = in_background(pipe.read_bytes)
    assert run("score", model, table, "-o", pipe) == 0
    reader.join(20)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert run("score", model, table, "-o", folder / f"whole_{name}") == 0
    assert found == [(folder / f"whole_{name}").read_bytes()]
    assert sorted(os.listdir(folder)) == [name, f"whole_{name}"]


def test_a_pipe_that_is_closed_early_is_an_error(capsys, model, table, folder):
    pipe = folder / "out.csv"
    os.mkfifo(pipe)
    reader, _ = in_background(lambda: pipe.open("rb").close())
    assert run("score", model, table, "-o", pipe, "--batch-rows", 10) == 1
    reader.join(20)
    assert capsys.readouterr().err == f"hdiforest: error: cannot write {pipe}: Broken pipe\n"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_to_a_device_is_written_through(model, table, folder):
    null = device(folder / "null", 3)
    for name in ("out.csv", "out.parquet"):
        (folder / name).symlink_to(null)
        assert run("score", model, table, "-o", folder / name) == 0
    assert run("fit", table, "--target", "b", "--trees", 3, "-o", null) == 0
    assert stat.S_ISCHR(null.stat().st_mode)
    assert sorted(os.listdir(folder)) == ["null", "out.csv", "out.parquet"]


@pytest.mark.parametrize("name", ["out.csv.gz", "out.parquet"])
def test_a_full_device_is_told(capsys, model, table, folder, name):
    full = device(folder / "full", 7)
    (folder / name).symlink_to(full)
    assert run("score", model, table, "-o", folder / name) == 1
    text = f"cannot write {folder / name}: {os.strerror(errno.ENOSPC)}"
    assert capsys.readouterr().err == f"hdiforest: error: {text}\n"
    assert stat.S_ISCHR(full.stat().st_mode)


@pytest.mark.parametrize("redirected", ["pipe", "file"])
def test_standard_output_holds_the_table_alone(model, table, folder, redirected):
    (folder / "out.csv").symlink_to("/dev/stdout")
    assert run("score", model, table, "-o", folder / "whole.csv") == 0
    call = command("score", model, table, "-o", folder / "out.csv")
    if redirected == "pipe":
        done = subprocess.run(call, capture_output=True, check=True)
        found = done.stdout
    else:
        with (folder / "redirected").open("w+b") as file:
            file.write(b"before\n")
            file.flush()
            done = subprocess.run(call, stdout=file, stderr=subprocess.PIPE, check=True)
            file.seek(0)
            found = file.read().removeprefix(b"before\n")
    assert found == (folder / "whole.csv").read_bytes()
    assert b"3,000 rows scored" in done.stderr


def test_folders_sockets_and_disks_are_refused(capsys, monkeypatch, model, table, folder):
    import socket

    monkeypatch.chdir(folder)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("out.csv")
        assert run("score", model, table, "-o", "out.csv") == 1
    assert "cannot write out.csv: it is a socket" in capsys.readouterr().err
    try:
        os.mknod("disk.csv", stat.S_IFBLK | 0o600, os.makedev(240, 250))  # no such disk
    except OSError:
        pytest.skip("devices cannot be made here")
    assert run("score", model, table, "-o", "disk.csv") == 1
    assert "cannot write disk.csv: it is a disk" in capsys.readouterr().err


def test_loops_of_links_are_told_in_one_line(capsys, model, table, folder):
    loop = folder / "loop.csv"
    loop.symlink_to(loop)
    for call in (
        ("score", model, table, "-o", loop),
        ("score", model, loop, "-o", folder / "out.csv"),
        ("score", loop, table, "-o", folder / "out.csv"),
        ("fit", table, "--target", "b", "-o", loop),
        ("fit", loop, "--target", "b", "-o", folder / "m"),
        ("demo", "-o", loop),
    ):
        assert run(*call) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert str(loop) in line
    assert os.listdir(folder) == ["loop.csv"]


@pytest.mark.parametrize("stem", ["x" * 251, "é" * 125 + "."])
def test_long_names(model, table, folder, stem):
    name = f"{stem}.csv"
    assert len(os.fsencode(name)) == 255
    assert run("score", model, table, "-o", folder / name) == 0
    assert os.listdir(folder) == [name]


def test_names_that_are_too_long_are_told_in_one_line(capsys, model, table, folder):
    for name in ("x" * 252 + ".csv", "no/folder/out.csv", "new.csv/out.csv"):
        assert run("score", model, table, "-o", table.parent / name) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert name in line


def test_names_that_are_no_text(capsys, model, table, folder):
    out = folder / os.fsdecode(b"caf\xe9\x1b[31m.csv")
    assert run("score", model, table, "-o", out) == 0
    assert capsys.readouterr().err == ""
    assert out.exists()
    done = subprocess.run(command("score", model, out, "-o", out), capture_output=True, text=True)
    assert done.returncode == 2
    assert "caf\\udce9\\x1b[31m.csv must not be one of the inputs" in done.stderr


def test_nothing_that_a_terminal_obeys_is_printed(table, tmp_path, capsys):
    bad, folder = "a\x1b]0;x\x07\n\x9b31m", tmp_path / "in\x1b[2J"
    folder.mkdir()
    named = pd.read_csv(table, nrows=100).rename(columns=lambda name: f"{name}{bad}")
    named = named.assign(y=named.iloc[:, 0], **{f"kind{bad}": f"b{bad}"})
    named.to_csv(folder / f"t{bad}.csv", index=False)
    model, out = tmp_path / f"m{bad}.hdi", tmp_path / f"out{bad}"
    report = tmp_path / f"r{bad}.html"
    fit = ["fit", folder, "--target", "y", "-o", model, "--trees", 60, "--training-rows"]
    calls = [
        *([*fit, "--calibrate", "none"], [*fit, "--order", f"none{bad}"]),
        ["recalibrate", model, folder, "--target", "y"],  # which is refused
        [*fit, "--report", report, "--coverage", "0.8", "--by", f"kind{bad}"],
        ["score", model, folder, "-o", out],
        ["score", model, folder, "-o", out, "--resume", "--kind", "equal_tailed"],
        ["score", model, folder, "-o", f"{out}.csv"],
        ["check", model, folder, "--target", "y", "--by", f"kind{bad}"],
        *(["inspect", model], ["inspect", model, "--json"], ["inspect", folder]),
        ["recalibrate", model, folder, "--target", "y"],
    ]
    for call in calls:
        run(*call)
        printed = "".join(capsys.readouterr())
        assert printed
        assert not set("\x1b\x07\x9b").intersection(printed), call
        assert "a\\x1b]0;x\\x07\n" not in printed, call


@pytest.fixture(scope="module")
def holding(model, tmp_path_factory):
    """Runs that have begun to write an output, and wait for the rest of their input."""
    source = tmp_path_factory.mktemp("held") / "held.csv"
    os.mkfifo(source)

    @contextmanager
    def run_on(path):
        call = command("score", model, source, "-o", path, "--batch-rows", 10, "--jobs", 1)
        before = unfinished_in(path.parent)
        files = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(call, **files) as process, source.open("w") as pipe:
            pipe.write("a,b,long\n" + f"1,2,{'x' * 1000}\n" * 2000)  # more than a block
            pipe.flush()
            wait_until(lambda: unfinished_in(path.parent) != before)
            yield process

    return run_on


def wait_until(is_true):
    deadline = time.monotonic() + 60
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.01)


def unfinished_in(folder):
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


@pytest.fixture(scope="module")
def killed(holding, tmp_path_factory):
    """The folder that a run left which was killed while it wrote out.csv."""
    out = tmp_path_factory.mktemp("killed") / "out.csv"
    with holding(out) as process:
        process.kill()
    (left,) = unfinished_in(out.parent)
    return out.parent / left


@pytest.fixture
def left(killed, folder):
    return shutil.copytree(killed, folder / killed.name)


def test_the_next_run_removes_what_a_killed_one_left(model, table, folder, left):
    assert run("score", model, table, "-o", folder / "other.csv") == 0
    assert unfinished_in(folder) == [left.name]  # nobody asked for that output
    assert run("score", model, table, "-o", folder / "out.csv") == 0
    assert unfinished_in(folder) == []


@pytest.mark.parametrize("has_file", [False, True])
def test_a_folder_of_a_process_that_died_before_it_locked_it_is_removed(
    model, table, folder, left, has_file
):
    for path in left.iterdir():
        path.unlink()
    if has_file:
        (left / "lock").touch()
    assert run("score", model, table, "-o", folder / "out.csv") == 0
    assert os.listdir(folder) == ["out.csv"]


def test_a_folder_that_another_process_took_for_abandoned_is_made_again(
    model, table, folder, monkeypatch
):
    original, n_taken = fcntl.flock, iter([True])

    def taken_at_first(*lock):
        if next(n_taken, False):
            raise BlockingIOError
        original(*lock)

    monkeypatch.setattr(fcntl, "flock", taken_at_first)
    assert run("score", model, table, "-o", folder / "out.csv") == 0
    assert next(n_taken, None) is None
    assert os.listdir(folder) == ["out.csv"]


def test_a_live_run_keeps_its_file(model, table, folder, holding):
    out = folder / "out.csv"
    with holding(out) as process:
        assert run("score", model, table, "-o", out) == 0
        assert len(unfinished_in(folder)) == 1
        n_rows = len(out.read_text().splitlines())
    assert process.returncode == 0
    assert len(out.read_text().splitlines()) != n_rows  # those of the other run
    assert os.listdir(folder) == ["out.csv"]


@pytest.mark.parametrize("case", ["another computer", "no locks"])
def test_folders_that_may_be_of_others_are_left_alone(
    monkeypatch, model, table, folder, left, case
):
    def unknown(*_):
        raise OSError(errno.ENOLCK, "no locks")

    if case == "no locks":
        monkeypatch.setattr(fcntl, "flock", unknown)
    else:
        monkeypatch.setattr(platform, "node", lambda: "another")
    assert run("score", model, table, "-o", folder / "out.csv") == 0
    assert (folder / "out.csv").exists()
    assert unfinished_in(folder) == [left.name]


def test_many_models_saved_to_one_path_do_not_hurt_each_other(model, folder):
    out, failures, loaded = folder / "m.hdi", [], HDIForestRegressor.load(model)

    def save_often():
        try:
            for _ in range(20):
                loaded.save(out, training_rows=False)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert out.read_bytes() == model.read_bytes()
    assert os.listdir(folder) == ["m.hdi"]


# Files that are closed when they are collected.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["m.hdi", "out.csv.gz", "out.parquet"])
def test_an_exception_at_any_line_leaves_nothing(model, table, folder, name):
    """Signals raise wherever Python is: here at each line of the files that write, in turn."""
    out = folder / name
    table.write_text("a,b\n" + ROW * 20)
    loaded = HDIForestRegressor.load(model)
    writer = "files.py" if name == "m.hdi" else "formats.py"
    seen, stop_at = {}, None

    def trace(frame, event, _):
        if not frame.f_code.co_filename.endswith(writer):
            return None
        line = frame.f_code.co_filename, frame.f_lineno
        if event == "line" and seen.setdefault(line, len(seen)) == stop_at:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    def traced():
        seen.clear()
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            if name != "m.hdi":
                return run("score", model, table, "-o", out, "--batch-rows", 10)
            loaded.save(out, training_rows=False)
            return 0
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        finally:
            sys.settrace(before)

    assert traced() == 0
    total, written = len(seen), out.read_bytes()
    assert total > 10
    for stop_at in range(total):
        out.write_text("before")
        assert traced() == 128 + signal.SIGINT
        assert out.read_bytes() in (b"before", written), stop_at
        assert os.listdir(folder) == [name], stop_at


SIGNALS = {
    "SIGINT": signal.SIGINT,
    "SIGTERM": signal.SIGTERM,
    "SIGHUP": getattr(signal, "SIGHUP", 0),
    "SIGQUIT": getattr(signal, "SIGQUIT", 0),
}


@pytest.mark.parametrize(
    ("name", "sent"),
    [*(("out.csv.gz", each) for each in SIGNALS), ("out.parquet", "two at once")],
)
def test_signals_leave_nothing(holding, folder, name, sent):
    out, names = folder / name, ["SIGINT", "SIGTERM"] if sent not in SIGNALS else [sent]
    out.write_text("before")
    with holding(out) as process:
        for each in names:
            process.send_signal(SIGNALS[each])
        _, printed = process.communicate(timeout=60)
    assert printed in [f"hdiforest: error: stopped by {each}\n" for each in names]
    assert process.returncode in [128 + SIGNALS[each] for each in names]
    assert out.read_text() == "before"
    assert os.listdir(folder) == [name]


def test_a_run_that_waits_for_a_pipe_is_stopped(model, table, folder):
    os.mkfifo(folder / "in.csv")
    os.mkfifo(folder / "out.csv")
    for sent, source, out in (
        ("SIGTERM", folder / "in.csv", folder / "x.csv"),
        ("SIGQUIT", table, folder / "out.csv"),
    ):
        process = subprocess.Popen(
            command("score", model, source, "-o", out), stderr=subprocess.PIPE, text=True
        )
        state = Path(f"/proc/{process.pid}/wchan")
        if not state.exists():
            process.kill()
            pytest.skip("needs Linux to see that the process waits")
        wait_until(lambda state=state: re.search("partner|fifo|pipe", state.read_text()))
        process.send_signal(SIGNALS[sent])
        _, printed = process.communicate(timeout=60)
        assert printed == f"hdiforest: error: stopped by {sent}\n"
        assert process.returncode == 128 + SIGNALS[sent]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "tgkill"), reason="needs Linux, glibc 2.30")
def test_a_signal_that_another_thread_takes_ends_a_read(model, folder):
    """As the kernel chooses at times when two signals come at once."""
    os.mkfifo(folder / "in.csv")
    process = subprocess.Popen(
        command("score", model, folder / "in.csv", "-o", folder / "x.csv"),
        stderr=subprocess.PIPE,
        text=True,
    )
    with (folder / "in.csv").open("w"):  # opened when the command runs
        tasks = Path(f"/proc/{process.pid}/task")
        waits = tasks / str(process.pid) / "wchan"
        wait_until(lambda: "pipe" in waits.read_text())
        other = next(int(task.name) for task in tasks.iterdir() if int(task.name) != process.pid)
        assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGTERM) == 0
        _, printed = process.communicate(timeout=60)
    assert printed == "hdiforest: error: stopped by SIGTERM\n"


def test_a_signal_that_was_ignored_stays_so(model, table, folder):
    """As nohup and the background jobs of shells have it."""

    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    os.mkfifo(folder / "in.csv")
    process = subprocess.Popen(
        command("score", model, folder / "in.csv", "-o", folder / "out.csv"),
        preexec_fn=ignore,
        stdout=subprocess.PIPE,
    )
    with (folder / "in.csv").open("w") as pipe:  # opened when the command runs
        process.send_signal(signal.SIGHUP)
        pipe.write(table.read_text())
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert (folder / "out.csv").exists()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_nobody_needs_to_read_the_report(model, table, folder, unbuffered):
    call = ("score", model, table, "-o", folder / "out.csv")
    read, write = os.pipe()
    os.close(read)
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        command(*call), stdout=write, stderr=subprocess.PIPE, text=True, env=environment
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(folder) == ["out.csv"]


def test_only_a_closed_pipe_is_forgiven(model, table, folder):
    call = command("score", model, table, "-o", folder / "out.csv")
    with device(folder / "full", 7).open("w") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "hdiforest: error: No space left on device"
