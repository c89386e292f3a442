"""Named tasks, one a session: `nox --list` shows them; what follows `--` is handed on.

Each task has an environment of its own. Tests use an editable install of the checkout.
"""

import shutil
import subprocess
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["style", "tests"]
nox.options.reuse_existing_virtualenvs = True

CPU_WHEELS = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
# Sanitizers, the library to load before Python, and the tests that run under them.
SANITIZERS = {
    "address": ("address,undefined", "libasan.so", "engine and not memory and not slow"),
    "thread": ("thread", "libtsan.so", "threads"),
}


def install(session: nox.Session, *groups: str, extras: str = "[cli]") -> None:
    """Install the checkout, editable, with extras for users and groups for developers."""
    session.install("--group", "build")
    index = CPU_WHEELS if "paper" in groups else ()
    chosen = [f"--group={group}" for group in groups]
    session.install("--no-build-isolation", "-e", f".{extras}", *chosen, *index)


def source_archive(session: nox.Session) -> Path:
    """Return a source archive of the checkout, in a folder of the session."""
    folder = Path(session.create_tmp())
    session.run("python", "setup.py", "-q", "sdist", "-d", str(folder))
    (archive,) = folder.glob("*.tar.gz")
    return archive


@nox.session
def tests(session: nox.Session) -> None:
    """Run what `pytest` alone runs: the README's test command."""
    install(session, "test")
    session.run("pytest", "-n", "auto", "--dist", "loadfile", *session.posargs)


@nox.session(name="all")
def everything(session: nox.Session) -> None:
    """Run all tests, one task after the other; what the workflow `nightly` runs."""
    for name in ("tests", *MARKED, "skpro", "docs", "prose"):
        if name != "paper":  # as bench, with PyTorch
            session.notify(name)
    if all(shutil.which(tool) for tool in CROSS_TOOLS):
        session.notify("cross")


@nox.session
def engine(session: nox.Session) -> None:
    """Run the tests of the backend, in a small environment."""
    install(session, "engine", extras="")
    session.run("pytest", "-m", "engine", *session.posargs)


# Sessions that run the tests with a marker: the marker, groups beside "test", what they do.
MARKED = {
    "slow": ("slow", "", "Run single tests of the package that take more than about ten seconds."),
    "style": ("style", "style", "Check format, style, types, layers and metadata."),
    "compiled": ("compiled", "compiled", "Compile the engine alone, fuzz targets and consumers."),
    "release": ("release", "release", "Make and check a wheel and a source archive."),
    "peers": ("peers", "peers", "Compare with other libraries, and run the recipes for them."),
    "clusters": ("clusters", "clusters", "Run the recipes on local clusters and an object store."),
    "stress": ("stress", "", "Run a slice of each stress program."),
    "bench": ("bench", "bench", "Make a small run of each script of bench/."),
    "paper": ("bench", "bench paper", "Run the session bench with PyTorch, which the paper needs."),
}


def add_marked_session(name: str, marker: str, groups: str, summary: str) -> None:
    """Add a session that installs groups and runs the tests with a marker."""

    def run(session: nox.Session) -> None:
        extras = "[cli,dask]" if name == "clusters" else "[cli]"
        install(session, "test", *groups.split(), extras=extras)
        session.run("pytest", "-m", marker, *session.posargs)

    run.__doc__ = summary
    nox.session(run, name=name)


for name, (marker, groups, summary) in MARKED.items():
    add_marked_session(name, marker, groups, summary)


@nox.session
def skpro(session: nox.Session) -> None:
    """Run the tests of adapters.skpro, with skpro and sktime, which want an older pandas."""
    install(session, "engine", "skpro", extras="[skpro]")
    session.run("pytest", "-m", "skpro", *session.posargs)


