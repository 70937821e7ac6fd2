# SPDX-License-Identifier: Apache-2.0
"""Build the extension module: the C library and what speaks Python, in one file that needs nothing
else.

The C sources are those of the repository around this folder.  An sdist has a copy of them, in
csrc/.
"""

import re
import shutil
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "csrc" if (HERE / "csrc").is_dir() else HERE.parent

# What the compiler must find: header, a function of it, library, what to install, and whether we
# can do without.
NEEDED = [
    ("lz4.h", "LZ4_versionNumber()", "lz4", "liblz4-dev (Debian), lz4-devel (Fedora)", True),
    ("xxhash.h", "XXH_VERSION_NUMBER", "", "libxxhash-dev (Debian), xxhash-devel (Fedora)", True),
    ("liburing.h", "io_uring_queue_exit(0)", "uring", "liburing-dev (Debian), liburing-devel (Fedora)", False),
]


def version():
    header = (SOURCES / "include" / "shard.h").read_text()
    return ".".join(re.search(rf"SHARD_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


class BuildExtension(build_ext):
    def links(self, header, call, library):
        """The linker's word for the library, or None if it is not there.

        Its archive is preferred, so that the wheel carries it.
        """
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "try.c")
            program.write_text(f"#include <{header}>\nvoid try_(void);\nvoid try_(void) {{ (void){call}; }}\n")
            for word in (f"-l:lib{library}.a", f"-l{library}") if library else ("-lc",):
                try:
                    objects = self.compiler.compile(
                        [str(program)], output_dir=folder, extra_postargs=["-fPIC", "-D_GNU_SOURCE"]
                    )
                    self.compiler.link_shared_object(
                        objects, str(Path(folder, "try.so")), extra_postargs=[word, "-Wl,-z,defs", "-lc"]
                    )
                    return word
                except Exception:  # the compiler printed why
                    continue
        return None

    def build_extensions(self):
        extension = self.extensions[0]
        # Not listed before: setuptools allows no file outside of its folder, and may not take them
        # for its own.
        extension.sources = [
            str(p)
            for folder in (SOURCES / "python" / "core", SOURCES / "libshard")
            for p in sorted(folder.rglob("*.c"))
        ]
        # The assembler reads them, so a changed one has everything built again.
        extension.depends = [str(p) for p in sorted((SOURCES / "libshard").rglob("*.ptx"))]
        missing = []
        for header, call, library, package, required in NEEDED:
            word = self.links(header, call, library)
            if word:
                extension.extra_link_args.append(word)
            elif required:
                missing.append(f"  <{header}>{f' and lib{library}' if library else ''}: {package}")
            if library == "uring":
                unused = "engine_uring.c" if not word else "engine_uring_stub.c"
                extension.sources = [s for s in extension.sources if not s.endswith(unused)]
        if missing:
            raise SystemExit("libshard cannot be built: the C compiler does not find\n" + "\n".join(missing))
        super().build_extensions()


class Sdist(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for part in ("python/core", "libshard", "include", "format/shard_format.h", "LICENSE"):
            source, target = SOURCES / part, Path(base_dir, "csrc", part)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)


class StableWheel(bdist_wheel):
    def get_tag(self):
        _, _, platform = super().get_tag()
        return "cp311", "abi3", platform


core = Extension(
    "libshard._core",
    sources=[],
    include_dirs=[str(SOURCES), str(SOURCES / "include")],
    extra_compile_args=[
        "-std=c11",
        "-pthread",
        "-O2",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fvisibility=hidden",
        "-D_GNU_SOURCE",
        "-D_FILE_OFFSET_BITS=64",
    ],
    extra_link_args=["-pthread", "-ldl", f"-Wl,--version-script={SOURCES / 'python' / 'core' / 'exports.map'}"],
    py_limited_api=True,
)

setup(
    version=version(),
    ext_modules=[core],
    cmdclass={"build_ext": BuildExtension, "sdist": Sdist, "bdist_wheel": StableWheel},
)
