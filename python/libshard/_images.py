# SPDX-License-Identifier: Apache-2.0
"""``libshard.Image``: bytes of image files become pixels, by ``shardpack decode``.

That is a process of its own with the decoders of ``shardpack images``, so pixels are the same, and a
file that makes a decoder crash does not end this process.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import errno
import fcntl
import math
import mmap
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, SupportsFloat, SupportsIndex

from . import _core
from ._description import Field
from ._errors import ArgumentError, NotFoundError, OutOfMemoryError, RecordError, StorageError, of_system, shown
from ._options import as_flag, choice, public, show, stack_level, whole
from ._schema import SchemaLike, dtype_name

_FORMATS: dict[str, Any] = {"uint8": "B", "uint16": "H", "float32": "f"}  # which a memoryview can have
_OF_A_PATH = (errno.ENOENT, errno.EACCES, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
_WARNED_MAX = 5  # sentences of what pixels do not have
_ANSWER = struct.Struct("<cQQ")
# How images begin that shardpack reads: its table is tools/shardpack/images/formats.c.  A group is the ending of a file.
MAGIC = re.compile(
    rb"(?P<jpg>\xff\xd8\xff)|(?P<png>\x89PNG\r\n\x1a\n)|(?P<webp>RIFF....WEBP)|(?P<gif>GIF8)|(?P<tif>II\*\0|MM\0\*)"
    rb"|(?P<avif>....ftypavi[fs])|(?P<heif>....ftyp)|(?P<bmp>BM....\0\0\0\0)|(?P<pgm>P5[ \t\r\n])|(?P<ppm>P6[ \t\r\n])",
    re.DOTALL,
)
AHEAD_MAX = 8  # samples whose images a decoder has or has decoded, besides the next one that is wanted
_AHEAD_BYTES_MAX = 32 << 20  # of these images and of their pixels
# How a decoder ends that SIGTERM or the like told to, as a job that is stopped: no image is at fault.  0: it has not ended.
_INTERRUPTED = (0, 130, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
_PIPE_BYTES = 1 << 20  # which a user may have; several photographs fit


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

    def options(self) -> dict[str, str | None]:
        """Those on which pixels depend: with others, a call does not go on with shards of an earlier one."""
        words = dataclasses.replace(self, limit=None, sandbox=False, exif=self.exif or "ignore")._arguments()
        given = dict(word.removeprefix("--").split("=", 1) for word in words)
        return {option.name: given.get(option.name) for option in dataclasses.fields(self)}


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


class _Waiting:
    """An image that was given to a decoder, or cannot be."""

    __slots__ = ("answer", "bytes", "data", "error", "given", "where")

    def __init__(self, where: str) -> None:
        self.where = where
        self.data, self.bytes = b"", 0  # also of its pixels
        self.given: Any = None  # its bytes, or what is not the bytes of an image
        self.error: Exception | None = None
        self.answer: tuple[bytes, str, memoryview] | None = None


class Decoder:
    """The values of one field.  Each process that uses it has a process that decodes.

    Images are put in, and their pixels are got in the same order.  Between the two, the decoder is at
    work.  It answers each image before it reads the next one.
    """

    def __init__(self, name: str, image: Image) -> None:
        self.name, self.image = name, image
        self.pid = 0  # of the process that uses it
        self.process: subprocess.Popen[bytes] | None = None
        self.told: set[str] = set()
        self.given: Any = None  # of which get() was called last
        self.queue = collections.deque[_Waiting]()  # put, and not got
        self.sent = collections.deque[_Waiting]()  # of these: not answered
        self.bytes = self.pixel_bytes = 0  # of the queue, and of one image
        # Pixels come in memory that both processes have.  It has this many places for images.
        self.memory = memoryview(b"")
        self.places = self.answered = 0

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
        memory = os.memfd_create("libshard")
        try:
            return self._start(program, [program, "decode", *words, f"--memory={memory}"], memory)
        finally:
            os.close(memory)

    def _start(self, program: str, words: list[str], memory: int) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, bufsize=0,
                                       pass_fds=[memory])  # fmt: skip
        except OSError as e:
            raise StorageError(f"{shown(program)} cannot be run: {e.strerror}", "error of the system") from e
        self.process, self.pid = process, os.getpid()
        assert process.stdin is not None and process.stdout is not None
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
            self.pixel_bytes = math.prod(self.shape) * struct.calcsize(_FORMATS[self.dtype])
            # One more is lent, and one is put.
            self.places, self.answered = max(3, min(AHEAD_MAX + 2, _AHEAD_BYTES_MAX // self.pixel_bytes)), 0
            os.ftruncate(memory, self.places * self.pixel_bytes)
            self.memory = memoryview(mmap.mmap(memory, self.places * self.pixel_bytes))
        except BaseException:
            self.close()
            raise
        os.set_blocking(process.stdin.fileno(), False)
        self.poll = select.poll()
        self.poll.register(process.stdin, select.POLLOUT)
        self.poll.register(process.stdout, select.POLLIN)
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # a user who has many pipes gets small ones
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        for image in [*self.sent]:  # behind one at which a process ended
            self._write(process, image.data)
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

    def is_full(self) -> bool:
        """Is it time to get an image before the next one is put?  The last one that was got has a place, too."""
        return self.bytes > _AHEAD_BYTES_MAX or len(self.queue) + 1 >= self.places

    def put(self, sample: int, value: Any) -> None:
        """Give it an image, whose memory may change afterwards.  What is wrong with it, get() says.

        What this raises is not the fault of a sample: the program cannot be started, for example.
        """
        image = _Waiting(f"sample {sample}, field {show(self.name)}")
        self.queue.append(image)
        try:
            image.data = image.given = _file_bytes(image.where, value)
        except RecordError as e:
            image.error, image.given = e, value
            return
        try:
            process = self._open()
            image.bytes = len(image.data) + self.pixel_bytes
            self.bytes += image.bytes
            self.sent.append(image)
            self._write(process, image.data)
        except BaseException:  # as Ctrl-C, in the middle of an image
            self.forget()
            raise

    def get(self) -> Any:
        """Pixels of the next image, as a memoryview, which holds until the next call.

        A RecordError is of this image, and so is a MemoryError, perhaps; others are as in put().
        """
        image = self.queue.popleft()
        self.bytes -= image.bytes
        self.given = image.given
        if image.error is not None:
            raise image.error
        try:
            while image.answer is None:
                self._open()
                self._take()
        except EOFError:
            self.sent.remove(image)  # the first one: those before it have been answered
            self._fail_death(image.where)
        except BaseException:
            self.forget()
            raise
        kind, sentence, pixels = image.answer
        if kind == b"B":
            raise RecordError(f"{image.where}: {sentence}", "bad argument")
        if kind != b"P":
            raise MemoryError(f"{image.where}: {sentence}")
        if sentence and sentence not in self.told and len(self.told) < _WARNED_MAX:
            self._tell(image.where, sentence)
        return pixels.cast(_FORMATS[self.dtype], self.shape)

    def forget(self) -> None:
        """Images that nobody will get."""
        if self.queue or self.sent:
            self.queue.clear()
            self.sent.clear()
            self.bytes = 0
            self.close()

    def _write(self, process: subprocess.Popen[bytes], data: bytes) -> None:
        """All of an image.  The decoder may have to get rid of answers before it reads on."""
        assert process.stdin is not None and process.stdout is not None
        left = [memoryview(len(data).to_bytes(8, "little")), memoryview(data)]
        try:
            while left:
                try:
                    count = os.writev(process.stdin.fileno(), left)
                except BlockingIOError:
                    if process.stdout.fileno() in [pipe for pipe, _ in self.poll.poll()]:
                        self._take()
                    continue
                while left and count >= len(left[0]):
                    count -= len(left.pop(0))
                if left:
                    left[0] = left[0][count:]
        except (BrokenPipeError, EOFError):
            pass  # it has ended, at the first image that it has not answered

    def _take(self) -> None:
        """The next answer, which is of the first image that has none."""
        kind, sentence_bytes, count = _ANSWER.unpack(self._read(bytearray(17)))
        sentence = shown(self._read(bytearray(sentence_bytes)).decode(errors="replace"))
        if count:
            raise EOFError  # it is not one of ours
        place = self.answered % self.places * self.pixel_bytes
        self.answered += 1
        self.sent.popleft().answer = kind, sentence, self.memory[place : place + self.pixel_bytes]

    def _tell(self, where: str, sentence: str) -> None:
        self.told.add(sentence)
        if "orientation" in sentence and self.image.exif is None:
            sentence += "; exif='apply' turns it upright, exif='ignore' says that it is meant"
        elif "orientation" in sentence:
            return
        warnings.warn(f"{where}, and perhaps more: the image has {sentence}", stacklevel=stack_level())

    def _read(self, data: bytearray) -> bytearray:
        assert self.process is not None and self.process.stdout is not None
        view, at = memoryview(data), 0
        while at < len(data):
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
        if code in _INTERRUPTED:
            raise StorageError(
                f"{where}: the decoder, shardpack decode with process number {number}, was interrupted: it {how} before its "
                "input did; call again",
                "interrupted",
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
        self.memory = memoryview(b"")
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


def _file_bytes(where: str, value: Any) -> bytes:
    """Those of an image file: given so, or in Hugging Face's {"bytes", "path"}."""
    if isinstance(value, Mapping) and "bytes" in value and value.keys() <= {"bytes", "path"}:
        value = _bytes_at(where, value.get("path")) if value["bytes"] is None else value["bytes"]
    if isinstance(value, bytes):
        return value
    try:
        if isinstance(value, str):
            raise TypeError
        return bytes(memoryview(value).cast("B"))
    except TypeError:
        raise RecordError(
            f"{where}: {show(value)} is not the bytes of an image file, which libshard.Image decodes; of a path, "
            "give what pathlib.Path(path).read_bytes() returns; pixels need a type such as 'u8[224,224,3]'",
            "bad argument",
        ) from None


