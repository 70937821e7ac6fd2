/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - the path of a shard's records: from its map, past the page cache, or by pread
 *
 * The first thread that needs a shard in an epoch decides the path.  It does not matter which
 * thread that is, because all would decide the same.
 *
 * A mapped shard is hot if it lies in memory.  It stays hot until a step has to wait for pages.  A
 * long one is examined again in each epoch, too.  What a mapped shard that is not hot lacks is
 * fetched by dataset/fetch.h.
 *
 * With SHARD_CHECK_DEVICE this file also makes readers forget their checks: before it fetches a
 * small group, and if a part of the shard is not in memory.
 */
#include "libshard/feed/feed.h"

#include "libshard/base/bytes.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/io/io.h"

#define FITS_PERCENT   60u		    /* of the available memory; the trainer needs some too */
#define MAPS_OF_SHARD  4u		    /* and more, with regions; readers.most is half of all maps */
#define DIRECT_BYTES   (UINT64_C(16) << 10) /* of a record; shorter ones are read in runs */
#define BESIDE_BYTES   (UINT64_C(64) << 20)
#define LONG_BYTES     (UINT64_C(128) << 20) /* of a shard: to look at it costs less than 1 % of copying it */
#define LASTING	       (UINT32_C(1) << 21)
#define FAULTS_ALLOWED 16u /* in a step, and one more for each 8 rows */

/* ---- what is decided ---- */

struct path_times paths_times(const struct paths *p, uint64_t epoch)
{
	uint32_t turn = atomic_load_explicit(&p->turn, memory_order_relaxed), now = turn + (uint32_t)epoch;

	/* Bit 0 is set, so a time is never 0. */
	return (struct path_times){(turn & 0xfffff) << 1 | 1 | LASTING, (now & 0xfffff) << 1 | 1,
				   ((now + 1) & 0xfffff) << 1 | 1};
}

/* A thread that finds the entry also finds what was prepared for the path. */
static void enter(struct paths *p, uint64_t shard, struct path_choice path, bool lasts, uint64_t epoch)
{
	struct path_times times = paths_times(p, epoch);
	uint32_t entry = (lasts ? times.lasting : times.now) << 3 | (path.hot ? 4u : 0) | (uint32_t)path.kind;

	atomic_store_explicit(&p->entry[shard], entry, memory_order_release);
}

static bool is_direct_group(const struct shard_group *g)
{
	return g->codec == SHARD_RAW && layout_is_large(g) && g->unit_records == 1;
}

/* Is this a small group beside a large one, such as labels?  It is fetched as a whole. */
static bool is_beside(const struct paths *p, const struct shard_reader *r, uint32_t group)
{
	return p->has_direct_group && !is_direct_group(&r->schema->group[group]) && !r->group[group].compressed &&
	       r->group[group].data && r->pages->record_count * r->group[group].stride <= BESIDE_BYTES;
}

/* Keys, statistics and provenance stand behind what a loader reads, and need not be in memory. */
static uint64_t used_bytes(const struct shard_reader *r)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < r->pages->section_count; i++) {
		const struct section *s = &r->pages->section[i];

		if (s->type <= SHARD_SECTION_CIDX && s->offset + s->bytes > end)
			end = s->offset + s->bytes;
	}
	return end;
}

/* *whole becomes false if a part of the shard is not in memory. */
static struct path_choice choose_path(const struct paths *p, const struct shard_reader *r, bool *whole)
{
	uint64_t bytes, inode;
	bool cached;
	int fd;

