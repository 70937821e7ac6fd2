# SPDX-License-Identifier: Apache-2.0
"""Windows over neighbouring records: what a loader delivers, and what its slow twin says.

The twin asks a loader for the order of records, reads each record by its number, and finds the ends
of episodes by looking at their numbers.
"""

import glob
import itertools
import unittest

import data
import numpy as np
from data import pack_raw

import libshard

LENGTHS = [5, 1, 1, 9, 2, 30, 1, 17, 3]


def records(lengths, side=4):
    n = sum(lengths)
    a = np.zeros(n, np.dtype([("image", "u1", (side, side, 3)), ("state", "<f4", (3,)), ("episode", "<i4")]))
    a["image"] = np.random.default_rng(len(lengths)).integers(0, 256, a["image"].shape)
    a["state"] = np.arange(3 * n).reshape(n, 3)
    a["episode"] = np.repeat(7 * np.arange(len(lengths)) - 7, lengths)  # with a number below 0
    return a


def pack(out, lengths, *options, side=4):
    a = records(lengths, side)
    pack_raw(out, a, f"image:u8[{side},{side},3],state:f32[3],episode:i32", *options)
    return a


def twin(episode, record, offsets):
    """The records of a window, and which of them are repeats."""
    same = np.flatnonzero(episode == episode[record])
    wanted = [record + o for o in offsets]
    return [min(max(w, same[0]), same[-1]) for w in wanted], [not same[0] <= w <= same[-1] for w in wanted]


def differences(ds, loader, offsets, epoch, batches, episode=None):
    """What is not as the twin says, as text."""
    episode = np.asarray(ds.column("episode")) if episode is None else episode
    row = 0
    for batch in batches:
        n = len(batch["image"])
        anchors = loader.indices(epoch, row, n).tolist()
        row += n
        for i, anchor in enumerate(anchors):
            want, repeats = twin(episode, anchor, offsets)
            if batch.index[i].tolist() != want:
                yield f"row {i}: index {batch.index[i].tolist()}, not {want}"
            flags = np.asarray(batch.flags[i])
            if (flags & libshard.EDGE > 0).tolist() != repeats or np.asarray(batch.valid[i]).tolist() != (flags == 0).tolist():
                yield f"row {i}: flags {flags.tolist()}, not {repeats}"
            rows = ds[want]
            for name in ("image", "state", "episode"):
                if not np.array_equal(np.asarray(batch[name])[i], np.asarray(rows[name])):
                    yield f"row {i}: field {name}"


