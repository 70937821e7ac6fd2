/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_all.c - whole shards checked, and their files hashed from the same bytes
 *
 * Two shards go side by side, piece by piece: SHA-256 of two files at once takes little longer than
 * that of one.
 */
#include "libshard/store/read/verify.h"

#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/turns.h"
#include "libshard/disk/pages.h"
#include "shard_pack.h"

#define LARGE_UNIT_BYTES ((size_t)4 << 20) /* memory for units that the caller's is too small for */

/* A shard on its way. */
struct walk {
	struct verify_whole *of;
	/* for the units that are checked, and those that are read meanwhile */
	struct verify_room room[2];
	uint64_t hashed, end; /* how far the file is hashed; and is to be, on the map */
	uint32_t group;
	uint64_t unit, unit_count, next_count, turn; /* of the group: where we are, and the next piece */
	const uint8_t *due;			     /* bytes of the last piece that are not hashed yet */
	size_t due_bytes;
	bool ended;
};

static void hash_work(void *context)
{
	struct walk *w = context;

	sha256_update(w->of->sha, w->of->r->map + w->hashed, (size_t)(w->end - w->hashed));
}

/*
 * Tables, gaps, and units that were checked in the map: no second reading of the file, which might
 * say something else.
 */
static int hash_map(struct walk *w, uint64_t end)
{
	int rc = SHARD_OK;

	w->end = end;
	if (w->of->sha && w->hashed < end)
		rc = reader_guarded(w->of->r, hash_work, w, w->of->err);
	w->hashed = end;
	return rc;
}

/* Units that were checked in a room will be hashed there. */
static int note_held(struct walk *w, const struct verify_room *room)
{
	int rc = w->hashed < room->held_begin ? hash_map(w, room->held_begin) : SHARD_OK;

	if (!rc && w->of->sha) {
		w->due = room->buffer + (w->hashed - room->held_begin);
		w->due_bytes = (size_t)(room->held_end - w->hashed);
	}
	w->hashed = room->held_end;
	return rc;
}

/* How many units from `unit` on are read at once. */
static uint64_t piece_at(const struct walk *w, uint64_t unit)
{
	return unit < w->unit_count ? verify_piece(w->of->r, w->group, unit, w->room[0].buffer_bytes) : 0;
}

/* Go to the group, and begin to read it. */
static int begin_group(struct walk *w, uint32_t group)
{
	struct shard_reader *r = w->of->r;
	const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, group);
	int rc;

	w->group = group;
	w->unit = w->turn = 0;
	w->unit_count = reader_unit_count(r, group);
	w->next_count = piece_at(w, 0);
	if (!w->unit_count)
		return SHARD_OK;
	rc = hash_map(w, data->offset);
	if (!rc)
		verify_ahead(r, &w->room[0], group, 0, w->next_count);
	return rc;
}

/* New memory has to be cleared, which takes longer than XXH3 of it: so use the caller's. */
static int open_room(const struct verify_whole *of, struct verify_room *room, uint8_t *memory)
{
	uint64_t most = 0;

	for (uint32_t g = 0; g < of->r->schema->group_count; g++)
		most = max_u64(most, of->r->group[g].stride * of->r->group[g].unit_records);
	if (most > of->memory_bytes - 2 * SHARD_PAGE_BYTES)
		return verify_room_init(room, LARGE_UNIT_BYTES, of->err);
	room->buffer = memory;
	room->buffer_bytes = of->memory_bytes;
	room->lent = true;
	return SHARD_OK;
}

static int begin(struct walk *w)
{
	struct verify_whole *of = w->of;
	int rc;

	turns_give(of->turns);
	verify_fetch_tables(of->r, of->path);
	turns_take(of->turns);
	rc = verify_tables(of->r, of->err);
	if (rc)
		return rc;
	for (uint32_t i = 0; !rc && i < 2; i++) {
		rc = open_room(of, &w->room[i], of->memory[i]);
		if (!rc)
			rc = verify_room_enter(&w->room[i], of->r, of->path, of->err);
		w->room[i].cached = false; /* what the disk has is the question */
	}
	return rc ? rc : begin_group(w, 0);
}

/* What is left when all units were checked. */
static int end(struct walk *w)
{
	struct shard_reader *r = w->of->r;
	int rc = hash_map(w, r->file_bytes);

	w->ended = true;
	if (!rc && verify_has_ragged(r->schema))
		rc = verify_ragged(r, 0, r->pages->record_count, NULL, NULL, w->of->err);
	return rc;
}

/* Check the next piece. */
static int step(struct walk *w)
{
	struct shard_reader *r = w->of->r;
	struct verify_room *room = &w->room[w->turn % 2], *other = &w->room[(w->turn + 1) % 2];
	uint64_t count = w->next_count, bytes = 0;
	int rc = SHARD_OK;

	while (!rc && w->unit == w->unit_count && w->group + 1 < r->schema->group_count) {
		rc = begin_group(w, w->group + 1);
		room = &w->room[0];
		other = &w->room[1];
		count = w->next_count;
	}
	if (rc || w->unit == w->unit_count)
		return rc ? rc : end(w);
	w->next_count = piece_at(w, w->unit + count);
	if (w->next_count)
		verify_ahead(r, other, w->group, w->unit + count, w->next_count);
	turns_give(w->of->turns);
	verify_await(r, room);
	turns_take(w->of->turns);
	rc = verify_units(r, room, w->group, w->unit, count, &bytes, NULL, NULL, w->of->err);
	if (!rc && room->held_end)
		rc = note_held(w, room);
	w->unit += count;
	w->turn++;
	return rc;
}

/* Hash what the last pieces left. */
static void hash_due(struct walk *w, uint32_t count)
{
	size_t both = 0;

	if (count == 2 && w[0].due_bytes && w[1].due_bytes) {
		struct sha256 *const sha[2] = {w[0].of->sha, w[1].of->sha};
		const uint8_t *const from[2] = {w[0].due, w[1].due};

		both = (size_t)min_u64(w[0].due_bytes, w[1].due_bytes);
		sha256_update_two(sha, from, both);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (w[i].due_bytes > both)
			sha256_update(w[i].of->sha, w[i].due + both, w[i].due_bytes - both);
		w[i].due_bytes = 0;
	}
}

void verify_all(struct verify_whole *whole, uint32_t count)
{
	struct walk w[VERIFY_WHOLE_MAX];
	bool going = true;

	for (uint32_t i = 0; i < count; i++) {
		w[i] = (struct walk){.of = &whole[i]};
		for (uint32_t k = 0; k < 2; k++)
			w[i].room[k] = VERIFY_ROOM_NONE;
		whole[i].rc = begin(&w[i]);
	}
	while (going) {
		going = false;
		for (uint32_t i = 0; i < count; i++)
			if (!whole[i].rc && !w[i].ended) {
				whole[i].rc = step(&w[i]);
				going = true;
			}
		hash_due(w, count);
	}
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < 2; k++)
			verify_room_free(&w[i].room[k]);
}
