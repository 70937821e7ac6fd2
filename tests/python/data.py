# SPDX-License-Identifier: Apache-2.0
"""Datasets for the tests, made by shardpack from what NumPy wrote, and what is in them."""

import contextlib
import os
import resource
import signal
import struct
import subprocess

import numpy as np

TOOLS = os.path.join(os.environ["BUILD"], "bin")
DTYPES = {
    "u8": "uint8",
    "i8": "int8",
    "u16": "uint16",
    "i16": "int16",
    "u32": "uint32",
    "i32": "int32",
    "u64": "uint64",
    "i64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "bool": "bool",
}


def shardpack(*args):
    # A sanitizer that is loaded into this process is no business of the tool's.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(
        [os.path.join(TOOLS, "shardpack"), *map(str, args), "-q"], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise RuntimeError(f"shardpack {args}: {done.stderr}")


def pack_raw(out, array, schema, *options):
    """One record for each element of a structured array."""
    array.tofile(f"{out}.bin")
    shardpack("raw", f"{out}.bin", "--schema", schema, "-o", out, "--order", "source", *options)
    return out


def images(n, side=40, seed=1):
    """Images of side x side with labels 0 to 4, as NumPy has them."""
    rng = np.random.default_rng(seed)
    a = np.zeros(n, np.dtype([("image", "u1", (side, side, 3)), ("label", "<i8")]))
    a["image"] = rng.integers(0, 256, a["image"].shape)
    a["label"] = np.arange(n) % 5
    return a


def pack_images(out, n, *options, side=40):
    a = images(n, side)
    pack_raw(out, a, f"image:u8[{side},{side},3],label:i64", *options)
    return a


def every_dtype(n):
    """A field of each dtype, [3] of them, with the greatest, smallest and oddest values."""
    fields = [(name, "<u2" if name == "bf16" else {"bool": "?"}.get(name, np.dtype(numpy)), (3,)) for name, numpy in
              ((k, v if v != "bfloat16" else "uint16") for k, v in DTYPES.items())]  # fmt: skip
    a = np.zeros(n, np.dtype(fields))
    rng = np.random.default_rng(2)
    for name, _, _ in fields:
        if name == "bool":
            a[name] = rng.integers(0, 2, (n, 3))
        else:
            a[name] = np.frombuffer(rng.bytes(a[name].nbytes), a[name].dtype).reshape(n, 3)
    return a


def dtype_schema():
    return ",".join(f"{name}:{name}[3]" for name in DTYPES)


def bfloat16(bits):
    return struct.unpack("<f", struct.pack("<I", int(bits) << 16))[0]


@contextlib.contextmanager
def files_of_at_most(bytes):
    """As on a full disk: a process that writes more to a file gets an error.  Processes that begin now inherit it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def maps():
    """Address ranges of this process, with the file of each."""
    out = []
    with open("/proc/self/maps") as f:
        for line in f:
            parts = line.split(None, 5)
            begin, end = (int(x, 16) for x in parts[0].split("-"))
            out.append((begin, end, parts[5].strip() if len(parts) > 5 else ""))
    return out


def file_at(address):
    for begin, end, name in maps():
        if begin <= address < end:
            return name
    return None