def _bytes_at(where: str, path: Any) -> bytes:
    if not isinstance(path, str) or not os.path.isabs(path):
        raise RecordError(
            f"{where}: the image has no bytes, and its path, {show(path)}, does not begin with '/', so it is not known where "
            "it is; embed the bytes, as datasets does when it writes Parquet, or give absolute paths",
            "bad argument",
        )
    try:
        with open(path, "rb") as f:
            return f.read()
    except ValueError as e:  # NUL
        raise RecordError(f"{where}: {show(path)}: {e}", "bad argument") from e
    except OSError as e:
        if e.errno not in _OF_A_PATH:
            raise of_system(e, f"{where}: {path}") from None
        raise RecordError(f"{where}: {path}: {e.strerror}", "bad argument") from e


@contextlib.contextmanager
def decoders_of(schema: SchemaLike | None) -> Iterator[tuple[SchemaLike | None, dict[str, Decoder]]]:
    """The schema with a Field in the place of each Image, and what decodes these."""
    specs = schema.items() if isinstance(schema, Mapping) else ()
    decoders = {name: Decoder(name, spec) for name, spec in specs if isinstance(spec, Image)}
    try:
        if isinstance(schema, Mapping) and decoders:
            schema = {**schema, **{name: decoder.field() for name, decoder in decoders.items()}}
        yield schema, decoders
    finally:
        for decoder in decoders.values():
            decoder.close()
