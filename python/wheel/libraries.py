# SPDX-License-Identifier: Apache-2.0
"""libraries.py ARCH FOLDER|sources FOLDER|python-headers - build the static libraries that go into
the wheel, or only fetch their sources.

LIBRARIES is the one table of what the wheel contains: what is built, what `--version` names, whose
licences go along and what the SBOM lists all come from it.  A source is the tarball whose SHA-256
stands here, or nothing is built.  It is taken from the folder that WHEEL_SOURCES names.  If it is
not there, apt is asked for a source package that has it, at the mirror that this machine uses, and
it is put there: a later build needs no mirror.  Without that folder it lies in the build's.

Debian has most tarballs as the projects publish them.  Those with `dfsg` in their names were packed
again, without files that Debian may not have, and libyuv publishes none.  Mirrors drop what no
suite has any more.  A stable release keeps its tarballs for years, so rows have its versions, with
Debian's patches where faults were found in them.  Three rows are of testing, which changes.  In
November 2026 their stable versions needed patches that some mirrors lack: libpng 1.6.48 those of
deb13u6 (CVE-2026-46675; we do not know whether 1.6.58 has that fault), and xz 5.8.1 those of
deb13u2, whose fixes are in 5.8.4.  Of libavif 1.2.1 some mirrors have no source at all.  Where a
tarball has gone, its row needs the next one, or a folder WHEEL_SOURCES in which it was kept.

FOLDER gets `bin`, with a compiler named `cc` and its tools, and `prefix`, with headers, libraries
and their .pc files.  The compiler is Zig's clang, which brings glibc 2.28 to link with.
A library is built again when its row, its tarball, the compiler, FOLDER or a library that it needs
changes.
"""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

GLIBC = "2.28"
NOT_FETCHED = 77  # the exit status where a source is missing; a test is skipped then
# Label of an archive, as apt knows it -> its suites that have a tarball, or patches.
SUITES = {"Debian": ("sid", "forky", "trixie", "bookworm"), "Debian-Security": ("trixie-security",)}
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # meson comes by pip
FLAGS = "-fPIC -g0 -fno-sanitize=undefined -ffunction-sections -fdata-sections"
LIBC_CALLS = Path(__file__).resolve().with_name("libc_calls.h")


@dataclass(frozen=True)
class Library:
    name: str
    version: str
    home: str  # the project, where the tarball is published
    debian: str  # a source package that has the tarball
    tarball: str
    sha256: str
    licence: str  # an SPDX expression
    notices: tuple  # files of the tarball that hold it; of a source, the comments that state a copyright
    cmake: tuple | None = None  # options, and where CMakeLists.txt lies: "source=build/cmake"
    make: str = ""  # commands of sh where there is no CMakeLists.txt
    needs: tuple = ()
    patches: tuple = ()  # Debian's for faults that were found later: a .debian.tar and its SHA-256


