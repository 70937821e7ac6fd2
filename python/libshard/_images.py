# SPDX-License-Identifier: Apache-2.0
"""``libshard.Image``: bytes of image files become pixels, by ``shardpack decode``.

That is a process of its own with the decoders of ``shardpack images``, so pixels are the same, and a
file that makes a decoder crash does not end this process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, SupportsFloat, SupportsIndex

from . import _core
from ._description import Field
from ._errors import ArgumentError, NotFoundError, OutOfMemoryError, RecordError, StorageError, shown
from ._options import as_flag, choice, public, show, stack_level, whole
from ._schema import dtype_name

_FORMATS: dict[str, Any] = {"uint8": "B", "uint16": "H", "float32": "f"}  # which a memoryview can have
_WARNED_MAX = 5  # sentences of what pixels do not have
_ANSWER = struct.Struct("<cQQ")


@dataclass(frozen=True, kw_only=True)
class Image:
    """In the schema of :func:`libshard.pack`: the values of a field are image files, as bytes.

        libshard.pack(samples, {"image": libshard.Image(resize=256, crop=224), "label": "i64"}, "train")

    The program ``shardpack`` decodes them: JPEG, PNG and all other formats that it reads.  Pixels are
    those of ``shardpack images`` with the same options: ``resize``, ``fit`` (``"short"``, ``"long"``,
    ``"stretch"`` or ``"pad"``), ``crop``, ``dtype`` (``"u8"``, ``"u16"`` or ``"f32"``), ``mean``,
    ``std``, ``layout``, ``exif`` (``"ignore"`` or ``"apply"``), ``filter``, ``pixels``, ``bits``,
    ``limit``, ``sandbox``.  None is what shardpack does by default; without ``exif``, a warning tells of
    images that state an orientation.

    Each process of ``pack`` decodes with one CPU; ``workers=N`` decodes with N.
    """

    resize: SupportsIndex | None = None
    crop: SupportsIndex | None = None
    fit: Literal["short", "long", "stretch", "pad"] = "short"
    dtype: Literal["u8", "u16", "f32"] = "u8"
    mean: SupportsFloat | Sequence[float] | None = None
    std: SupportsFloat | Sequence[float] | None = None
    layout: Literal["hwc", "chw"] = "hwc"
    exif: Literal["ignore", "apply"] | None = None
    filter: Literal["bilinear", "bicubic", "lanczos", "box"] = "bilinear"
    pixels: Literal["pillow-13", "pillow-12", "rows-first"] = "pillow-13"
    bits: SupportsIndex | None = None
    limit: str | None = None
    sandbox: bool = False

    def _arguments(self) -> list[str]:
        """The same options of shardpack, which checks their values together."""
        choice("dtype", self.dtype, ("u8", "u16", "f32"))
        as_flag("sandbox", self.sandbox)
        words = ["--sandbox"] if self.sandbox else []
        for option in dataclasses.fields(self):
            value = getattr(self, option.name)
            if option.name == "sandbox" or value is None:
                continue
            if option.name in ("mean", "std"):
                numbers = [value] * 3 if isinstance(value, (int, float)) else list(value)
                value = ",".join(repr(float(x)) for x in numbers)
            elif option.name in ("resize", "crop", "bits"):
                value = whole(option.name, value)
            words.append(f"--{option.name}={value}")
        return words


Image.__init__ = public("libshard.Image")(Image.__init__)  # type: ignore[method-assign]


def _program() -> str:
    """As it is installed beside this Python, or in PATH."""
    beside = os.path.join(os.path.dirname(sys.executable or ""), "shardpack")
    found = beside if sys.executable and os.access(beside, os.X_OK) else shutil.which("shardpack")
    if found is None:
        raise NotFoundError(
            "libshard.Image needs the program shardpack, which is neither beside this Python nor in PATH; install "
            "libshard with its commands, or add the folder of shardpack to PATH",
            "not found",
        )
    return found


class Decoder:
    """The values of one field.  Each process that uses it has a process that decodes."""

    def __init__(self, name: str, image: Image) -> None:
        self.name, self.image = name, image
        self.pid = 0  # of the process that uses it
        self.process: subprocess.Popen[bytes] | None = None
        self.told: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return Decoder, (self.name, self.image)

    def field(self) -> Field:
        """What its pixels are stored as."""
        self._open()
        return Field(self.name, self.dtype, self.shape, "tensor", self.layout, "image")

    def _open(self) -> subprocess.Popen[bytes]:
        if self.process is not None and self.pid == os.getpid():
            return self.process
        self.close()
        words, program = self.image._arguments(), _program()
        self.said = tempfile.TemporaryFile()
        try:
            process = subprocess.Popen([program, "decode", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=self.said)  # fmt: skip
        except OSError as e:
            raise StorageError(f"{shown(program)} cannot be run: {e.strerror}", "error of the system") from e
        self.process, self.pid = process, os.getpid()
        assert process.stdout is not None
        try:
            head = process.stdout.readline().decode("ascii", "replace").split()
            if len(head) != 5 or head[0] != "shardpack":
                self._refuse(program)
            if head[1] != _core.version()[0]:
                raise ArgumentError(
                    f"{shown(program)} is of release {shown(head[1])}, and this package is {_core.version()[0]}, so "
                    "pixels might differ; install both of one release",
                    "bad argument",
                )
            layout: Any = head[3]
            self.dtype, self.layout = dtype_name(head[2]) or "", layout
            self.shape = tuple(int(n) for n in head[4].split(","))
        except BaseException:
            self.close()
            raise
        return process

    def _refuse(self, program: str) -> NoReturn:
        """It ended before it said what pixels will be."""
        assert self.process is not None
        self.process.kill()
        code = self.process.wait()
        said = self._said().partition(" try 'shardpack")[0]
        if "unknown verb" in said:
            said += f"; this package is {_core.version()[0]}, install shardpack of the same release"
        said = said or f"{shown(program)} decode ended with {code}"
        raise ArgumentError(f"field {show(self.name)}: {said}", "bad argument")

    def _said(self) -> str:
        self.said.seek(0)
        text = self.said.read(2000).decode(errors="replace").strip()
        return shown(text.removeprefix("shardpack: ").replace("\n", " "))

    def pixels(self, sample: int, value: Any) -> Any:
        """Of one image, as a memoryview."""
        where = f"sample {sample}, field {show(self.name)}"
        try:
            if isinstance(value, str):
                raise TypeError
            data = memoryview(value).cast("B")
        except TypeError:
            raise RecordError(
                f"{where}: {show(value)} is not the bytes of an image file, which libshard.Image decodes; of a path, "
                "give what pathlib.Path(path).read_bytes() returns; pixels need a type such as 'u8[224,224,3]'",
                "bad argument",
            ) from None
        process = self._open()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(len(data).to_bytes(8, "little"))
            process.stdin.write(data)
            process.stdin.flush()
            kind, sentence_bytes, count = _ANSWER.unpack(self._read(17))
            sentence = shown(self._read(sentence_bytes).decode(errors="replace"))
            pixels = self._read(count)
        except (BrokenPipeError, EOFError):
            self._fail_death(where)
        except BaseException:  # as Ctrl-C: what it would answer next belongs to this image
            self.close()
            raise
        if kind == b"B":
            raise RecordError(f"{where}: {sentence}", "bad argument")
        if kind != b"P":
            raise MemoryError(f"{where}: {sentence}")
        if sentence and sentence not in self.told and len(self.told) < _WARNED_MAX:
            self._tell(where, sentence)
        return memoryview(pixels).cast("B").cast(_FORMATS[self.dtype], self.shape)

    def _tell(self, where: str, sentence: str) -> None:
        self.told.add(sentence)
        if "orientation" in sentence and self.image.exif is None:
            sentence += "; exif='apply' turns it upright, exif='ignore' says that it is meant"
        elif "orientation" in sentence:
            return
        warnings.warn(f"{where}, and perhaps more: the image has {sentence}", stacklevel=stack_level())

    def _read(self, count: int) -> bytearray:
        assert self.process is not None and self.process.stdout is not None
        data = bytearray(count)
        view, at = memoryview(data), 0
        while at < count:
            got = self.process.stdout.readinto(view[at:])  # type: ignore[attr-defined]
            if not got:
                raise EOFError
            at += got
        return data

    def _fail_death(self, where: str) -> NoReturn:
        assert self.process is not None
        number = self.process.pid
        code = 0
        try:
            code = self.process.wait(10)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        except subprocess.TimeoutExpired:
            how = "closed its output"
        said = self._said()
        self.close()
        if code == -signal.SIGKILL:  # not the fault of this sample, so on_error= must not leave it out
            raise OutOfMemoryError(
                f"{where}: the decoder, shardpack decode with process number {number}, {how}, as the system does if "
                "memory is short; take fewer workers, or give the job more memory",
                "out of memory",
            )
        raise RecordError(
            f"{where}: the decoder, shardpack decode with process number {number}, {how}{': ' * bool(said)}{said}; if "
            "it happens again at this sample, the image is at fault",
            "bad argument",
        )

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """It is in the middle of nothing that is wanted, so it need not be asked to end."""
        process, self.process = self.process, None
        if process is None:
            return
        if self.pid == os.getpid():
            process.kill()
            process.wait()
        else:  # it is that of the process of which this one is a fork
            process.returncode = 0
        for pipe in (process.stdin, process.stdout, self.said):
            assert pipe is not None
            with contextlib.suppress(OSError):  # bytes that it does not take any more
                pipe.close()
