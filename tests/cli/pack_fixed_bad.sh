#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_fixed_bad.sh - damaged and impossible arrays, raw records, CIFAR and MNIST: one
# line each, the right code
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

"$PYTHON" - <<'PY'
import gzip
import numpy as np

def npy(name, head, data=b"", version=1, pad=True):
    head = head.encode("latin1")
    if pad:
        head = head.ljust(117) + b"\n"
    length = len(head).to_bytes(2 if version == 1 else 4, "little")
    open(name, "wb").write(b"\x93NUMPY" + bytes([version, 0]) + length + head + data)

good = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }"
npy("good.npy", good, bytes(12))
npy("order.npy", "{ 'shape' : ( 3 , ) ,'fortran_order':False,\"descr\":'<i4'}", bytes(12))
npy("short.npy", good, bytes(11))
npy("long.npy", good, bytes(13))
npy("v9.npy", good, bytes(12), version=9)
npy("objects.npy", good.replace("<i4", "|O"), bytes(12))
npy("complex.npy", good.replace("<i4", "<c8"), bytes(24))
npy("void.npy", good.replace("<i4", "<V2"), bytes(6))
npy("big.void.npy", good.replace("<i4", ">V2"), bytes(6))
npy("struct.npy", good.replace("'<i4'", "[('a', '<i4')]"), bytes(12))
npy("twice.npy", good.replace("'shape'", "'descr'"), bytes(12))
npy("nokey.npy", good.replace("'shape': (3,), ", ""), bytes(12))
npy("other.npy", good.replace("'shape'", "'shapf'"), bytes(12))
npy("negative.npy", good.replace("(3,)", "(-3,)"), bytes(12))
npy("huge.npy", good.replace("(3,)", "(1152921504606846976,8)"), bytes(12))
npy("scalar.npy", good.replace("(3,)", "()"), bytes(4))
npy("none.npy", good.replace("(3,)", "(0,)"))
npy("empty.npy", good.replace("(3,)", "(3,0)"))
npy("comma.npy", good.replace("(3,)", "(3 3)"), bytes(12))
npy("tail.npy", good + " x", bytes(12))
npy("maybe.npy", good.replace("False", "Maybe"), bytes(12))
npy("axes.npy", good.replace("(3,)", "(3," + "1," * 9 + ")"), bytes(12))
open("magic.npy", "wb").write(b"\x93NUMPZ" + bytes(100))
open("cut.npy", "wb").write(open("good.npy", "rb").read()[:60])
open("tiny.npy", "wb").write(b"\x93NUM")
open("nothing.npy", "wb")
np.save("nine.npy", np.zeros((9, 2)))
np.save("ten.npy", np.zeros((10, 2)))

import io, os, zipfile
np.savez("good.npz", a=np.arange(90), b=np.arange(90))
np.savez_compressed("deflated.npz", a=np.arange(90), b=np.arange(90))
def change(name, old, at, put):
    data = bytearray(open(old, "rb").read())
    data[at:at + len(put)] = put
    open(name, "wb").write(data)
size = os.path.getsize("good.npz")
with zipfile.ZipFile("good.npz") as z:
    b = z.getinfo("b.npy")
    extra = open("good.npz", "rb").read()[b.header_offset + 28:b.header_offset + 30]
    data_b = b.header_offset + 30 + len("b.npy") + int.from_bytes(extra, "little")
open("zip", "w").write("%d %d\n" % (data_b, b.header_offset))
directory = open("good.npz", "rb").read().index(b"PK\1\2")
change("bit.npz", "good.npz", data_b + 200, b"\xff")
change("name.npz", "good.npz", b.header_offset + 30, b"c")
change("dir.npz", "good.npz", directory, b"PK\1\3")
change("method.npz", "good.npz", directory + 10, b"\x0c")
change("crypt.npz", "good.npz", directory + 8, b"\1")
change("count.npz", "good.npz", size - 22 + 8, b"\3\0\3\0")
change("fewer.npz", "good.npz", size - 22 + 8, b"\1\0\1\0")
change("offset.npz", "good.npz", directory + 42, b"\xff\xff\xff\x7f")
open("cut.npz", "wb").write(open("good.npz", "rb").read()[:-30])
with zipfile.ZipFile("deflated.npz") as z:
    a = z.getinfo("a.npy")
change("inflate.npz", "deflated.npz", a.header_offset + 60, b"\xff\xff\xff\xff")
# Arrays that must not become one field, and a member that unpacks to far more than the directory
# says.
np.savez("dots.npz", **{"im.left": np.zeros((4, 2)), "im.right": np.ones((4, 2))})
np.savez("long.npz", **{"n" * 60: np.zeros((4, 2))})
def member(a):
    out = io.BytesIO()
    np.save(out, a)
    return out.getvalue()
