/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - open a shard and copy records out of it
 *
 * Opening reads two pages and maps the rest.  A record is checked with its unit, when first used; the table that holds
 * the unit's hash is checked before that, once.
 */
#include "libshard/store/reader.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/codec/checksum.h"
#include "libshard/codec/codec.h"
#include "libshard/disk/invariant.h"
#include "libshard/disk/schema.h"
#include "libshard/io/file.h"
#include "libshard/io/guard.h"

static int read_pages(struct shard_reader *r, int fd, struct shard_error *err)
{
	struct disk_header header;
	struct disk_footer footer;
	struct hash128 header_hash, footer_hash;
	int rc = pages_check_size(r->file_bytes, err);

	if (rc) {
		error_prefix(err, r->path);
		return rc;
	}
	rc = file_read_at(fd, &header, sizeof(header), 0, r->path, err);
	if (!rc)
		rc = file_read_at(fd, &footer, sizeof(footer), r->file_bytes - sizeof(footer), r->path, err);
	if (rc)
		return rc;
	header_hash = checksum128(&header, sizeof(header) - sizeof(header.hash));
	footer_hash = checksum128(&footer, sizeof(footer) - sizeof(footer.hash));
	rc = pages_decode(r->pages, &header, header_hash.b, &footer, footer_hash.b, r->file_bytes, err);
	if (rc)
		error_prefix(err, r->path);
	return rc;
}

static void find_tables(struct shard_reader *r)
{
	for (uint32_t g = 0; g < r->pages->schema.group_count; g++) {
		const struct shard_group *s = &r->pages->schema.group[g];
		const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, g);
		const struct section *leaf = pages_find(r->pages, SHARD_SECTION_HASH, g);
		const struct section *index = pages_find(r->pages, SHARD_SECTION_CIDX, g);

		r->group[g].stride = s->stride;
		r->group[g].unit_records = s->unit_records;
		r->group[g].compressed = s->codec != SHARD_RAW;
		r->group[g].data = data ? r->map + data->offset : NULL;
		r->group[g].leaf = leaf ? r->map + leaf->offset : NULL;
		r->group[g].index = index ? (const void *)(r->map + index->offset) : NULL;
	}
}

int reader_open_as(struct shard_reader **out, const char *path, const char *shown_path,
		   const struct shard_reader_options *opt, struct shard_error *err)
{
	struct shard_reader_options o;
	struct shard_reader *r;
	const void *map = NULL;
	int fd = -1, rc = options_take(&o, sizeof(o), opt, err);

	if (rc)
		return rc;
	if (o.check > SHARD_CHECK_NEVER || o.guard > 1)
		return error_set(err, SHARD_E_ARGUMENT, "options: check is %u, guard %u; must be at most 2 and 1", o.check, o.guard);
	r = mem_zalloc(sizeof(*r));
	if (!r)
		return error_set(err, SHARD_E_MEMORY, "no memory for a reader");
	r->check = o.check;
	r->guard = o.guard;
	r->path = mem_text(shown_path);
	r->pages = mem_zalloc(sizeof(*r->pages));
	if (!r->path || !r->pages) {
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a reader");
		goto out;
	}
	if (r->guard && !guard_install()) {
		rc = error_set(err, SHARD_E_IO, "the system refuses a handler for SIGBUS; open without guard");
		goto out;
	}
	rc = file_open(path, &fd, &r->file_bytes, &r->inode, err);
	if (!rc)
		rc = read_pages(r, fd, err);
	if (!rc)
		rc = file_map(fd, r->file_bytes, r->path, &map, err);
	if (rc)
		goto out;
	r->map = map;
	r->schema = &r->pages->schema;
	find_tables(r);
	*out = r;
	r = NULL;
out:
	file_close(fd);
	shard_reader_close(r);
	return rc;
}

int shard_reader_open(struct shard_reader **out, const char *path, const struct shard_reader_options *opt, struct shard_error *err)
{
	return reader_open_as(out, path, path, opt, err);
}

