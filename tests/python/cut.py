# SPDX-License-Identifier: Apache-2.0
"""Shards that are cut under an open dataset: each way to read a record is an exception, and no
SIGBUS.

Each way is tried in a child, on a copy of the dataset.  The child reads all records and takes what
it needs, so that all is hashed and in memory, cuts the shards, and then reads.  A disk that fails
under a map sends the same signal.
"""

import contextlib
import copy
import ctypes
import faulthandler
import io
import os
import pickle
import shutil
import signal
import threading
import time
import unittest

import data
import libshard
import numpy as np

COUNT = 40
RAISED, VALUE, OTHER = 10, 11, 12  # how a child ends: StorageError, a value, another exception


def make(path, compress):
    """A large group, a small one with numbers and text, and keys."""
    schema = "image:u8[40,40,3],label:i64,scale:f32,corner:i32[2],text:text[<=40],raw:bytes[<=40],boxes:f32[<=6,4]"
    with libshard.Writer(path, schema, keys=True, compress=compress, classes=["cat", "dog"]) as writer:
        for i in range(COUNT):
            boxes = np.full((i % 7, 4), i, np.float32)
            writer.write(
                {"image": np.full((40, 40, 3), i, np.uint8), "label": i % 2, "scale": i / 2, "corner": [i, 9],
                 "text": f"picture {i}", "raw": b"x" * (i % 9), "boxes": boxes},
                key=f"folder/{i}",
            )  # fmt: skip


def dlpack(a):
    """What a consumer of a capsule reads, as torch.from_dlpack does."""
    capsule = a.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.string_at((ctypes.c_uint64 * 1).from_address(pointer(capsule, b"dltensor"))[0], a.nbytes)


def interface(a):
    return ctypes.string_at(a.__array_interface__["data"][0], a.nbytes)


def write(image):
    with libshard.Writer(f"again.{os.getpid()}.{time.monotonic_ns()}", "image:u8[40,40,3]") as writer:
        writer.write({"image": image})


def in_thread(ds):
    out = []

    def work():
        try:
            out.append(ds[3])
        except libshard.Error as e:
            out.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(out[0], libshard.Error):
        raise out[0]


def under_another_handler(ds):
    """As in a worker of a DataLoader, where PyTorch puts a handler in the place of ours."""
    pid = os.fork()
    if pid:
        status = os.waitpid(pid, 0)[1]
        if status != RAISED << 8:
            raise AssertionError(status)
        return ds[3]
    signal.signal(signal.SIGBUS, signal.SIG_DFL)
    os._exit(outcome(lambda: np.asarray(ds[3]["image"])))


def under_faulthandler(ds):
    faulthandler.enable()  # above ours; it puts ours back, and raises the signal again
    return np.asarray(ds[3]["image"])