with zipfile.ZipFile("folders.npz", "w") as z:
    z.writestr("a/x.npy", member(np.zeros((4, 2))))
    z.writestr("b/x.npy", member(np.ones((4, 2))))
np.savez_compressed("bomb.npz", x=np.zeros(1 << 23))
data = bytearray(open("bomb.npz", "rb").read())
at = data.index(b"PK\1\2") + 24
data[at:at + 4] = (1000).to_bytes(4, "little")
open("bomb.npz", "wb").write(data)
# Refused by its head: transposing it would take hours.
with open("tall.npy", "wb") as f:
    np.lib.format.write_array_header_1_0(f, {"descr": "|u1", "fortran_order": True, "shape": (2, 1 << 31)})
    f.truncate(f.tell() + (1 << 32))
os.mkdir("wide_label")
np.save("wide_label/label.npy", np.array([1, 2**63 + 5], "u8"))
with zipfile.ZipFile("text.npz", "w") as z:
    z.writestr("readme.txt", "x")
with zipfile.ZipFile("empty.npz", "w") as z:
    pass

packed = gzip.compress(bytes(range(256)) * 40, 6)
open("good.gz", "wb").write(packed)
open("two.gz", "wb").write(packed + packed)
open("cut.gz", "wb").write(packed[:-9])
open("tail.gz", "wb").write(packed + b"garbage")
open("crc.gz", "wb").write(packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:])
open("bits.gz", "wb").write(packed[:30] + bytes([packed[30] ^ 0x55]) + packed[31:])
open("plain.raw", "wb").write(bytes(1000))
open("short.raw", "wb").write(bytes(990))

def idx(name, kind, shape, data):
    open(name, "wb").write(bytes([0, 0, kind, len(shape)]) + np.array(shape, ">u4").tobytes() + data)
idx("images", 8, (4, 2, 2), bytes(16))
idx("labels", 8, (4,), bytes(4))
idx("three", 8, (3,), bytes(3))
idx("cutlabels", 8, (4,), bytes(3))
idx("wide", 11, (4,), bytes(8))
idx("kind", 7, (4,), bytes(4))
idx("noaxes", 8, (), bytes(4))
idx("flat", 8, (4, 0, 28), b"")
idx("much", 8, (0xffffffff, 0xffffffff, 0xffffffff), bytes(4))
open("notidx", "wb").write(b"\1\0\x08\1\0\0\0\1\0")
open("head", "wb").write(bytes([0, 0, 8, 3, 0, 0, 0, 1]))
PY

run 0 "$PACK" array good.npy order.npy -o ok -q # what the others are compared with is good

name_rule="must be 1 to 47 letters, digits, _ . or -, and begin with a letter or _; rename it; \
each file is a field: if it is a record, join them with numpy.stack"
damaged="the file is damaged, fetch it again"
at_end() { # FILE: where it ends, as messages say it
	echo "near offset $(stat -c %s "$1") of $(stat -c %s "$1")"
}
refused 1 "./short.npy: has 139 bytes, but must have a head of 128 and data of 12; it is cut short" array short.npy
refused 1 "./long.npy: has 141 bytes, but must have a head of 128 and data of 12; it is longer than it should be" \
	array long.npy
refused 1 "./v9.npy: offset 6: version 9 of the format; 1 to 3 are known" array v9.npy
refused 1 "./objects.npy: offset 24: dtype '|O': Python objects, which only Python can read; save numbers instead" \
	array objects.npy
refused 1 "./complex.npy: offset 25: dtype '<c8' is not supported; convert the array to integers, f2, f4, f8 or bool" \
	array complex.npy
refused 1 "./void.npy: dtype 'V2' does not say what its two bytes are; ml_dtypes saves bfloat16 so: if it is that, say \
--v2 bf16" array void.npy
refused 1 "./big.void.npy: offset 25: dtype '>V2' is not supported; convert the array to integers, f2, f4, f8 or bool" \
	array big.void.npy --v2 bf16
