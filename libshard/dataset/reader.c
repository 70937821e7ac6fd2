/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - open a shard, check its tables, units and chunks, and read records out of it
 *
 * Opening reads two pages and maps the rest.  A reader of pages only has no map: a dataset of a
 * million shards is sealed by looking at each of them, and to map a file takes longer than to read
 * two pages of it.  A record is checked with its unit, when first used; the table that holds the
 * unit's hash is checked before that, once.
 *
 * Raw records are checked and copied where they are mapped; chunks are decoded, straight to their
 * place where all of one is wanted.  With SHARD_CHECK_DEVICE a thread that had to wait for pages
 * while it copied checks and copies once more: the pages came from a device.
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_inspect.h"

#define PAGE_BYTES 4096u /* what the kernel reads at least */

/* I1 to I42. */
static int read_pages(struct pages *pages, int fd, uint64_t file_bytes, const char *path, struct shard_error *err)
{
	struct disk_header header;
	struct disk_footer footer;
	struct hash128 header_hash, footer_hash;
	int rc = pages_check_size(file_bytes, err);

	if (rc) {
		error_prefix(err, path);
		return rc;
	}
	rc = file_read_at(fd, &header, sizeof(header), 0, path, err);
	if (!rc)
		rc = file_read_at(fd, &footer, sizeof(footer), file_bytes - sizeof(footer), path, err);
	if (rc)
		return rc;
	header_hash = checksum128(&header, sizeof(header) - sizeof(header.hash));
	footer_hash = checksum128(&footer, sizeof(footer) - sizeof(footer.hash));
	rc = pages_decode(pages, &header, header_hash.b, &footer, footer_hash.b, file_bytes, err);
	if (rc)
		error_prefix(err, path);
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
	const struct section *stat;
	const void *map = NULL;
	int fd = -1, rc = options_take(&o, sizeof(o), opt, err);

	if (rc)
		return rc;
	if (o.check > SHARD_CHECK_FIRST || o.guard > SHARD_GUARD_OFF || o.pages_only > 1 || o.reserved)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: check is %u, guard %u, pages_only %u, reserved %u; must be at most 3, 2, 1 "
				 "and 0",
				 o.check, o.guard, o.pages_only, o.reserved);
	r = mem_zalloc(sizeof(*r) + SHARD_GROUPS_MAX * sizeof(r->group[0]));
	if (!r)
		return error_set(err, SHARD_E_MEMORY, "no memory for a reader");
	r->check = o.check;
	r->guard = o.guard != SHARD_GUARD_OFF && !o.pages_only;
	r->path = mem_text(shown_path);
	r->pages = mem_zalloc(sizeof(*r->pages));
	if (!r->path || !r->pages) {
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a reader");
		goto out;
	}
	if (r->guard && !guard_install()) {
		rc = error_set(err, SHARD_E_IO,
			       "the system refuses a handler for SIGBUS; open with guard set to SHARD_GUARD_OFF");
		goto out;
	}
	rc = file_open(path, &fd, &r->file_bytes, &r->inode, err);
	if (!rc)
		rc = read_pages(r->pages, fd, r->file_bytes, r->path, err);
	if (!rc && !o.pages_only)
		rc = file_map(fd, r->file_bytes, r->path, &map, err);
	if (rc)
		goto out;
	r->schema = &r->pages->schema;
	if (o.pages_only) {
		stat = pages_find(r->pages, SHARD_SECTION_STAT, 0);
		rc = stat && stat->bytes <= READER_STAT_BYTES ? reader_need_stat(r, fd, err) : SHARD_OK;
		if (rc)
			goto out;
	} else {
		r->map = map;
		atomic_init(&r->changed_ns, file_changed_ns(fd, path, r->inode));
		find_tables(r);
	}
	*out = r;
	r = NULL;
out:
	file_close(fd);
	shard_reader_close(r);
	return rc;
}

