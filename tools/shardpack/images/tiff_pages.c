/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiff_pages.c - how many pages a TIFF has
 *
 * libtiff would read all that each of them says, and keep something of it.  It also takes a palette
 * that is not there for shades of gray, so what the first page says of that is looked up here.
 */
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <stdbool.h>

#include "libshard/base/bytes.h"
#include "shard_pack.h"

#define HEAD_BYTES  8
#define ENTRY_BYTES 12
#define TAG_COLOURS 262
#define PAGE_BYTES  6 /* at least: a count of entries, and where the next page is */

static uint32_t number(const uint8_t *at, unsigned bytes, bool big)
{
	uint32_t value = bytes == 2 ? load16(at) : load32(at);

	if (!big)
		return value;
	return bytes == 2 ? (value >> 8 | value << 8) & 0xffff : __builtin_bswap32(value);
}

/* Of the page at `at`, whose tags are all there. */
static uint32_t find_colours(const uint8_t *bytes, size_t at, bool big)
{
	const uint8_t *entry = bytes + at + 2, *end = entry + number(bytes + at, 2, big) * (size_t)ENTRY_BYTES;

	for (; entry < end; entry += ENTRY_BYTES)
		if (number(entry, 2, big) == TAG_COLOURS)
			return number(entry + 8, 2, big);
	return TIFF_NO_COLOURS;
}

enum decode_status tiff_pages(const uint8_t *bytes, size_t size, struct tiff_pages *out, struct decode_verdict *v)
{
	bool big = size && bytes[0] == 'M';
	uint64_t at = size < HEAD_BYTES ? size : number(bytes + 4, 4, big), next;

	for (out->count = 0; at; out->count++) {
		if (out->count > size / PAGE_BYTES)
			return decode_bad(v, SHARD_MISS_DAMAGED, "TIFF data is damaged: its pages go in a circle");
		next = at + 2 > size ? size : at + 2 + number(bytes + at, 2, big) * (uint64_t)ENTRY_BYTES;
		if (next + 4 > size)
			return decode_bad(v, SHARD_MISS_TRUNCATED,
					  "TIFF data ends early: within the tags of page %" PRIu64, out->count + 1);
		if (!out->count)
			out->colours = find_colours(bytes, (size_t)at, big);
		at = number(bytes + next, 4, big);
	}
	return out->count ? DECODE_OK : decode_bad(v, SHARD_MISS_DECODE, "TIFF has no page");
}