refused 1 "--v2 bf16: no array has dtype V2; leave it out, other arrays keep their type" array good.npy --v2 bf16
refused 1 "./struct.npy: offset 20: an array of structures; save its fields as arrays of their own" array struct.npy
refused 1 "./twice.npy: offset 59: key 'descr' is there twice" array twice.npy
refused 1 "./nokey.npy: offset 128: the head has no key 'shape'" array nokey.npy
refused 1 "./other.npy: offset 59: key 'shapf' is none of descr, fortran_order, shape" array other.npy
refused 1 "./negative.npy: offset 61: axis 0 of the shape is not a number below 2^60" array negative.npy
refused 1 "./huge.npy: offset 128: the shape asks for more than 2^60 bytes" array huge.npy
refused 1 "./scalar.npy: a single value; the first axis of an array counts the records" array scalar.npy
refused 1 "./none.npy: an array without elements (axis 0 is 0); leave it out" array none.npy
refused 1 "./empty.npy: an array without elements (axis 1 is 0); leave it out" array empty.npy
refused 1 "./comma.npy: offset 63: a comma is missing in the shape" array comma.npy
refused 1 "./tail.npy: offset 68: something follows the dict" array tail.npy
refused 1 "./maybe.npy: offset 44: fortran_order is neither True nor False" array maybe.npy
refused 4 "./axes.npy: 10 axes; the limit is 9" array axes.npy
SAVE="; write it with numpy.save(), or pack records of one size with \`shardpack raw\`"
refused 1 "./magic.npy: offset 0: not an array file of NumPy (106 bytes)$SAVE" array magic.npy
refused 1 "./cut.npy: offset 8: a head of 118 bytes, but the file ends before" array cut.npy
refused 1 "./tiny.npy: offset 0: not an array file of NumPy (4 bytes)$SAVE" array tiny.npy
refused 1 "./nothing.npy: offset 0: not an array file of NumPy (0 bytes)$SAVE" array nothing.npy
refused 1 ".: field 'nine' has 9 records and field 'ten' has 10; the numbers must be equal" array nine.npy ten.npy
mkdir -p d && cp nine.npy d && cp good.npy d/nine2.npy && cp good.npy nine2.npy && cp ten.npy d/good.npy
refused 1 "$PWD/d/good.npy: field 'good' is f64 [2] here, but i32 [] in the files before" array good.npy d/good.npy
cp nine.npy 9.npy
refused 1 "./9.npy: '9' cannot be the name of a field: $name_rule" array 9.npy
refused 3 "missing.npy: No such file or directory" array missing.npy
refused 3 "*.nothing: nothing matches this pattern" array '*.nothing'
refused 2 "./nine.npy: given twice" array nine.npy nine.npy
mkdir arrays && cp nine.npy arrays
refused 2 "arrays: a folder; name its files" array arrays
refused 2 "./arrays: a folder; name its files" array nine.npy arrays

read -r data_b head_b <zip
run 0 "$PACK" array good.npz -o ok5 -q
run 1 "$PACK" array bit.npz -o ds
grep -q "^shardpack: ./bit.npz: 'b.npy' at offset $data_b is damaged: its CRC-32 is [0-9a-f]*; the directory says [0-9a-f]*$" err || die "$(cat err)"
refused 1 "./name.npz: 'b.npy': the header at offset $head_b has another name" array name.npz
run 1 "$PACK" array dir.npz -o ds
grep -q "^shardpack: ./dir.npz: the directory is damaged at offset [0-9]*$" err || die "$(cat err)"
refused 1 "./method.npz: 'a.npy' at offset 0 is packed by method 12; must be stored (0) or deflated (8); \
make the archive again with zip" array method.npz
refused 1 "./crypt.npz: 'a.npy' at offset 0 is encrypted; unpack the archive with its password and pack the files" \
	array crypt.npz
run 1 "$PACK" array count.npz -o ds
grep -q "^shardpack: ./count.npz: the directory at offset [0-9]* has 102 bytes and 3 members, which does not fit the archive$" err || die "$(cat err)"
run 1 "$PACK" array fewer.npz -o ds
grep -q "^shardpack: ./fewer.npz: the directory continues at offset [0-9]* after its last member$" err ||
	die "$(cat err)"
refused 1 "./offset.npz: 'a.npy': its header at offset 2147483647 lies outside of the archive" array offset.npz
refused 1 "./cut.npz: no end record of a ZIP archive; it is cut short, or not a ZIP archive" array cut.npz
refused 1 "./text.npz: 'readme.txt' is not an array; save arrays with numpy.savez" array text.npz
refused 1 "./empty.npz: no records in it" array empty.npz
second=$("$PYTHON" -c 'print(open("folders.npz", "rb").read().rindex(b"\x93NUMPY"))')
refused 1 "./folders.npz: 'b/x.npy' at offset $second is a second array for field 'x'; \
save each under a name of its own" array folders.npz
long=$(printf 'n%.0s' {1..60})
refused 1 "./long.npz/$long.npy: '$long' cannot be the name of a field: $name_rule" array long.npz
refused 1 "./bomb.npz: the member at offset 55 unpacks to more than the 1000 bytes that the directory says; $damaged" \
	array bomb.npz
