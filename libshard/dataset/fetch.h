/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.h - have the kernel read what a mapped shard lacks, once in an epoch, before it is used
 *
 * The records of a dataset that fits the page cache are fetched in regions of 2 MiB: see
 * reader_ask_for_regions().  Two threads of our own wait for the disk meanwhile.  What a thread
 * needs and they have not begun to read, it reads itself.  Of a dataset that does not fit only the
 * run of records is fetched that the order uses together.
 *
 * With SHARD_CHECK_DEVICE a reader forgets its checks of what is fetched.
 */
#ifndef SHARD_READ_FETCH_H
#define SHARD_READ_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "libshard/base/bytes.h"
#include "libshard/dataset/reader.h"
#include "shard.h"
#include "shard_pack.h"

#define FETCH_RUN_BYTES (UINT64_C(256) << 10) /* of neighbours: worth one request to a disk */

struct fetch_thread;

/* The epochs in which the fetch of a piece began, and in which it ended. */
struct fetch_marks {
	_Atomic uint8_t begun, there;
};

struct fetch {
	uint64_t shard_count; /* const after open, as: */
	uint64_t run_records;
	uint64_t apart_records; /* to fetch one of so many neighbours fetches all of them */
	bool fits;
	bool asks;			       /* for regions, which takes maps */
	atomic_bool reads_small;	       /* the kernel reads page by page where it shall read regions */
	atomic_bool wants_threads;	       /* they were needed, so they were started, or could not be */
	_Atomic(struct fetch_thread *) thread; /* [FETCH_THREADS]; NULL: there are none */
	/* [shard_count] [piece][group] */
	_Atomic(struct fetch_marks *) *marks;
};

/*
 * `record_bytes` are those of all groups; `has_maps`: a shard may take more than one.  Returns NULL
 * if there is no memory.
 */
struct fetch *fetch_open(uint64_t shard_count, uint64_t record_bytes, bool fits, bool has_maps);
void fetch_close(struct fetch *f, bool inherited); /* NULL is fine; inherited: the caller is a forked child */

/* A mapped shard is not hot: its records will be fetched. */
void fetch_expect(const struct fetch *f, struct shard_reader *r);

static inline uint8_t fetch_mark(uint64_t epoch)
{
	return (uint8_t)(epoch % 255 + 1);
}

static inline bool fetch_has_regions(const struct fetch *f, const struct reader_group *g)
{
	return f->fits && !g->compressed;
}

/* The pieces that a record lies in: regions, by their numbers in the file, or its run. */
static inline void fetch_pieces(const struct fetch *f, const struct shard_reader *r, uint32_t group, uint64_t inside,
				uint64_t *first, uint64_t *last)
{
	const struct reader_group *g = &r->group[group];
	uint64_t begin = reader_raw_begin(r, group) + inside * g->stride;

	if (fetch_has_regions(f, g)) {
		*first = begin / READER_REGION_BYTES;
		*last = (begin + g->stride - 1) / READER_REGION_BYTES;
	} else {
		*first = *last = inside / f->run_records;
	}
}

/* The records that were fetched with one, as far as they are whole: from *first to before *end. */
static inline void fetch_neighbours(const struct fetch *f, const struct shard_reader *r, uint32_t group,
				    uint64_t inside, uint64_t *first, uint64_t *end)
{
	const struct reader_group *g = &r->group[group];
	uint64_t data = reader_raw_begin(r, group), from, to, records = r->pages->record_count;

	fetch_pieces(f, r, group, inside, &from, &to);
	if (!fetch_has_regions(f, g)) {
		*first = from * f->run_records;
		*end = min_u64(*first + f->run_records, records);
		return;
	}
	from *= READER_REGION_BYTES;
	to = (to + 1) * READER_REGION_BYTES;
	*first = from > data ? ceil_div(from - data, g->stride) : 0;
	*end = min_u64((to - data) / g->stride, records);
}

/* Was all of a record fetched, in the epoch of this mark? */
static inline bool fetch_is_there(const struct fetch *f, uint64_t shard, const struct shard_reader *r, uint32_t group,
				  uint64_t inside, uint8_t mark)
{
	const struct fetch_marks *marks = atomic_load_explicit(&f->marks[shard], memory_order_acquire);
	uint64_t first, last;

	if (!marks)
		return false;
	fetch_pieces(f, r, group, inside, &first, &last);
	for (; first <= last; first++)
		if (atomic_load_explicit(&marks[first * SHARD_GROUPS_MAX + group].there, memory_order_acquire) != mark)
			return false;
	return true;
}

/* Begin to fetch a record.  Returns whether fetch_await() shall be called before it is used. */
bool fetch_begin(struct fetch *f, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside,
		 uint64_t epoch);

/*
 * Wait until a record of a raw group is there.  The kernel counts such waiting as major faults;
 * this returns how many.
 */
uint64_t fetch_await(struct fetch *f, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside,
		     uint64_t epoch);

#endif
