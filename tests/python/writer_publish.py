# SPDX-License-Identifier: Apache-2.0
"""Writing: progress, what is published and when, the lives of writers; no dataset if it fails."""

import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import unittest

import data
import libshard
import numpy as np
from writing import Case, shards


class Progress(Case):
    def test_a_callback(self):
        seen = []
        libshard.pack({"x": np.arange(50)}, None, "ours", progress=lambda done, total: seen.append((done, total)))
        self.assertEqual(seen[-1], (50, 50))
        self.setUp()
        libshard.pack(
            ({"x": i} for i in range(50)), None, "ours", progress=lambda done, total: seen.append((done, total))
        )
        self.assertEqual(seen[-1], (50, None))

    def test_what_a_callback_raises_comes_out(self):
        def stop(done, total):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            libshard.pack({"x": np.arange(50)}, None, "ours", progress=stop)
        self.check_nothing()

    def test_a_line(self):
        import io

        before, sys.stderr = sys.stderr, io.StringIO()
        try:
            libshard.pack({"x": np.arange(50)}, None, "ours", progress=True)
            libshard.pack({"x": np.arange(50)}, None, "more")
            said = sys.stderr.getvalue()
        finally:
            sys.stderr = before
        self.assertRegex(said, r"\A(\rpacking: [0-9]+ of 50 records, [0-9]+ %, [0-9,]+/s, 0:0[0-9] left\x1b\[K)+\n\Z")
        self.assertIn("50 of 50 records, 100 %", said)


