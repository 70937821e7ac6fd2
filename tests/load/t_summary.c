/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_summary.c - a loader's counters in one line: which side waits, in words that docs/TRAINING.md
 * explains
 *
 * Lines are compared letter by letter, also in a locale that writes 0,3 and 4.000.  A real loader
 * gives such lines too, with a clock that is made up, so that no answer depends on the machine.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=clock_gettime,--wrap=pthread_getcpuclockid
 * LDFLAGS: -Wl,--wrap=pthread_create
 * LDFLAGS: -Wl,--wrap=pthread_join,--wrap=pthread_cond_wait,--wrap=pthread_cond_signal
 * LDFLAGS: -Wl,--wrap=pthread_cond_broadcast
 */
#include <locale.h>

#include "libshard/base/error.h"
#include "libshard/feed/slot_fill.h"
#include "tests/load/batches.h"
#include "tests/load/virtual_time.h"

#define SECOND UINT64_C(1000000000)
#define GIGA   UINT64_C(1000000000)

static const struct {
	const char *story;
	struct shard_loader_stats now, before;
	const char *says;
} rows[] = {
	{"the line of docs/TRAINING.md and shard.h",
	 {.batch_count = 5000,
	  .record_count = 1023000,
	  .bytes = 154000 * (GIGA / 1000),
	  .elapsed_ns = 15 * SECOND,
	  .next_wait_ns = SECOND * 39 / 1000,
	  .next_wait_count = 14,
	  .fill_ns = 17 * SECOND,
	  .fill_cpu_ns = 1640 * (SECOND / 100),
	  .slot_wait_ns = 2360 * (SECOND / 100),
	  .thread_count = 4,
	  .filled_bytes = 150 * GIGA,
	  .mapped_bytes = 150 * GIGA,
	  .checked_unit_count = 70},
	 {.batch_count = 1000,
	  .record_count = 200000,
	  .bytes = 30000 * (GIGA / 1000),
	  .elapsed_ns = 5 * SECOND,
	  .next_wait_ns = SECOND * 9 / 1000,
	  .next_wait_count = 2,
	  .fill_ns = SECOND * 6 / 10,
	  .fill_cpu_ns = SECOND * 4 / 10,
	  .thread_count = 4,
	  .filled_bytes = 30 * GIGA,
	  .mapped_bytes = 30 * GIGA,
	  .checked_unit_count = 70},
	 "12.4 GB/s, 82,300 records/s; next waited 0.3 % (12 of 4,000 times); threads filled 41 % (on a CPU 40 %), "
	 "waited for slots 59 %; "
	 "mapped 100 %: the trainer is the slower side"},
	{"threads copy all the time",
	 {.batch_count = 100,
	  .record_count = 25600,
	  .bytes = 3853516800,
	  .elapsed_ns = SECOND,
	  .next_wait_ns = 850000000,
	  .next_wait_count = 99,
	  .fill_ns = 1990000000,
	  .fill_cpu_ns = 1980000000,
	  .slot_wait_ns = 3000000,
	  .thread_count = 2,
	  .filled_bytes = 3853516800,
	  .mapped_bytes = 3853516800,
	  .checked_unit_count = 25600},
	 {0},
	 "3.85 GB/s, 25,600 records/s; next waited 85 % (99 of 100 times); threads filled 100 % (on a CPU 99 %), "
	 "waited for slots 0.2 %; mapped 100 %; hashed 25,600 units: the loader is the slower side, its threads are "
	 "busy computing: add threads"},
	{"cold, past the page cache",
	 {.batch_count = 10,
	  .record_count = 2560,
	  .bytes = 385351680,
	  .elapsed_ns = 2 * SECOND,
	  .next_wait_ns = 1990000000,
	  .next_wait_count = 10,
	  .fill_ns = 2 * SECOND,
	  .fill_cpu_ns = SECOND / 20,
	  .thread_count = 1,
	  .has_uring = 1,
	  .filled_bytes = 500000000,
	  .mapped_bytes = 10000000,
	  .direct_bytes = 490000000,
	  .checked_unit_count = 1},
	 {0},
	 "193 MB/s, 1,280 records/s; next waited 100 % (10 of 10 times); threads filled 100 % (on a CPU 2.5 %), waited "
	 "for slots 0.0 %; "
	 "mapped 2.0 %, direct 98 %; hashed 1 unit: the loader is the slower side, its threads wait for the disk"},
	{"cold, where io_uring is forbidden, and damaged",
	 {.batch_count = 3,
	  .record_count = 30,
	  .bytes = 3000,
	  .elapsed_ns = 40 * SECOND,
	  .next_wait_ns = 39 * SECOND,
	  .next_wait_count = 3,
	  .fill_ns = 40 * SECOND,
	  .thread_count = 1,
	  .filled_bytes = 3000,
	  .direct_bytes = 2000,
	  .pread_bytes = 1000,
	  .substituted_count = 1234,
	  .masked_count = 7},
	 {.substituted_count = 234, .masked_count = 5},
	 "75.0 B/s, 0.75 records/s; next waited 98 % (3 of 3 times); threads filled 100 % (on a CPU 0.0 %), waited for "
	 "slots 0.0 %; "
	 "direct 67 %, pread 33 % without io_uring; damage: rows substituted 1,000, masked 2: the loader is the slower "
	 "side, its threads wait "
	 "for the disk"},
	{"compressed, with a stage that is large enough",
	 {.batch_count = 300,
	  .record_count = 300,
	  .bytes = 1500000,
	  .elapsed_ns = SECOND,
	  .fill_ns = SECOND / 2,
	  .fill_cpu_ns = SECOND / 2,
	  .slot_wait_ns = SECOND / 2,
	  .thread_count = 1,
	  .filled_bytes = 1500000,
	  .mapped_bytes = 1500000,
	  .decoded_chunk_count = 1300,
	  .unfinished_chunk_count = 100},
	 {.decoded_chunk_count = 100},
	 "1.50 MB/s, 300 records/s; next waited 0.0 % (0 of 300 times); threads filled 50 % (on a CPU 50 %), waited "
	 "for slots 50 %; "
	 "mapped 100 %; decoded 1,200 chunks: the trainer is the slower side"},
	{"compressed, with one that is too small",
	 {.batch_count = 300,
	  .record_count = 300,
	  .bytes = 1500000,
	  .elapsed_ns = SECOND,
	  .fill_ns = SECOND / 2,
	  .fill_cpu_ns = SECOND / 2,
	  .slot_wait_ns = SECOND / 2,
	  .thread_count = 1,
	  .filled_bytes = 1500000,
	  .mapped_bytes = 1500000,
	  .decoded_chunk_count = 1300,
	  .unfinished_chunk_count = 500},
	 {.decoded_chunk_count = 100, .unfinished_chunk_count = 100},
	 "1.50 MB/s, 300 records/s; next waited 0.0 % (0 of 300 times); threads filled 50 % (on a CPU 50 %), waited "
	 "for slots 50 %; mapped 100 %; decoded 1,200 chunks (400 were evicted before they were used up; raise "
	 "stage_bytes): the trainer is the slower side"},
	{"a mapped dataset that is not in memory",
	 {.batch_count = 300,
	  .record_count = 300,
	  .bytes = 1500000,
	  .elapsed_ns = SECOND,
	  .next_wait_ns = SECOND / 2,
	  .next_wait_count = 200,
	  .fill_ns = SECOND,
	  .fill_cpu_ns = SECOND / 2,
	  .thread_count = 1,
	  .filled_bytes = 1500000,
	  .mapped_bytes = 1500000,
	  .masked_count = 1},
	 {.batch_count = 100, .record_count = 100},
	 "1.50 MB/s, 200 records/s; next waited 50 % (200 of 200 times); threads filled 100 % (on a CPU 50 %), "
	 "waited for slots 0.0 %; mapped 100 %; damage: rows masked 1: the loader is the slower side, its threads "
	 "wait for page faults or for a CPU"},
	{"slow moments",
	 {.batch_count = 1200,
	  .record_count = 1200,
	  .bytes = 999960,
	  .elapsed_ns = SECOND,
	  .next_wait_ns = SECOND / 10,
	  .next_wait_count = 50,
	  .fill_ns = SECOND / 2,
	  .fill_cpu_ns = SECOND / 2,
	  .slot_wait_ns = SECOND / 2,
	  .thread_count = 1,
	  .filled_bytes = 1200,
	  .pread_bytes = 1200},
	 {.batch_count = 200, .record_count = 200},
	 "1,000 kB/s, 1,000 records/s; next waited 10 % (50 of 1,000 times); threads filled 50 % (on a CPU 50 %), "
	 "waited for slots 50 %; "
	 "pread 100 %: each side waits for the other at times: add slots"},
	{"nobody could prepare the very first batch",
	 {.batch_count = 10,
	  .record_count = 10,
	  .bytes = 12345,
	  .elapsed_ns = SECOND,
	  .next_wait_ns = SECOND / 50,
	  .next_wait_count = 1,
	  .fill_ns = SECOND / 10,
	  .slot_wait_ns = SECOND * 9 / 10,
	  .thread_count = 1,
	  .filled_bytes = 10,
	  .mapped_bytes = 10},
	 {0},
	 "12.3 kB/s, 10.0 records/s; next waited 2.0 % (1 of 10 times); threads filled 10 % (on a CPU 0.0 %), waited "
	 "for slots 90 %; "
	 "mapped 100 %: the trainer is the slower side since the first batch"},
	{"but the first one since the last look could be",
	 {.batch_count = 20,
	  .record_count = 20,
	  .bytes = 12345,
	  .elapsed_ns = SECOND,
	  .next_wait_ns = SECOND / 50,
	  .next_wait_count = 1,
	  .fill_ns = SECOND / 10,
	  .slot_wait_ns = SECOND * 9 / 10,
	  .thread_count = 1,
	  .filled_bytes = 10,
	  .mapped_bytes = 10},
	 {.batch_count = 10, .record_count = 10},
	 "12.3 kB/s, 10.0 records/s; next waited 2.0 % (1 of 10 times); threads filled 10 % (on a CPU 0.0 %), waited "
	 "for slots 90 %; "
	 "mapped 100 %: each side waits for the other at times: add slots"},
	{"a GPU that is slower than its host",
	 {.batch_count = 1200,
	  .record_count = 1200,
	  .bytes = 1000000,
	  .elapsed_ns = SECOND,
	  .device_wait_ns = SECOND * 4 / 10,
	  .fill_ns = SECOND / 10,
	  .fill_cpu_ns = SECOND / 10,
	  .slot_wait_ns = SECOND * 9 / 10,
	  .thread_count = 1,
	  .filled_bytes = 1200,
	  .mapped_bytes = 1200,
	  .device_bytes = 1300000,
	  .pageable_bytes = 100000},
	 {.batch_count = 200, .record_count = 200, .device_bytes = 300000, .pageable_bytes = 100000},
	 "1.00 MB/s, 1,000 records/s; next waited 0.0 % (0 of 1,000 times); threads filled 10 % (on a CPU 10 %), "
	 "waited for slots 90 %; "
	 "mapped 100 %; to the GPU 1.00 MB/s, waited for it 40 %: the trainer is the slower side"},
	{"a ring that is not page-locked",
	 {.batch_count = 10,
	  .record_count = 10,
	  .bytes = 1000000,
	  .elapsed_ns = SECOND,
	  .fill_ns = SECOND / 10,
	  .slot_wait_ns = SECOND * 9 / 10,
	  .thread_count = 1,
	  .filled_bytes = 1200,
	  .mapped_bytes = 1200,
	  .device_bytes = 1000000,
	  .pageable_bytes = 250000},
	 {0},
	 "1.00 MB/s, 10.0 records/s; next waited 0.0 % (0 of 10 times); threads filled 10 % (on a CPU 0.0 %), waited "
	 "for slots 90 %; "
	 "mapped 100 %; to the GPU 1.00 MB/s (pageable 25 %), waited for it 0.0 %: the trainer is the slower side"},
	{"no threads",
	 {.batch_count = 10,
	  .record_count = 7250,
	  .bytes = 999,
	  .elapsed_ns = SECOND,
	  .fill_ns = SECOND,
	  .filled_bytes = 10,
	  .mapped_bytes = 10},
	 {0},
	 "999 B/s, 7,250 records/s; next waited 0.0 % (0 of 10 times); mapped 100 %: no thread could be started: "
	 "the thread that takes batches fills them itself"},
	{"nothing happened yet", {0}, {0}, "no batch was taken"},
	{"nothing happened since",
	 {.batch_count = 7, .elapsed_ns = 9},
	 {.batch_count = 7, .elapsed_ns = 5},
	 "no batch was taken"},
	{"counters of another loader",
	 {.batch_count = 7, .elapsed_ns = 9},
	 {.batch_count = 9, .elapsed_ns = 5},
	 "no batch was taken"},
};

