# SPDX-License-Identifier: Apache-2.0
"""MosaicML Streaming: MDS shards on the local disk."""

import sys
import types

import transformers  # before torchvision's place is taken: it asks whether that one is there
from common import BATCH

# streaming.vision is never used, but imported, and has a base class from torchvision, whose wheels
# go with CUDA's PyTorch only.
for name, word in (("torchvision.datasets", "VisionDataset"), ("torchvision.transforms.functional", "to_tensor")):
    sys.modules[name] = types.SimpleNamespace(**{word: type(word, (), {})})
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset
from streaming.base.util import clean_stale_shared_memory

NAME = "MosaicML Streaming"
# Its dependencies are eight clouds' packages and, by torchvision, a newer PyTorch with CUDA: some
# gigabytes, which a disk's row needs nothing of. These are what it imports.
INSTALL = [
    [
        "numpy==2.1.3",
        "brotli",
        "catalogue",
        "filelock",
        "pillow==13.0.0",
        "python-snappy",
        "requests",
        "tqdm",
        "transformers<5",
        "xxhash",
        "zstd",
    ],
    ["--no-deps", "mosaicml-streaming==0.13.0"],
]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "",
        "settings": "MDS ndarray:uint8, shuffle=True, shuffle_algo by default,"
        " StreamingDataLoader(persistent_workers=True); its page shows no batch that is read at once",
        "docs": "https://docs.mosaicml.com/projects/streaming/en/stable/getting_started/main_concepts.html",
        "workers": [0, "cpus"],
    },
}


def pack(images, labels, out):
    with MDSWriter(out=out, columns={"image": "ndarray:uint8:224,224,3", "label": "int"}, hashes=["xxh64"]) as writer:
        for i in range(len(labels)):
            writer.write({"image": images[i], "label": int(labels[i])})


class Reader:
    def __init__(self, out, workers):
        clean_stale_shared_memory()
        self.dataset = StreamingDataset(local=out, shuffle=True, shuffle_seed=1, batch_size=BATCH)
        self.loader = StreamingDataLoader(
            self.dataset, batch_size=BATCH, num_workers=workers, persistent_workers=workers > 0
        )

    def epoch(self, number):
        for batch in self.loader:
            yield batch["image"], batch["label"]

    def state(self):
        return self.loader.state_dict()

    def restore(self, state):
        self.loader.load_state_dict(state)