class Publishing(Case):
    def fill(self, writer, first=0, count=100):
        a = data.images(200)[first : first + count]
        writer.write_batch({"image": a["image"], "label": a["label"]})

    def test_nothing_is_there_before_the_end(self):
        with libshard.Writer("ours", shard_records=30) as writer:
            self.fill(writer)
            self.assertFalse(os.path.exists("ours/dataset.manifest"))
            with self.assertRaises(libshard.NotFoundError):
                libshard.open("ours")
            self.assertEqual((len(writer), writer.shard_records, writer.schema.names), (100, 30, ["image", "label"]))
        self.assertEqual(len(libshard.open("ours")), 100)
        self.assertEqual(os.stat("ours/00000.shard").st_nlink, 1)
        self.assertEqual(
            sorted(os.listdir("ours")), ["00000.shard", "00001.shard", "00002.shard", "00003.shard", "dataset.manifest"]
        )

    def test_an_exception_leaves_nothing(self):
        with self.assertRaisesRegex(RuntimeError, "mine"):
            with libshard.Writer("ours/deep", shard_records=30) as writer:
                self.fill(writer)
                raise RuntimeError("mine")
        self.assertEqual(os.listdir("ours"), [])
        with self.assertRaisesRegex(libshard.ClosedError, "this writer is aborted; open another one"):
            writer.write({})
        os.mkdir("more")
        with self.assertRaises(libshard.RecordError):
            libshard.pack([{"x": 1}, {"x": "a"}], None, "more")
        self.assertEqual(os.listdir("more"), [])

    def test_a_writer_that_nobody_finished(self):
        writer = libshard.Writer("ours", shard_records=30)
        self.fill(writer)
        with self.assertWarnsRegex(ResourceWarning, "neither finished nor aborted; nothing was kept"):
            del writer
            gc.collect()
        self.check_nothing()

    def test_a_killed_one_leaves_what_the_next_one_clears(self):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            writer = libshard.Writer("ours", shard_records=30)
            self.fill(writer)
            while len(shards("ours")) < 3:
                time.sleep(0.01)
            os.write(write, b"x")
            signal.pause()
        self.assertEqual(os.read(read, 1), b"x")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left = os.listdir("ours")
        self.assertEqual(
            [n for n in sorted(left) if not n.startswith(".tmp.")], ["00000.shard", "00001.shard", "00002.shard"]
        )
        self.assertEqual(len([n for n in left if n.startswith(".tmp.00003.shard.")]), 1)
        with self.assertRaises(libshard.NotFoundError):
            libshard.open("ours")
        inode = os.stat("ours/00001.shard").st_ino
        with libshard.Writer("ours", shard_records=30) as writer:
            self.assertEqual(len(os.listdir("ours")), 3)
            self.fill(writer)
        self.assertEqual(os.stat("ours/00001.shard").st_ino, inode)
        self.assertTrue(libshard.open("ours").verify(sha256=True).ok)
        self.assertEqual(len(os.listdir("ours")), 5)

    def test_other_shards_that_were_left_are_not_taken_over(self):
        libshard.pack({"x": np.arange(100)}, None, "ours", shard_records=30)
        os.unlink("ours/dataset.manifest")
        with self.assertRaisesRegex(
            libshard.ExistsError, "00000.shard: already exists and is another shard; it was left as it is; .* remove it, or write with replace"
        ):
            libshard.pack({"x": np.arange(1, 101)}, None, "ours", shard_records=30)
        with self.assertRaisesRegex(
            libshard.ExistsError, "holds 00002.shard, which another run left and this one does not make"
        ):
            libshard.pack({"x": np.arange(60)}, None, "ours", shard_records=30)
        self.assertEqual(len(os.listdir("ours")), 4)
        libshard.pack({"x": np.arange(60)}, None, "ours", shard_records=30, replace=True)
        self.assertEqual(len(os.listdir("ours")), 3)

    def test_a_shard_that_waits_when_another_one_fails(self):
        """Its temporary file stayed until the exception was forgotten, or for ever."""
        libshard.pack({"x": np.arange(5)}, None, "other")
        os.mkdir("ours")
        os.rename("other/00000.shard", "ours/00000.shard")
        try:  # assertRaises() clears the frames that hold it
            libshard.pack(({"x": i} for i in range(300)), None, "ours", shard_records=50)
        except libshard.ExistsError as e:
            self.assertEqual(os.listdir("ours"), ["00000.shard"], e)
        else:
            self.fail("not refused")

    def test_what_is_there_stays(self):
        libshard.pack({"x": np.arange(9)}, None, "ours")
        with self.assertRaisesRegex(
            libshard.ExistsError, "ours: holds a dataset; write to another folder, or with replace=True"
        ):
            libshard.Writer("ours")
        open("ours/mine.txt", "w").close()
        for replace in (False, True):
            with self.assertRaisesRegex(
                libshard.ExistsError, "holds 'mine.txt', which is not part of a dataset; nothing was touched"
            ):
                libshard.Writer("ours", replace=replace)
        with self.assertRaisesRegex(libshard.ExistsError, "a file, not a folder"):
            libshard.Writer("ours/mine.txt")
        os.unlink("ours/mine.txt")
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), list(range(9)))

    def test_replace_is_at_once(self):
        libshard.pack({"x": np.arange(9)}, None, "ours", shard_records=2)
        with self.assertRaises(KeyError):
            with libshard.Writer("ours", replace=True) as writer:
                writer.write({"x": 1})
                raise KeyError
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), list(range(9)))
        with open("ours/dataset.sources", "w") as f:
            f.write("fingerprints that shardpack keeps\n")
        with libshard.Writer("ours", replace=True) as writer:
            writer.write_batch({"x": np.arange(5)})
            self.assertEqual(len(libshard.open("ours")), 9)
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), list(range(5)))
        self.assertEqual(sorted(os.listdir("ours")), ["00000.shard", "dataset.manifest"])
        self.assertFalse(os.path.exists(".ours.new"))

    def test_the_disk_refuses(self):
        if os.geteuid() == 0:
            child = os.fork()
            if not child:
                os.setuid(65534)
                try:
                    libshard.Writer("/proc/ours")
                except OSError:
                    os._exit(0)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        with data.files_of_at_most(1 << 16):
            with self.assertRaisesRegex(libshard.StorageError, "ours/00000.shard") as caught:
                libshard.pack({"x": np.zeros((100, 4096), np.uint8)}, None, "ours")
            self.assertNotEqual(caught.exception.errno, 0)
        self.check_nothing()


