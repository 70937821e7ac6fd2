# SPDX-License-Identifier: Apache-2.0
"""FFCV: raw pixels in one file."""

import os

from common import BATCH
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import Squeeze, ToTensor
from ffcv.writer import DatasetWriter

NAME = "FFCV"
INSTALL = [
    ["setuptools<70", "wheel", "numpy<2", "numba", "pillow", "opencv-python<4.11"],
    ["--no-build-isolation", "ffcv==1.0.2"],
]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "",
        "settings": "RGBImageField(write_mode='raw'), OrderOption.RANDOM, os_cache=True, num_workers=CPUs",
        "docs": "https://docs.ffcv.io/performance_guide.html",
        "workers": ["cpus"],
    },
}


class Samples:
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], int(self.labels[i])


def pack(images, labels, out):
    os.makedirs(out)
    fields = {"image": RGBImageField(write_mode="raw"), "label": IntField()}
    DatasetWriter(f"{out}/data.beton", fields, num_workers=2).from_indexed_dataset(Samples(images, labels))


class Reader:
    def __init__(self, out, workers):
        pipelines = {"image": [SimpleRGBImageDecoder(), ToTensor()], "label": [IntDecoder(), ToTensor(), Squeeze()]}
        self.loader = Loader(
            f"{out}/data.beton",
            batch_size=BATCH,
            num_workers=workers,
            os_cache=True,
            order=OrderOption.RANDOM,
            seed=1,
            drop_last=False,
            pipelines=pipelines,
        )

    def epoch(self, number):
        return ((b[0], b[1]) for b in self.loader)