# What is taken before the cut, and what is done with it after it.
WAYS = {
    "record": (lambda ds: ds, lambda ds: ds[3]["label"]),
    "asarray": (lambda ds: ds[3]["image"], np.asarray),
    "array": (lambda ds: ds[3]["image"], np.array),
    "asarray of a new one": (lambda ds: ds, lambda ds: np.asarray(ds[3]["image"])),
    "stack": (lambda ds: [ds[i]["image"] for i in (3, 4)], np.stack),
    "__array__": (lambda ds: ds[3]["image"], lambda a: a.__array__()),
    "__array_interface__": (lambda ds: ds[3]["image"], interface),
    "dlpack": (lambda ds: ds[3]["image"], dlpack),
    "numpy.from_dlpack": (lambda ds: ds[3]["image"], np.from_dlpack),
    "a copy by dlpack": (lambda ds: ds[3]["image"], lambda a: a.__dlpack__(max_version=(1, 0), copy=True)),
    "memoryview": (lambda ds: ds[3]["image"], lambda a: bytes(memoryview(a))),
    "bytes": (lambda ds: ds[3]["image"], bytes),
    "copy": (lambda ds: ds[3]["image"], lambda a: a.copy()),
    "tobytes": (lambda ds: ds[3]["image"], lambda a: a.tobytes()),
    "tolist": (lambda ds: ds[3]["image"], lambda a: a.tolist()),
    "pickle of numbers": (lambda ds: ds[3]["image"], lambda a: pickle.dumps(np.asarray(a))),
    "pickle": (lambda ds: ds[3], pickle.dumps),
    "deepcopy": (lambda ds: ds[3], copy.deepcopy),
    "comparison": (lambda ds: ds[3]["image"], lambda a: a == 3),
    "arithmetic": (lambda ds: ds[2:5]["image"], lambda a: 255 - a),
    "a method of NumPy": (lambda ds: ds[3]["image"], lambda a: a.mean()),
    "numpy()": (lambda ds: ds[3]["image"], lambda a: a.numpy()),
    "mask": (lambda ds: ds[3]["image"], lambda a: a[[True] * 20 + [False] * 20]),
    "one of several axes": (lambda ds: ds[3]["image"], lambda a: a[1, 2, 0]),
    "item": (lambda ds: ds[3]["corner"], lambda a: a[:1].item()),
    "element": (lambda ds: ds[3]["corner"], lambda a: a[1]),
    "iteration of an array": (lambda ds: ds[3]["corner"], list),
    "repr": (lambda ds: ds[3]["corner"], repr),
    "print of a record": (lambda ds: ds[3], lambda r: print(r, file=io.StringIO())),
    "ragged": (lambda ds: ds[3]["boxes"], np.asarray),
    "slice": (lambda ds: ds, lambda ds: np.asarray(ds[2:5]["image"])),
    "slice that was taken": (lambda ds: ds[2:5]["image"], np.asarray),
    "slice with a step": (lambda ds: ds[2:30:3]["image"], lambda a: a.copy()),
    "slice backwards": (lambda ds: ds[::-1]["corner"], lambda a: a.tolist()),
    "column": (lambda ds: ds[:]["label"], np.asarray),
    "column of text": (lambda ds: ds[:]["text"], lambda a: a.tobytes()),
    "row of a slice": (lambda ds: ds[2:5]["image"], lambda a: np.asarray(a[1])),
    "gather": (lambda ds: ds, lambda ds: np.asarray(ds[[1, 2]]["image"])),
    "iteration": (lambda ds: ds, lambda ds: [np.asarray(r["image"]) for r in ds]),
    "key": (lambda ds: ds, lambda ds: ds.key(3)),
    "writer": (lambda ds: ds[3]["image"], write),
    "loader": (lambda ds: ds, lambda ds: list(b["label"] for b in libshard.Loader(ds, 8))),
    "thread": (lambda ds: ds, in_thread),
    "handler": (lambda ds: ds, under_another_handler),
    "faulthandler": (lambda ds: ds, under_faulthandler),
}
SHOWN = {  # these say what went wrong in the place of each record
    "show": lambda ds: repr(ds.show(range(3, 5))),
    "notebook": lambda ds: ds.show(range(3, 5))._repr_html_(),
}


def is_mapped(taken):
    """Will this be read from the map?  Asks the system, not libshard."""
    if isinstance(taken, libshard.Dataset):
        return True
    if isinstance(taken, libshard.Array):
        return (data.file_at(taken.data_ptr) or "").endswith(".shard")
    parts = taken.values() if isinstance(taken, dict) else taken if isinstance(taken, list) else ()
    return any(map(is_mapped, parts))


def outcome(use):
    try:
        use()
    except libshard.StorageError as e:
        return RAISED if "its bytes cannot be read any more" in e.message else OTHER
    except BaseException:
        return OTHER
    return VALUE


def cut(path):
    for name in os.listdir(path):
        if name.endswith(".shard"):
            os.truncate(f"{path}/{name}", 0)


