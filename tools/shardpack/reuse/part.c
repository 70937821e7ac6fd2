/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.c - shards that lie in a row in a finished dataset: what another dataset is made of
 */
#include "tools/shardpack/reuse/reuse.h"

#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"

int part_fail(const struct shard_error *err)
{
	int code = err->status == SHARD_E_EXISTS ? EXIT_USAGE : exit_code_of_status(err->status);

	return fail(code, "%s", err->message);
}

int part_open(struct part *p, const char *dir)
{
	struct shard_error err;

	*p = (struct part){.dir = dir};
	if (shard_dataset_open(&p->ds, dir, NULL, &err) != SHARD_OK)
		return part_fail(&err);
	shard_dataset_info(p->ds, &p->info);
	p->count = p->info.shard_count;
	return EXIT_DONE;
}

void part_close(struct part *p)
{
	shard_dataset_close(p->ds);
	p->ds = NULL;
}

int part_entry(const struct part *p, uint64_t i, struct shard_entry *out)
{
	struct shard_error err;

	return shard_dataset_entry(p->ds, p->first + i, out, &err) == SHARD_OK ? EXIT_DONE : part_fail(&err);
}

struct copying {
	char *to;
	struct shard_view from;
};

static void copy(void *context)
{
	const struct copying *c = context;

	memcpy(c->to, c->from.data, c->from.bytes);
}

int part_copy(const struct shard_reader *r, const struct shard_view *view, char *out)
{
	struct copying c = {.to = out, .from = *view};
	struct shard_error err;

	if (c.from.bytes && shard_reader_guarded(r, copy, &c, &err) != SHARD_OK)
		return part_fail(&err);
	out[c.from.bytes] = '\0';
	return EXIT_DONE;
}

int part_key(const struct part *p, uint64_t record, char out[SHARD_KEY_BYTES_MAX + 1], size_t *bytes)
{
	struct shard_error err;

	if (shard_dataset_key(p->ds, record, out, bytes, &err) != SHARD_OK)
		return part_fail(&err);
	out[*bytes] = '\0';
	return EXIT_DONE;
}