def write_in_child(writer, queue):
    said = []
    for call in (lambda: writer.write({"x": 1}), lambda: writer.write_batch({"x": [1]}), writer.finish):
        try:
            call()
            said.append("nothing")
        except libshard.ArgumentError as e:
            said.append(str(e))
    writer.abort()
    writer._shard.close()
    del writer
    gc.collect()
    queue.put(said)


class Lives(Case):
    def test_a_forked_child_cannot_write(self):
        context = multiprocessing.get_context("fork")
        with libshard.Writer("ours") as writer:
            writer.write({"x": 1})
            queue = context.Queue()
            child = context.Process(target=write_in_child, args=(writer, queue))
            child.start()
            for line in queue.get(timeout=60):
                self.assertRegex(line, "belongs to process [0-9]+; a forked child must open its own, in another folder")
            child.join()
            self.assertEqual(child.exitcode, 0)
            writer.write({"x": 2})
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), [1, 2])
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(writer)

    def test_ctrl_c_is_heard(self):
        class Heard(Exception):
            pass

        def raise_(number, frame):
            raise Heard

        # 64 GiB of one page: ten seconds of work, and more
        a = np.broadcast_to(np.zeros((1, 4096), np.uint8), (1 << 24, 4096))
        before = signal.signal(signal.SIGALRM, raise_)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            begin = time.process_time()  # others may have the CPU meanwhile
            with self.assertRaises(Heard):
                with libshard.Writer("ours", compress="lz4", shard_records=1 << 20) as writer:
                    writer.write_batch({"x": a})
            self.assertLess(time.process_time() - begin, 3)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.check_nothing()

    def test_other_threads_run_meanwhile_and_are_refused_here(self):
        a = np.broadcast_to(np.zeros((1, 65536), np.uint8), (4096, 65536))  # 256 MiB
        with libshard.Writer("ours", "x:u8[65536]", compress="lz4") as writer:
            thread = threading.Thread(target=lambda: writer.write_batch({"x": a}))
            thread.start()
            ran, refused = 0, 0
            while thread.is_alive():
                ran += 1
                try:
                    if writer._shard is not None:
                        writer._shard.append({"x": a[0]}, None, 0)
                except libshard.ArgumentError as e:
                    self.assertIn("another thread writes to this shard", str(e))
                    refused += 1
            self.assertGreater(ran, 100)
            self.assertGreater(refused, 10)
            writer.abort()

    def test_objects_that_write_back(self):
        """A value that is asked what it is may call the writer that asks."""

        class Evil:
            @property
            def __array_interface__(self):
                writer.write({"x": 1})

        with libshard.Writer("ours", "x:i64") as writer:
            with self.assertRaisesRegex(libshard.ArgumentError, "another thread"):
                writer._shard or writer._current()
                writer._shard.append(Items(lambda: writer._shard.append({"x": 1}, None, 0)), None, 0)
            with self.assertRaises(libshard.Error):
                writer.write({"x": Evil()})
            writer.write({"x": 5})
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), [5])

    def test_memory_comes_back(self):
        """What is in use, and not what the process has: that depends on when which thread asked."""

        def in_use():
            gc.collect()
            info = mallinfo2()
            with open("/proc/self/statm") as f:
                resident = int(f.read().split()[1]) * 4096
            return info.uordblks + info.hblkhd, sys.getallocatedblocks(), resident

        a = data.images(100)
        for round_ in range(60):
            with libshard.Writer("ours", shard_records=60, replace=True) as writer:
                writer.write_batch({"image": a["image"], "label": a["label"]})
                for i in range(50):
                    writer.write({"image": a["image"][i], "label": 3})
                    with self.assertRaises(libshard.RecordError):
                        writer.write({"image": a["image"][i, 1:], "label": 3})
            if round_ == 9:
                before = in_use()
        used = [now - then for now, then in zip(in_use(), before)]
        for grown, limit in zip(used, (256 << 10, 2000, 64 << 20)):
            self.assertLess(grown, limit)


class Mallinfo2(ctypes.Structure):
    """As malloc.h of glibc 2.33 and later has it."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo2


class Items(dict):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def __missing__(self, name):
        self.call()

    def __iter__(self):
        self.call()
        return iter(())


if __name__ == "__main__":
    unittest.main()