static void check_lines(void)
{
	char text[SHARD_SUMMARY_BYTES + 1];

	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("%s", rows[i].story);
		memset(text, 'x', sizeof(text));
		shard_stats_summary(&rows[i].now, &rows[i].before, text);
		CHECK_STR(text, rows[i].says);
		CHECK_EQ(text[SHARD_SUMMARY_BYTES], 'x');
	}
}

TEST(lines)
{
	char text[SHARD_SUMMARY_BYTES];
	struct shard_loader_stats none = {0};

	check_lines();
	STORY("NULL is since open");
	shard_stats_summary(&rows[1].now, NULL, text);
	CHECK_STR(text, rows[1].says);
	shard_stats_summary(&none, NULL, text);
	CHECK_STR(text, "no batch was taken");
}

/*
 * Few machines have a locale that would change something, so its source must have nothing that any
 * could change.
 */
TEST(no_locale_changes_them)
{
	static const char *const would[] = {"double", "float", "%'", "setlocale"};
	uint8_t *source;
	size_t bytes;

	setlocale(LC_ALL, "de_DE.UTF-8");
	check_lines();
	setlocale(LC_ALL, "C");
	source = file_bytes("libshard/loader/summary.c", &bytes);
	source[bytes] = 0;
	for (size_t i = 0; i < COUNT(would); i++) {
		STORY("%s", would[i]);
		CHECK(!strstr((char *)source, would[i]));
	}
	free(source);
}

