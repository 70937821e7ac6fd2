#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""convert.py [--count N] [--only KIND,...] WORK - what it takes to pack the formats of other loaders

Makes N images (JPEG, about 20 KB each), writes them in each format by its own writer, and times the
one command, or the lines of Python, that docs/MIGRATING.md shows.  Prints the table of that page:
seconds of wall time and of CPU time of all processes, and images of all formats in a second.  Run it
on a machine that does nothing else; the sources are in the page cache.

The writers are in the virtual environments of `make check-convert`.  MXNET=python and FFCV=python
name those of MXNet and FFCV, as for tests/python/clients/_convert.sh.  WORK is made, and removed;
it needs 2 GB for 10,000 images.  Needs NumPy and Pillow, and what `make all tests` builds.
"""

import argparse
import io
import multiprocessing
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build")).resolve()
VENV = pathlib.Path(os.environ.get("VENV", BUILD / "venv")).resolve()
SIZE = ["--resize", "256", "--crop", "224", "-q"]
# How its writer is called on the page, the environment that has it, and the package whose version is shown.
KINDS = {
    "folder": ("a folder of JPEG files", None, None), "webdataset": ("WebDataset", "sources", "webdataset"),
    "tfrecord": ("TFRecord", "convert", "tfrecord"), "mds": ("MDS", "convert", "mosaicml-streaming"),
    "mds_zstd": ("MDS, Zstandard", "convert", "mosaicml-streaming"), "litdata": ("LitData", "convert", "litdata"),
    "recordio": ("RecordIO", "MXNET", "mxnet"), "beton_jpg": ("`.beton`, JPEG", "FFCV", "ffcv"), "lmdb": ("LMDB", "convert", "lmdb"),
    "parquet": ("Parquet", "sources", "datasets"), "arrow": ("Arrow", "sources", "pyarrow"),
    "huggingface": ("Hugging Face, `save_to_disk`", "sources", "datasets"), "hdf5": ("HDF5", "sources", "h5py"),
    "zarr": ("Zarr, pixels", "sources", "zarr"),
}  # fmt: skip
ENDINGS = {"parquet": ".parquet", "arrow": ".arrow", "hdf5": ".h5", "zarr": ".zarr"}
OPTIONS = {"lmdb": ["--no-label"], "beton_jpg": ["--image", "image"]}


def make_image(job):
    path, i = job
    rng = np.random.default_rng(i)
    small = Image.fromarray(rng.integers(0, 256, (15, 20, 3), "u1"))
    image = np.asarray(small.resize((400, 300), Image.Resampling.BICUBIC)) + rng.normal(0, 5, (300, 400, 1))
    out = io.BytesIO()
    Image.fromarray(image.clip(0, 255).astype("u1")).save(out, "JPEG", quality=75)
    path.write_bytes(out.getvalue())
    return out.tell()


def python_of(where):
    """The interpreter that has a writer; None if there is none."""
    found = os.environ.get(where) if where in ("MXNET", "FFCV") else VENV / where / "bin/python"
    return str(found) if found and shutil.which(found) else None


def timed(command, env):
    """Wall and CPU seconds of a program and of all that it starts."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, env=env)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def command_of(kind, source, env):
    """What a user runs.  Of what needs no index, libshard.convert says it."""
    python = python_of("sources" if kind in ENDINGS or kind == "huggingface" else "convert") or sys.executable
    if kind == "folder":
        return ["shardpack", "images", source, "-o", "ds", *SIZE]
    if kind == "webdataset":
        return ["shardpack", "images", *map(str, sorted(pathlib.Path(source).glob("*.tar"))), "-o", "ds", *SIZE]
    convert = [python, "-m", "libshard.convert", kind.partition("_")[0], source, "ds"]
    if kind not in ENDINGS and kind != "huggingface":
        return [*convert, *SIZE, *OPTIONS.get(kind, [])]
    said = subprocess.run(convert, env=env, stderr=subprocess.PIPE, text=True).stderr.splitlines()[1:]
    lines = "\n".join(line.strip() for line in said)
    return [python, "-c", lines.replace("schema, ", "None, ") if kind == "zarr" else lines]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("work")
    args = parser.parse_args()
    work = pathlib.Path(args.work).resolve()
    work.mkdir(parents=True)
    os.chdir(work)
    env = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(BUILD / "python"),
           "HF_HOME": str(work / "hf"), "TQDM_DISABLE": "1"}  # fmt: skip
    env["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
    try:
        jobs = [(work / f"folder/class_{i % 10}/{i:05}.jpg", i) for i in range(args.count)]
        for k in range(10):
            (work / f"folder/class_{k}").mkdir(parents=True)
        with multiprocessing.Pool(2) as pool:
            size = sum(pool.imap_unordered(make_image, jobs, 64))
        print(f"{args.count:,} images of {size / args.count / 1000:.1f} KB; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
        print("| format | writer | wall | CPU | images/s |\n|---|---|--:|--:|--:|", flush=True)
        for kind in args.only.split(","):
            name, where, package = KINDS[kind]
            source = kind + ENDINGS.get(kind, "")
            if where is not None:
                python = python_of(where)
                if python is None:
                    print(f"| {name} | {package}: not installed | | | |", flush=True)
                    continue
                writer = [python, str(ROOT / "tests/python/clients/convert_writers.py"), kind, "folder", source, "224"]
                run = subprocess.run(writer, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if run.returncode:
                    sys.exit(f"{kind}: {run.stdout}")
                code = f"import importlib.metadata as m; print(m.version({package!r}))"
                version = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
            os.sync()  # so that the command does not wait for what the writer wrote
            wall, cpu = timed(command_of(kind, source, env), env)
            count = f"import libshard; assert len(libshard.open('ds')) == {args.count}"
            subprocess.run([sys.executable, "-c", count], env=env, check=True)
            writer = f"{package} {version}" if where else ""
            print(f"| {name} | {writer} | {wall:.1f} s | {cpu:.1f} s | {args.count / wall:,.0f} |", flush=True)
            shutil.rmtree("ds")
            if where is not None:
                shutil.rmtree(source) if os.path.isdir(source) else os.unlink(source)
    finally:
        os.chdir(ROOT)
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
