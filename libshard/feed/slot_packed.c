/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_packed.c - rows of compressed groups: chunks are decoded, and records taken out of them
 *
 * If the records of a chunk are consecutive rows, it is decoded straight to their place.  Any other
 * chunk is decoded into a block of the stage, where all threads find it.  If no block is free, it
 * is decoded into memory of this thread.
 *
 * A chunk is hashed when it is decoded, before and after.  With SHARD_CHECK_DEVICE that is done the
 * first time, and again after the chunk was fetched.  A chunk that was decoded unhashed, but had to
 * be waited for, is hashed afterwards.  With SHARD_CHECK_FIRST only the first time counts.  Records
 * that are taken from the stage later need no hashing.
 */
#include "libshard/feed/feed.h"

#include "libshard/base/bytes.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"

/* Rows of a block whose records are neighbours in one chunk. */
struct part {
	uint32_t row, count; /* of the block */
	uint32_t chunk_records, skip;
	uint64_t chunk; /* the number in the shard */
	uint64_t key;	/* the key in the stage */
	uint32_t held;	/* the block of the stage */
};

struct parts {
	uint32_t count;
	struct part part[BLOCK_ROWS];
};

uint64_t slot_packed_chunk_bytes(const struct layouts *layouts)
{
	const struct layout *layout;
	uint64_t bytes = 0;

	for (uint32_t i = 0; (layout = layouts_at(layouts, i)) != NULL; i++)
		for (uint32_t g = 0; g < layout->schema->group_count; g++) {
			const struct shard_group *group = &layout->schema->group[g];

			if (group->codec != SHARD_RAW && group->stride * group->unit_records > bytes)
				bytes = group->stride * group->unit_records;
		}
	return bytes;
}

static struct part part_at(const struct block *b, uint32_t group, uint32_t row)
{
	const struct located *at = &b->at[row];
	uint32_t unit = b->layout->schema->group[group].unit_records;
	struct part p = {.row = row, .count = 1, .chunk = layout_unit_of(b->layout, group, at->in_shard)};

	p.skip = (uint32_t)(at->in_shard - p.chunk * unit);
	p.key = b->slot->record[b->first + row] - p.skip;
	p.chunk_records = (uint32_t)min_u64(unit, at->r->pages->record_count - p.chunk * unit);
	while (row + p.count < b->count && p.skip + p.count < p.chunk_records && at[p.count].r == at->r &&
	       at[p.count].in_shard == at->in_shard + p.count)
		p.count++;
	return p;
}

/* ---- decoding ---- */

static int decode(struct block *b, uint32_t group, const struct part *p, uint8_t *dst)
{
	struct shard_reader *r = b->at[p->row].r;
	/* Chunks beside the stage are checked as well: several threads may decode the same one. */
	struct unit_check check = unit_check_begin(b->source, r, group, p->chunk, false);
	int rc = reader_read_chunk(r, group, p->chunk, check.hash, dst, b->err);

	if (!rc && !check.hash && r->check == SHARD_CHECK_DEVICE) {
		uint64_t faults = scratch_faults(b->scratch);

		if (faults != b->scratch->faults) { /* the thread has waited for pages */
			reader_forget(r, group, p->chunk * r->group[group].unit_records, 1);
			rc = reader_check_chunk(r, group, p->chunk, dst, b->err);
			b->counts->checked_units += !rc;
		}
		b->scratch->faults = faults;
	}
	b->counts->decoded_chunks += !rc;
	unit_check_end(&check, !rc, &b->counts->checked_units);
	return rc;
}

/* Returns the place of rows of a group that is a block. */
static uint8_t *place_of(const struct block *b, uint32_t group, const struct part *p)
{
	return b->slot->memory + b->layout->group_at[group] +
	       (b->first + p->row) * b->layout->schema->group[group].stride;
}