void shard_reader_close(struct shard_reader *r)
{
	if (!r)
		return;
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		mem_free((void *)atomic_load(&r->group[g].seen));
	file_unmap(r->map, r->file_bytes);
	mem_free(r->pages);
	mem_free(r->path);
	mem_free(r);
}

uint64_t reader_unit_count(const struct shard_reader *r, uint32_t group)
{
	return ceil_div(r->pages->record_count, r->group[group].unit_records);
}

uint64_t reader_unit_bytes(const struct shard_reader *r, uint32_t group, uint64_t unit)
{
	const struct reader_group *g = &r->group[group];
	uint64_t first = unit * g->unit_records;

	return min_u64(g->unit_records, r->pages->record_count - first) * g->stride;
}

const uint8_t *reader_section_bytes(const struct shard_reader *r, const struct section *s)
{
	return r->map + s->offset;
}

struct hash_job {
	const void *data;
	size_t bytes;
	struct hash128 hash;
};

static void hash_work(void *context)
{
	struct hash_job *job = context;

	job->hash = checksum128(job->data, job->bytes);
}

int reader_guarded(const struct shard_reader *r, void (*work)(void *), void *context, struct shard_error *err)
{
	struct shown s;

	if (!r->guard) {
		work(context);
		return SHARD_OK;
	}
	if (guard_run(r->map, r->file_bytes, work, context))
		return SHARD_OK;
	return error_set(err, SHARD_E_IO, "%s: its bytes cannot be read any more (the file was cut while in use, or its disk fails)",
			 show(&s, r->path));
}

static int check_table_hash(const struct section *s, const struct hash128 *hash, struct shard_error *err)
{
	MUST("I43", !memcmp(hash->b, s->hash, sizeof(s->hash)), "the hash of section %s of group %u (%" PRIu64 " bytes at %" PRIu64
	     ") is wrong", shard_section_name(s->type), s->group, s->bytes, s->offset);
	return SHARD_OK;
}

int reader_check_section(struct shard_reader *r, const struct section *s, struct shard_error *err)
{
	unsigned bit = 1u << (s - r->pages->section);
	struct hash_job job = {r->map + s->offset, s->bytes, {{0}}};
	int rc;

	if (atomic_load_explicit(&r->sections_checked, memory_order_acquire) & bit)
		return SHARD_OK;
	file_will_need(job.data, job.bytes);
	rc = reader_guarded(r, hash_work, &job, err);
	if (rc)
		return rc;
	rc = check_table_hash(s, &job.hash, err);
	if (rc) {
		error_prefix(err, r->path);
		return rc;
	}
	atomic_fetch_or_explicit(&r->sections_checked, bit, memory_order_release);
	return SHARD_OK;
}

int reader_check_tables(struct shard_reader *r, uint32_t group, struct shard_error *err)
{
	struct reader_group *g = &r->group[group];
	const struct section *leaf = pages_find(r->pages, SHARD_SECTION_HASH, group);
	const struct section *index = pages_find(r->pages, SHARD_SECTION_CIDX, group);
	int rc;

	if (atomic_load_explicit(&g->tables_checked, memory_order_acquire))
		return SHARD_OK;
	rc = leaf ? reader_check_section(r, leaf, err) : SHARD_OK;
	if (!rc && index)
		rc = reader_check_section(r, index, err);
	if (!rc)
		atomic_store_explicit(&g->tables_checked, true, memory_order_release);
	return rc;
}

int reader_check_unit(const struct shard_reader *r, uint32_t group, uint64_t unit, const void *decoded, struct shard_error *err)
{
	const struct reader_group *g = &r->group[group];
	uint64_t bytes = reader_unit_bytes(r, group, unit), first = unit * g->unit_records;
	uint64_t got = checksum64(decoded, bytes), want = load64(g->leaf + 8 * unit);

	MUST("I44", got == want,
	     "unit %" PRIu64 " of group %u (records %" PRIu64 " to %" PRIu64 "): its hash is %016" PRIx64 ", the table says %016" PRIx64
	     ": the bytes are damaged",
	     unit, group, first, first + bytes / g->stride - 1, got, want);
	return SHARD_OK;
}

