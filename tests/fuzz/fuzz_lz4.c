/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_lz4.c - any bytes as an LZ4 block of a stated decoded size, and any bytes through the codec
 * and back
 *
 * The first three bytes say how many bytes the rest should decode to.  Source and destination are
 * exactly as long as the codec is told, so that a sanitizer sees the first byte touched outside.
 * What decodes must survive another turn.
 */
#include "libshard/base/bytes.h"
#include "libshard/format/format.h"
#include "tests/fuzz/fuzz.h"

static uint8_t *room(size_t bytes)
{
	uint8_t *p = malloc(bytes ? bytes : 1);

	must(p, "no memory");
	return p;
}

/* Through encode and back: the same bytes, and never more of them than without. */
static void round_trip(const uint8_t *data, size_t bytes)
{
	size_t capacity = lz4_bound(bytes), stored = 0;
	uint8_t *packed = room(capacity), *back = room(bytes),
		*scratch = aligned_alloc(64, align_up(lz4_scratch_bytes() + 64, 64));
	int rc = lz4_encode(data, bytes, packed, capacity, &stored, scratch);

	must(rc == SHARD_OK || rc == LZ4_STORE_RAW || (rc == SHARD_E_ARGUMENT && !bytes), "encode fails");
	if (!rc) {
		uint8_t *exact = room(stored);

		must(stored < bytes, "encode gave more bytes than it took");
		memcpy(exact, packed, stored);
		must(!lz4_decode(exact, stored, back, bytes), "what was encoded does not decode");
		must(!memcmp(back, data, bytes), "what was encoded decodes to something else");
		if (bytes > 1)
			must(lz4_decode(exact, stored, back, bytes - 1) == SHARD_E_CORRUPT,
			     "it decodes to less than it is");
		free(exact);
	}
	free(packed);
	free(back);
	free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t want;
	uint8_t *src, *dst;

	if (size < 3)
		return 0;
	want = (size_t)data[0] | (size_t)data[1] << 8 | (size_t)(data[2] & 15) << 16;
	size -= 3;
	src = room(size);
	dst = room(want);
	memcpy(src, data + 3, size);
	if (!lz4_decode(src, size, dst, want))
		round_trip(dst, want);
	round_trip(src, size);
	free(src);
	free(dst);
	return 0;
}