static void land(const struct block *b, uint32_t group, const struct part *p, const uint8_t *chunk)
{
	const struct shard_group *g = &b->layout->schema->group[group];
	const uint8_t *src = chunk + p->skip * g->stride;

	if (layout_is_block(b->layout, group)) {
		copy_stream(place_of(b, group, p), src, (size_t)(p->count * g->stride));
		return;
	}
	for (uint32_t i = 0; i < p->count; i++)
		layout_spread(b->layout, group, src + i * g->stride, b->first + p->row + i, b->slot->memory);
}

/* Set the rows of a damaged chunk aside, unless damage is an error. */
static int set_aside_if_damaged(struct block *b, const struct part *p, int rc)
{
	if (rc != SHARD_E_CORRUPT || b->strict)
		return rc;
	for (uint32_t i = 0; i < p->count; i++)
		row_set_aside(b->source, &b->slot->row_flags[b->first + p->row + i], b->err);
	return SHARD_OK;
}

/* ---- through the stage ---- */

static void land_held(struct block *b, uint32_t group, struct parts *held)
{
	struct stage *s = b->source->stages.of[group];

	for (uint32_t i = 0; i < held->count; i++) {
		const struct part *p = &held->part[i];

		land(b, group, p, stage_at(s, p->held));
		stage_leave(s, p->held, p->count);
	}
	held->count = 0;
}

/*
 * Take rows from a chunk.  They are copied to their places at once, or added to `held`, if the
 * chunk is there, or added to `left`, if another thread is filling it.
 */
static int fill_from_stage(struct block *b, uint32_t group, struct part *p, struct parts *held, struct parts *left)
{
	uint64_t stride = b->layout->schema->group[group].stride;
	struct stage *s = b->source->stages.of[group];
	enum stage_answer answer = stage_get(s, p->key, &p->held);
	uint8_t *dst = b->scratch->chunk;
	int rc;

	if (answer == STAGE_FULL && held->count) { /* perhaps because of what this thread holds */
		land_held(b, group, held);
		answer = stage_get(s, p->key, &p->held);
	}
	if (answer == STAGE_BUSY) {
		left->part[left->count++] = *p;
		return SHARD_OK;
	}
	if (answer == STAGE_READY) {
		block_fetch_ahead(stage_at(s, p->held) + p->skip * stride, p->count * stride);
		held->part[held->count++] = *p;
		return SHARD_OK;
	}
	if (answer == STAGE_FILL)
		dst = stage_at(s, p->held);
	rc = decode(b, group, p, dst);
	if (answer == STAGE_FILL)
		stage_filled(s, p->held, rc ? 0 : p->chunk_records);
	if (!rc)
		land(b, group, p, dst);
	if (!rc && answer == STAGE_FILL)
		stage_leave(s, p->held, p->count);
	return set_aside_if_damaged(b, p, rc);
}

void slot_packed_fetch(struct block *b, uint32_t group)
{
	for (uint32_t i = 0; i < b->count; i++)
		if (!b->at[i].path.hot)
			paths_fetch(&b->source->paths, b->at[i].shard, b->at[i].r, group, b->at[i].in_shard,
				    b->slot->place.epoch);
}

int slot_packed_fill(struct block *b, uint32_t group)
{
	bool is_block = layout_is_block(b->layout, group);
	struct parts held, left, again;
	int rc = SHARD_OK;

	held.count = left.count = 0;
	slot_packed_fetch(b, group); /* all that may lie on the disk, before waiting for the first chunk */
	for (uint32_t i = 0; !rc && i < b->count;) {
		struct part p = part_at(b, group, i);

		i += p.count;
		if (is_block && p.count == p.chunk_records)
			rc = set_aside_if_damaged(b, &p, decode(b, group, &p, place_of(b, group, &p)));
		else
			rc = fill_from_stage(b, group, &p, &held, &left);
	}
	for (uint32_t i = 0; !rc && i < left.count; i++)
		do { /* again, if yet another thread has begun to fill the chunk */
			again.count = 0;
			stage_wait(b->source->stages.of[group], left.part[i].key);
			rc = fill_from_stage(b, group, &left.part[i], &held, &again);
		} while (again.count);
	land_held(b, group, &held);
	return rc;
}
