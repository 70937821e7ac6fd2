# SPDX-License-Identifier: Apache-2.0
"""wheel.py ARCH FOLDER OUT - put what was built into a wheel, with its licences and its SBOM.

FOLDER/build has the commands, the extension and the pages, FOLDER/source the libraries' sources.
Names are sorted, and every date is SOURCE_DATE_EPOCH or else the commit's, so that two builds of
one commit have one SHA-256.  METADATA is what pip itself would write, from pyproject.toml; only the
licences of what is inside are added.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from libraries import GLIBC, LIBRARIES, stop

ROOT = Path(__file__).resolve().parent.parent.parent
COMMANDS = ("shardpack", "shardcat")
# Parts of the compiler's runtime are linked in as well.
RUNTIME_LICENCE = "MIT"
# So is the code that starts a program.  With this exception it restricts nothing, as in every program
# of Linux, so the wheel's own expression does not name it.
START_LICENCE = "LGPL-2.1-or-later WITH GCC-exception-2.0-note"
PHOTOS_LICENCE = "CC0-1.0"
NOTICE = "libshard contains these libraries.  Their licences are in folders of their names.\n\n"
# What some licences want in the documentation.
ACKNOWLEDGED = """
This software is based in part on the work of the Independent JPEG Group.
The reader of LZW in TIFF files is derived from software that was developed by the University of
California, Berkeley.
"""


def metadata_of_pip():
    """METADATA as the build backend makes it, in a copy, because it writes beside its sources."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "python")
        shutil.copytree(ROOT / "python", copy, ignore=shutil.ignore_patterns("build", "dist", "*.egg-info", "wheel"))
        shutil.copytree(ROOT / "include", Path(folder, "include"))
        made = subprocess.run(
            [sys.executable, "-c", "import setuptools.build_meta as b; print(b.prepare_metadata_for_build_wheel('..'))"],
            cwd=copy, capture_output=True, text=True,
        )
        if made.returncode:
            stop(f"setuptools does not say the metadata:\n{made.stderr}")
        return Path(folder, made.stdout.split()[-1], "METADATA").read_text()


def licence_text(path):
    """A licence as it is; of a source, the comments that state a copyright."""
    text = path.read_text("utf-8")
    if path.suffix in (".c", ".asm"):
        comments = re.findall(r"/\*.*?\*/|(?:^;[^\n]*\n)+", text, re.DOTALL | re.MULTILINE)
        stated = [found.strip() for found in comments if re.search(r"copyright (\(c\)|©)", found, re.IGNORECASE)]
        if not stated:
            stop(f"{path}: no comment states a copyright; see what its library's row should name instead")
        text = "\n\n".join(stated) + "\n"
    return text.encode()


def licence_files(folder):
    """Name in dist-info/licenses -> bytes."""
    import ziglang

    zig = Path(ziglang.__file__).parent
    lines = [f"{library.name} {library.version}: {library.licence}\n" for library in LIBRARIES]
    files = {"LICENSE": (ROOT / "LICENSE").read_bytes()}
    files["NOTICE"] = (NOTICE + "".join(lines) + ACKNOWLEDGED).encode()
    for library in LIBRARIES:
        for notice in library.notices:
            path = folder / "source" / library.name / notice
            name = path.name + ".txt" * (path.suffix in (".c", ".asm"))
            files[f"{library.name}/{name}"] = licence_text(path)
    files["zig/LICENSE"] = licence_text(zig / "LICENSE")
    files["glibc/elf-init.c.txt"] = licence_text(zig / "lib" / "libc" / "glibc" / "csu" / "elf-init-2.33.c")
    files["photographs/LICENSES.txt"] = licence_text(ROOT / "examples" / "photos" / "LICENSES.txt")
    return files


def with_licences(metadata, names):
    head, _, text = metadata.partition("\n\n")
    lines = [line for line in head.split("\n") if not line.startswith(("License-Expression:", "License-File:"))]
    expression = "Apache-2.0"
    parts = {part for library in LIBRARIES for part in library.licence.split(" AND ")}
    parts |= {RUNTIME_LICENCE, PHOTOS_LICENCE}
    for part in sorted(parts):
        expression += f" AND {part}"
    lines += [f"License-Expression: {expression}"] + [f"License-File: {name}" for name in sorted(names)]
    return "\n".join(lines) + "\n\n" + text


