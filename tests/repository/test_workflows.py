"""Steps of workflows and commands that set up run, with stand-ins for what needs a network."""

import itertools
import os
import re
import shutil
import stat
import subprocess
import sys

import pytest

from ..oracle import ROOT, run

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
STAND_INS = ("pip", "pipx", "pytest", "nox", "gh", "sudo", "sleep", "python", "python3")
# A stand-in checks what it is asked for, against the tree it is called in, and leaves what the
# next steps read.
STAND_IN = r"""#!{python}
import os, re, shutil, subprocess, sys, tomllib
from pathlib import Path

name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
project = tomllib.loads(Path("pyproject.toml").read_text())


def refuse(why):
    sys.exit(f"{{name}} {{' '.join(arguments)}}: {{why}}")


def as_another(other, given):
    os.execv(Path(sys.argv[0]).with_name(other), [str(Path(sys.argv[0]).with_name(other)), *given])


def checked_pip():
    extras = project["project"]["optional-dependencies"]
    found = re.findall(r"^\.\[(.*)\]$", "\n".join(arguments), re.M)
    for extra in ",".join(found).split(",") if found else ():
        extra in extras or refuse(f"no extra {{extra}}")
    for at, argument in enumerate(arguments):
        option, _, value = argument.partition("=")
        value = value or (arguments[at + 1] if at + 1 < len(arguments) else "")
        if option == "--group" and value not in project["dependency-groups"]:
            refuse(f"no group {{value}}")
        if option in ("-c", "-r") and not Path(value).exists():
            refuse(f"no file {{value}}")
        if argument.endswith(".whl") and not Path(argument).exists():
            refuse(f"no wheel {{argument}}")


def checked_pytest():
    lines = project["tool"]["pytest"]["ini_options"]["markers"]
    markers = {{line.split(":")[0] for line in lines}} | {{"and", "or", "not"}}
    if "-m" in arguments:
        words = set(re.findall(r"\w+", arguments[arguments.index("-m") + 1]))
        words <= markers or refuse(f"no marker {{words - markers}}")
    Path("tests/conftest.py").exists() or refuse("no tests here")


def checked_nox():
    text = Path("noxfile.py").read_text()
    session = arguments[arguments.index("-s") + 1]
    re.search(rf'^(def {{session}}\(|    "{{session}}": \()', text, re.M) or refuse("no session")
    if session == "docs":
        Path("docs/_build/html").mkdir(parents=True, exist_ok=True)
        Path("docs/_build/html/index.html").write_text("a site")


def checked_python():
    script = next((a for a in arguments if a.endswith(".py")), None)
    if arguments[:2] == ["-m", "venv"]:
        into = Path(arguments[2], "bin")
        into.mkdir(parents=True)
        for each in ("pip", "pytest", "python", "hdiforest"):
            shutil.copy(sys.argv[0], into / each)
    elif arguments[:1] == ["-m"]:
        as_another(arguments[1], arguments[2:])
    elif script and script.startswith("bench/"):
        command = ["{python}", script, "--help"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for option in (a for a in arguments if a.startswith("--")):
            option in told or refuse(f"no option {{option}}")
    else:
        os.execv("{python}", ["{python}", *arguments])


if name == "pip":
    checked_pip()
elif name == "pytest":
    checked_pytest()
elif name == "nox":
    checked_nox()
elif name.startswith("python"):
    checked_python()
elif name == "pipx" and "build" in arguments:
    version = project["project"]["version"]
    Path("dist").mkdir()
    archive = f"dist/hdicore-{{version}}.tar.gz"
    prefix = ["--transform", f"s,^,hdicore-{{version}}/,"]
    paths = ["pyproject.toml", "tests"]
    subprocess.run(["tar", "-czf", archive, *prefix, *paths], check=True)
elif name == "pipx" and "cibuildwheel" in " ".join(arguments):
    Path("wheelhouse").mkdir()
    Path("wheelhouse/hdicore-0-cp313-cp313-manylinux_2_28_x86_64.whl").touch()
elif name == "pipx":
    paths = [a for a in arguments if "/" in a or a == "wheelhouse"]
    all(Path(path).exists() for path in paths) or refuse("no such files")
elif name == "cyclonedx-py":
    Path(arguments[1]).is_dir() or refuse("no environment")
    Path(arguments[arguments.index("-o") + 1]).write_text("{{}}")
elif name == "gh" and arguments[:2] == ["run", "download"]:
    into = Path(arguments[arguments.index("--dir") + 1])
    into.mkdir()
    Path("index.html").write_text("a site")
    subprocess.run(["tar", "-cf", into / "artifact.tar", "index.html"], check=True)
    Path("index.html").unlink()
elif name == "gh":
    paths = [a for a in arguments[3:] if not a.startswith("--")]
    all(Path(path).exists() for path in paths) or refuse("no such files")
"""
# What jobs get from those before them.
HANDED = {
    ("wheels.yml", "sbom"): ("wheelhouse/hdicore-0-cp313-cp313-manylinux_2_28_x86_64.whl",),
    ("wheels.yml", "wheels"): (),
    ("wheels.yml", "rehearsal"): ("dist/hdicore-0.tar.gz",),
    ("wheels.yml", "release"): ("dist/hdicore-0.tar.gz", "hdicore.cdx.json"),
}


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    """Folder of programs that stand before all others on the path."""
    folder = tmp_path_factory.mktemp("bin")
    for name in (*STAND_INS, "cyclonedx-py"):
        (folder / name).write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
        (folder / name).chmod((folder / name).stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A repository with the tree as its only commit, as if the version were released today."""
    folder = tmp_path_factory.mktemp("origin")
    made = (".git", "*.so", "*.pyd", "__pycache__", ".venv", ".nox", "build", "results", ".*_cache")
    tree = shutil.copytree(ROOT, folder / "tree", ignore=shutil.ignore_patterns(*made))
    release(tree)
    for command in ("init -q -b main", "add --all", "commit -q -m tree"):
        run("git", *GIT_USER, *command.split(), cwd=tree)
    run("git", "clone", "-q", "--bare", tree, folder / "origin.git")
    return folder / "origin.git"


GIT_USER = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false")


def release(tree):
    """Write the day of a release where a release needs it."""
    for name, old, new in (
        ("CHANGELOG.md", r"^(## [\d.]+) \(.*\)", r"\1 (2026-01-31)"),
        ("CITATION.cff", r"^(version: .*\n)(date-released.*\n)?", r"\1date-released: 2026-01-31\n"),
        (
            "docs/conf.py",
            r"^site_releases = \[.*\]",
            f'site_releases = ["{version_of(tree)[:-2]}"]',
        ),
    ):
        text = (tree / name).read_text(encoding="utf-8")
        changed = re.sub(old, new, text, count=1, flags=re.MULTILINE)
        (tree / name).write_text(changed, encoding="utf-8")


def version_of(tree):
    text = (tree / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "(.*)"', text, re.MULTILINE)[1]


def jobs():
    """All jobs of all workflows, with each choice of their matrices."""
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        for name, job in workflow["jobs"].items():
            matrix = job.get("strategy", {}).get("matrix", {})
            axes = {key: value for key, value in matrix.items() if key != "include"}
            crossed = itertools.product(*axes.values()) if axes else ()
            chosen = [dict(zip(axes, each, strict=True)) for each in crossed]
            for number, choice in enumerate([*chosen, *matrix.get("include", [])] or [{}]):
                id_ = f"{path.stem}-{name}-{number}"
                yield pytest.param(path.name, name, job, choice, workflow, id=id_)


def filled(text, known):
    """Put in what ${{ }} stands for; what a matrix leaves out is empty."""

    def value(match):
        key = match[1].strip()
        assert key in known or key.startswith("matrix."), f"unknown: {key}"
        return str(known.get(key, ""))

    return re.sub(r"\$\{\{(.*?)\}\}", value, str(text))


@pytest.mark.skipif(sys.platform == "win32", reason="stand-ins are scripts of Unix")
@pytest.mark.parametrize(("file", "name", "job", "choice", "workflow"), list(jobs()))
def test_steps_of_workflows_run(file, name, job, choice, workflow, origin, stand_ins, tmp_path):
    checkout = tmp_path / "checkout"
    run("git", "clone", "-q", origin, checkout)
    run("git", "checkout", "-q", "--detach", cwd=checkout)  # as that action does
    for path in HANDED.get((file, name), ()):
        (checkout / path).parent.mkdir(exist_ok=True)
        (checkout / path).touch()
    if name == "publish" and old_git():
        run("git", "branch", "-q", "site", cwd=origin)
    known = {f"matrix.{key}": value for key, value in choice.items()}
    known |= {"needs.build.outputs.version": "dev", "steps.version.outputs.version": "dev"}
    known |= {"github.token": "none", "github.repository": "hdicore/hdicore"}
    output = tmp_path / "output"
    environment = {
        "PATH": f"{stand_ins}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_RUN_ID": "1",
        "GITHUB_REF": f"refs/tags/v{version_of(checkout)}",
    }
    for level in (workflow, job):
        environment |= {key: filled(v, known) for key, v in level.get("env", {}).items()}
    for step in (step for step in job["steps"] if "run" in step):
        own = {key: filled(value, known) for key, value in step.get("env", {}).items()}
        command = ["bash", "-euo", "pipefail", "-c", filled(step["run"], known)]
        done = subprocess.run(
            command, cwd=checkout, env=environment | own, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{step['run']}\n{done.stdout}{done.stderr}"
    if file == "pages.yml" and name == "build":
        assert output.read_text() == f"version={version_of(checkout)[:-2]}\n"
    if name == "publish":
        shown = run("git", "show", "--stat", "--format=%s", "site", cwd=origin)
        assert shown.startswith("Site of dev")
        assert "dev/index.html" in shown


def old_git():
    """Whether git cannot make a worktree without a commit: 2.42 learnt it."""
    version = re.search(r"(\d+)\.(\d+)", run("git", "--version"))
    return (int(version[1]), int(version[2])) < (2, 42)


@pytest.mark.skipif(sys.platform == "win32", reason="stand-ins are scripts of Unix")
@pytest.mark.parametrize(
    "script",
    [
        *re.findall(r"^python3 -m venv .*", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE),
        (ROOT / ".ci" / "run").read_text(encoding="utf-8").replace('"$(dirname "$0")/.."', "."),
    ],
    ids=["demo", "tests", "run of everything"],
)
def test_commands_that_set_up_name_extras_and_groups_that_exist(
    script, origin, stand_ins, tmp_path
):
    run("git", "clone", "-q", origin, tmp_path / "checkout")
    environment = {"PATH": f"{stand_ins}:/usr/bin:/bin", "HOME": str(tmp_path)}
    run("bash", "-euc", script, cwd=tmp_path / "checkout", env=environment)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pip install '.[test]'", "no extra test"),
        ("pip install . --group tests", "no group tests"),
        ("pip install . -c tests/newest.txt", "no file"),
        ("pytest -m 'slow or engines'", "no marker"),
        ("nox -s everything", "no session"),
        ("python bench/instructions/count.py --versus main", "no option --versus"),
        ("unknown", "unknown"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="stand-ins are scripts of Unix")
def test_stand_ins_refuse_what_does_not_exist(line, said, stand_ins):
    environment = {"PATH": f"{stand_ins}:/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("CITATION.cff", "\nversion: ", "\nversion: 9", "CITATION.cff: version is"),
        ("CITATION.cff", "2026-01-31", "2026-01-30", "date-released is 2026-01-30"),
        ("CHANGELOG.md", "\n## ", "\n## 9", "newest heading is"),
        ("CHANGELOG.md", "(2026-01-31)", "(unreleased)", "not the day of the release"),
        ("docs/conf.py", "site_releases = [", 'site_releases = ["0.0", ', "site_releases is 0.0"),
        ("conda/recipe.yaml", '\n  version: "', '\n  version: "9', "recipe.yaml: version is"),
        ("pyproject.toml", '\nversion = "', '\nversion = "9', "tag is"),
    ],
)
def test_each_place_that_names_the_version_is_compared(name, old, new, said, tmp_path):
    script = tmp_path / ".ci" / "versions.py"
    for part in (
        ".ci/versions.py",
        "CITATION.cff",
        "CHANGELOG.md",
        "docs/conf.py",
        "conda/recipe.yaml",
        "pyproject.toml",
    ):
        (tmp_path / part).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    release(tmp_path)
    tag = f"v{version_of(tmp_path)}"
    run(sys.executable, script, tag)
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    done = subprocess.run([sys.executable, script, tag], capture_output=True, text=True)
    assert done.returncode == 1
    assert said in done.stderr


def test_all_places_name_one_version():
    """With the tag of this commit, if it has one."""
    tag = os.environ.get("GITHUB_REF", "").partition("refs/tags/")[2]
    run(sys.executable, ROOT / ".ci" / "versions.py", *([tag] if tag else []))