refused 4 "./tall.npy: records of 2147483648 bytes; the limit is 1073741824 (the first axis counts the records)" \
	array tall.npy
run 0 "$PACK" array dots.npz -o dots -q
[ "$(sed -n 's/^records //p; s/^field [0-9]* \([^ ]*\) .*/\1/p' dots/dataset.manifest | sort | tr '\n' ' ')" = \
	"4 im.left im.right " ] || die "$(cat dots/dataset.manifest)"
run 1 "$PACK" array wide_label/label.npy -o ds
said "shardpack: warning: wide_label/label.npy#1: label 9223372036854775813 at offset 136 of label.npy; \
the limit is 9223372036854775807"
said "shardpack: 2 inputs = 0 written + 0 skipped + 0 quarantined + 1 failed + 1 not done"
run 0 "$PACK" array wide_label/label.npy -o narrow --on-error skip
said "shardpack: 2 inputs = 1 written + 1 skipped + 0 quarantined + 0 failed"
rm -rf ds
run 1 "$PACK" array inflate.npz -o ds
grep -q "^shardpack: ./inflate.npz: .* near offset [0-9]* of [0-9]*; the file is damaged, fetch it again$" err ||
	die "$(cat err)"
[ ! -e ds ] || die "made for nothing"
head -c 5000 /dev/urandom >z && zstd -q z && head -c -3 z.zst >cut.zst && { cat z.zst && echo x; } >tail.zst
run 0 "$PACK" raw z.zst -o ok6 --schema 'x:u8[10]' -q
refused 1 "./cut.zst: the compressed data end early, $(at_end cut.zst); $damaged" raw cut.zst --schema 'x:u8[10]'
run 1 "$PACK" raw tail.zst -o ds --schema 'x:u8[10]'
grep -q "^shardpack: ./tail.zst: .*; the file is damaged, fetch it again$" err || die "$(cat err)"

SCHEMA='x:u8[10]'
run 0 "$PACK" raw two.gz -o ok2 --schema "$SCHEMA" -q
grep -q '^records 2048$' ok2/dataset.manifest || die "a gzip of two members: $(grep ^records ok2/dataset.manifest)"
refused 1 "./cut.gz: the compressed data end early, $(at_end cut.gz); $damaged" raw cut.gz --schema "$SCHEMA"
refused 1 "./tail.gz: incorrect header check $(at_end tail.gz); $damaged" raw tail.gz --schema "$SCHEMA"
refused 1 "./crc.gz: incorrect data check $(at_end crc.gz); $damaged" raw crc.gz --schema "$SCHEMA"
run 1 "$PACK" raw bits.gz -o ds --schema "$SCHEMA"
[ ! -e ds ] || die "made for nothing"
check="check --schema and --skip-bytes"
refused 1 "./plain.raw: 1000 bytes are 90 records of 11 bytes and 10 bytes more, at offset 990; $check" \
	raw plain.raw --schema 'x:u8[11]'
refused 1 "./plain.raw: 999 bytes after the skipped ones are 99 records of 10 bytes and 9 bytes more, at offset 991; \
$check" raw plain.raw --schema "$SCHEMA" --skip-bytes 1
refused 1 "./plain.raw: 1000 bytes are less than --skip-bytes 2000" raw plain.raw --schema "$SCHEMA" --skip-bytes 2000
run 0 "$PACK" raw plain.raw short.raw -o barren.ds --schema "$SCHEMA" --skip-bytes 990
said "shardpack: warning: 1 file has no record (the first is './short.raw')"
refused 1 "./plain.raw: no records in it" raw plain.raw --schema "$SCHEMA" --skip-bytes 1000
mkfifo fifo
refused 1 "./fifo: not a regular file; copy it to a regular file, which can be read at any offset" raw fifo \
	--schema "$SCHEMA"
for schema in "" x x: :u8 x:u9 'x:u8[' 'x:u8[]' 'x:u8[0]' 'x:u8[1,]' 'x:u8[,1]' 'x:u8[1]]' 'x:u8[-1]' 'x:u8,' ',x:u8' \
	'x:u8[1,1,1,1,1,1,1,1,1]' 'x:>' "$(printf 'x%.0s' {1..48}):u8" 'x:u8[4294967296]'; do
	run 2 "$PACK" raw plain.raw -o ds --schema "$schema"
	grep -q -e "a field must be NAME:TYPE or NAME:TYPE\[N,...\], such as image:u8\[32,32,3\]$" \
		-e "must not be empty" err || die "--schema '$schema': $(cat err)"
	n=$((n + 1))
