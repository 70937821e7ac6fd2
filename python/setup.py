# SPDX-License-Identifier: Apache-2.0
"""Build the extension module, which holds the C library and needs nothing else; and by the Makefile
the commands shardpack and shardcat, with their pages.  LIBSHARD_COMMANDS=0 leaves the commands out.

The C sources are those of the repository around this folder.  An sdist has a copy of them, in
csrc/.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

from distutils.command.build_scripts import build_scripts  # of setuptools, so behind it

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "csrc" if (HERE / "csrc").is_dir() else HERE.parent

# What the compiler must find: header, a function of it, library, what to install, and whether we
# can do without.
NEEDED = [
    ("lz4.h", "LZ4_versionNumber()", "lz4", "liblz4-dev (Debian), lz4-devel (Fedora)", True),
    ("xxhash.h", "XXH_VERSION_NUMBER", "", "libxxhash-dev (Debian), xxhash-devel (Fedora)", True),
    ("liburing.h", "io_uring_queue_exit(0)", "uring", "liburing-dev (Debian), liburing-devel (Fedora)", False),
]

# The same for the commands: the name that pkg-config knows, and what to install.  What a build can do
# without is not here.
COMMANDS = [] if os.environ.get("LIBSHARD_COMMANDS") == "0" else ["shardpack", "shardcat"]
COMMANDS_NEED = [
    ("liblz4", "liblz4-dev", "lz4-devel"),
    ("libxxhash", "libxxhash-dev", "xxhash-devel"),
    ("libjpeg", "libjpeg-dev", "libjpeg-turbo-devel"),
    ("libpng", "libpng-dev", "libpng-devel"),
    ("libwebp", "libwebp-dev", "libwebp-devel"),
    ("libwebpdemux", "libwebp-dev", "libwebp-devel"),
    ("jansson", "libjansson-dev", "jansson-devel"),
    ("zlib", "zlib1g-dev", "zlib-devel"),
    ("libzstd", "libzstd-dev", "libzstd-devel"),
]
PROGRAMS_NEED = [
    ("pkg-config", "pkg-config", "pkgconf-pkg-config"),
    ("make", "make", "make"),
    ("awk", "gawk", "gawk"),
    ("readelf", "binutils", "binutils"),
    ("objcopy", "binutils", "binutils"),
]


def version():
    header = (SOURCES / "include" / "shard.h").read_text()
    return ".".join(re.search(rf"SHARD_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def check_commands():
    """Stop before anything is compiled if the commands need what is not here."""
    if not COMMANDS:
        return
    missing = [row for row in PROGRAMS_NEED if not shutil.which(row[0])]
    if not missing or missing[0][0] != "pkg-config":
        missing += [row for row in COMMANDS_NEED if subprocess.run(["pkg-config", "--exists", row[0]]).returncode]
    if missing:
        names, debian, fedora = (" ".join(dict.fromkeys(column)) for column in zip(*missing))
        raise SystemExit(
            f"shardpack and shardcat cannot be built without: {names}\n"
            f"  Debian: apt-get install {debian}\n  Fedora: dnf install {fedora}\n"
            "  LIBSHARD_COMMANDS=0 pip install ... installs the Python package without these commands."
        )


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
        check_commands()
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


class BuildCommands(build_scripts):
    """The commands are programs, so none of them is a file that was there before."""

    def get_source_files(self):
        return []

    def run(self):
        if not COMMANDS:
            return
        check_commands()
        build = Path(self.get_finalized_command("build").build_temp, "commands").resolve()
        made = subprocess.run(
            ["make", "-C", str(SOURCES), f"-j{os.cpu_count()}", f"BUILD={build}", "DEPS=skip", "WERROR=0",
             "CFLAGS=-O2", "LDFLAGS=-s", "commands"],
            env={k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "VARIANT")},
        )
        if made.returncode:
            raise SystemExit("shardpack and shardcat could not be built; see above, or set LIBSHARD_COMMANDS=0")
        self.mkpath(self.build_dir)
        for command in COMMANDS:
            self.copy_file(str(build / "bin" / command), str(Path(self.build_dir, command)))
        share = build / "share"
        self.distribution.data_files = [
            (f"share/{folder.relative_to(share)}", [str(p) for p in sorted(folder.iterdir()) if p.is_file()])
            for folder in sorted(p for p in share.rglob("*") if p.is_dir())
        ]


class Sdist(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        parts = ["python/core", "libshard", "include", "format/shard_format.h"]
        parts += ["Makefile", "tools", "docs/man", "docs/manual.awk", "docs/header_man.awk"]  # of the commands
        parts += ["examples/photos"]  # of `shardpack demo`
        for part in parts:
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
    scripts=COMMANDS,
    cmdclass={
        "build_ext": BuildExtension, "build_scripts": BuildCommands, "sdist": Sdist, "bdist_wheel": StableWheel,
    },
)
