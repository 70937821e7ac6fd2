/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heif.c - the container of AVIF and HEIF, as far as libavif leaves it to us
 *
 * A container is a row of boxes, each with a size and a type.  No length is believed.
 */
#include "tools/shardpack/images/images.h"

#include <string.h>

#include "libshard/base/bytes.h"

struct box {
	const uint8_t *type; /* 4 bytes */
	struct byte_span in;
};

static bool box_is(const struct box *b, const char *type)
{
	return !memcmp(b->type, type, 4);
}

/* The next `count` bytes as a number, at most 8; 0 and none left if they are not there. */
static uint64_t read_number(struct byte_span *b, unsigned count)
{
	uint64_t value = 0;

	if (b->count < count) {
		b->count = 0;
		return 0;
	}
	for (unsigned i = 0; i < count; i++)
		value = value << 8 | b->at[i];
	b->at += count;
	b->count -= count;
	return value;
}

static void skip(struct byte_span *b, uint64_t count)
{
	size_t skipped = count < b->count ? (size_t)count : b->count;

	b->at += skipped;
	b->count -= skipped;
}

/* The next box.  False at the end, and at a box that is not whole. */
static bool next_box(struct byte_span *from, struct box *out)
{
	struct byte_span start = *from;
	uint64_t size = read_number(from, 4), head = 8;

	if (start.count < head)
		return false;
	read_number(from, 4);
	if (size == 1) {
		head = 16;
		size = read_number(from, 8);
	}
	if (size == 0) /* to the end */
		size = start.count;
	if (size < head || size > start.count)
		return false;
	*out = (struct box){start.at + 4, {start.at + head, (size_t)(size - head)}};
	*from = (struct byte_span){start.at + size, (size_t)(start.count - size)};
	return true;
}

/* The first box says which formats a file is of: a main one, a version, and others. */
bool heif_is_avif(const uint8_t *bytes, size_t size)
{
	struct byte_span b = {bytes, size};
	uint64_t end = read_number(&b, 4);

	if (size < 12 || memcmp(bytes + 4, "ftyp", 4) != 0)
		return false;
	end = end < size ? end : size;
	for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4)
		if (!memcmp(bytes + at, "avif", 4) || !memcmp(bytes + at, "avis", 4))
			return true;
	return false;
}

/* Numbers of items, each above the one before it. */
struct ids {
	uint64_t last;
	bool rising;
};

static void add_id(struct ids *ids, uint64_t id)
{
	ids->rising = ids->rising && id > ids->last;
	ids->last = id;
}

/* Where items lie: their numbers, and their bytes together. */
struct item_data {
	struct ids ids;
	uint64_t bytes;
};

/* Pieces of an item.  A length of 0 may mean all of the file, so it is that. */
static uint64_t sum_pieces(struct byte_span *iloc, unsigned before_bytes, unsigned length_bytes, uint64_t size)
{
	uint64_t pieces = read_number(iloc, 2), length, sum = 0;

	if (!length_bytes) { /* there may be more of them than the box has bytes */
		skip(iloc, pieces * before_bytes);
		return pieces * size;
	}
	for (; pieces && iloc->count; pieces--) {
		skip(iloc, before_bytes);
		length = read_number(iloc, length_bytes);
		sum = add_capped(sum, length && length < size ? length : size);
	}
	return sum;
}

static void add_item_data(struct byte_span iloc, uint64_t size, struct item_data *p)
{
	uint64_t version = read_number(&iloc, 4) >> 24, sizes = read_number(&iloc, 2);
	unsigned index_bytes = version ? sizes & 15 : 0, base_bytes = sizes >> 4 & 15;
	unsigned offset_bytes = sizes >> 12 & 15, length_bytes = sizes >> 8 & 15;

	if (index_bytes > 8 || base_bytes > 8 || offset_bytes > 8 || length_bytes > 8)
		return; /* libavif refuses these */
	read_number(&iloc, version < 2 ? 2 : 4);
	while (iloc.count) {
		add_id(&p->ids, read_number(&iloc, version < 2 ? 2 : 4));
		read_number(&iloc, version ? 4 : 2);
		skip(&iloc, base_bytes);
		p->bytes = add_capped(p->bytes, sum_pieces(&iloc, index_bytes + offset_bytes, length_bytes, size));
	}
}