done
run 2 "$PACK" raw plain.raw -o ds --schema x:u8,x:u8
grep -qx "shardpack: --schema: field 'x' appears twice" err || die "$(cat err)"
run 2 "$PACK" raw plain.raw -o ds --schema 'x:u8[4294967295,4294967295,4294967295]'
grep -qx "shardpack: --schema: a record of more than the limit of 1099511627776 bytes" err || die "$(cat err)"

run 0 "$PACK" mnist images labels -o ok3 -q
refused 1 ".: field 'image' has 4 records and field 'label' has 3; the numbers must be equal" mnist images three
refused 1 "./cutlabels: has 11 bytes, but must have a head of 8 and data of 4; it is cut short" mnist images cutlabels
refused 4 "./wide: labels of type i16; must be u8" mnist images wide
refused 1 "./kind: type 0x07 and 1 axes; must be type 0x08 to 0x0e and 1 to 8 axes" mnist kind
refused 1 "./noaxes: type 0x08 and 0 axes; must be type 0x08 to 0x0e and 1 to 8 axes" mnist noaxes
refused 1 "./flat: an array without elements (axis 1 is 0); leave it out" mnist flat
refused 1 "./much: the axes ask for more than 2^60 bytes" mnist much
refused 1 "./notidx: not an IDX file: it must begin with two zero bytes, a type and a number of axes" mnist notidx
refused 1 "./head: ends at offset 8, within the head of 16 bytes" mnist head
mkdir half && cp images half/train-images-idx3-ubyte
refused 1 "half: no file train-labels-idx*-ubyte, with or without .gz, is in it" mnist half
refused 1 "half: no file t10k-images-idx*-ubyte, with or without .gz, is in it" mnist half --split test

mkdir cifar && head -c 3073 /dev/zero >cifar/test_batch.bin
run 0 "$PACK" cifar cifar -o ok4 --split test -q
refused 1 "cifar: neither data_batch_1.bin nor train.bin is in it; \
SRC must be the folder of the binary version of CIFAR" cifar cifar
for i in 1 2 3 4; do cp cifar/test_batch.bin cifar/data_batch_$i.bin; done
refused 3 "cifar/data_batch_5.bin: No such file or directory" cifar cifar
head -c 3072 /dev/zero >cifar/data_batch_5.bin
refused 1 "cifar/data_batch_5.bin: 3072 bytes are 0 records of 3073 bytes and 3072 bytes more, at offset 0; \
the file is cut short, or not a file of CIFAR-10" cifar cifar
: >cifar/data_batch_5.bin
refused 1 "cifar/data_batch_5.bin: has no records; the file is cut short, or not a file of CIFAR-10" cifar cifar
mkdir cifar100 && head -c 6148 /dev/zero >cifar100/train.bin
refused 1 "$PWD/cifar/test_batch.bin: by its name, belongs to another dataset than cifar100/train.bin" \
	cifar cifar100/train.bin cifar/test_batch.bin
echo airplane >cifar/batches.meta.txt
refused 1 "cifar/batches.meta.txt: names 1 classes; must be 10" cifar cifar
{ printf '\n\n' && head -c 9000 /dev/zero | tr '\0' x; } >cifar/batches.meta.txt
refused 1 "cifar/batches.meta.txt, line 3: longer than the limit of 8192 bytes; \
must be one class name per line" cifar cifar
printf 'airplane\n%.0s' {1..10} >cifar/batches.meta.txt
refused 1 "cifar/batches.meta.txt: class 'airplane' appears twice, as numbers 0 and 1, counted from 0" cifar cifar
cp plain.raw plain.bin
refused 1 "./plain.bin: not the name of a file of CIFAR (data_batch_1.bin, test_batch.bin, train.bin, test.bin)" cifar \
	plain.bin
rm cifar/batches.meta.txt cifar/data_batch_5.bin
{ printf '\012' && head -c 3072 /dev/zero; } >cifar/data_batch_5.bin
run 1 "$PACK" cifar cifar -o ds
said "shardpack: warning: cifar/data_batch_5.bin#0: label 10 at offset 0 of data_batch_5.bin; \
there are 10 classes, from 0"
[ ! -e ds ] || die "made for nothing"
echo "$n refusals"