class Windows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        pack("plain", LENGTHS)
        pack("shards", LENGTHS, "--shard-records", 7)
        pack("packed", LENGTHS, "--shard-records", 24, "--compress", "lz4")
        pack("large", [12, 1, 25], "--shard-records", 9, side=40)
        cls.sets = [libshard.open(name) for name in ("plain", "shards", "packed", "large")]

    def check(self, ds, offsets, **options):
        with libshard.Loader(ds, **options) as loader:
            count = 0
            for epoch in range(2):
                found = list(itertools.islice(differences(loader.dataset, loader, offsets, epoch, loader), 3))
                self.assertEqual(found, [], (options, ds))
                count += len(loader)
            self.assertGreater(count, 0)

    def test_windows_are_what_the_twin_says(self):
        for ds in self.sets:
            for window, offsets in (
                ((0, 0), [0]),
                ((-3, 0), [-3, -2, -1, 0]),
                ((-2, 4, 2), [-2, 0, 2, 4]),
                ((1, 3), [1, 2, 3]),
                (range(-40, -1, 9), list(range(-40, -1, 9))),
                ((-40, 40), list(range(-40, 41))),  # longer than an episode, and than the dataset
            ):
                for shuffle in (False, "global", "windows"):
                    options = {"tail": "keep", "shuffle": shuffle, "seed": 5}
                    self.check(ds, offsets, window=window, batch_size=4, **options)

    def test_a_window_that_would_leave_its_episode_can_be_dropped(self):
        for ds in self.sets:
            episode = np.asarray(ds.column("episode"))
            for window, offsets in (((-3, 0), range(-3, 1)), ((-1, 2), range(-1, 3)), ((2, 4), range(2, 5))):
                whole = [i for i in range(len(ds)) if not any(twin(episode, i, offsets)[1])]
                with libshard.Loader(ds, 3, window=window, window_edge="drop", shuffle="global") as loader:
                    self.assertEqual(loader.selection.records.tolist(), whole)
                    seen = [i for b in loader for i in (np.asarray(b.index)[:, 0] - offsets[0]).tolist()]
                    self.assertEqual(sorted(seen), whole)
                self.check(ds, list(offsets), window=window, window_edge="drop", batch_size=3, shuffle="windows")
        with self.assertRaisesRegex(libshard.ArgumentError, "windows from -99 to 0 within an episode: selects none"):
            libshard.Loader(self.sets[0], 3, window=(-99, 0), window_edge="drop").close()

    def test_ranks_divide_what_windows_are_around(self):
        ds = self.sets[1]
        for world, tail, edge in itertools.product((1, 2, 3), ("drop", "pad"), ("pad", "drop")):
            seen = []
            for rank in range(world):
                options = {"rank": rank, "world": world, "tail": tail, "seed": 2, "window_edge": edge}
                self.check(ds, [-2, -1, 0], window=(-2, 0), batch_size=5, shuffle="global", **options)
                with libshard.Loader(ds, 5, window=(-2, 0), shuffle="global", **options) as loader:
                    for b in loader:
                        padded = np.asarray(b.flags)[:, -1] & libshard.PADDED
                        seen += np.asarray(b.index)[:, -1][padded == 0].tolist()
            self.assertEqual(len(seen), len(set(seen)))
            if tail == "pad":
                self.assertEqual(len(seen), len(loader.selection or ds))

    def test_a_state_goes_on_behind_any_step(self):
        ds = self.sets[1]
        for shuffle, edge in itertools.product(("windows", "global"), ("pad", "drop")):
            options = {"window": (-4, 1), "window_edge": edge, "shuffle": shuffle, "seed": 3, "copy": True}
            with libshard.Loader(ds, 4, **options) as loader:
                want, states = [], []
                for b in loader:
                    want.append(b.index.tolist())
                    states.append(loader.state_dict())
            for step, state in enumerate(states[:-1]):
                with libshard.Loader(ds, 4, **options) as other:
                    other.load_state_dict(state)
                    self.assertEqual([b.index.tolist() for b in other], want[step + 1 :])
            with libshard.Loader(ds, 2, **options, rank=1, world=2, tail="drop") as other:  # another share goes on, too
                other.load_state_dict(states[0])
                self.assertEqual(next(iter(other)).index.tolist(), want[1][1::2])

    def test_a_state_is_of_these_windows(self):
        ds = self.sets[0]
        with libshard.Loader(ds, 4, window=(-3, 0)) as loader:
            state = loader.state_dict()
        for other in ({}, {"window": (-4, 0)}, {"window": (-3, 0), "window_edge": "drop"}, {"window": (-6, 0, 2)}):
            with libshard.Loader(ds, 4, **other) as loader, self.assertRaisesRegex(libshard.MismatchError, "window"):
                loader.load_state_dict(state)
        with libshard.Loader(ds, 4) as plain, libshard.Loader(ds, 4, window=(-3, 0)) as loader:
            with self.assertRaisesRegex(libshard.MismatchError, "belongs to no windows"):
                loader.load_state_dict(plain.state_dict())

    def test_a_selection_says_what_windows_are_around(self):
        ds = self.sets[1]
        few = ds.select([3, 4, 9, 17, 44])
        self.check(few, [-2, -1, 0, 1], window=(-2, 1), batch_size=2, shuffle=False)
        with libshard.Loader(few, 5, window=(-2, 1), shuffle=False) as loader:
            b = next(iter(loader))
            self.assertEqual(np.asarray(b.index)[:, 2].tolist(), [3, 4, 9, 17, 44])
        with libshard.Loader(few, 5, window=(-4, 0), window_edge="drop", shuffle=False) as loader:
            self.assertEqual(loader.selection.records.tolist(), [4, 44])

    def test_the_twin_notices(self):
        ds = self.sets[1]
        right = np.asarray(ds.column("episode"))
        with libshard.Loader(ds, 4, window=(-3, 0), copy=True) as loader:
            batches = list(loader)
            self.assertEqual(list(differences(ds, loader, [-3, -2, -1, 0], 0, batches)), [])
            one_more = right.copy()
            one_more[np.flatnonzero(right[1:] != right[:-1])[3]] += 1  # an episode that ends a record earlier
            for wrong in (
                differences(ds, loader, [-2, -1, 0, 1], 0, batches),
                differences(ds, loader, [-3, -2, -1, 0], 1, batches),
                differences(ds, loader, [-3, -2, -1, 0], 0, batches, episode=np.zeros_like(right)),
                differences(ds, loader, [-3, -2, -1, 0], 0, batches, episode=one_more),
            ):
                self.assertNotEqual(list(wrong), [])
            batches[1]["state"] = np.asarray(batches[1]["state"]) + 1
            self.assertIn("field state", " ".join(differences(ds, loader, [-3, -2, -1, 0], 0, batches)))

    def test_images_of_a_window_are_cropped_alike(self):
        ds = libshard.open("large")
        crop = libshard.Transform(crop="random", size=8, flip=0.5, layout="hwc", dtype="u8", field="image")
        with libshard.Loader(
            ds, 4, window=(-5, 0), transform=crop, transform_as_stored=["state"], shuffle="global", seed=1
        ) as loader:
            places = set()
            for b in loader:
                full = np.asarray(ds[b.index.tolist()[0]]["image"])
                got = np.asarray(b["image"])[0]
                fits = [
                    (y, x, flip)
                    for y, x, flip in itertools.product(range(33), range(33), (1, -1))
                    if np.array_equal(full[:, y : y + 8, x : x + 8][:, :, ::flip], got)
                ]
                self.assertEqual(len(fits), 1, "one crop for all images of the window")
                places.add(fits[0])
            self.assertGreater(len(places), 1, "and others for other windows")

    def test_strings_lengths_and_views(self):
        with libshard.Writer("strings", [libshard.Field("text", "uint8", (16,), "string", semantic="text"),
                                         libshard.Field("episode", "int64", ())]) as w:  # fmt: skip
            for i in range(12):
                w.write({"text": f"step {i}", "episode": i // 4})
        ds = libshard.open("strings")
        with libshard.Loader(ds, 3, window=(-1, 0), strings="lists", shuffle=False) as loader:
            b = next(iter(loader))
            self.assertEqual(b["text"], [["step 0", "step 0"], ["step 0", "step 1"], ["step 1", "step 2"]])
        with libshard.Loader(ds, 3, window=(-1, 0), shuffle=False) as loader:
            b = next(iter(loader))
            self.assertEqual(b["text"].shape, (3, 2, 16))
            self.assertEqual(b["text_length"].tolist(), [[6, 6]] * 3)

    def test_a_damaged_record_damages_the_windows_that_have_it(self):
        pack("hurt", [40], side=40)  # records of 4,800 bytes, which are units of their own
        ds = libshard.open("hurt")
        image = np.asarray(ds[20]["image"]).tobytes()
        path = glob.glob("hurt/*.shard")[0]
        with open(path, "r+b") as f:
            at = f.read().index(image) + 100
            f.seek(at)
            f.write(bytes([image[100] ^ 1]))
        ds = libshard.open("hurt")
        with libshard.Loader(ds, 4, window=(-2, 0), shuffle=False) as loader:
            with self.assertRaises(libshard.CorruptError):
                for b in loader:
                    del b
        with libshard.Loader(ds, 4, window=(-2, 0), shuffle=False, on_corrupt="mask") as loader:
            hit = 0
            for b in loader:
                index, flags = np.asarray(b.index), np.asarray(b.flags)
                self.assertEqual((flags & libshard.MASKED > 0).tolist(), (index == 20).tolist())
                self.assertFalse(np.asarray(b["image"])[index == 20].any())
                self.assertTrue(np.asarray(b["image"])[index != 20].any(axis=(1, 2, 3)).all())
                hit += int((index == 20).sum())
            self.assertEqual(hit, 3)
            self.assertEqual(loader.metrics()["damaged_rows"], 3)
        with self.assertRaisesRegex(libshard.ArgumentError, "use on_corrupt='mask'"):
            libshard.Loader(ds, 4, window=(-2, 0), on_corrupt="substitute").close()

    def test_episodes_end_with_their_dataset(self):
        """The last episode of one part of a concatenation has the number of the next part's first one."""
        pack("part0", [4])
        pack("part1", [3, 2])
        parts = [libshard.Dataset(p) for p in ("part0", "part1")]
        both = libshard.concat(parts)
        begins = [(0, 4), (4, 7), (7, 9)]
        want = {r: [min(max(r + o, a), b - 1) for o in range(-2, 2)] for a, b in begins for r in range(a, b)}
        loader = libshard.Loader(both, batch_size=4, window=(-2, 1), seed=3, tail="keep")
        seen = {}
        for batch in loader:
            for row in range(len(batch["image"])):
                seen[int(batch.index[row][2])] = batch.index[row].tolist()
        self.assertEqual(seen, want)
        inside = libshard.Loader(both, batch_size=2, window=(-2, 0), window_edge="drop", shuffle=False, tail="keep")
        self.assertEqual([w.tolist() for b in inside for w in b.index], [[0, 1, 2], [1, 2, 3], [4, 5, 6]])
        # What was merged may have been shuffled, and episodes of one number may meet.
        data.shardpack("merge", "part0", "part1", "-o", "merged")
        with self.assertRaisesRegex(libshard.ArgumentError, "merged: its manifest does not say in which order"):
            libshard.Loader("merged", batch_size=2, window=(-1, 0))
        # The order of each part counts.
        libshard.pack({n: records([3])[n] for n in ("image", "state", "episode")}, parts[0].schema, "part2", order="shuffle")
        with self.assertRaisesRegex(libshard.ArgumentError, "part2.*shuffled when it was packed"):
            libshard.Loader(libshard.concat([*parts, libshard.Dataset("part2")]), batch_size=2, window=(-1, 0))

    def test_what_cannot_be_is_refused(self):
        ds = self.sets[0]

        def refuse(words, error=libshard.ArgumentError, source=ds, **options):
            with self.assertRaisesRegex(error, words):
                libshard.Loader(source, 4, **options).close()

        refuse(r"window=\[-15, 0\]; must be a tuple", TypeError, window=[-15, 0])
        refuse("must be a tuple", TypeError, window=4)
        refuse("0.5 is not a whole number", TypeError, window=(-0.5, 0.5))
        refuse("must not end before it begins", window=(0, -1))
        refuse("steps of 0", window=(-1, 0, 0))
        refuse("steps of 2 do not come to 0", window=(-3, 0, 2))
        refuse("not empty", window=range(0))
        refuse("must be ascending", window=range(3, 0, -1))
        refuse("is not between", window=(-(2**31), 0, 2**31))
        refuse("at most 65536", window=(0, 65536))
        with self.assertRaisesRegex(libshard.ArgumentError, "65537 windows of 65536 records have more than 2\\^32 rows"):
            libshard.Loader(ds, 65537, window=(0, 65535), tail="pad").close()
        with self.assertRaisesRegex(libshard.OutOfMemoryError, r"have \d+ bytes, and this process may have \d+ bytes"):
            libshard.Loader(ds, 1 << 31, window=(0, 0), tail="pad").close()
        refuse("no window=, which they are for", episode="state")
        refuse("no window=, which they are for", window_edge="drop")
        refuse("window_edge='x'", window=(0, 1), window_edge="x")
        refuse("'video' is not in the dataset; windows need a field", window=(0, 1), episode="video")
        refuse("'state' is not an integer scalar", window=(0, 1), episode="state")
        refuse("a mixture", source=libshard.mix([ds, ds], [1, 1]), window=(0, 1))
        refuse("a libshard.zip", source=libshard.zip(ds, other=np.zeros(len(ds))), window=(0, 1))
        refuse("resume_appended", libshard.UnsupportedError, window=(0, 1), resume_appended=True)
        a = records([4, 4])
        a["episode"] = [0, 0, 1, 1, 0, 0, 2, 2]
        pack_raw("apart", a, "image:u8[4,4,3],state:f32[3],episode:i32")
        refuse("record 4 has the value of record 0", source="apart", window=(0, 1))
        a["episode"] = 0
        libshard.pack(
            [{"state": r["state"], "episode": int(r["episode"])} for r in a], "state:f32[3],episode:i32", "mixed",
            order="shuffle", seed=1,
        )  # fmt: skip
        refuse("records were shuffled when it was packed", source="mixed", window=(0, 1))


if __name__ == "__main__":
    unittest.main()
