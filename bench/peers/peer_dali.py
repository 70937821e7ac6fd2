# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI on CPUs: tars of raw pixels, read, shuffled and batched in C++."""

import glob
import os

import numpy as np
from common import BATCH, SHAPE
from nvidia.dali import fn, pipeline_def, types

NAME = "NVIDIA DALI (CPU)"
# Without what only its decoders and its GPU side use.
INSTALL = [
    ["numpy==2.4.6", "astunparse", "gast", "libcst", "makefun", "nvtx", "optree", "packaging", "six"],
    ["--no-deps", "nvidia-dali-cuda120==2.4.0"],
]
BASE = ""
LINES = {
    "Reader": {
        "way": "",
        "settings": "readers.webdataset of tars of 256 records, with index files, random_shuffle=True,"
        " initial_fill=1024, num_threads=CPUs",
        "docs": "https://docs.nvidia.com/deeplearning/dali/user-guide/docs/operations/"
        "nvidia.dali.fn.readers.webdataset.html",
        "workers": ["cpus"],
    },
}


def pack(images, labels, out):
    """Its reader takes any tar; with pixels at multiples of 512 and an index it need not search."""
    import io
    import tarfile

    os.makedirs(out)
    for first in range(0, len(labels), 256):
        last = min(first + 256, len(labels))
        with tarfile.open(f"{out}/{first // 256:05}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(first, last):
                for name, data in ((f"{i:08}.bin", images[i].tobytes()), (f"{i:08}.cls", labels[i].tobytes())):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        with tarfile.open(f"{out}/{first // 256:05}.tar") as tar, open(f"{out}/{first // 256:05}.idx", "w") as index:
            members = tar.getmembers()
            index.write(f"v1.2 {len(members) // 2}\n")
            for image, label in zip(members[::2], members[1::2]):
                index.write(
                    " ".join(f"{m.name.split('.')[1]} {m.offset_data} {m.size} {m.name}" for m in (image, label)) + "\n"
                )


@pipeline_def(batch_size=BATCH, device_id=None, enable_checkpointing=True, seed=1)
def pipeline(tars):
    image, label = fn.readers.webdataset(
        paths=tars,
        index_paths=[t[:-3] + "idx" for t in tars],
        ext=["bin", "cls"],
        random_shuffle=True,
        initial_fill=1024,
        dtypes=[types.UINT8, types.INT64],
        missing_component_behavior="error",
        name="reader",
    )
    return fn.reshape(image, shape=[*SHAPE]), label


class Reader:
    def __init__(self, out, workers):
        self.tars, self.threads = sorted(glob.glob(f"{out}/*.tar")), workers
        self.pipe = None

    def start(self, **state):
        self.pipe = pipeline(self.tars, num_threads=self.threads, **state)
        self.pipe.build()
        self.records = self.pipe.reader_meta("reader")["epoch_size"]
        self.step = 0

    def epoch(self, number):
        if self.pipe is None:
            self.start()
        while self.step * BATCH < self.records:
            image, label = self.pipe.run()
            self.step += 1
            yield np.asarray(image.as_tensor()), np.asarray(label.as_tensor()).reshape(-1)
        self.step = 0

    def state(self):
        return self.pipe.checkpoint(), self.step

    def restore(self, state):
        self.start(checkpoint=state[0])
        self.step = state[1]