int shard_reader_open(struct shard_reader **out, const char *path, const struct shard_reader_options *opt,
		      struct shard_error *err)
{
	return reader_open_as(out, path, path, opt, err);
}

void shard_reader_close(struct shard_reader *r)
{
	if (!r)
		return;
	for (uint32_t g = 0; r->schema && g < r->schema->group_count; g++)
		mem_free((void *)atomic_load(&r->group[g].seen));
	mem_free(atomic_load(&r->stat_bytes));
	file_unmap(r->map, r->file_bytes);
	mem_free(r->pages);
	mem_free(r->path);
	mem_free(r);
}

void reader_share_schema(struct shard_reader **r, const struct shard_schema *schema)
{
	size_t bytes = offsetof(struct pages, section) + (*r)->pages->section_count * sizeof((*r)->pages->section[0]);
	struct pages *pages = mem_resize((*r)->pages, 1, bytes);
	struct shard_reader *shorter;

	if (pages) /* where it cannot be made shorter it stays as long as it is */
		(*r)->pages = pages;
	(*r)->schema = schema;
	shorter = mem_resize(*r, 1, sizeof(**r) + schema->group_count * sizeof((*r)->group[0]));
	if (shorter)
		*r = shorter;
}

uint64_t reader_unit_count(const struct shard_reader *r, uint32_t group)
{
	return ceil_div(r->pages->record_count, r->group[group].unit_records);
}

