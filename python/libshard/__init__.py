# SPDX-License-Identifier: Apache-2.0
"""Packed datasets that train fast: write and read records, and stream shuffled batches.

    libshard.pack(samples, "image:u8[224,224,3],label:i64", "train", classes=["cat", "dog"])
    ds = libshard.open("train")
    ds[0]["image"]                                      # one record
    for batch in libshard.Loader(ds, batch_size=256):   # an epoch
        batch["image"], batch["label"]

Arrays are read-only.  NumPy, PyTorch and JAX take those of batches without a copy,
``numpy.asarray(batch["image"])``, and those of records with one.
"""

from . import _batch  # noqa: F401
from ._concat import Concat, Zip, concat, zip
from ._core import Array, Batch
from ._core import version as _version
from ._dataset import Dataset, open
from ._description import ChannelStats, Field, Schema, Stats, VerifyReport
from ._errors import (
    ArgumentError,
    ClosedError,
    CorruptError,
    DeviceError,
    Error,
    ExistsError,
    MismatchError,
    NotFoundError,
    OutOfMemoryError,
    RecordError,
    StorageError,
    UnsupportedError,
)
from ._export import export
from ._images import Image
from ._loader import EDGE, MASKED, PADDED, SUBSTITUTED, Loader
from ._mix import Mixture, balanced, mix
from ._pack import pack
from ._selection import Selection
from ._show import Preview
from ._transform import Transform
from ._writer import Writer

__version__ = _version()[0]
version_details: str = _version()[1]  #: the version, and those of the libraries that it uses

__all__ = [
    "EDGE",
    "MASKED",
    "PADDED",
    "SUBSTITUTED",
    "ArgumentError",
    "Array",
    "Batch",
    "ChannelStats",
    "ClosedError",
    "Concat",
    "CorruptError",
    "Dataset",
    "DeviceError",
    "Error",
    "ExistsError",
    "Field",
    "Image",
    "Loader",
    "MismatchError",
    "Mixture",
    "NotFoundError",
    "OutOfMemoryError",
    "Preview",
    "RecordError",
    "Schema",
    "Selection",
    "Stats",
    "StorageError",
    "Transform",
    "UnsupportedError",
    "VerifyReport",
    "Writer",
    "Zip",
    "balanced",
    "concat",
    "export",
    "mix",
    "open",
    "pack",
    "version_details",
    "zip",
]