TEST(no_number_is_too_long)
{
	struct shard_loader_stats most, zero = {0};
	char text[SHARD_SUMMARY_BYTES + 1];
	size_t longest = 0;

	memset(&most, 0xff, sizeof(most));
	for (uint64_t elapsed = 1; elapsed; elapsed *= 10) /* until it wraps */
		for (uint32_t threads = 0; threads < 3; threads++)
			for (uint32_t uring = 0; uring < 2; uring++) {
				most.elapsed_ns = elapsed;
				most.thread_count = threads == 2 ? UINT32_MAX : threads;
				most.has_uring = uring;
				memset(text, 'x', sizeof(text));
				shard_stats_summary(&most, uring ? &zero : NULL, text);
				CHECK(memchr(text, 0, SHARD_SUMMARY_BYTES));
				CHECK_EQ(text[SHARD_SUMMARY_BYTES], 'x');
				longest = strlen(text) > longest ? strlen(text) : longest;
				if (elapsed > UINT64_MAX / 10)
					return;
			}
	CHECK(longest > 200 && longest < SHARD_SUMMARY_BYTES - 1); /* not even cut */
}

/* ---- what the documents say ---- */

/*
 * A document's words with single blanks between them, without the stars that begin a comment's
 * lines.
 */
static char *words_of(const char *name)
{
	size_t bytes, used = 0;
	uint8_t *data = file_bytes(name, &bytes);
	char *out = malloc(bytes + 1);

	for (size_t i = 0; i < bytes; i++) {
		char c = (char)data[i];

		if (c == ' ' || c == '\n' || c == '\t' ||
		    (c == '*' && i > 1 && data[i - 1] == ' ' && data[i - 2] == '\n'))
			c = ' ';
		if (c != ' ' || (used && out[used - 1] != ' '))
			out[used++] = c;
	}
	out[used] = 0;
	free(data);
	return out;
}