LIBRARIES = [
    Library(
        "zlib", "1.3.1", "https://zlib.net", "zlib",
        "zlib_1.3.dfsg+really1.3.1.orig.tar.gz",
        "60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb", "Zlib", ("LICENSE",),
        # Not by its CMakeLists.txt: Debian leaves out contrib, which that wants.  Faults were found in gzwrite()
        # (CVE-2026-85091), so its files are left out, and in crc32_combine() (CVE-2026-27171).  Nothing calls these.
        make="""CFLAGS="-O3 $FLAGS" ./configure --static --prefix=$PREFIX >configure.log
            make libz.a; $AR d libz.a gzclose.o gzlib.o gzread.o gzwrite.o; make install""",
    ),
    Library(
        "zstd", "1.5.7", "https://facebook.github.io/zstd", "libzstd",
        "libzstd_1.5.7+dfsg.orig.tar.xz",
        "0c092ef267edce57ba7f3f2645c861f72eaf5e76273c6c3632869423464b90a5", "BSD-3-Clause", ("LICENSE",),
        cmake=("source=build/cmake", "-DZSTD_BUILD_PROGRAMS=OFF", "-DZSTD_BUILD_SHARED=OFF",
               "-DZSTD_BUILD_TESTS=OFF", "-DZSTD_LEGACY_SUPPORT=OFF", "-DZSTD_MULTITHREAD_SUPPORT=OFF"),
    ),
    Library(
        "lz4", "1.10.0", "https://lz4.org", "lz4", "lz4_1.10.0.orig.tar.gz",
        "537512904744b35e232912055ccf8ec66d768639ff3abe5788d90d792ec5f48b", "BSD-2-Clause", ("lib/LICENSE",),
        cmake=("source=build/cmake", "-DLZ4_BUILD_CLI=OFF", "-DLZ4_BUILD_LEGACY_LZ4C=OFF",
               "-DBUILD_STATIC_LIBS=ON"),
    ),
    Library(
        "xxhash", "0.8.3", "https://xxhash.com", "xxhash", "xxhash_0.8.3.orig.tar.gz",
        "aae608dfe8213dfd05d909a57718ef82f30722c392344583d3f39050c7f29a80", "BSD-2-Clause", ("LICENSE",),
        # Only the header: it is compiled into the library.
        make="""install -D -m644 xxhash.h $PREFIX/include/xxhash.h; install -d $PREFIX/lib/pkgconfig
            printf 'Name: xxhash\\nDescription: the header\\nVersion: 0.8.3\\nCflags: -I%s/include\\n' $PREFIX \\
                >$PREFIX/lib/pkgconfig/libxxhash.pc""",
    ),
    Library(
        "liburing", "2.9", "https://github.com/axboe/liburing", "liburing", "liburing_2.9.orig.tar.gz",
        "57e9b36e4ac1e46b8e0351dfb1694dc59638fc25e384b4ba36d87b800b16db1a", "MIT", ("LICENSE",),
        make="""# Its own way without libc needs a compiler that does not take -ffreestanding to mean "no headers".
            ./configure --prefix=$PREFIX --libdir=$PREFIX/lib --cc=$CC --use-libc >configure.log
            make -C src ENABLE_SHARED=0 CFLAGS="-O2 $FLAGS" AR=$AR RANLIB=$RANLIB liburing.a
            install -D -m644 src/liburing.a $PREFIX/lib/liburing.a
            install -m644 src/include/liburing.h $PREFIX/include
            cp -r src/include/liburing $PREFIX/include
            printf 'Name: liburing\\nDescription: io_uring\\nVersion: 2.9\\nLibs: -L%s/lib -luring\\nCflags: -I%s/include\\n' \\
                $PREFIX $PREFIX >$PREFIX/lib/pkgconfig/liburing.pc""",
    ),
    Library(
        "jansson", "2.14", "https://github.com/akheron/jansson", "jansson",
        "jansson_2.14.orig.tar.gz",
        "c739578bf6b764aa0752db9a2fdadcfe921c78f1228c7ec0bb47fa804c55d17b", "MIT", ("LICENSE",),
        cmake=("-DJANSSON_EXAMPLES=OFF", "-DJANSSON_BUILD_DOCS=OFF", "-DJANSSON_WITHOUT_TESTS=ON"),
    ),
    Library(
        "libjpeg-turbo", "2.1.5", "https://libjpeg-turbo.org", "libjpeg-turbo",
        "libjpeg-turbo_2.1.5.orig.tar.gz",
        "254f3642b04e309fee775123133c6464181addc150499561020312ec61c1bf7c",
        "IJG AND BSD-3-Clause AND Zlib", ("LICENSE.md", "README.ijg"),
        cmake=("-DENABLE_SHARED=OFF", "-DWITH_TURBOJPEG=OFF", "-DWITH_TOOLS=OFF", "-DWITH_TESTS=OFF",
               "-DREQUIRE_SIMD=ON"),
    ),
    Library(
        "libpng", "1.6.58", "http://www.libpng.org", "libpng1.6", "libpng1.6_1.6.58.orig.tar.gz",
        "a9d4df463d36a6e5f9c29bd6f4967312d17e996c1854f3511f833924eb1993cf", "libpng-2.0", ("LICENSE",),
        cmake=("-DPNG_SHARED=OFF", "-DPNG_TESTS=OFF", "-DPNG_TOOLS=OFF"), needs=("zlib",),
    ),
    Library(
        "libwebp", "1.5.0", "https://developers.google.com/speed/webp", "libwebp",
        "libwebp_1.5.0.orig.tar.gz",
        "7d6fab70cf844bf6769077bd5d7a74893f8ffd4dfb42861745750c63c2a5c92c", "BSD-3-Clause", ("COPYING", "PATENTS"),
        cmake=tuple(f"-DWEBP_BUILD_{what}=OFF" for what in (
            "ANIM_UTILS", "CWEBP", "DWEBP", "GIF2WEBP", "IMG2WEBP", "VWEBP", "WEBPINFO", "LIBWEBPMUX", "WEBPMUX",
            "EXTRAS")),
    ),
    Library(
        "giflib", "5.2.2", "https://giflib.sourceforge.net", "giflib", "giflib_5.2.2.orig.tar.gz",
        "be7ffbd057cadebe2aa144542fd90c6838c6a083b5e8a9048b8ee3b66b29d5fb", "MIT",
        ("COPYING", "openbsd-reallocarray.c"),
        make="""make CC=$CC AR=$AR OFLAGS="-O2 $FLAGS" libgif.a
            install -D -m644 libgif.a $PREFIX/lib/libgif.a; install -m644 gif_lib.h $PREFIX/include
            printf 'Name: libgif\\nDescription: GIF\\nVersion: 5.2.2\\nLibs: -L%s/lib -lgif\\nCflags: -I%s/include\\n' \\
                $PREFIX $PREFIX >$PREFIX/lib/pkgconfig/libgif.pc""",
        patches=("giflib_5.2.2-1+deb13u1.debian.tar.xz",
                 "a246d74352139ceae28e05fd270df6482c98a66357a4e5549f048e6446a246cf"),
    ),
    Library(
        "bzip2", "1.0.8", "https://sourceware.org/bzip2", "bzip2", "bzip2_1.0.8.orig.tar.gz",
        "ab5a03176ee106d3f0fa90e381da478ddae405918153cca248e682cd0c4a2269", "bzip2-1.0.6", ("LICENSE",),
        make="""make CC=$CC AR=$AR RANLIB=$RANLIB CFLAGS="-O2 -D_FILE_OFFSET_BITS=64 $FLAGS" libbz2.a
            install -D -m644 libbz2.a $PREFIX/lib/libbz2.a; install -m644 bzlib.h $PREFIX/include
            printf 'Name: bzip2\\nDescription: bzip2\\nVersion: 1.0.8\\nLibs: -L%s/lib -lbz2\\n' $PREFIX \\
                >$PREFIX/lib/pkgconfig/bzip2.pc""",
    ),
    Library(
        "xz", "5.8.4", "https://tukaani.org/xz", "xz-utils", "xz-utils_5.8.4.orig.tar.xz",
        "4ce24038fd4221e0d13bc1a2de7a4db56e90b92b3bf75321f6c14be73f65de4b", "0BSD", ("COPYING", "COPYING.0BSD"),
        cmake=tuple(f"-DXZ_{what}=OFF" for what in (
            "NLS", "TOOL_XZ", "TOOL_XZDEC", "TOOL_LZMADEC", "TOOL_LZMAINFO", "TOOL_SCRIPTS", "DOC")),
    ),
    Library(
        "libtiff", "4.7.0", "https://libtiff.gitlab.io/libtiff", "tiff", "tiff_4.7.0.orig.tar.bz2",
        "2b8b5c4e79cb2a4651796602e45d6179b7f18bc283feab417b8e881ef7e81862", "libtiff AND MIT AND BSD-4.3TAHOE",
        ("LICENSE.md", *(f"libtiff/tif_{part}.c" for part in (
            "fax3", "hash_set", "luv", "lzma", "lzw", "ojpeg", "pixarlog", "webp", "zstd"))),
        cmake=tuple(f"-D{what}=OFF" for what in (
            "tiff-tools", "tiff-tests", "tiff-contrib", "tiff-docs", "cxx", "lerc", "jbig", "libdeflate")),
        needs=("zlib", "libjpeg-turbo", "libwebp", "xz", "zstd"),
        patches=("tiff_4.7.0-3+deb13u3.debian.tar.xz",
                 "c0cbcb717e20a69964bfa7471cbb0137dd39a451434932972bc7fbcdb86345f8"),
    ),
    Library(
        "libarchive", "3.7.4", "https://www.libarchive.org", "libarchive", "libarchive_3.7.4.orig.tar.xz",
        "f887755c434a736a609cbd28d87ddbfbe9d6a3bb5b703c22c02f6af80a802735", "BSD-2-Clause AND BSD-3-Clause", ("COPYING",),
        # Only its filters for .bz2 and .xz are used.
        cmake=tuple(f"-DENABLE_{what}=OFF" for what in (
            "TEST", "TAR", "CPIO", "CAT", "UNZIP", "OPENSSL", "LIBXML2", "EXPAT", "ICONV", "ACL", "XATTR", "LIBB2",
            "LZO", "ZSTD", "LZ4", "ZLIB", "PCREPOSIX", "PCRE2POSIX", "NETTLE", "MBEDTLS", "CNG")), needs=("bzip2", "xz"),
        patches=("libarchive_3.7.4-4+deb13u1.debian.tar.xz",
                 "72da9703b642c6c9bc0432704f1ad14919c57f743336396b5f8aefaf9bf79874"),
    ),
    Library(
        "dav1d", "1.5.1", "https://www.videolan.org/projects/dav1d.html", "dav1d", "dav1d_1.5.1.orig.tar.xz",
        "401813f1f89fa8fd4295805aa5284d9aed9bc7fc1fdbe554af4292f64cbabe21", "BSD-2-Clause AND ISC",
        ("COPYING", "src/ext/x86/x86inc.asm"),
        make="""printf "[binaries]\\nc = '%s'\\nar = '%s'\\nstrip = 'true'\\n" $CC $AR >cross
            printf "[host_machine]\\nsystem = 'linux'\\nendian = 'little'\\n" >>cross
            printf "cpu_family = '%s'\\ncpu = '%s'\\n" $ARCH $ARCH >>cross
            CFLAGS="$FLAGS" meson setup --cross-file cross --prefix $PREFIX --libdir lib --buildtype release \\
                -Ddefault_library=static -Denable_tools=false -Denable_tests=false -Dlogging=false made
            meson install -C made""",
    ),
    Library(
        # Its numbers changed later.  Pillow has those of this one, and so do distributions.
        "libyuv", "1857", "https://chromium.googlesource.com/libyuv/libyuv",
        "libyuv", "libyuv_0.0~git20230123.b2528b0.orig.tar.gz",
        "cc22ebe94004ac2e5718acdc45980c6f3b83599f19f5bd768c5ca034de659eef", "BSD-3-Clause", ("LICENSE", "PATENTS"),
        # Its CMakeLists.txt wants programs and a shared library, too.  No function of C++ is called.
        make="""for f in source/*.cc; do
                $CC -O2 $FLAGS -fno-exceptions -fno-rtti -fno-threadsafe-statics -Iinclude -c $f -o $f.o; done
            $AR qcs libyuv.a source/*.o
            install -D -m644 libyuv.a $PREFIX/lib/libyuv.a; cp -r include/. $PREFIX/include
            printf 'Name: libyuv\\nDescription: colours\\nVersion: 1857\\nLibs: -L%s/lib -lyuv\\nCflags: -I%s/include\\n' \\
                $PREFIX $PREFIX >$PREFIX/lib/pkgconfig/libyuv.pc""",
    ),
    Library(
        "libavif", "1.4.2", "https://github.com/AOMediaCodec/libavif", "libavif", "libavif_1.4.2.orig.tar.gz",
        "2b645287340ba5a631d268b551dc2d72bd73ac33335962dd36dcdb6d8366921d", "BSD-2-Clause", ("LICENSE",),
        cmake=("-DAVIF_CODEC_DAV1D=SYSTEM", "-DAVIF_LIBYUV=SYSTEM"), needs=("dav1d", "libyuv"),
    ),
]