def sbom(version, arch, when):
    """CycloneDX 1.6: what is inside, and the tarballs that it was built from."""
    import ziglang

    zig = subprocess.run([Path(ziglang.__file__).parent / "zig", "version"], capture_output=True, text=True, check=True)
    parts = [
        {
            "type": "library", "bom-ref": library.name, "name": library.name, "version": library.version,
            "purl": f"pkg:generic/{library.name}@{library.version}",
            "hashes": [{"alg": "SHA-256", "content": library.sha256}],
            "licenses": [{"expression": library.licence}],
            "externalReferences": [{"type": "website", "url": library.home}],
            "properties": [{"name": "libshard:tarball", "value": library.tarball},
                           {"name": "libshard:debian", "value": library.debian}]
            + [{"name": f"libshard:patches{what}", "value": value}
               for what, value in zip(("", ":SHA-256"), library.patches)],
        }
        for library in LIBRARIES
    ]
    parts += [
        {"type": "library", "bom-ref": "zig", "name": "zig", "version": zig.stdout.strip(),
         "description": "the compiler, whose runtime functions are linked in",
         "purl": f"pkg:pypi/ziglang@{zig.stdout.strip()}", "licenses": [{"expression": RUNTIME_LICENCE}]},
        {"type": "library", "bom-ref": "glibc", "name": "glibc", "version": GLIBC,
         "description": "the start of a program and forms of stat(), which are linked in; the rest is the system's",
         "purl": f"pkg:generic/glibc@{GLIBC}", "licenses": [{"expression": START_LICENCE}]},
        {"type": "data", "bom-ref": "photographs", "name": "photographs",
         "description": "what `shardpack demo` writes; some are CC0, the others in the public domain",
         "licenses": [{"license": {"id": PHOTOS_LICENCE}}, {"license": {"name": "public domain"}}]},
    ]
    whole = {"type": "library", "bom-ref": "libshard", "name": "libshard", "version": version,
             "purl": f"pkg:pypi/libshard@{version}", "licenses": [{"expression": "Apache-2.0"}],
             "properties": [{"name": "libshard:platform", "value": platform(arch)}]}
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)), "component": whole},
        "components": parts,
        "dependencies": [{"ref": "libshard", "dependsOn": [p["bom-ref"] for p in parts]}],
    }


def platform(arch):
    return f"manylinux_{GLIBC.replace('.', '_')}_{arch}"


def date():
    said = os.environ.get("SOURCE_DATE_EPOCH")
    if not said:
        told = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
        said = told.stdout.strip()
    if not said:
        stop("this is not a git checkout; set SOURCE_DATE_EPOCH to the date of the wheel, in seconds since 1970")
    return max(int(said), 315532800)  # a zip file begins in 1980


def contents(arch, folder, when):
    """Name in the wheel -> (mode, bytes), without RECORD."""
    build = folder / "build"
    metadata = metadata_of_pip()
    version = next(line.split()[1] for line in metadata.split("\n") if line.startswith("Version:"))
    info, data = f"libshard-{version}.dist-info", f"libshard-{version}.data"
    files = {}
    for path in sorted((build / "python" / "libshard").iterdir()):
        if path.is_file():
            files[f"libshard/{path.name}"] = (0o755 if path.suffix == ".so" else 0o644, path.read_bytes())
    for command in COMMANDS:
        files[f"{data}/scripts/{command}"] = (0o755, (build / "bin" / command).read_bytes())
    for path in sorted((build / "share").rglob("*")):
        if path.is_file():
            files[f"{data}/data/share/{path.relative_to(build / 'share')}"] = (0o644, path.read_bytes())
    licences = licence_files(folder)
    for name, text in licences.items():
        files[f"{info}/licenses/{name}"] = (0o644, text)
    tag = f"cp311-abi3-{platform(arch)}"
    texts = {
        "METADATA": with_licences(metadata, licences),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: libshard\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "top_level.txt": "libshard\n",
        "sboms/libshard.cdx.json": json.dumps(sbom(version, arch, when), indent=1) + "\n",
    }
    for name, text in texts.items():
        files[f"{info}/{name}"] = (0o644, text.encode())
    return f"libshard-{version}-{tag}.whl", info, files


def main(arch, folder, out):
    when = date()
    name, info, files = contents(arch, Path(folder).resolve(), when)
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b'=').decode()},{len(text)}\n"
        for path, (_, text) in sorted(files.items())
    )
    # By the order of pip: what says what the wheel is stands at its end.
    files[f"{info}/RECORD"] = (0o644, (record + f"{info}/RECORD,,\n").encode())
    target = Path(out, name)
    with zipfile.ZipFile(target.with_suffix(".part"), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for path in sorted(files, key=lambda p: (p.startswith(info), p.endswith("/RECORD"), p)):
            mode, text = files[path]
            entry = zipfile.ZipInfo(path, time.gmtime(when)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, text)
    os.replace(target.with_suffix(".part"), target)
    print(f"{hashlib.sha256(target.read_bytes()).hexdigest()}  {target}  {target.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