	if (p->asked == SHARD_PATH_DIRECT)
		return (struct path_choice){PATH_DIRECT, false};
	if (p->asked == SHARD_PATH_PREAD || p->is_remote)
		return (struct path_choice){PATH_PREAD, false};
	*whole = false;
	if (file_open(r->path, &fd, &bytes, &inode, NULL))
		return (struct path_choice){PATH_MAP, false}; /* removed; the map still has it */
	cached = file_seems_cached(fd, used_bytes(r), whole);
	file_close(fd);
	if (cached || p->asked == SHARD_PATH_MAP || !p->wants_direct)
		return (struct path_choice){PATH_MAP, cached};
	/*
	 * A dataset that fits shall lie in memory from the next epoch on.  The map saves a copy.
	 * Without the guard, a disk that fails there would end the process.
	 */
	if (p->fits)
		return (struct path_choice){r->guard ? PATH_MAP : PATH_PREAD, false};
	return (struct path_choice){PATH_DIRECT, false};
}

struct path_choice paths_decide(struct paths *p, uint64_t shard, struct shard_reader *r, uint64_t epoch)
{
	const struct layout *layout = layouts_of(p->layouts, shard);
	bool whole = true;
	struct path_choice path = choose_path(p, r, &whole);

	reader_look_for_changes(r, -1);
	if (!whole)
		reader_forget_all(r);
	for (uint32_t k = 0; !path.hot && k < layout->group_count; k++) {
		uint32_t g = layout->group[k];

		if (!is_beside(p, r, g))
			continue;
		reader_forget_group(r, g);
		file_will_need(r->group[g].data, (size_t)(r->pages->record_count * r->group[g].stride));
	}
	if (!path.hot && path.kind == PATH_MAP)
		fetch_expect(p->fetch, r);
	enter(p, shard, path, path.hot && r->file_bytes < LONG_BYTES, epoch);
	return path;
}

void paths_doubt(struct paths *p, uint64_t faults, uint32_t hot_rows)
{
	if (hot_rows && faults > FAULTS_ALLOWED + hot_rows / 8) /* rows of other shards may fault */
		/* By 2, because decisions for the next epoch hold as well. */
		atomic_fetch_add_explicit(&p->turn, 2, memory_order_relaxed);
}

void paths_refuse_direct(struct paths *p, uint64_t shard, uint64_t epoch)
{
	enter(p, shard, (struct path_choice){PATH_PREAD, false}, false, epoch);
}

/* ---- what a map lacks ---- */

bool paths_fetch(struct paths *p, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t in_shard,
		 uint64_t epoch)
{
	return !is_beside(p, r, group) && fetch_begin(p->fetch, shard, r, group, in_shard, epoch);
}

/* ---- life ---- */

uint64_t path_fits_bytes(void)
{
	return available_memory_bytes() / 100 * FITS_PERCENT;
}

bool paths_open(struct paths *p, struct shard_dataset *ds, const struct layouts *layouts, uint32_t asked)
{
	struct shard_dataset_info info;
	const struct layout *layout;
	uint64_t record_bytes = 0;

	shard_dataset_info(ds, &info);
	*p = (struct paths){.layouts = layouts, .shard_count = ds->m.shard_count, .asked = asked};
	p->is_remote = asked == SHARD_PATH_AUTO && dataset_is_remote(ds);
	p->fits = info.data_bytes <= path_fits_bytes();
	for (uint32_t i = 0; (layout = layouts_at(layouts, i)) != NULL; i++) {
		uint64_t bytes = 0;

		for (uint32_t k = 0; k < layout->group_count; k++) {
			const struct shard_group *g = &layout->schema->group[layout->group[k]];

			bytes += g->stride;
			p->wants_direct |= is_direct_group(g) && g->stride >= DIRECT_BYTES;
			p->has_direct_group |= is_direct_group(g);
		}
		record_bytes = max_u64(record_bytes, bytes);
	}
	p->entry = mem_array((size_t)p->shard_count, sizeof(*p->entry));
	p->fetch = fetch_open(p->shard_count, record_bytes, p->fits, p->shard_count < ds->readers.most / MAPS_OF_SHARD);
	return p->entry && p->fetch;
}

void paths_close(struct paths *p, bool inherited)
{
	fetch_close(p->fetch, inherited);
	p->fetch = NULL;
	mem_free((void *)p->entry);
	p->entry = NULL;
}