def stop(text, status=1):
    print(f"wheel: {text}", file=sys.stderr)
    sys.exit(status)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def apt_options(folder):
    """Of apt, for lists of its own in the folder, of Debian's sources; they are fetched here."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Created-By: Packages"]
    told = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    mirrors = sorted({(uri, label) for uri, _, label in (line.partition(" ") for line in told) if label in SUITES})
    if not mirrors:
        return []  # not Debian: there may be deb-src lines that help
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text("".join(
        f"deb-src {mirror} {suite} main\n" for mirror, label in mirrors for suite in SUITES[label]))
    options = {"Dir::State::lists": folder / "lists", "Dir::Cache": folder / "cache", "APT::Sandbox::User": "root",
               "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "/dev/null"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    print("  GET   lists of", ", ".join(s for _, label in mirrors for s in SUITES[label]), flush=True)
    subprocess.run(["apt-get", "-qq", *words, "update"], stdout=subprocess.DEVNULL)
    return words


def ask_apt(package, name, sha256, folder, lists):
    """Download the file into the folder if a source package has it, in whatever revision."""
    options = apt_options(lists)
    told = subprocess.run(["apt-cache", *options, "showsrc", package], capture_output=True, text=True).stdout
    print("  GET  ", name, flush=True)
    which = "--diff-only" if ".debian.tar." in name else "--tar-only"
    for record in told.split("\n\n"):
        version = re.search(r"^Version: (.+)$", record, re.M)
        if version and sha256 in record and not (folder / name).exists():
            command = ["apt-get", "-qq", *options, "source", "--download-only", which, f"{package}={version[1]}"]
            subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def source_file(library, name, sha256, folder):
    """The path of a tarball, or of its patches, once the SHA-256 was compared."""
    lists, given = folder / "apt", os.environ.get("WHEEL_SOURCES")
    if given and (os.access(given, os.W_OK) or Path(given, name).exists()):
        folder = Path(given).resolve()
    path = folder / name
    if not path.exists() and shutil.which("apt-get"):
        folder.mkdir(parents=True, exist_ok=True)
        ask_apt(library.debian, name, sha256, folder, lists)
    if not path.exists():
        stop(f"there is no {name}, and apt got no source package {library.debian} with SHA-256 {sha256} "
             f"from the mirror of this machine.  Download {library.name} {library.version} from {library.home}, or "
             f"Debian's copy of it, under that name, and set WHEEL_SOURCES to its folder", NOT_FETCHED)
    if digest(path) != sha256:
        stop(f"{path}: its SHA-256 is {digest(path)}, not {sha256}; remove it or get the right one")
    return path


def make_compiler(arch, folder):
    """Commands for programs that want one word; returns the folder."""
    try:
        import ziglang
    except ImportError:
        stop(f"the compiler is missing: {sys.executable} -m pip install ziglang")
    zig = Path(ziglang.__file__).parent / "zig"
    # CMake tries c++ where a project names C++, though nothing that is built calls a function of it.  `zig c++`
    # compiles all of libc++ for that, which takes as long as five of the libraries.
    tools = {word: f"cc -target {arch}-linux-gnu.{GLIBC}" for word in ("cc", "c++")} | {"ar": "ar", "ranlib": "ranlib"}
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in tools.items():
        path, text = folder / name, f'#!/bin/sh\nexec "{zig}" {words} "$@"\n'
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            path.chmod(0o755)
    return zig


def check_programs(arch, path):
    needed = ["make", "patch", "cmake", "pkg-config", "meson", "ninja"] + (["nasm"] if arch == "x86_64" else [])
    missing = [program for program in needed if not shutil.which(program, path=path)]
    if missing:
        stop(f"missing here: {' '.join(missing)}.  'make deps DEPS=wheel' installs those of the system, and "
             f"those of Python come by 'make -B {sys.prefix}/packages'")


def run(command, log, **more):
    with open(log, "ab") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **more)
    if done.returncode:
        sys.stderr.write(Path(log).read_bytes()[-4000:].decode("utf-8", "replace"))
        stop(f"{command[0]} failed with status {done.returncode}; all that it said is in {log}")


def build(library, arch, folder, tarball, patches=None):
    source, made = folder / "source" / library.name, folder / "made" / library.name
    for path in (source, made):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    log, prefix, tools = folder / f"{library.name}.log", folder / "prefix", folder / "bin"
    log.unlink(missing_ok=True)
    run(["tar", "-x", "--strip-components=1", "-C", str(source), "-f", str(tarball)], log)
    if patches:
        run(["tar", "-x", "-C", str(source), "-f", str(patches)], log)
        series = source / "debian" / "patches"
        for patch in (series / "series").read_text().split():
            run(["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "-i", str(series / patch)], log, cwd=source)
    flags = f"{FLAGS} -include {LIBC_CALLS} -ffile-prefix-map={source}=. -ffile-prefix-map={made}=."
    jobs = f"-j{os.environ.get('JOBS', os.cpu_count())}"
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "CFLAGS", "LDFLAGS")}
    environment |= {
        "PKG_CONFIG_LIBDIR": str(prefix / "lib" / "pkgconfig"), "PREFIX": str(prefix), "FLAGS": flags,
        "ARCH": arch, "PATH": PATH,
        "CC": str(tools / "cc"), "AR": str(tools / "ar"), "RANLIB": str(tools / "ranlib"),
    }
    if library.cmake is None:
        run(["sh", "-ec", library.make], log, cwd=source, env=environment)
        return
    where = [source / o.partition("=")[2] for o in library.cmake if o.startswith("source=")]
    options = [o for o in library.cmake if not o.startswith("source=")]
    run(["cmake", "-S", str(where[0] if where else source), "-B", str(made), "-G", "Unix Makefiles",
         "-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={arch}",
         f"-DCMAKE_C_COMPILER={tools / 'cc'}", f"-DCMAKE_CXX_COMPILER={tools / 'c++'}",
         f"-DCMAKE_AR={tools / 'ar'}", f"-DCMAKE_RANLIB={tools / 'ranlib'}",
         "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_C_FLAGS={flags}", "-DCMAKE_C_FLAGS_RELEASE=-O3 -DNDEBUG",
         f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR:STRING=lib", f"-DCMAKE_FIND_ROOT_PATH={prefix}",
         "-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER", "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY",
         "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY", "-DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY",
         "-DBUILD_SHARED_LIBS=OFF", "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", *options], log, env=environment)
    run(["cmake", "--build", str(made), jobs], log, env=environment)
    run(["cmake", "--install", str(made)], log, env=environment)


def main(arch, folder):
    folder = Path(folder).resolve()
    check_programs(arch, PATH)
    zig = make_compiler(arch, folder / "bin")
    compiler = subprocess.run([zig, "version"], capture_output=True, text=True, check=True).stdout
    keys = {}
    sources = fetch(folder.parent / "sources")
    for library in LIBRARIES:
        needed = [keys[n] for n in library.needs]
        # In another folder, too: .pc files have its path, and would name libraries of the old one.
        made_of = library, compiler, FLAGS, LIBC_CALLS.read_text(), GLIBC, folder, needed
        keys[library.name] = hashlib.sha256(repr(made_of).encode()).hexdigest()
        stamp = folder / f"{library.name}.built"
        if stamp.exists() and stamp.read_text() == keys[library.name]:
            continue
        print("  BUILD", library.name, library.version, flush=True)
        build(library, arch, folder, *sources[library.name])
        stamp.write_text(keys[library.name])


def fetch(folder):
    """Name of a library -> its tarball, and that of its patches, if there are any."""
    return {
        library.name: [source_file(library, *file, folder)
                       for file in ((library.tarball, library.sha256), library.patches) if file]
        for library in LIBRARIES
    }


def python_headers():
    """Flags of the compiler.  The stable ABI makes headers of any CPython from 3.11 on do.

    Debian's pyconfig.h includes one in a folder that also holds headers of glibc, so that comes last.
    """
    flags = ["-isystem", sysconfig.get_path("include")]
    if multiarch := sysconfig.get_config_var("MULTIARCH"):
        flags += ["-idirafter", f"/usr/include/{multiarch}"]
    return " ".join(flags)


if __name__ == "__main__":
    if sys.argv[1:] == ["python-headers"]:
        print(python_headers())
    elif sys.argv[1] == "sources":
        fetch(Path(sys.argv[2]).resolve())
    else:
        main(*sys.argv[1:])
