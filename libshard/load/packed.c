/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed.c - rows of compressed groups: chunks decoded, and records taken out of them
 *
 * A chunk whose records are consecutive rows is decoded where they belong.  Others are decoded into a block of the stage,
 * where all that need them find them; if there is no block to be had, into memory of this thread's own.
 *
 * What is stored and what came out of it are hashed with the chunk's first decoding (SHARD_CHECK_FIRST: by this handle of
 * the dataset), or with each.  Records that are taken from the stage later were hashed when it was filled.
 */
#include "libshard/base/bytes.h"
#include "libshard/codec/copy.h"
#include "libshard/load/block.h"
#include "libshard/load/stage.h"
#include "libshard/store/read/reader_chunks.h"

/* Rows that are neighbours in one chunk. */
struct part {
	uint32_t row, count; /* row: of the block */
	uint32_t chunk_records, skip;
	uint64_t chunk, key; /* in its shard; of its stage */
	uint32_t held;	     /* block of the stage */
};

struct parts {
	uint32_t count;
	struct part part[BLOCK];
};

uint64_t rows_chunk_bytes(const struct shard_loader *l)
{
	uint64_t bytes = 0;

	for (uint32_t g = 0; g < l->ds->m.schema.group_count; g++) {
		const struct shard_group *group = &l->ds->m.schema.group[g];

		if (group->codec != SHARD_RAW && group->stride * group->unit_records > bytes)
			bytes = group->stride * group->unit_records;
	}
	return bytes;
}

static struct part part_at(const struct block *b, uint32_t group, uint32_t row)
{
	const struct located *at = &b->at[row];
	uint32_t unit = b->l->ds->m.schema.group[group].unit_records;
	struct part p = {.row = row, .count = 1, .chunk = block_unit_of(b->l, group, at->inside)};

	p.skip = (uint32_t)(at->inside - p.chunk * unit);
	p.key = b->s->record[b->first + row] - p.skip;
	p.chunk_records = (uint32_t)min_u64(unit, at->r->pages->record_count - p.chunk * unit);
	while (row + p.count < b->count && p.skip + p.count < p.chunk_records && at[p.count].r == at->r &&
	       at[p.count].inside == at->inside + p.count)
		p.count++;
	return p;
}

/* ---- decoding ---- */

static int decode(struct block *b, uint32_t group, const struct part *p, uint8_t *dst)
{
	struct shard_reader *r = b->at[p->row].r;
	/* Also where it is not decoded into the stage, and so perhaps by several threads. */
	struct unit_check check = block_begin_check(b->l, r, group, p->chunk);
	int rc = reader_read_chunk(r, group, p->chunk, check.hash, dst, b->err);

	b->counts->decoded_chunks += !rc;
	block_end_check(&check, !rc, &b->counts->checked_units);
	return rc;
}

/* Where the rows of a large group belong. */
static uint8_t *place_of(const struct block *b, uint32_t group, const struct part *p)
{
	return b->s->memory + b->l->layout.group_at[group] + (b->first + p->row) * b->l->ds->m.schema.group[group].stride;
}

static void land(const struct block *b, uint32_t group, const struct part *p, const uint8_t *chunk)
{
	const struct shard_group *g = &b->l->ds->m.schema.group[group];
	const uint8_t *src = chunk + p->skip * g->stride;

	if (group_is_large(g)) {
		copy_stream(place_of(b, group, p), src, (size_t)(p->count * g->stride));
		return;
	}
	for (uint32_t i = 0; i < p->count; i++)
		block_spread(&b->l->layout, group, src + i * g->stride, b->first + p->row + i, b->s->memory);
}

/* The chunk of these rows is damaged, whatever its other rows are. */
static int set_aside(struct block *b, const struct part *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		block_set_aside(b->l, &b->s->row_flags[b->first + p->row + i], b->err);
	return SHARD_OK;
}

static int set_aside_if_damaged(struct block *b, const struct part *p, int rc)
{
	return rc == SHARD_E_CORRUPT && !b->strict ? set_aside(b, p) : rc;
}

/* ---- through the stage ---- */

static void land_held(struct block *b, uint32_t group, struct parts *held)
{
	struct stage *s = b->l->stage[group];

	for (uint32_t i = 0; i < held->count; i++) {
		const struct part *p = &held->part[i];

		land(b, group, p, stage_at(s, p->held));
		stage_leave(s, p->held, p->count);
	}
	held->count = 0;
}

/* Rows of one chunk: to their places, or held until the others of the block are there, or left because another thread is at it. */
static int take(struct block *b, uint32_t group, struct part *p, struct parts *held, struct parts *left)
{
	uint64_t stride = b->l->ds->m.schema.group[group].stride;
	struct stage *s = b->l->stage[group];
	enum stage_answer answer = stage_get(s, p->key, &p->held);
	uint8_t *dst = b->m->chunk;
	int rc;

	if (answer == STAGE_FULL && held->count) { /* perhaps of what we hold ourselves */
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

/* What others were filling. */
static int take_left(struct block *b, uint32_t group, const struct parts *left, struct parts *held)
{
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < left->count; i++) {
		struct part p = left->part[i];
		struct parts again;

		do {
			again.count = 0;
			stage_wait(b->l->stage[group], p.key);
			rc = take(b, group, &p, held, &again);
		} while (again.count);
	}
	return rc;
}

/* Have all that may lie on the disk fetched before the first is waited for. */
static void fetch_runs(struct block *b, uint32_t group)
{
	for (uint32_t i = 0; i < b->count; i++)
		if (b->at[i].kind != PATH_HOT)
			path_fetch_run(b->l, b->at[i].shard, b->at[i].r, group, b->at[i].inside, b->s->place.epoch);
}

int block_fill_packed(struct block *b, uint32_t group)
{
	bool large = group_is_large(&b->l->ds->m.schema.group[group]);
	struct parts held, left;
	int rc = SHARD_OK;

	held.count = left.count = 0;
	fetch_runs(b, group);
	for (uint32_t i = 0; !rc && i < b->count;) {
		struct part p = part_at(b, group, i);

		i += p.count;
		if (large && p.count == p.chunk_records)
			rc = set_aside_if_damaged(b, &p, decode(b, group, &p, place_of(b, group, &p)));
		else
			rc = take(b, group, &p, &held, &left);
	}
	if (!rc)
		rc = take_left(b, group, &left, &held);
	land_held(b, group, &held);
	return rc;
}
