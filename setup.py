"""The extension module and its build switches; everything else is in pyproject.toml."""

import os
from glob import glob

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext, naive_recompile
from setuptools import setup

# HDICORE_DEBUG=1 keeps symbols and assertions, HDICORE_SANITIZE=address,undefined instruments the
# module (see CONTRIBUTING.md), HDICORE_COVERAGE=1 counts executed lines for gcov, and
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

headers = sorted(glob("src_cpp/**/*.h*", recursive=True) + glob("hdicore/bindings/*.hpp"))


def needs_recompile(obj: str, source: str) -> bool:
    """Whether a source or any header is newer than the object made of it."""
    return any(naive_recompile(obj, path) for path in (source, *headers))


core = Pybind11Extension(
    "hdicore._core",
    sorted(glob("src_cpp/*/*.cpp") + glob("hdicore/bindings/*.cpp")),
    include_dirs=["src_cpp", "src_cpp/include"],
    depends=headers,
    cxx_std=20,
    extra_compile_args=compile_args,
    extra_link_args=link_args,
)

with ParallelCompile("HDICORE_BUILD_JOBS", default=0, needs_recompile=needs_recompile):
    setup(ext_modules=[core], cmdclass={"build_ext": build_ext})
