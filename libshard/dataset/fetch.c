/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.c - regions and runs of records, asked of the disk before a loader needs them
 */
#include "libshard/dataset/dataset.h"

#include "libshard/base/bytes.h"
#include "libshard/base/mem.h"
#include "libshard/base/thread.h"
#include "libshard/io/io.h"

#define FETCH_THREADS 2u   /* a disk that reads 2 MiB for each is as fast as it can be */
#define QUEUE_REGIONS 512u /* more are left to the threads that need them */
#define FAULTS_MOST   16u  /* of a region; if it is read page by page there are 512 */

/* ---- threads that wait for the disk ---- */

struct fetch_thread {
	struct task task;		     /* asked: a region was queued */
	struct fetch *of;		     /* const after start */
	const uint8_t *queue[QUEUE_REGIONS]; /* lock */
	uint32_t first, count;		     /* lock */
};

static bool read_next(void *context)
{
	struct fetch_thread *t = context;
	const uint8_t *region;
	uint64_t faults;

	if (!t->count)
		return false;
	region = t->queue[t->first];
	t->first = (t->first + 1) % QUEUE_REGIONS;
	t->count--;
	task_unlock(&t->task);
	faults = file_major_faults();
	file_await(region, READER_REGION_BYTES);
	if (file_major_faults() - faults > FAULTS_MOST)
		atomic_store(&t->of->reads_small, true);
	task_lock(&t->task);
	return true;
}

/* Without threads nothing is read ahead, which is only slower. */
static struct fetch_thread *start_threads(struct fetch *f)
{
	struct fetch_thread *thread = mem_array(FETCH_THREADS, sizeof(*thread));
	uint32_t started = 0;

	for (; thread && started < FETCH_THREADS; started++) {
		thread[started].of = f;
		if (!task_start(&thread[started].task, 1, read_next, &thread[started]))
			break;
	}
	if (!thread || started == FETCH_THREADS)
		return thread;
	for (uint32_t i = 0; i <= started; i++) /* the one that did not start has a lock, too */
		task_stop(&thread[i].task);
	mem_free(thread);
	return NULL;
}

/* If a thread is missing, or room in its queue, the thread that needs the region reads it. */
static void queue_region(struct fetch *f, const uint8_t *region, uint64_t number)
{
	struct fetch_thread *t;

	/* The first thread that needs them starts them.  Others do without meanwhile. */
	if (!atomic_load_explicit(&f->wants_threads, memory_order_relaxed) && !atomic_exchange(&f->wants_threads, true))
		atomic_store_explicit(&f->thread, start_threads(f), memory_order_release);
	t = atomic_load_explicit(&f->thread, memory_order_acquire);
	if (!t)
		return;
	t += number % FETCH_THREADS;
	task_lock(&t->task);
	if (t->count < QUEUE_REGIONS) {
		t->queue[(t->first + t->count++) % QUEUE_REGIONS] = region;
		task_ask(&t->task);
	}
	task_unlock(&t->task);
}

/* ---- pieces of a group ---- */

/* A region, or the part of one that is the group's; or a run of records. */
struct piece {
	uint64_t begin, end; /* in the file, of a raw group */
	struct fetch_marks *marks;
};

static struct fetch_marks *marks_of(struct fetch *f, uint64_t shard, const struct shard_reader *r)
{
	struct fetch_marks *marks = atomic_load_explicit(&f->marks[shard], memory_order_acquire), *none = NULL;
	uint64_t regions = r->file_bytes / READER_REGION_BYTES + 1, runs = r->pages->record_count / f->run_records + 1;

	if (marks)
		return marks;
	marks = mem_array((size_t)(max_u64(regions, runs) * SHARD_GROUPS_MAX), sizeof(*marks));
	if (marks && !atomic_compare_exchange_strong(&f->marks[shard], &none, marks)) {
		mem_free(marks);
		marks = none;
	}
	return marks;
}

/* Returns false if there is no memory: then the kernel reads what is touched, only slower. */
static bool get_piece(struct fetch *f, uint64_t shard, const struct shard_reader *r, uint32_t group, uint64_t number,
		      struct piece *out)
{
	const struct reader_group *g = &r->group[group];
	uint64_t data = reader_raw_begin(r, group), end = reader_raw_end(r, group);
	struct fetch_marks *marks = marks_of(f, shard, r);
	uint64_t from, bytes;