def in_child(path, work, **options):
    """How a child ends that reads all records of a copy, takes, cuts, and uses twice."""
    take, use = work
    pid = os.fork()
    if not pid:
        status = OTHER
        with contextlib.suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # of those that must die
            mine = f"{path}.{os.getpid()}"
            shutil.copytree(path, mine)
            ds = libshard.open(mine, **options)
            for record in ds:
                bytes(repr(record), "utf-8")
            taken = take(ds)
            is_mapped(taken)  # looks into it, so it is read now
            cut(mine)
            status = outcome(lambda: use(taken))
            if outcome(lambda: use(taken)) != status:  # the signal must not stay blocked, say
                status = OTHER
        shutil.rmtree(mine)
        os._exit(status)
    status = os.waitpid(pid, 0)[1]
    for name in os.listdir():
        if name == f"{path}.{pid}":
            shutil.rmtree(name)  # it died
    return status


class Cut(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        make("raw", None)
        make("lz4", "lz4")
        libshard.pack(({"image": np.full((40, 40, 3), i, np.uint8)} for i in range(COUNT)), None, "bare")

    def test_each_way_is_an_exception(self):
        for path in ("raw", "lz4"):
            ds = libshard.open(path)
            raised = 0
            for name, work in WAYS.items():
                want = RAISED if is_mapped(work[0](ds)) else VALUE
                self.assertEqual(in_child(path, work), want << 8, (path, name))
                raised += want == RAISED
            self.assertGreaterEqual(raised, len(WAYS) if path == "raw" else 14)

    def test_without_the_guard_each_way_is_the_end(self):
        for name, work in WAYS.items():
            status = in_child("raw", work, guard=False)
            self.assertNotIn(status, (RAISED << 8, VALUE << 8), name)

    def test_verify_opens_shards_of_its_own_and_finds_it(self):
        def verify(ds):
            try:
                ds.verify()
            except libshard.CorruptError as e:
                if "the file has 0 bytes" not in str(e):
                    raise

        for guard in (True, False):
            self.assertEqual(in_child("raw", (lambda ds: ds, verify), guard=guard), VALUE << 8)

    def test_what_is_shown_says_it(self):
        def says(show, path):
            text = show(path)
            if text.count("cannot be read any more") != 2:
                raise AssertionError(text)

        for path in ("raw", "lz4", "bare"):
            for name, show in SHOWN.items():
                if (path, name) == ("bare", "show"):  # it has no values to show
                    continue
                work = (lambda ds: ds, lambda ds, show=show: says(show, ds))
                self.assertEqual(in_child(path, work), VALUE << 8, (path, name))

    def test_long_arrays(self):
        """NumPy gets them as they lie in the file, and nobody guards NumPy.  All others do not."""
        libshard.pack({"x": np.zeros((1, 65 << 20), np.uint8)}, None, "wide")
        for name, use, want in (
            ("copy", lambda a: a.copy(), RAISED),
            ("copy for NumPy", lambda a: np.asarray(a.copy()), RAISED),
            ("tobytes", lambda a: a.tobytes(), RAISED),
            ("dlpack", dlpack, RAISED),
            ("part", lambda a: np.asarray(a[5:9]), RAISED),
            ("element", lambda a: a[5], RAISED),
            ("element of axes", lambda a: a[5,], RAISED),
            ("comparison", lambda a: a == 3, RAISED),
            ("method", lambda a: a.max(), RAISED),
            ("pickle", pickle.dumps, RAISED),
            ("NumPy", lambda a: np.asarray(a)[5], -signal.SIGBUS),
        ):
            status = in_child("wide", (lambda ds: ds[0]["x"], use))
            if want == RAISED:
                self.assertEqual(status, RAISED << 8, name)
            else:
                self.assertNotIn(status, (RAISED << 8, VALUE << 8, OTHER << 8), name)


if __name__ == "__main__":
    faulthandler.disable()  # it would be below ours, and not above
    unittest.main()