/* Names the first row whose ending a document does not explain, or NULL. */
static const char *unexplained(const char *document)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *ending = strstr(rows[i].says, ": ");
		char cell[200];

		while (ending && (!strncmp(ending, ": rows ", 7) || !strncmp(ending, ": 1", 3)))
			ending = strstr(ending + 1, ": ");
		if (!ending)
			continue;
		snprintf(cell, sizeof(cell), "| `%s` |", ending + 2);
		if (!strstr(document, cell))
			return rows[i].story;
	}
	return NULL;
}

TEST(the_documents_show_such_lines_and_explain_each_ending)
{
	char *page = words_of("docs/TRAINING.md"), *header = words_of("include/shard.h"), *hit;

	CHECK(strstr(page, rows[0].says));
	CHECK(strstr(header, rows[0].says));
	CHECK_STR(unexplained(page), NULL);
	hit = strstr(page, "| `the loader is the slower side, its threads are busy computing");
	hit[5] ^= 1; /* the control: an ending that was changed in one place only */
	CHECK_STR(unexplained(page), "threads copy all the time");
	free(page);
	free(header);
}

/* ---- a real loader, in time that is made up ---- */

#define MS UINT64_C(1000000)

static uint64_t fill_ns, fill_cpu_ns, last_ns; /* of the row below that is at work */

