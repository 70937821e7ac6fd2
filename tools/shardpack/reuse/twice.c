/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twice.c - is something in two of these datasets?
 *
 * * Of a key the XXH3-128 is kept: two keys that share it are not expected in this world.
 */
#include "tools/shardpack/reuse/reuse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"

/* ---- shards ---- */

struct shard_place {
	uint8_t sha256[32];
	uint32_t part;
	uint64_t shard;
};

static int by_place(const struct shard_place *x, const struct shard_place *y)
{
	return x->part != y->part ? (x->part < y->part ? -1 : 1) : x->shard < y->shard ? -1 : x->shard > y->shard;
}

static int by_sha256(const void *a, const void *b)
{
	const struct shard_place *x = a, *y = b;
	int order = memcmp(x->sha256, y->sha256, sizeof(x->sha256));

	return order ? order : by_place(x, y);
}

int twice_shards(const struct part *part, uint32_t count)
{
	struct shard_place *place;
	const struct shard_place *least = NULL;
	struct shard_entry e;
	uint64_t shards = 0, n = 0;
	int code = EXIT_DONE;

	for (uint32_t p = 0; p < count; p++)
		shards += part[p].count;
	place = calloc(shards + 1, sizeof(*place));
	if (!place)
		return fail(EXIT_IO, "out of memory for %" PRIu64 " shards", shards);
	for (uint32_t p = 0; code == EXIT_DONE && p < count; p++)
		for (uint64_t i = 0; code == EXIT_DONE && i < part[p].count; i++) {
			code = part_entry(&part[p], i, &e);
			if (code != EXIT_DONE || !e.record_count)
				continue;
			place[n] = (struct shard_place){.part = p, .shard = part[p].first + i};
			memcpy(place[n++].sha256, e.sha256, sizeof(e.sha256));
		}
	qsort(place, n, sizeof(*place), by_sha256);
	for (uint64_t i = 1; i < n; i++)
		if (place[i - 1].part != place[i].part &&
		    !memcmp(place[i - 1].sha256, place[i].sha256, sizeof(place[i].sha256)) &&
		    (!least || by_place(&place[i], least) < 0))
			least = &place[i];
	if (code == EXIT_DONE && least)
		code = fail(EXIT_BAD,
			    "shard %" PRIu64 " of %s and shard %" PRIu64
			    " of %s have the same bytes, so each record of them would be there twice; leave one of "
			    "them out, or add --duplicates keep",
			    least[-1].shard, part[least[-1].part].dir, least->shard, part[least->part].dir);
	free(place);
	return code;
}

/* ---- keys ---- */

struct twice_key {
	uint64_t hash[2];
	uint64_t number;
	uint32_t source;
};

static int add_key(struct twice *t, const void *key, size_t bytes, uint32_t source, uint64_t number)
{
	struct twice_key *k;

	if (!grow_on(t->shelf, &t->key, &t->capacity, t->count + 1, sizeof(*t->key)))
		return shelf_refuse(t->shelf, "%" PRIu64 " keys", t->count + 1);
	k = &t->key[t->count++];
	shard_xxh128(key, bytes, (uint8_t *)k->hash);
	k->number = number;
	k->source = source;
	return EXIT_DONE;
}

static int add_records(struct twice *t, const struct part *p, const struct shard_entry *e, uint32_t source)
{
	char key[SHARD_KEY_BYTES_MAX + 1];
	size_t bytes = 0;
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < e->record_count; i++) {
		if (i % 4096 == 0 && interrupted())
			return EXIT_INTERRUPTED;
		code = part_key(p, e->first_record + i, key, &bytes);
		if (code == EXIT_DONE && bytes) /* none: it has no name that could be another's */
			code = add_key(t, key, bytes, source, e->first_record + i);
	}
	return code;
}

int twice_add_part(struct twice *t, const struct part *p, uint32_t source)
{
	struct shard_reader *r;
	struct shard_entry e;
	struct shard_info info;
	struct shard_error err;
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < p->count; i++) {
		code = part_entry(p, i, &e);
		if (code == EXIT_DONE && shard_dataset_open_reader(p->ds, p->first + i, &r, &err) != SHARD_OK)
			code = part_fail(&err);
		if (code != EXIT_DONE)
			return code;
		shard_reader_info(r, &info);
		shard_reader_close(r);
		if (info.key_count)
			code = add_records(t, p, &e, source);
	}
	return code;
}

/* Equal ones of one source lie together. */
static int by_hash(const void *a, const void *b, void *context)
{
	const struct twice_key *x = a, *y = b;
	int order = memcmp(x->hash, y->hash, sizeof(x->hash));

	(void)context;
	if (order)
		return order;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

int twice_look(struct twice *t, uint64_t *found, struct twice_place first[2])
{
	const struct twice_key *k = t->key, *least = NULL;

	*found = 0;
	if (!shelf_sort(t->shelf, t->key, t->count, sizeof(*t->key), by_hash, NULL))
		return shelf_refuse(t->shelf, "%" PRIu64 " keys", t->count);
	for (uint64_t i = 1; i < t->count; i++) {
		if (memcmp(k[i - 1].hash, k[i].hash, sizeof(k->hash)) || k[i - 1].source == k[i].source)
			continue;
		if (!least || k[i].source < least->source ||
		    (k[i].source == least->source && k[i].number < least->number)) {
			least = &k[i];
			first[0] = (struct twice_place){k[i - 1].source, k[i - 1].number};
			first[1] = (struct twice_place){k[i].source, k[i].number};
		}
		++*found;
	}
	return EXIT_DONE;
}

void twice_free(struct twice *t)
{
	shelf_free(t->shelf, t->key);
	shelf_close(t->shelf);
	*t = (struct twice){0};
}
