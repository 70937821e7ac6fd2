/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_records.c - copy records out of a shard, or show them in place
 *
 * Raw records are checked and copied where they are mapped; chunks are decoded, straight to their
 * place where all of one is wanted.  With SHARD_CHECK_DEVICE a thread that had to wait for pages
 * while it copied checks and copies once more: the pages came from a device.
 */
#include "libshard/dataset/reader.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/io/io.h"
#include "shard_pack.h"

#define ASK_BYTES 65536u /* copying so many takes much longer than to ask whether SIGBUS is blocked */

struct copy_job {
	struct shard_reader *r;
	uint32_t group;
	uint64_t first, count;
	uint8_t *dst; /* NULL: check only */
	int rc;
	struct shard_error *err;
	_Atomic uint64_t *seen;
};

static int check_units(struct copy_job *job)
{
	struct shard_reader *r = job->r;
	struct reader_group *g = &r->group[job->group];
	uint64_t last = (job->first + job->count - 1) / g->unit_records;

	for (uint64_t u = job->first / g->unit_records; u <= last; u++) {
		uint64_t bit = UINT64_C(1) << (u & 63);
		int rc;

		if (reader_remembers(r) && (atomic_load_explicit(&job->seen[u / 64], memory_order_relaxed) & bit))
			continue;
		rc = reader_check_unit(r, job->group, u, g->data + u * g->unit_records * g->stride, job->err);
		if (rc)
			return rc;
		reader_set_seen(g, &job->seen[u / 64], bit);
	}
	return SHARD_OK;
}

/* Were all of these records used before, and so are probably in memory? */
static bool all_seen(const struct copy_job *job)
{
	const struct reader_group *g = &job->r->group[job->group];
	uint64_t last = (job->first + job->count - 1) / g->unit_records;

	for (uint64_t u = job->first / g->unit_records; u <= last; u++)
		if (!job->seen || !(atomic_load_explicit(&job->seen[u / 64], memory_order_relaxed) >> (u & 63) & 1))
			return false;
	return true;
}

static void copy_raw(void *context)
{
	struct copy_job *job = context;
	const struct reader_group *g = &job->r->group[job->group];

	job->rc = job->r->check == SHARD_CHECK_NEVER ? SHARD_OK : check_units(job);
	if (!job->rc && job->dst)
		memcpy(job->dst, g->data + job->first * g->stride, job->count * g->stride);
}

static int check_range(const struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count,
		       struct shard_error *err)
{
	struct shown s;

	if (group >= r->schema->group_count)
		return error_set(err, SHARD_E_ARGUMENT, "%s: there is no group %u; the shard has %u", show(&s, r->path),
				 group, r->schema->group_count);
	if (first > r->pages->record_count || count > r->pages->record_count - first)
		return error_set(err, SHARD_E_ARGUMENT,
				 "%s: records %" PRIu64 " to %" PRIu64 " were asked for; the shard has %" PRIu64,
				 show(&s, r->path), first, first + count - 1, r->pages->record_count);
	return SHARD_OK;
}

static int read_raw(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, void *dst,
		    struct shard_error *err)
{
	const struct reader_group *g = &r->group[group];
	struct copy_job job = {r, group, first, count, dst, SHARD_OK, err, NULL};
	bool seen;
	int rc;

	if (r->check != SHARD_CHECK_NEVER) {
		rc = reader_check_tables(r, group, err);
		if (rc)
			return rc;
		job.seen = reader_seen(r, group);
		if (!job.seen)
			return error_set(err, SHARD_E_MEMORY, "no memory to remember which units were checked");
	}
	seen = all_seen(&job);
	if (!seen)
		file_will_need(g->data + first * g->stride, (size_t)(count * g->stride));
	else if (!dst && r->check == SHARD_CHECK_FIRST)
		return SHARD_OK; /* nothing is read */
	rc = count * g->stride < ASK_BYTES ? reader_guarded_brief(r, copy_raw, &job, err)
					   : reader_guarded(r, copy_raw, &job, err);
	if (!rc && job.rc) {
		error_prefix(err, r->path);
		rc = job.rc;
	}
	return rc;
}

/*
 * One chunk after the other: straight to its place if all of it is wanted, else through memory
 * beside.
 */
static int read_chunks(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, uint8_t *dst,
		       struct shard_error *err)
{
	const struct reader_group *g = &r->group[group];
	bool check = r->check != SHARD_CHECK_NEVER;
	int rc = check ? reader_check_tables(r, group, err) : SHARD_OK;
	uint8_t *beside = NULL;

	while (!rc && count) {
		uint64_t idx = first / g->unit_records, skip = first % g->unit_records,
			 bytes = reader_unit_bytes(r, group, idx);
		uint64_t n = min_u64(count, bytes / g->stride - skip);
		bool whole = n * g->stride == bytes;

		if (!whole && !beside)
			beside = mem_alloc((size_t)(g->unit_records * g->stride));
		if (!whole && !beside) {
			rc = error_set(err, SHARD_E_MEMORY, "no memory for a chunk of %" PRIu64 " bytes",
				       g->unit_records * g->stride);
			break;
		}
		reader_fetch_chunks(r, group, idx, 1);
		rc = reader_read_chunk(r, group, idx, check, whole ? dst : beside, err);
		if (!rc && !whole)
			memcpy(dst, beside + skip * g->stride, n * g->stride);
		first += n;
		count -= n;
		dst += n * g->stride;
	}
	mem_free(beside);
	return rc;
}

int reader_read(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, void *dst,
		struct shard_error *err)
{
	int rc = check_range(r, group, first, count, err);

	if (rc || !count)
		return rc;
	return r->group[group].compressed ? read_chunks(r, group, first, count, dst, err)
					  : read_raw(r, group, first, count, dst, err);
}

bool reader_had_faults(void)
{
	static _Thread_local uint64_t before;
	uint64_t now = file_major_faults();
	bool had = now != before;

	before = now;
	return had;
}

int shard_reader_read(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, void *dst,
		      struct shard_error *err)
{
	int rc = reader_read(r, group, first, count, dst, err);

	if (rc || !count || r->check != SHARD_CHECK_DEVICE || r->group[group].compressed || !reader_had_faults())
		return rc;
	reader_forget(r, group, first, count);
	return reader_read(r, group, first, count, dst, err);
}

int shard_reader_view(struct shard_reader *r, uint32_t group, uint64_t idx, struct shard_view *out,
		      struct shard_error *err)
{
	int rc = check_range(r, group, idx, 1, err);
	struct shown s;

	if (rc)
		return rc;
	if (r->group[group].compressed)
		return error_set(err, SHARD_E_UNSUPPORTED,
				 "%s: group %u is compressed, so its records cannot be viewed; read them instead",
				 show(&s, r->path), group);
	rc = read_raw(r, group, idx, 1, NULL, err);
	if (rc)
		return rc;
	out->data = r->group[group].data + idx * r->group[group].stride;
	out->bytes = (size_t)r->group[group].stride;
	return SHARD_OK;
}
