/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xz_walk.c - how much memory an xz asks for, found while its bytes pass by
 *
 * The XZ file format 1.2, and the chunks of LZMA2.  What is checked is what decides where the next
 * part begins; the decoder checks the rest.
 */
#include "tools/shardpack/parse/parse.h"

#include <string.h>

enum part { START, FLAGS, BLOCK, BLOCK_HEAD, CHUNK, CHUNK_SIZES, INDEX };

#define FILTER_LZMA2	 0x21
#define HAS_PACKED_BYTES 0x40
#define HAS_BYTES	 0x80
#define FOOTER_BYTES	 12
#define CRC_BYTES	 4

static bool next(struct xz_walk *w, enum part part, size_t need)
{
	w->part = part;
	w->need = need;
	return true;
}

void xz_walk_start(struct xz_walk *w)
{
	memset(w, 0, sizeof(*w));
	next(w, START, 4);
}

static unsigned padding(uint64_t bytes)
{
	return (unsigned)(-bytes & 3);
}

bool xz_number(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; *at < end && shift < 63; shift += 7) {
		uint8_t byte = *(*at)++;

		*out |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return true;
	}
	return false;
}

/* Behind its first byte, which says how long it is. */
static bool block_head(struct xz_walk *w)
{
	const uint8_t *at = w->head, *end = at + w->need - CRC_BYTES;
	unsigned flags = *at++, filters = (flags & 3) + 1;
	uint64_t number, id = 0, bytes = 0;

	if (((flags & HAS_PACKED_BYTES) && !xz_number(&at, end, &number)) ||
	    ((flags & HAS_BYTES) && !xz_number(&at, end, &number)))
		return false;
	for (; filters; filters--, at += bytes)
		if (!xz_number(&at, end, &id) || !xz_number(&at, end, &bytes) || bytes > (uint64_t)(end - at))
			return false;
	if (id != FILTER_LZMA2 || bytes != 1 || at[-1] > 40)
		return false;
	number = at[-1] == 40 ? UINT32_MAX : (UINT64_C(2) | (at[-1] & 1)) << (at[-1] / 2 + 11);
	if (number > w->dictionary_bytes)
		w->dictionary_bytes = number;
	w->part_bytes = 0;
	return next(w, CHUNK, 1);
}

/* A byte of the numbers: their count, and two for each block. */
static bool index_byte(struct xz_walk *w)
{
	uint8_t byte = w->head[0];

	w->part_bytes++;
	if (w->shift >= 63)
		return false;
	w->number |= (uint64_t)(byte & 127) << w->shift;
	w->shift += 7;
	if (byte >= 128)
		return true;
	if (w->left == UINT64_MAX && w->number > INT64_MAX / 2)
		return false;
	w->left = w->left == UINT64_MAX ? 2 * w->number : w->left - 1;
	w->number = w->shift = 0;
	if (w->left)
		return true;
	w->skip = padding(w->part_bytes) + CRC_BYTES + FOOTER_BYTES;
	return next(w, START, 4);
}

/* `head` is complete. */
static bool end_part(struct xz_walk *w)
{
	static const uint8_t magic[] = {0xfd, '7', 'z', 'X', 'Z', 0, 0}, zeros[4];
	static const uint8_t check_bytes[16] = {0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64};
	const uint8_t *size;

	switch ((enum part)w->part) {
	case START: /* or the padding between two streams */
		if (!memcmp(w->head, zeros, 4))
			return true;
		return !memcmp(w->head, magic, 4) && next(w, FLAGS, 8);
	case FLAGS:
		if (memcmp(w->head, magic + 4, 3) != 0 || w->head[3] > 15)
			return false;
		w->check_bytes = check_bytes[w->head[3]];
		w->began = true;
		return next(w, BLOCK, 1);
	case BLOCK:
		if (w->head[0])
			return next(w, BLOCK_HEAD, (size_t)w->head[0] * 4 + 3);
		w->part_bytes = 1;
		w->left = UINT64_MAX;
		return next(w, INDEX, 1);
	case BLOCK_HEAD:
		return block_head(w);
	case CHUNK:
		w->control = w->head[0];
		w->part_bytes++;
		if (w->control >= 0x80)
			return next(w, CHUNK_SIZES, w->control >= 0xc0 ? 5 : 4);
		if (w->control)
			return w->control <= 2 && next(w, CHUNK_SIZES, 2);
		w->skip = padding(w->part_bytes) + w->check_bytes;
		return next(w, BLOCK, 1);
	case CHUNK_SIZES:
		size = w->head + (w->control >= 0x80 ? 2 : 0); /* before it, that of the unpacked data */
		w->skip = (uint64_t)(size[0] << 8 | size[1]) + 1;
		w->part_bytes += w->need + w->skip;
		return next(w, CHUNK, 1);
	case INDEX:
		return index_byte(w);
	}
	return false;
}

bool xz_walk(struct xz_walk *w, const uint8_t *data, size_t bytes)
{
	while (bytes) {
		size_t n = w->need - w->have < bytes ? w->need - w->have : bytes;

		if (w->skip) {
			n = w->skip < bytes ? (size_t)w->skip : bytes;
			w->skip -= n;
		} else {
			memcpy(w->head + w->have, data, n);
			w->have = w->have + n == w->need ? 0 : w->have + n;
			if (!w->have && !end_part(w))
				return false;
		}
		data += n;
		bytes -= n;
	}
	return true;
}
