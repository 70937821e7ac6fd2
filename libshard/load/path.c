/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - by which way the records of a shard come: its map, past the page cache, or pread
 *
 * Decided when a thread first needs the shard in an epoch, by any thread: all would decide the same.  A shard that lies in
 * memory stays mapped until a step has to wait for its pages; then all are looked at again.
 */
#include "libshard/load/path.h"

#include "libshard/base/bytes.h"
#include "libshard/base/mem.h"
#include "libshard/disk/schema.h"
#include "libshard/io/direct.h"
#include "libshard/io/file.h"
#include "libshard/store/read/reader_chunks.h"

#define FITS_PERCENT	   60u	 /* of the memory that is available: the trainer needs some too */
#define DIRECT_BYTES	   (UINT64_C(16) << 10) /* shorter records are read in runs, through the page cache */
#define BESIDE_BYTES	   (UINT64_C(64) << 20)
#define FAULTS_ALLOWED	   16u /* of a step, and one for 8 rows */

/* An entry is the kind and, above it, when it was decided; 0 is never. */
static uint32_t stamp_of(const struct shard_loader *l, enum path_kind kind, uint64_t epoch)
{
	uint32_t turn = atomic_load_explicit(&l->path_turn, memory_order_relaxed);

	if (kind != PATH_HOT)
		turn += (uint32_t)epoch;
	return (turn & 0xfffff) << 4 | 8 | (uint32_t)kind;
}

static bool is_direct_group(const struct shard_loader *l, uint32_t group)
{
	const struct shard_group *g = &l->ds->m.schema.group[group];

	return g->codec == SHARD_RAW && group_is_large(g) && g->unit_records == 1;
}

/* A small group beside a large one, such as labels: fetched as a whole with the shard's first record. */
static bool is_beside(const struct shard_loader *l, const struct shard_reader *r, uint32_t group)
{
	return l->has_direct_group && !is_direct_group(l, group) && !r->group[group].compressed && r->group[group].data &&
	       r->pages->record_count * r->group[group].stride <= BESIDE_BYTES;
}

static void fetch_beside(const struct shard_loader *l, const struct shard_reader *r)
{
	for (uint32_t g = 0; g < r->schema->group_count; g++)
		if (is_beside(l, r, g))
			file_will_need(r->group[g].data, (size_t)(r->pages->record_count * r->group[g].stride));
}

static enum path_kind choose(const struct shard_loader *l, const struct shard_reader *r)
{
	uint64_t bytes, inode;
	bool cached;
	int fd;

	if (l->o.path == SHARD_PATH_DIRECT)
		return PATH_DIRECT;
	if (l->o.path == SHARD_PATH_PREAD || l->is_remote)
		return PATH_PREAD;
	if (file_open(r->path, &fd, &bytes, &inode, NULL))
		return PATH_WARM; /* removed since: the map still has it */
	cached = file_seems_cached(fd, bytes);
	file_close(fd);
	if (cached)
		return PATH_HOT;
	if (l->o.path == SHARD_PATH_MAP || !l->wants_direct)
		return PATH_WARM;
	return l->fits ? PATH_PREAD : PATH_DIRECT; /* what fits shall be in memory from the next epoch on */
}

void path_stamps(const struct shard_loader *l, uint64_t epoch, uint32_t stamp[PATH_KINDS])
{
	for (uint32_t k = 0; k < PATH_KINDS; k++)
		stamp[k] = stamp_of(l, (enum path_kind)k, epoch);
}

enum path_kind path_decide(struct shard_loader *l, uint64_t shard, const struct shard_reader *r, uint64_t epoch)
{
	enum path_kind kind = choose(l, r);

	if (kind != PATH_HOT)
		fetch_beside(l, r);
	atomic_store_explicit(&l->path[shard], stamp_of(l, kind, epoch), memory_order_release); /* what settle() prepared goes with it */
	return kind;
}

void path_demote(struct shard_loader *l, uint64_t faults, uint32_t hot_rows)
{
	if (hot_rows && faults > FAULTS_ALLOWED + hot_rows / 8) /* the others were expected to fault */
		atomic_fetch_add_explicit(&l->path_turn, 1, memory_order_relaxed);
}

void path_refuse_direct(struct shard_loader *l, uint64_t shard, uint64_t epoch)
{
	atomic_store_explicit(&l->path[shard], stamp_of(l, PATH_PREAD, epoch), memory_order_release);
}

/* A run at a time, so that the disk gets requests worth its while: who comes first has the kernel fetch all of it. */
void path_fetch_run(struct shard_loader *l, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside, uint64_t epoch)
{
	uint64_t unit = r->group[group].unit_records, run = inside / l->fetch_records, runs = r->pages->record_count / l->fetch_records + 1;
	uint64_t first = run * l->fetch_records, count = min_u64(l->fetch_records, r->pages->record_count - first);
	uint8_t now = (uint8_t)(epoch % 255 + 1);
	_Atomic uint8_t *asked = atomic_load_explicit(&l->fetched[shard], memory_order_acquire), *none = NULL;

	if (is_beside(l, r, group))
		return;
	if (!asked) {
		asked = mem_array((size_t)(runs * SHARD_GROUPS_MAX), sizeof(*asked)); /* 8 bytes for 256 KiB */
		if (asked && !atomic_compare_exchange_strong(&l->fetched[shard], &none, asked)) {
			mem_free((void *)asked);
			asked = none;
		}
	}
	if (!asked) /* without the memory it is slower, and no other difference */
		return;
	if (atomic_exchange_explicit(&asked[group * runs + run], now, memory_order_relaxed) == now)
		return;
	if (r->group[group].compressed)
		reader_fetch_chunks(r, group, first / unit, (first + count - 1) / unit - first / unit + 1);
	else
		file_will_need(r->group[group].data + first * r->group[group].stride, (size_t)(count * r->group[group].stride));
}

/* ---- life ---- */

uint64_t path_fits_bytes(void)
{
	return memory_available_bytes() / 100 * FITS_PERCENT;
}

bool path_open(struct shard_loader *l)
{
	const struct shard_schema *s = &l->ds->m.schema;
	struct shard_dataset_info info;
	uint64_t record_bytes = schema_strides(s);

	shard_dataset_info(l->ds, &info);
	l->is_remote = l->o.path == SHARD_PATH_AUTO && file_is_remote(l->ds->dir);
	l->fits = info.data_bytes <= path_fits_bytes();
	l->wants_direct = l->has_direct_group = false;
	for (uint32_t g = 0; g < s->group_count; g++) {
		l->wants_direct |= is_direct_group(l, g) && s->group[g].stride >= DIRECT_BYTES;
		l->has_direct_group |= is_direct_group(l, g);
	}
	l->fetch_records = record_bytes < LOADER_RUN_BYTES ? LOADER_RUN_BYTES / record_bytes : 1;
	l->path = mem_array((size_t)l->ds->m.shard_count, sizeof(*l->path));
	l->fetched = mem_array((size_t)l->ds->m.shard_count, sizeof(*l->fetched));
	return l->path && l->fetched;
}

void path_close(struct shard_loader *l)
{
	for (uint64_t i = 0; l->fetched && i < l->ds->m.shard_count; i++)
		mem_free((void *)atomic_load(&l->fetched[i]));
	mem_free((void *)l->fetched);
	mem_free((void *)l->path);
	l->fetched = NULL;
	l->path = NULL;
}