int reader_chunk(const struct shard_reader *r, uint32_t group, uint64_t idx, struct chunk *out, struct shard_error *err)
{
	const struct disk_chunk *entry = &r->group[group].index[idx];

	return chunk_decode(r->pages, group, idx, entry, idx ? entry - 1 : NULL, out, err);
}

int reader_decode_chunk(const struct shard_reader *r, uint32_t group, uint64_t idx, const struct chunk *c, const void *stored,
			bool check, void *dst, struct shard_error *err)
{
	const struct codec *codec = codec_find(r->pages->schema.group[group].codec);

	if (check) {
		uint64_t got = checksum64(stored, c->padded_bytes);

		MUST("I46", got == c->stored_hash, "chunk %" PRIu64 " of group %u (%u bytes at %" PRIu64 "): the hash of its stored bytes is %016"
		     PRIx64 ", the index says %016" PRIx64, idx, group, c->padded_bytes, c->offset, got, c->stored_hash);
	}
	if (!c->is_lz4) {
		memcpy(dst, stored, c->decoded_bytes);
		return SHARD_OK;
	}
	MUST("I47", codec && codec->decode(stored, c->stored_bytes, dst, c->decoded_bytes) == SHARD_OK,
	     "chunk %" PRIu64 " of group %u: %u stored bytes do not decode to %u", idx, group, c->stored_bytes, c->decoded_bytes);
	return SHARD_OK;
}

/* ---- records ---- */

