/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_shards.c - see verify_shards.h
 */
#include "libshard/verify/verify_shards.h"

#include "libshard/base/error.h"
#include "libshard/base/mem.h"

struct verify_shard {
	struct shard_reader *r;
	uint64_t users;
	struct verify_shard *next;
};

/* Where the link to it is; that is NULL for the single one. */
static struct verify_shard **find(struct verify_shards *v, const struct shard_reader *r)
{
	struct verify_shard **at = &v->first; /* a few: one for each thread, and one more */

	while (*at && (*at)->r != r)
		at = &(*at)->next;
	return at;
}

static void drop(struct verify_shard **at)
{
	struct verify_shard *s = *at;

	*at = s->next;
	shard_reader_close(s->r);
	mem_free(s);
}

int verify_shards_open(struct verify_shards *v, const struct shard_dataset *ds, uint64_t idx, struct shard_reader **out,
		       struct shard_error *err)
{
	struct verify_shard *s;
	int rc;

	*out = v->single;
	if (!ds)
		return SHARD_OK;
	s = mem_zalloc(sizeof(*s));
	rc = s ? dataset_open_shard(ds, idx, &s->r, err) : error_set(err, SHARD_E_MEMORY, "no memory to verify");
	if (rc) {
		mem_free(s);
		return rc;
	}
	s->users = 1;
	s->next = v->first;
	v->first = s;
	*out = s->r;
	return SHARD_OK;
}

void verify_shards_take(struct verify_shards *v, const struct shard_reader *r)
{
	struct verify_shard *s = *find(v, r);

	if (s)
		s->users++;
}

void verify_shards_give(struct verify_shards *v, const struct shard_reader *r)
{
	struct verify_shard **at = find(v, r);

	if (*at && !--(*at)->users)
		drop(at);
}

void verify_shards_close(struct verify_shards *v)
{
	while (v->first)
		drop(&v->first);
}

uint64_t verify_shards_units(const struct shard_reader *r)
{
	uint64_t units = 0;

	for (uint32_t g = 0; g < r->schema->group_count; g++)
		units += reader_unit_count(r, g);
	return units;
}