	if (!marks)
		return false;
	bytes = fetch_has_regions(f, g) ? READER_REGION_BYTES : f->run_records * g->stride;
	from = number * bytes + (fetch_has_regions(f, g) ? 0 : data);
	*out = (struct piece){max_u64(from, data), min_u64(from + bytes, end),
			      &marks[number * SHARD_GROUPS_MAX + group]};
	return true;
}

static bool is_marked(const _Atomic uint8_t *at, uint64_t epoch)
{
	return atomic_load_explicit(at, memory_order_acquire) == fetch_mark(epoch);
}

static void set_mark(_Atomic uint8_t *at, uint64_t epoch)
{
	atomic_store_explicit(at, fetch_mark(epoch), memory_order_release);
}

/* ---- records ---- */

void fetch_expect(const struct fetch *f, struct shard_reader *r)
{
	if (f->asks)
		reader_ask_for_regions(r);
}

bool fetch_begin(struct fetch *f, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside,
		 uint64_t epoch)
{
	const struct reader_group *g = &r->group[group];
	uint64_t number, last;
	struct piece p;

	fetch_pieces(f, r, group, inside, &number, &last);
	for (; number <= last && get_piece(f, shard, r, group, number, &p); number++) {
		if (is_marked(&p.marks->begun, epoch))
			continue;
		if (g->compressed) {
			uint64_t first = number * f->run_records, unit = g->unit_records;
			uint64_t end = min_u64(first + f->run_records, r->pages->record_count);

			reader_forget(r, group, first, end - first);
			reader_fetch_chunks(r, group, first / unit, (end - 1) / unit - first / unit + 1);
		} else {
			bool is_region = fetch_has_regions(f, g) && p.end - p.begin == READER_REGION_BYTES;

			reader_forget_bytes(r, group, p.begin / SHARD_PAGE_BYTES * SHARD_PAGE_BYTES,
					    align_up(p.end, SHARD_PAGE_BYTES));
			if (is_region && !atomic_load_explicit(&f->reads_small, memory_order_relaxed))
				queue_region(f, r->map + p.begin, number);
			else
				file_will_need(r->map + p.begin, (size_t)(p.end - p.begin));
		}
		/* Only now: a page touched before that would be read alone. */
		set_mark(&p.marks->begun, epoch);
	}
	return !fetch_is_there(f, shard, r, group, inside, fetch_mark(epoch));
}

uint64_t fetch_await(struct fetch *f, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside,
		     uint64_t epoch)
{
	uint64_t number, last, before;
	struct piece p;

	if (fetch_is_there(f, shard, r, group, inside, fetch_mark(epoch)))
		return 0;
	before = file_major_faults();
	fetch_pieces(f, r, group, inside, &number, &last);
	for (; number <= last && get_piece(f, shard, r, group, number, &p); number++) {
		if (is_marked(&p.marks->there, epoch))
			continue;
		file_await(r->map + p.begin, (size_t)(p.end - p.begin));
		set_mark(&p.marks->there, epoch);
	}
	return file_major_faults() - before;
}

/* ---- life ---- */

struct fetch *fetch_open(uint64_t shard_count, uint64_t record_bytes, bool fits, bool has_maps)
{
	struct fetch *f = mem_zalloc(sizeof(*f));

	if (!f)
		return NULL;
	f->shard_count = shard_count;
	f->fits = fits;
	f->asks = fits && has_maps;
	f->run_records = max_u64(FETCH_RUN_BYTES / record_bytes, 1);
	f->apart_records = fits ? max_u64(READER_REGION_BYTES / record_bytes, 1) : f->run_records;
	f->marks = mem_array((size_t)shard_count, sizeof(*f->marks));
	if (f->marks)
		return f;
	mem_free(f);
	return NULL;
}

void fetch_close(struct fetch *f, bool inherited)
{
	struct fetch_thread *thread;

	if (!f)
		return;
	thread = atomic_load(&f->thread);
	for (uint32_t i = 0; thread && !inherited && i < FETCH_THREADS; i++)
		task_stop(&thread[i].task);
	mem_free(thread);
	for (uint64_t i = 0; i < f->shard_count; i++)
		mem_free(atomic_load(&f->marks[i]));
	mem_free((void *)f->marks);
	mem_free(f);
}