/* How many bytes a unit has when it is decoded. */
static uint64_t unit_bytes(const struct shard_reader *r, uint32_t group, uint64_t unit)
{
	const struct reader_group *g = &r->group[group];
	uint64_t first = unit * g->unit_records;

	return min_u64(g->unit_records, r->pages->record_count - first) * g->stride;
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

int reader_cut(const struct shard_reader *r, struct shard_error *err)
{
	struct shown s;

	return error_set(err, SHARD_E_IO,
			 "%s: its bytes cannot be read any more (the file was cut while in use, or its disk fails)",
			 show(&s, r->path));
}

int reader_guarded_brief(const struct shard_reader *r, void (*work)(void *), void *context, struct shard_error *err)
{
	if (!r->guard) {
		work(context);
		return SHARD_OK;
	}
	return guard_run(r->map, r->file_bytes, work, context) ? SHARD_OK : reader_cut(r, err);
}

int reader_guarded(const struct shard_reader *r, void (*work)(void *), void *context, struct shard_error *err)
{
	if (r->guard)
		guard_ask();
	return reader_guarded_brief(r, work, context, err);
}

struct map_copy {
	void *to;
	const void *from;
	size_t bytes;
};

static void copy_work(void *context)
{
	const struct map_copy *copy = context;

	memcpy(copy->to, copy->from, copy->bytes);
}

int reader_copy(const struct shard_reader *r, void *to, const void *from, size_t bytes, struct shard_error *err)
{
	struct map_copy copy = {to, from, bytes};

	return reader_guarded(r, copy_work, &copy, err);
}

int reader_need_map(const struct shard_reader *r, struct shard_error *err)
{
	struct shown s;

	return r->map ? SHARD_OK
		      : error_set(err, SHARD_E_ARGUMENT,
				  "%s: was opened with pages_only, which gives its schema, info and statistics only",
				  show(&s, r->path));
}

int shard_reader_guarded(const struct shard_reader *r, void (*work)(void *context), void *context,
			 struct shard_error *err)
{
	int rc = reader_need_map(r, err);

	if (rc)
		return rc;
	if (r->guard)
		guard_ask_at_times();
	return reader_guarded_brief(r, work, context, err);
}

int reader_check_section_hash(const struct section *s, const uint8_t hash[16], struct shard_error *err)
{
	MUST("I43", !memcmp(hash, s->hash, sizeof(s->hash)),
	     "the hash of section %s of group %u (%" PRIu64 " bytes at %" PRIu64 ") is wrong: its bytes are damaged",
	     section_name(s->type), s->group, s->bytes, s->offset);
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
	rc = reader_check_section_hash(s, job.hash.b, err);
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
	const struct section *leaf, *index;
	int rc;

	if (atomic_load_explicit(&g->tables_checked, memory_order_acquire))
		return SHARD_OK;
	leaf = pages_find(r->pages, SHARD_SECTION_HASH, group);
	index = pages_find(r->pages, SHARD_SECTION_CIDX, group);
	rc = leaf ? reader_check_section(r, leaf, err) : SHARD_OK;
	if (!rc && index)
		rc = reader_check_section(r, index, err);
	if (!rc)
		atomic_store_explicit(&g->tables_checked, true, memory_order_release);
	return rc;
}

_Atomic uint64_t *reader_seen(struct shard_reader *r, uint32_t group)
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

void reader_ask_for_regions(struct shard_reader *r)
{
	if (atomic_exchange(&r->has_regions, true))
		return;
	for (uint32_t g = 0; g < r->schema->group_count; g++) {
		uint64_t begin, end;

		if (r->group[g].compressed || !r->group[g].data)
			continue;
		begin = align_up(reader_raw_begin(r, g), READER_REGION_BYTES);
		end = reader_raw_end(r, g) / READER_REGION_BYTES * READER_REGION_BYTES;
		if (begin < end)
			file_ask_for_huge_pages(r->map + begin, (size_t)(end - begin));
	}
}

static void forget_units(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t last)
{
	_Atomic uint64_t *seen = atomic_load_explicit(&r->group[group].seen, memory_order_acquire);

	if (r->check != SHARD_CHECK_DEVICE || !seen)
		return;
	last = min_u64(last, reader_unit_count(r, group) - 1);
	for (uint64_t end, unit = first; unit <= last; unit = end) {
		uint64_t bits = UINT64_MAX << (unit & 63);

		end = (unit | 63) + 1;
		if (end > last + 1)
			bits &= UINT64_MAX >> (63 - (last & 63));
		atomic_fetch_and_explicit(&seen[unit / 64], ~bits, memory_order_relaxed);
	}
}

void reader_forget_bytes(struct shard_reader *r, uint32_t group, uint64_t begin, uint64_t end)
{
	const struct reader_group *g = &r->group[group];
	uint64_t from = reader_raw_begin(r, group), unit = g->stride * g->unit_records;

	begin = begin > from ? begin - from : 0;
	end = min_u64(end, reader_raw_end(r, group)) - from;
	if (begin < end)
		forget_units(r, group, begin / unit, (end - 1) / unit);
}

/* A unit of a raw group is as long as its records; stored chunks can be short. */
void reader_forget(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count)
{
	const struct reader_group *g = &r->group[group];
	uint64_t together = atomic_load(&r->has_regions) ? READER_REGION_BYTES : PAGE_BYTES, begin, end;

	if (g->compressed) {
		uint64_t margin = PAGE_BYTES / SHARD_CHUNK_ALIGN, unit = first / g->unit_records;

		forget_units(r, group, unit > margin ? unit - margin : 0,
			     (first + count - 1) / g->unit_records + margin);
		return;
	}
	begin = reader_raw_begin(r, group) + first * g->stride;
	end = begin + count * g->stride;
	reader_forget_bytes(r, group, begin / together * together, align_up(end, together));
}

void reader_forget_group(struct shard_reader *r, uint32_t group)
{
	struct reader_group *g = &r->group[group];
	_Atomic uint64_t *seen = atomic_load_explicit(&g->seen, memory_order_acquire);
	uint64_t words = ceil_div(reader_unit_count(r, group), 64);

	if (r->check != SHARD_CHECK_DEVICE || !seen || !atomic_exchange(&g->has_seen, false))
		return;
	for (uint64_t i = 0; i < words; i++)
		atomic_store_explicit(&seen[i], 0, memory_order_relaxed);
}

void reader_forget_all(struct shard_reader *r)
{
	for (uint32_t g = 0; g < r->schema->group_count; g++)
		reader_forget_group(r, g);
}

void reader_look_for_changes(struct shard_reader *r, int fd)
{
	uint64_t now = r->check == SHARD_CHECK_DEVICE ? file_changed_ns(fd, r->path, r->inode) : 0;

	if (!now || atomic_load(&r->changed_ns) == now)
		return;
	reader_forget_all(r);
	atomic_store(&r->changed_ns, now);
}

int reader_check_hash(const struct shard_reader *r, uint32_t group, uint64_t unit, uint64_t got,
		      struct shard_error *err)
{
	const struct reader_group *g = &r->group[group];
	uint64_t first = unit * g->unit_records, want = reader_leaf(r, group, unit);

	MUST("I44", got == want,
	     "unit %" PRIu64 " of group %u (records %" PRIu64 " to %" PRIu64 "): its hash is %016" PRIx64
	     ", the table says %016" PRIx64 ": the bytes are damaged",
	     unit, group, first, first + unit_bytes(r, group, unit) / g->stride - 1, got, want);
	return SHARD_OK;
}

int reader_check_unit(const struct shard_reader *r, uint32_t group, uint64_t unit, const void *decoded,
		      struct shard_error *err)
{
	return reader_check_hash(r, group, unit, checksum64(decoded, unit_bytes(r, group, unit)), err);
}

int reader_chunk(const struct shard_reader *r, uint32_t group, uint64_t idx, struct chunk *out, struct shard_error *err)
{
	const struct disk_chunk *entry = &r->group[group].index[idx];

	return chunk_decode(r->pages, r->schema, group, idx, entry, idx ? entry - 1 : NULL, out, err);
}

int reader_decode_chunk(uint32_t group, uint64_t idx, const struct chunk *c, const void *stored, bool check, void *dst,
			struct shard_error *err)
{
	if (check) {
		uint64_t got = checksum64(stored, c->padded_bytes);

		MUST("I46", got == c->stored_hash,
		     "chunk %" PRIu64 " of group %u (%u bytes at %" PRIu64
		     "): the hash of its stored bytes is %016" PRIx64 ", the index says %016" PRIx64,
		     idx, group, c->padded_bytes, c->offset, got, c->stored_hash);
	}
	if (!c->is_lz4) {
		memcpy(dst, stored, c->decoded_bytes);
		return SHARD_OK;
	}
	MUST("I47", lz4_decode(stored, c->stored_bytes, dst, c->decoded_bytes) == SHARD_OK,
	     "chunk %" PRIu64 " of group %u: %u stored bytes do not decode to %u", idx, group, c->stored_bytes,
	     c->decoded_bytes);
	return SHARD_OK;
}

/* `rc` is that of the guard; what the work itself says, `work_rc`, gets the path. */
static int end_work(const struct shard_reader *r, int rc, int work_rc, struct shard_error *err)
{
	if (rc || !work_rc)
		return rc;
	error_prefix(err, r->path);
	return work_rc;
}

/* ---- whole chunks ---- */

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

static void find_work(void *context)
{
	struct chunk_job *j = context;

	j->rc = reader_chunk(j->r, j->group, j->idx, &j->c, j->err);
}

static void check_work(void *context)
{
	struct chunk_job *j = context;

	j->rc = reader_check_unit(j->r, j->group, j->idx, j->dst, j->err);
}

static void decode_work(void *context)
{
	struct chunk_job *j = context;

	find_work(j);
	if (!j->rc)
		j->rc = reader_decode_chunk(j->group, j->idx, &j->c, j->r->map + j->c.offset, j->check, j->dst, j->err);
	if (!j->rc && j->check)
		check_work(j);
}

int reader_read_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, bool check, uint8_t *dst,
		      struct shard_error *err)
{
	struct chunk_job job = {.r = r, .group = group, .idx = idx, .check = check, .dst = dst, .err = err};
	int rc = reader_guarded(r, decode_work, &job, err);

