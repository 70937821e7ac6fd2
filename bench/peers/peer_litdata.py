# SPDX-License-Identifier: Apache-2.0
"""LitData: chunks on the local disk."""

import litdata
from common import BATCH, corpus

NAME = "LitData"
INSTALL = [
    [
        "numpy==2.4.6",
        "pillow==13.0.0",
        "boto3",
        "filelock",
        "lightning-utilities",
        "obstore",
        "requests",
        "tifffile",
    ],
    ["--no-deps", "litdata==0.2.76"],
]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "batch_decode=1",
        "settings": "optimize(chunk_bytes='64MB', num_workers=2), StreamingDataset(shuffle=True, batch_decode=1: by"
        " default it decodes many records to use one), StreamingDataLoader(persistent_workers=True)",
        "docs": "https://github.com/Lightning-AI/litData/blob/main/src/litdata/streaming/dataset.py",
        "workers": [0, "cpus"],
    },
    "Common": {
        "way": "as it comes",
        "settings": "the same without batch_decode",
        "docs": "https://github.com/Lightning-AI/litData#speed-up-model-training",
        "workers": ["cpus"],
    },
}


class Make:
    def __init__(self, folder):
        self.folder, self.data = folder, None

    def __call__(self, i):
        if self.data is None:
            self.data = corpus(self.folder)
        return {"image": self.data[0][i], "label": int(self.data[1][i])}


def pack(images, labels, out):
    import os

    litdata.optimize(
        fn=Make(os.environ["CORPUS"]),
        inputs=list(range(len(labels))),
        output_dir=out,
        chunk_bytes="64MB",
        num_workers=2,
    )


class Reader:
    options = {"batch_decode": 1}

    def __init__(self, out, workers):
        dataset = litdata.StreamingDataset(out, shuffle=True, seed=1, **self.options)
        self.loader = litdata.StreamingDataLoader(
            dataset, batch_size=BATCH, num_workers=workers, persistent_workers=workers > 0
        )

    def epoch(self, number):
        for batch in self.loader:
            yield batch["image"], batch["label"]

    def state(self):
        return self.loader.state_dict()

    def restore(self, state):
        self.loader.load_state_dict(state)


class Common(Reader):
    options = {}
