/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_chunks.c - whole chunks of a shard, read and decoded
 */
#include "libshard/dataset/dataset.h"

#include "libshard/base/error.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_pack.h"

struct chunk_job {
	struct shard_reader *r;
	uint32_t group;
	uint64_t idx;
	bool check;
	struct chunk c;
	uint8_t *dst;
	struct shard_error *err;
	int rc;
};

static void chunk_work(void *context)
{
	struct chunk_job *j = context;

	j->rc = reader_chunk(j->r, j->group, j->idx, &j->c, j->err);
}

static void decode_work(void *context)
{
	struct chunk_job *j = context;

	j->rc = reader_decode_chunk(j->group, j->idx, &j->c, j->r->map + j->c.offset, j->check, j->dst, j->err);
	if (!j->rc && j->check)
		j->rc = reader_check_unit(j->r, j->group, j->idx, j->dst, j->err);
}

/* `rc` of the guard, then of the work. */
static int end_chunk_job(struct chunk_job *job, int rc, struct shard_error *err)
{
	if (rc || !job->rc)
		return rc;
	error_prefix(err, job->r->path);
	return job->rc;
}

static int find_chunk(struct chunk_job *job, struct shard_error *err)
{
	return end_chunk_job(job, reader_guarded_brief(job->r, chunk_work, job, err), err);
}

int reader_read_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, bool check, uint8_t *dst,
		      struct shard_error *err)
{
	struct chunk_job job = {.r = r, .group = group, .idx = idx, .check = check, .dst = dst, .err = err};
	int rc = find_chunk(&job, err);

	return rc ? rc : end_chunk_job(&job, reader_guarded(r, decode_work, &job, err), err);
}

static void hash_work(void *context)
{
	struct chunk_job *j = context;

	j->rc = reader_check_unit(j->r, j->group, j->idx, j->dst, j->err);
}

int reader_check_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, uint8_t *decoded, struct shard_error *err)
{
	struct chunk_job job = {.r = r, .group = group, .idx = idx, .dst = decoded, .err = err};

	return end_chunk_job(&job, reader_guarded(r, hash_work, &job, err), err);
}

void reader_fetch_chunks(struct shard_reader *r, uint32_t group, uint64_t idx, uint64_t count)
{
	struct chunk_job first = {.r = r, .group = group, .idx = idx},
			 last = {.r = r, .group = group, .idx = idx + count - 1};

	/* What is wrong with them is said when they are decoded. */
	if (!find_chunk(&first, NULL) && !find_chunk(&last, NULL) && last.c.offset >= first.c.offset)
		file_will_need(r->map + first.c.offset, (size_t)(last.c.offset + last.c.padded_bytes - first.c.offset));
}