/* In a row of boxes, and in the boxes of the ones that may have items. */
static void add_all_item_data(struct byte_span boxes, uint64_t size, unsigned depth, struct item_data *p)
{
	struct box box;

	while (next_box(&boxes, &box)) {
		if (box_is(&box, "iloc"))
			add_item_data(box.in, size, p);
		if (box_is(&box, "meta"))
			read_number(&box.in, 4);
		if (depth && (box_is(&box, "meta") || box_is(&box, "moov") || box_is(&box, "trak")))
			add_all_item_data(box.in, size, depth - 1, p);
	}
}

bool heif_items_fit(const uint8_t *bytes, size_t size, uint64_t most)
{
	struct item_data p = {.bytes = 0};

	add_all_item_data((struct byte_span){bytes, size}, size, 3, &p);
	return p.bytes <= most;
}

#define GRIDS_MAX 8

struct grids {
	uint64_t id[GRIDS_MAX];
	uint32_t count;
};

static bool is_grid(const struct grids *g, uint64_t id)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->id[i] == id)
			return true;
	return false;
}

/* Which items are grids.  False if there are more grids than we have room for. */
static bool add_items(struct byte_span iinf, struct ids *ids, struct grids *grids)
{
	uint64_t version = read_number(&iinf, 4) >> 24;
	struct box infe;

	read_number(&iinf, version ? 4 : 2);
	while (next_box(&iinf, &infe)) {
		uint64_t id = read_number(&infe.in, 4) >> 24 < 3 ? read_number(&infe.in, 2) : read_number(&infe.in, 4);

		add_id(ids, id);
		read_number(&infe.in, 2);
		if (infe.in.count < 4 || memcmp(infe.in.at, "grid", 4) != 0)
			continue;
		if (grids->count == GRIDS_MAX)
			return false;
		grids->id[grids->count++] = id;
	}
	return true;
}

/* The parts of grids. */
static void add_parts(struct byte_span iref, const struct grids *grids, struct ids *ids)
{
	unsigned id_bytes = read_number(&iref, 4) >> 24 ? 4 : 2;
	struct box dimg;

	while (next_box(&iref, &dimg)) {
		if (!box_is(&dimg, "dimg") || !is_grid(grids, read_number(&dimg.in, id_bytes)))
			continue;
		read_number(&dimg.in, 2);
		while (dimg.in.count >= id_bytes)
			add_id(ids, read_number(&dimg.in, id_bytes));
	}
}

bool heif_grids_in_order(const uint8_t *bytes, size_t size)
{
	struct ids items = {0, true}, parts = {0, true};
	struct item_data places = {.ids.rising = true};
	struct byte_span file = {bytes, size}, meta = {NULL, 0};
	struct grids grids = {.count = 0};
	bool is_first = true; /* no item was named yet */
	struct box box;

	while (!meta.at && next_box(&file, &box))
		if (box_is(&box, "meta")) {
			meta = box.in;
			read_number(&meta, 4);
		}
	while (next_box(&meta, &box)) {
		if (box_is(&box, "iloc"))
			add_item_data(box.in, size, &places);
		if (box_is(&box, "iinf") && !add_items(box.in, &items, &grids))
			return false;
		if (box_is(&box, "iref") && is_first) /* it names parts first, and grids are not known */
			return false;
		if (box_is(&box, "iref"))
			add_parts(box.in, &grids, &parts);
		is_first = is_first && !box_is(&box, "iinf");
	}
	return !grids.count || (places.ids.rising && items.rising && parts.rising);
}