	return end_work(r, rc, job.rc, err);
}

int reader_check_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, uint8_t *decoded, struct shard_error *err)
{
	struct chunk_job job = {.r = r, .group = group, .idx = idx, .dst = decoded, .err = err};
	int rc = reader_guarded(r, check_work, &job, err);

	return end_work(r, rc, job.rc, err);
}

void reader_fetch_chunks(struct shard_reader *r, uint32_t group, uint64_t idx, uint64_t count)
{
	struct chunk_job first = {.r = r, .group = group, .idx = idx},
			 last = {.r = r, .group = group, .idx = idx + count - 1};

	/* What is wrong with them is said when they are decoded. */
	if (reader_guarded_brief(r, find_work, &first, NULL) || reader_guarded_brief(r, find_work, &last, NULL))
		return;
	if (!first.rc && !last.rc && last.c.offset >= first.c.offset)
		file_will_need(r->map + first.c.offset, (size_t)(last.c.offset + last.c.padded_bytes - first.c.offset));
}

/* ---- records, copied or shown in place ---- */

struct copy_job {
	struct shard_reader *r;
	uint32_t group;
	uint64_t first, count;
	uint8_t *dst; /* NULL: check only */
	int rc;
	struct shard_error *err;
	_Atomic uint64_t *seen;
};

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
	struct shard_reader *r = job->r;
	struct reader_group *g = &r->group[job->group];
	uint64_t last = (job->first + job->count - 1) / g->unit_records;

	for (uint64_t u = job->first / g->unit_records; r->check != SHARD_CHECK_NEVER && u <= last; u++) {
		uint64_t bit = UINT64_C(1) << (u & 63);

		if (reader_remembers(r) && (atomic_load_explicit(&job->seen[u / 64], memory_order_relaxed) & bit))
			continue;
		job->rc = reader_check_unit(r, job->group, u, g->data + u * g->unit_records * g->stride, job->err);
		if (job->rc)
			return;
		reader_set_seen(g, &job->seen[u / 64], bit);
	}
	if (job->dst)
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
	rc = count * g->stride < READER_ASK_BYTES ? reader_guarded_brief(r, copy_raw, &job, err)
						  : reader_guarded(r, copy_raw, &job, err);
	return end_work(r, rc, job.rc, err);
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
			 bytes = unit_bytes(r, group, idx);
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