@nox.session
@nox.parametrize("kind", list(SANITIZERS))
def sanitizers(session: nox.Session, kind: str) -> None:
    """Build an instrumented extension module and run the engine's tests on it (Linux, GCC)."""
    sanitize, library, marked = SANITIZERS[kind]
    session.install("--group", "build", "--group", "engine")
    # From a copy, so that no object that was compiled for the checkout slips in.
    archive = source_archive(session)
    build = {"HDICORE_SANITIZE": sanitize, "HDICORE_DEBUG": "1"}
    session.install("--no-build-isolation", "--force-reinstall", str(archive), env=build)
    libraries = [
        subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
        for name in (library, "libstdc++.so.6")
    ]
    environment = {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    session.run("pytest", "-m", marked, *session.posargs, env=environment)


# Debian's packages of the tools with which the tests marked "cross" compile and run.
CROSS_TOOLS = {
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "debootstrap": "debootstrap",
    "qemu-aarch64": "qemu-user",
    "x86_64-w64-mingw32-g++-posix": "g++-mingw-w64-x86-64-posix",
    "wine": "wine64",
}


@nox.session
def cross(session: nox.Session) -> None:
    """Run the engine's tests compiled for ARM and Windows; installs emulators with apt-get."""
    missing = [package for tool, package in CROSS_TOOLS.items() if shutil.which(tool) is None]
    if missing:
        session.run("apt-get", "install", "-y", *missing, external=True)
    install(session, "engine", extras="")
    session.run("pytest", "-m", "cross", *session.posargs, env={"HDICORE_CROSS": "all"})


@nox.session
@nox.parametrize("suite", ["trixie", "sid"])
def debian(session: nox.Session, suite: str) -> None:
    """Build and test the backend with the Python of a newer Debian; needs root and debootstrap."""
    session.install("--group", "build")
    archive = source_archive(session)
    root = archive.parent / suite
    if not root.exists():
        packages = "--include=ca-certificates,g++,python3-dev,python3-venv"
        session.run("debootstrap", "--variant=minbase", packages, suite, str(root), external=True)
    for name in (archive, "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"):
        into = root / "sdist.tar.gz" if name is archive else root / str(name).lstrip("/")
        shutil.copy(name, into)
    script = """
        rm -rf /source && mkdir /source && tar -xzf sdist.tar.gz -C /source --strip-components 1
        python3 -m venv --clear /venv
        /venv/bin/pip install ./sdist.tar.gz pytest hypothesis
        /venv/bin/pytest /source/tests -m engine
    """
    session.run("chroot", str(root), "bash", "-euxc", script, external=True)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Fuzz the engine and model files; needs clang with libFuzzer."""
    install(session, "test")
    session.install("atheris")
    session.run("python", "tests/engine/fuzz/run.py", *(session.posargs or ["--seconds", "60"]))


@nox.session
def instructions(session: nox.Session) -> None:
    """Count the instructions of the kernels beside those of another commit; needs valgrind."""
    session.install("rich")
    session.run(
        "python", "bench/instructions/count.py", *(session.posargs or ["--compare", "main"])
    )


@nox.session
def speed(session: nox.Session) -> None:
    """Measure the speed of the small cases beside other libraries."""
    install(session, "bench")
    session.run("python", "bench/speed/run.py", *(session.posargs or ["--fresh"]))


@nox.session
def ranger(session: nox.Session) -> None:
    """Time ranger beside the HDI; installs R and ranger with apt-get."""
    if shutil.which("Rscript") is None:
        packages = ("r-base-core", "r-cran-ranger")
        session.run("apt-get", "install", "-y", *packages, external=True)
    install(session, "bench")
    session.run("python", "bench/speed/ranger.py", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Make faults in a copy of the tree, and see whether the tests find them; `-- --python`."""
    install(session, "test")
    session.run("python", "tests/mutants.py", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Count the lines of Python and C++ that the tests reach; `-- -m slow` adds to the count."""
    session.install("--group", "build", "--group", "test", "--group", "coverage")
    archive = source_archive(session)
    session.run("tar", "-xzf", str(archive), "-C", str(archive.parent), external=True)
    session.chdir(archive.with_name(archive.name.removesuffix(".tar.gz")))
    build = {"HDICORE_COVERAGE": "1"}
    session.install("--no-build-isolation", "-e", ".[cli]", env=build)
    # A full disk would spoil the counters. Tests that read what a process says fail where gcov
    # speaks up, too, so a failure ends nothing.
    options = ("-n", "auto", "--dist", "loadfile", "-k", "not full_disk", "--cov", "--cov-append")
    tests = ("pytest", *options, "--cov-report=json", *session.posargs)
    session.run(*tests, success_codes=[0, 1])
    folders = ("--filter", "src_cpp/", "--filter", "hdicore/")
    hits = ("--gcov-suspicious-hits-threshold", "0")  # inner loops count to billions
    hits += ("--gcov-ignore-parse-errors=negative_hits.warn_once_per_file",)  # of threads
    session.run("gcovr", *folders, *hits, "--json", "gcovr.json")
    session.run("python", ".ci/lines_reached.py", "coverage.json", "gcovr.json", "-o", "lines.md")
    session.log(f"Lines that no test reaches: {Path.cwd() / 'lines.md'}")


@nox.session
def wheels(session: nox.Session) -> None:
    """Build and test the wheels of this platform; needs Docker on Linux."""
    session.install("cibuildwheel>=4.3.3")
    session.run("cibuildwheel", "--output-dir", "dist", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into docs/_build/html; check it, docstrings and, with network, links."""
    install(session, "test", "docs")
    session.run("sphinx-build", "-W", *session.posargs, "docs", "docs/_build/html")
    session.run("pytest", "-m", "docs")
    # Without network there is nothing left to check; see docs/conf.py.
    session.run("sphinx-build", "-q", "-b", "linkcheck", "docs", "docs/_build/linkcheck")


@nox.session(venv_backend="none")
def prose(session: nox.Session) -> None:
    """Measure how easily the pages read; `-- --worst 10` prints the worst sentences."""
    session.run("python", "docs/prose.py", *session.posargs)
