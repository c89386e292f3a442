"""The extension module and its build switches; everything else is in pyproject.toml."""

import os
import re
import tomllib
from glob import glob
from pathlib import Path
from runpy import run_path
from typing import Any

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext, naive_recompile
from setuptools import setup

# HDICORE_DEBUG=1 keeps symbols and assertions, HDICORE_SANITIZE=address,undefined instruments the
# module (see docs/developers.md), HDICORE_COVERAGE=1 counts executed lines for gcov, and
# HDICORE_BUILD_JOBS is the number of compilers run at once.
msvc = os.name == "nt"
compile_args = [] if msvc else ["-O3", "-Wall", "-Wextra", "-Wpedantic"]
if not msvc:  # A fused a * b + c rounds once: results would depend on the processor.
    compile_args += ["-ffp-contract=off"]
link_args: list[str] = []
if os.environ.get("HDICORE_DEBUG"):
    compile_args += ["/Zi"] if msvc else ["-O1", "-g", "-D_GLIBCXX_ASSERTIONS"]
if sanitizers := os.environ.get("HDICORE_SANITIZE"):
    flags = [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer", "-g"]
    compile_args += flags
    link_args += flags
if os.environ.get("HDICORE_COVERAGE"):
    compile_args += ["--coverage", "-O0"]
    link_args += ["--coverage"]

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
repository = project["urls"]["Source"].removeprefix("https://github.com/")


def for_the_index(page: str) -> str:
    """Give a page whose links lead into the tree the addresses of files of this version."""
    files = f"{repository}/blob/v{project['version']}"
    pictures = f"{repository}/v{project['version']}"
    page = re.sub(
        r"(!\[[^]]*\]\()(?!https?:)", rf"\1https://raw.githubusercontent.com/{pictures}/", page
    )
    return re.sub(r"(\]\()(?!https?:)", rf"\1https://github.com/{files}/", page)


sources = sorted(glob("src_cpp/*/*.cpp") + glob("hdicore/bindings/*.cpp"))
headers = sorted(glob("src_cpp/**/*.h*", recursive=True) + glob("hdicore/bindings/*.hpp"))
parts: dict[str, list[str]] = {}  # what each source that is compiled is made of


def needs_recompile(obj: str, source: str) -> bool:
    """Whether a part of a source or any header is newer than the object made of it."""
    return any(naive_recompile(obj, path) for path in (source, *parts[source], *headers))


class BuildCore(build_ext):
    """Writes the header of names, arguments and docstrings, and ships that of the C table."""

    def finalize_options(self) -> None:
        """Keep the objects of an editable install, which setuptools puts in a scratch folder."""
        super().finalize_options()
        if self.editable_mode:
            usual = type(self.get_finalized_command("build"))(self.distribution)
            usual.ensure_finalized()
            self.build_temp = usual.build_temp

    def build_extensions(self) -> None:
        """Compile the rooms with the header in the folder of the objects."""
        folder = Path(self.build_temp)
        folder.mkdir(parents=True, exist_ok=True)
        compilers = [getattr(self.compiler, name, "") for name in self.compiler.executables]
        command, told = f"{compilers} {compile_args}", folder / "command.txt"
        if not told.exists() or told.read_text(encoding="utf-8") != command:
            told.write_text(command, encoding="utf-8")
        headers.append(str(told))  # an object that other flags made is older
        write_header = run_path("hdicore/bindings/stub_header.py")["write"]
        write_header(Path("python/hdicore/_core.pyi"), folder / "stub.hpp")
        parts.update(run_path("hdicore/bindings/rooms.py")["join"](sources, folder))
        parts[str(folder / "bindings.cpp")].append(str(folder / "stub.hpp"))
        self.extensions[0].sources = list(parts)
        self.compiler.add_include_dir(self.build_temp)
        if not msvc:
            compile_room = self.compiler._compile

            def compile_one(obj: str, source: str, *options: Any) -> None:
                """Compile bindings, which hold no loop that takes time, in less of it."""
                *others, flags, macros = options
                if Path(source).stem == "bindings":
                    flags = ["-O1" if flag == "-O3" else flag for flag in flags]
                compile_room(obj, source, *others, flags, macros)

            self.compiler._compile = compile_one
        super().build_extensions()

    def run(self) -> None:
        """Build, and lay the header of the C table beside the module."""
        super().run()
        if not (self.inplace or self.editable_mode):  # else `get_include` names the tree's folder
            self.copy_tree("src_cpp/include", str(Path(self.build_lib, "hdicore", "include")))


core = Pybind11Extension(
    "hdicore._core",
    sources,
    include_dirs=["src_cpp", "src_cpp/include", "hdicore/bindings"],
    depends=[*sources, *headers, "python/hdicore/_core.pyi", *glob("hdicore/bindings/*.py")],
    cxx_std=20,
    extra_compile_args=compile_args,
    extra_link_args=link_args,
)

with ParallelCompile("HDICORE_BUILD_JOBS", default=0, needs_recompile=needs_recompile):
    setup(
        ext_modules=[core],
        cmdclass={"build_ext": BuildCore},
        long_description=for_the_index(Path("README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
    )