int __real_slot_fill(struct supply *supply, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		     struct shard_error *err);
int __wrap_slot_fill(struct supply *supply, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		     struct shard_error *err);

int __wrap_slot_fill(struct supply *supply, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		     struct shard_error *err)
{
	virtual_work(fill_ns + (s->place.step == 9 ? last_ns : 0), fill_cpu_ns);
	return __real_slot_fill(supply, scratch, s, counts, err);
}

/* A trainer that takes step_ns for each of so many batches. */
static void train(struct shard_loader *l, unsigned batches, uint64_t step_ns)
{
	struct shard_batch b;

	while (batches) {
		int rc = shard_loader_next(l, &b, &fixture_err);

		if (rc == SHARD_END)
			continue;
		CHECK_OK(rc);
		virtual_work(step_ns, 0);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		batches--;
	}
}

/* A moment later, when all threads have counted what they did up to now. */
static void settled_stats(struct shard_loader *l, struct shard_loader_stats *stats)
{
	virtual_work(1, 0);
	shard_loader_stats(l, stats);
}

/*
 * A record has 4,800 bytes of pixels, 8 of a label and 12 of weights.  An epoch is 10 batches of 10
 * records.
 */
static const struct {
	const char *story;
	uint32_t threads; /* 0: none can be started */
	/* last_ns: the last batch of an epoch takes so much longer */
	uint64_t fill_ns, fill_cpu_ns, last_ns, step_ns;
	const char *says; /* all of it; only its ending with two threads, as it is open which of them is first */
} loaders[] = {
	{"a slow trainer", 1, 0, 0, 0, 5 * MS,
	 "9.64 MB/s, 2,000 records/s; next waited 0.0 % (0 of 30 times); threads filled 0.0 % (on a CPU 0.0 %), waited "
	 "for slots 100 %; "
	 "mapped 100 %: the trainer is the slower side"},
	{"a slow trainer and two threads", 2, 0, 0, 0, 5 * MS, "mapped 100 %: the trainer is the slower side"},
	{"a trainer that is slower by a little", 1, 4 * MS, 4 * MS, 0, 5 * MS,
	 "9.64 MB/s, 2,000 records/s; next waited 0.0 % (0 of 30 times); threads filled 80 % (on a CPU 80 %), waited "
	 "for slots 20 %; "
	 "mapped 100 %: the trainer is the slower side"},
	{"a loader that is slower by a little", 1, 5 * MS, 1 * MS, 0, 4 * MS,
	 "9.64 MB/s, 2,000 records/s; next waited 20 % (30 of 30 times); threads filled 100 % (on a CPU 20 %), "
	 "waited for slots 0.0 %; mapped 100 %: the loader is the slower side, its threads wait for page faults or "
	 "for a CPU"},
	{"a loader that is slow at times", 1, 1 * MS, 0, 20 * MS, 5 * MS,
	 "7.90 MB/s, 1,640 records/s; next waited 18 % (3 of 30 times); threads filled 49 % (on a CPU 0.0 %), waited "
	 "for slots 51 %; "
	 "mapped 100 %: each side waits for the other at times: add slots"},
	{"threads that compute", 1, 5 * MS, 4 * MS, 0, 0,
	 "9.64 MB/s, 2,000 records/s; next waited 100 % (30 of 30 times); threads filled 100 % (on a CPU 80 %), "
	 "waited for slots 0.0 %; mapped 100 %: the loader is the slower side, its threads are busy computing: add "
	 "threads"},
	{"threads that wait", 1, 5 * MS, 3 * MS, 0, 0,
	 "9.64 MB/s, 2,000 records/s; next waited 100 % (30 of 30 times); threads filled 100 % (on a CPU 60 %), "
	 "waited for slots 0.0 %; mapped 100 %: the loader is the slower side, its threads wait for page faults or "
	 "for a CPU"},
	{"two threads that wait", 2, 5 * MS, 0, 0, 0,
	 "threads filled 100 % (on a CPU 0.0 %), waited for slots 0.0 %; mapped 100 %: the loader is the slower "
	 "side, its threads wait for page faults or for a CPU"},
	{"no threads", 0, 5 * MS, 5 * MS, 0, 5 * MS,
	 "4.82 MB/s, 1,000 records/s; next waited 0.0 % (0 of 30 times); mapped 100 %: no thread could be started: "
	 "the thread that takes batches fills them itself"},
};

TEST(loaders_that_are_slower_and_faster_than_their_trainers)
{
	static const uint64_t sizes[] = {60, 40};
	char text[SHARD_SUMMARY_BYTES];

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t i = 0; i < COUNT(loaders); i++) {
		struct shard_loader_options o = {
			.size = sizeof(o), .batch_records = 10, .slot_count = 3, .thread_count = loaders[i].threads};
		struct shard_loader_stats now, before;
		struct shard_loader *l;
		const char *says;

		virtual_no_threads = !loaders[i].threads;
		o.thread_count += virtual_no_threads;
		fill_ns = loaders[i].fill_ns;
		fill_cpu_ns = loaders[i].fill_cpu_ns;
		last_ns = loaders[i].last_ns;
		virtual_begin();
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		train(l, 12, loaders[i].step_ns);
		settled_stats(l, &before);
		train(l, 30, loaders[i].step_ns);
		settled_stats(l, &now);
		shard_loader_close(l);
		virtual_end();
		shard_stats_summary(&now, &before, text);
		says = loaders[i].threads == 2 ? strstr(text, loaders[i].says) : text;
		STORY("%s: %.200s", loaders[i].story, text);
		CHECK_STR(says, loaders[i].says);
	}
}

TEST_MAIN()