const uint8_t *reader_checked(const struct shard_reader *r, uint32_t group, uint64_t idx)
{
	const struct reader_group *g = &r->group[group];
	const _Atomic uint64_t *seen = atomic_load_explicit(&g->seen, memory_order_acquire);
	uint64_t unit = idx / g->unit_records;
	bool known = r->check == SHARD_CHECK_NEVER ||
		     (reader_remembers(r) && seen &&
		      atomic_load_explicit(&seen[unit / 64], memory_order_relaxed) >> (unit & 63) & 1);

	return known && !g->compressed ? g->data + idx * g->stride : NULL;
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
	int rc = reader_need_map(r, err);
	struct shown s;

	if (!rc && !dst && group < r->schema->group_count && r->group[group].compressed)
		return error_set(err, SHARD_E_ARGUMENT,
				 "%s: group %u is compressed, so its records are checked as they are read; give "
				 "memory for them",
				 show(&s, r->path), group);
	if (!rc)
		rc = reader_read(r, group, first, count, dst, err);
	if (rc || !count || !dst || r->check != SHARD_CHECK_DEVICE || r->group[group].compressed ||
	    !reader_had_faults())
		return rc;
	reader_forget(r, group, first, count);
	return reader_read(r, group, first, count, dst, err);
}

int shard_reader_view(struct shard_reader *r, uint32_t group, uint64_t idx, struct shard_view *out,
		      struct shard_error *err)
{
	int rc = reader_need_map(r, err);
	struct shown s;

	if (!rc)
		rc = check_range(r, group, idx, 1, err);
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