static _Atomic uint64_t *seen_bits(struct shard_reader *r, uint32_t group)
{
	struct reader_group *g = &r->group[group];
	_Atomic uint64_t *bits = atomic_load_explicit(&g->seen, memory_order_acquire), *none = NULL;

	if (bits)
		return bits;
	bits = mem_array((size_t)ceil_div(reader_unit_count(r, group), 64), sizeof(*bits));
	if (bits && !atomic_compare_exchange_strong(&g->seen, &none, bits)) {
		mem_free((void *)bits);
		bits = none; /* another thread was first */
	}
	return bits;
}

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
	const struct reader_group *g = &r->group[job->group];
	uint64_t last = (job->first + job->count - 1) / g->unit_records;

	for (uint64_t u = job->first / g->unit_records; u <= last; u++) {
		uint64_t bit = UINT64_C(1) << (u & 63);
		int rc;

		if (r->check == SHARD_CHECK_FIRST && (atomic_load_explicit(&job->seen[u / 64], memory_order_relaxed) & bit))
			continue;
		rc = reader_check_unit(r, job->group, u, g->data + u * g->unit_records * g->stride, job->err);
		if (rc)
			return rc;
		atomic_fetch_or_explicit(&job->seen[u / 64], bit, memory_order_relaxed);
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

static int check_range(const struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, struct shard_error *err)
{
	struct shown s;

	if (group >= r->schema->group_count)
		return error_set(err, SHARD_E_ARGUMENT, "%s: group %u; there are %u", show(&s, r->path), group, r->schema->group_count);
	if (first > r->pages->record_count || count > r->pages->record_count - first)
		return error_set(err, SHARD_E_ARGUMENT, "%s: records %" PRIu64 " to %" PRIu64 "; there are %" PRIu64, show(&s, r->path),
				 first, first + count - 1, r->pages->record_count);
	return SHARD_OK;
}

static int read_raw(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, void *dst, struct shard_error *err)
{
	const struct reader_group *g = &r->group[group];
	struct copy_job job = {r, group, first, count, dst, SHARD_OK, err, NULL};
	int rc;

	if (r->check != SHARD_CHECK_NEVER) {
		rc = reader_check_tables(r, group, err);
		if (rc)
			return rc;
		job.seen = seen_bits(r, group);
		if (!job.seen)
			return error_set(err, SHARD_E_MEMORY, "no memory to remember which units were checked");
	}
	if (!all_seen(&job))
		file_will_need(g->data + first * g->stride, (size_t)(count * g->stride));
	rc = reader_guarded(r, copy_raw, &job, err);
	if (!rc && job.rc) {
		error_prefix(err, r->path);
		rc = job.rc;
	}
	return rc;
}

struct chunk_job {
	struct shard_reader *r;
	uint32_t group;
	uint64_t idx;
	struct chunk *c;
	uint8_t *dst;
	struct shard_error *err;
	int rc;
};

static void chunk_work(void *context)
{
	struct chunk_job *j = context;

	j->rc = reader_chunk(j->r, j->group, j->idx, j->c, j->err);
}

static void decode_work(void *context)
{
	struct chunk_job *j = context;

	j->rc = reader_decode_chunk(j->r, j->group, j->idx, j->c, j->r->map + j->c->offset, j->r->check != SHARD_CHECK_NEVER, j->dst,
				    j->err);
	if (!j->rc && j->r->check != SHARD_CHECK_NEVER)
		j->rc = reader_check_unit(j->r, j->group, j->idx, j->dst, j->err);
}

static int run_chunk_job(struct chunk_job *job, void (*work)(void *context), struct shard_error *err)
{
	int rc = reader_guarded(job->r, work, job, err);

	if (rc || !job->rc)
		return rc;
	error_prefix(err, job->r->path);
	return job->rc;
}

/* One chunk after the other: straight to its place if all of it is wanted, else through `scratch`. */
static int read_chunks(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, uint8_t *dst, struct shard_error *err)
{
	struct reader_group *g = &r->group[group];
	uint8_t *scratch = NULL;
	int rc = r->check == SHARD_CHECK_NEVER ? SHARD_OK : reader_check_tables(r, group, err);

	while (!rc && count) {
		uint64_t idx = first / g->unit_records, skip = first % g->unit_records;
		uint64_t n = min_u64(count, min_u64(g->unit_records, r->pages->record_count - idx * g->unit_records) - skip);
		struct chunk c;
		struct chunk_job job = {r, group, idx, &c, dst, err, SHARD_OK};

		rc = run_chunk_job(&job, chunk_work, err);
		if (rc)
			break;
		if (n * g->stride != c.decoded_bytes) {
			if (!scratch)
				scratch = mem_zalloc((size_t)(g->unit_records * g->stride));
			if (!scratch) {
				rc = error_set(err, SHARD_E_MEMORY, "no memory for a chunk of %" PRIu64 " bytes", g->unit_records * g->stride);
				break;
			}
			job.dst = scratch;
		}
		file_will_need(r->map + c.offset, c.padded_bytes);
		rc = run_chunk_job(&job, decode_work, err);
		if (!rc && job.dst == scratch)
			memcpy(dst, scratch + skip * g->stride, n * g->stride);
		first += n;
		count -= n;
		dst += n * g->stride;
	}
	mem_free(scratch);
	return rc;
}

int shard_reader_read(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, void *dst, struct shard_error *err)
{
	int rc = check_range(r, group, first, count, err);

	if (rc || !count)
		return rc;
	return r->group[group].compressed ? read_chunks(r, group, first, count, dst, err)
					  : read_raw(r, group, first, count, dst, err);
}

int shard_reader_view(struct shard_reader *r, uint32_t group, uint64_t idx, struct shard_view *out, struct shard_error *err)
{
	int rc = check_range(r, group, idx, 1, err);
	struct shown s;

	if (rc)
		return rc;
	if (r->group[group].compressed)
		return error_set(err, SHARD_E_UNSUPPORTED, "%s: group %u is compressed; read its records, they cannot be viewed",
				 show(&s, r->path), group);
	rc = read_raw(r, group, idx, 1, NULL, err);
	if (rc)
		return rc;
	out->data = r->group[group].data + idx * r->group[group].stride;
	out->bytes = (size_t)r->group[group].stride;
	return SHARD_OK;
}
