/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_accept.c - what a loader promises at full size: memory and resume at 10^9 records, data sorted
 * by class, ten thousand early exits
 *
 * Large datasets are one small shard under many names.  Each promise has a control that breaks it
 * and must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=crew_close,--wrap=paths_close
 * TIMEOUT: 900
 */
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "libshard/feed/feed.h"
#include "shard_pack.h"
#include "tests/load/inject.h"

#if defined(__SANITIZE_THREAD__)
#define EXITS	  1000u /* each starts threads, which costs it ten times as much */
#define SANITIZED 1
#elif defined(__SANITIZE_ADDRESS__)
#define EXITS	  10000u /* and none leaks: it says so when the program ends */
#define SANITIZED 1
#else
#define EXITS	  1000u /* as many as keep `make check` short; the address sanitizer makes them all */
#define SANITIZED 0
#endif

/* ---- one shard under many names ---- */

static struct shard_schema one_field(uint32_t record_bytes)
{
	struct shard_schema s = {.group_count = 1,
				 .field_count = 1,
				 .field = {{.name = "x", .dtype = SHARD_U8, .ndim = 1, .shape = {record_bytes}}}};

	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	return s;
}

/* `shards` of `each` records of zeros, which is what a sparse file holds as well. */
static struct shard_dataset *open_many(uint32_t record_bytes, uint64_t shards, uint64_t each)
{
	struct shard_schema s = one_field(record_bytes);
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = each, .skip_read_back = 1};
	const void *record = calloc(1, record_bytes);
	struct shard_written written;
	struct shard_dataset *many;
	struct shard_writer *w;
	struct shard_seal *seal;
	struct path first, p;

	new_folder(&folder, "many");
	tmp(&first, "many.%d/0", (int)getpid());
	CHECK_OK(shard_writer_open(&w, first.text, &s, &o, &fixture_err));
	for (uint64_t i = 0; i < each; i++)
		CHECK_OK(shard_writer_append(w, &record, NULL, 0, &fixture_err));
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
	shard_writer_close(w);
	free((void *)(uintptr_t)record);
	CHECK_OK(shard_seal_open(&seal, folder.text, NULL, &fixture_err));
	for (uint64_t i = 0; i < shards; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%" PRIu64, i);
		CHECK(!i || !link(first.text, tmp(&p, "many.%d/%s", (int)getpid(), name)));
		CHECK_OK(shard_seal_add(seal, name, NULL, written.sha256, &fixture_err));
	}
	CHECK_OK(shard_seal_finish(seal, &fixture_err));
	shard_seal_close(seal);
	CHECK_OK(shard_dataset_open(&many, folder.text, NULL, &fixture_err));
	return many;
}

/* ---- 10^9 records ---- */

#define MANY_SHARDS  2000u /* bench/loader_life.c has 10,000 */
#define MANY_EACH    500000u
#define MANY_RECORDS (UINT64_C(1) * MANY_SHARDS * MANY_EACH)
#define MANY_UNITS   (MANY_RECORDS / 64) /* of 64 bytes each */
#define MANY_PLACES  20u
#define RESUME_NS    1000000u /* it takes 1000, and 20000 with a sanitizer; to walk from the beginning takes 5000000 */

static uint64_t anonymous_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	uint64_t kib = 0;
	char line[256];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %" SCNu64, &kib) == 1)
			break;
	fclose(f);
	CHECK(kib);
	return kib << 10;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * A job that has been everywhere in an epoch.  Returns the bytes beside the ring; `waste` more are
 * taken by the control.
 */
static uint64_t memory_of_a_job(const struct shard_loader_options *o, uint64_t places, size_t waste)
{
	uint64_t before, after, ring, idx[4096], position;
	struct shard_dataset *many;
	struct shard_loader *l;
	struct shard_batch b;
	uint8_t *more;

	malloc_trim(0);
	before = anonymous_bytes();
	CHECK_OK(shard_dataset_open(&many, folder.text, NULL, &fixture_err));
	CHECK_OK(shard_loader_open(&l, many, o, &fixture_err));
	ring = shard_loader_ring_bytes(l);
	more = malloc(waste + 1);
	for (size_t i = 0; i <= waste; i += 4096)
		((volatile uint8_t *)more)[i] = 1;
	for (uint64_t i = 0; i < places; i++) {
		position = MANY_RECORDS / o->batch_records * i / places * o->batch_records;
		CHECK_OK(shard_loader_seek(l, 0, position, &fixture_err));
		CHECK_OK(shard_loader_order(l, 0, position, o->batch_records, NULL, idx, &fixture_err));
		/* as many as there are slots, so that all of the ring is in memory */
		for (int step = 0; step < 4; step++) {
			CHECK_OK(shard_loader_next(l, &b, &fixture_err));
			CHECK(step || !memcmp(b.record, idx, o->batch_records * sizeof(*idx)));
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		}
	}
	after = anonymous_bytes();
	free(more);
	shard_loader_close(l);
	shard_dataset_close(many);
	CHECK(after > before + ring / 2);
	return after - before > ring ? after - before - ring : 0;
}

/*
 * The fastest of some tries, until one is fast enough: others use this machine too.  `replay` is
 * the control: it walks from the epoch's beginning.
 */
static uint64_t resume_ns(struct shard_loader *l, const char *token, bool replay)
{
	static uint64_t idx[400000];
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < (replay ? 5 : 500) && best > RESUME_NS; i++) {
		uint64_t begin = now_ns(), took;

		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		if (replay)
			CHECK_OK(shard_loader_order(l, 0, 0, COUNT(idx), NULL, idx, &fixture_err));
		took = now_ns() - begin;
		best = took < best ? took : best;
	}
	return best;
}

static void resume_anywhere(const struct shard_loader_options *o, bool running)
{
	struct shard_loader *l, *other;
	struct shard_dataset *many;
	char token[SHARD_TOKEN_BYTES];
	struct prng p = {running};
	struct shard_batch b;
	uint64_t idx[4096];

	CHECK_OK(shard_dataset_open(&many, folder.text, NULL, &fixture_err));
	CHECK_OK(shard_loader_open(&l, many, o, &fixture_err));
	CHECK_OK(shard_loader_open(&other, many, o, &fixture_err));
	if (running)
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	for (int i = 0; i < 100; i++) {
		uint64_t epoch = prng_below(&p, 100), step = prng_below(&p, MANY_RECORDS / o->batch_records);

		STORY("epoch %" PRIu64 ", step %" PRIu64 ", %s", epoch, step, running ? "running" : "not started");
		CHECK_OK(shard_loader_seek(other, epoch, step * o->batch_records, &fixture_err));
		shard_loader_token(other, token);
		CHECK(resume_ns(l, token, false) <= RESUME_NS);
		if (i % 50 || !running)
			continue;
		CHECK_OK(shard_loader_order(other, epoch, step * o->batch_records, o->batch_records, NULL, idx,
					    &fixture_err));
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		CHECK_MEM(b.record, idx, o->batch_records * sizeof(*idx));
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK(resume_ns(l, token, true) > RESUME_NS);
	shard_loader_close(l);
	shard_loader_close(other);
	shard_dataset_close(many);
}

TEST(a_thousand_million_records)
{
	const uint64_t most = (16 << 20) + 32 * MANY_SHARDS + MANY_UNITS / 8;
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 4096, .order.seed = 1, .thread_count = 2},
				    mapped = o;

	inject_nothing();
	shard_dataset_close(open_many(64, MANY_SHARDS, MANY_EACH));
	for (o.order.shuffle = SHARD_SHUFFLE_GLOBAL; o.order.shuffle <= SHARD_SHUFFLE_WINDOWS; o.order.shuffle++) {
		mapped.order.shuffle = o.order.shuffle;
		mapped.path = SHARD_PATH_MAP;
		mapped.batch_records = o.batch_records;
		if (!SANITIZED) { /* whose own memory would be counted too */
			STORY("memory, shuffle %u", o.order.shuffle);
			CHECK(memory_of_a_job(&o, MANY_PLACES, 0) <= most);
			STORY("a loader with a bit for each record, shuffle %u", o.order.shuffle);
			CHECK(memory_of_a_job(&mapped, 1, MANY_RECORDS / 8) > most);
		}
		/* what is behind the token is read meanwhile, and not what this is about */
		mapped.batch_records = 64;
		for (int running = 0; running < 2; running++)
			resume_anywhere(&mapped, running);
	}
	remove_tree(folder.text);
}

/* ---- stored sorted by class ---- */

#define CLASSES 1000u
#define BATCH	256u

/*
 * Classes in the first batch, the mean of 20 seeds, as a share of what a uniform shuffle would
 * have.
 */
static double share_of_ideal(struct shard_dataset *sorted, struct shard_loader_options o)
{
	struct shard_dataset_info info;
	uint64_t n, each, idx[BATCH], met = 0;
	double missing = 1;

	shard_dataset_info(sorted, &info);
	n = info.record_count;
	each = n / CLASSES;
	for (uint64_t i = 0; i < BATCH; i++) /* (n - each choose BATCH) / (n choose BATCH) */
		missing *= (double)(n - each - i) / (double)(n - i);
	o.size = sizeof(o);
	o.batch_records = BATCH;
	for (o.order.seed = 0; o.order.seed < 20; o.order.seed++) {
		bool seen[CLASSES] = {false};
		struct shard_loader *l;

		CHECK_OK(shard_loader_open(&l, sorted, &o, &fixture_err));
		CHECK_OK(shard_loader_order(l, 0, 0, BATCH, NULL, idx, &fixture_err));
		shard_loader_close(l);
		for (uint64_t i = 0; i < BATCH; i++) {
			met += !seen[idx[i] / each];
			seen[idx[i] / each] = true;
		}
	}
	return (double)met / 20 / (CLASSES * (1 - missing));
}

TEST(data_sorted_by_class_is_mixed_by_default)
{
	static const struct {
		uint32_t record_bytes;
		uint64_t shards, each;
	} rows[] = {{2048, 1000, 1000}, {150528, 1000, 50}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_dataset *sorted = open_many(rows[i].record_bytes, rows[i].shards, rows[i].each);

		STORY("records of %u bytes", rows[i].record_bytes);
		CHECK(share_of_ideal(sorted, (struct shard_loader_options){.size = 0}) >= 0.95);
		STORY("records of %u bytes, in too few lanes and windows", rows[i].record_bytes);
		CHECK(share_of_ideal(sorted, (struct shard_loader_options){.order.window_runs = 1,
									   .order.lane_count = 4}) < 0.95);
		STORY("records of %u bytes, as they are stored", rows[i].record_bytes);
		CHECK(share_of_ideal(sorted, (struct shard_loader_options){.order.shuffle = SHARD_SEQUENTIAL}) < 0.5);
		shard_dataset_close(sorted);
		remove_tree(folder.text);
	}
}

/* ---- leaving early ---- */

static enum { SOUND_EXIT, LEAKS, HANGS } leaving;

void __real_crew_close(struct crew *c, bool inherited);
void __wrap_crew_close(struct crew *c, bool inherited);
void __real_paths_close(struct paths *p, bool inherited);
void __wrap_paths_close(struct paths *p, bool inherited);

void __wrap_crew_close(struct crew *c, bool inherited)
{
	for (uint32_t i = 0; leaving == HANGS && i < c->member_count; i++)
		pthread_join(c->member[i].thread, NULL); /* nobody told them to stop */
	__real_crew_close(c, inherited);
}

void __wrap_paths_close(struct paths *p, bool inherited)
{
	if (leaving != LEAKS)
		__real_paths_close(p, inherited);
}

static struct wanted wanted;
static const uint64_t sizes[] = {40, 1, 0, 62};

static void leave_early(struct prng *p)
{
	struct shard_loader_options o = {.batch_records = 1 + (uint32_t)prng_below(p, 20),
					 .order.seed = prng_next(p),
					 .order.shuffle = 1 + (uint32_t)prng_below(p, 3),
					 .slot_count = 2 + (uint32_t)prng_below(p, 4),
					 .thread_count = 1 + (uint32_t)prng_below(p, 4)};
	struct lent lent = {.count = 0};
	char token[SHARD_TOKEN_BYTES];
	struct shard_loader *l;

	/* ending an io_uring takes the system milliseconds */
	o.path = prng_below(p, 16) ? SHARD_PATH_MAP : (uint32_t)prng_below(p, 4);
	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	consume(&wanted, l, &lent, p, (unsigned)prng_below(p, 5), o.slot_count - 1);
	if (!prng_below(p, 4)) { /* in the middle of going on somewhere else */
		uint64_t epoch, position;

		CHECK_OK(shard_loader_seek(l, 1, prng_below(p, record_total + 1), &fixture_err));
		shard_loader_token(l, token);
		shard_loader_tell(l, &epoch, &position);
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		wanted_seek(&wanted, epoch, position);
		consume(&wanted, l, &lent, p, (unsigned)prng_below(p, 2), 0);
	}
	CHECK_NO_COMPLAINT(&wanted);
	close_loader(l);
}

/* Bytes that are not free, and threads, descriptors and maps. */
struct held {
	size_t bytes;
	unsigned threads, descriptors, maps;
};

static struct held look(void)
{
	struct held h = {mallinfo2().uordblks, 0, entries("/proc/self/fd", ""), 0};
	FILE *f = fopen("/proc/self/maps", "r");
	int c;

	while (f && (c = getc(f)) != EOF)
		h.maps += c == '\n';
	fclose(f);
	for (int i = 0; i < (SANITIZED ? 1000 : 100000) && (h.threads = entries("/proc/self/task", "")) != 1; i++)
		usleep(100); /* a joined thread leaves the list a moment later */
	return h;
}

/*
 * Is more held after so many exits than before them?  Those before made whatever is made only once.
 */
static bool exits_leave_something(unsigned exits)
{
	struct prng p = {exits};
	struct held before, after;

	for (int i = 0; i < 100; i++)
		leave_early(&p);
	before = look();
	while (exits--)
		leave_early(&p);
	after = look();
	STORY("threads %u, %u; descriptors %u, %u; maps %u, %u; bytes %zu, %zu", before.threads, after.threads,
	      before.descriptors, after.descriptors, before.maps, after.maps, before.bytes, after.bytes);
	if (after.threads != before.threads || after.descriptors != before.descriptors)
		return true;
	/* Less than a byte for each exit is what allocators keep for themselves. */
	return !SANITIZED && (after.maps > before.maps + 16 || after.bytes > before.bytes + 32768);
}

TEST(ten_thousand_early_exits)
{
	struct shard_loader *l;
	int status;
	pid_t pid;

	mallopt(M_ARENA_MAX, 1); /* otherwise their number depends on which threads meet in malloc() */
	inject_nothing();
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	alarm(850); /* a hang */
	CHECK(!exits_leave_something(EXITS));
	alarm(0);
#if !SANITIZED
	leaving = LEAKS;
	CHECK(exits_leave_something(1000)); /* a few dozen bytes each */
	STORY("a close that waits for threads which nobody stops");
	leaving = HANGS;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct shard_batch b;

		alarm(1);
		l = loader_of(&wanted);
		_exit(shard_loader_next(l, &b, NULL) ? 1 : (close_loader(l), 0));
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, SIGALRM);
	leaving = SOUND_EXIT;
#else
	(void)l, (void)status, (void)pid;
#endif
}

/* ---- every unit once, in any thread ---- */

#define RANKS 3u

/*
 * Units hashed by two epochs of three ranks that share a dataset, all at the same time, and read it
 * in different ways.
 */
static uint64_t hashed_by_all(uint32_t shuffle, uint32_t check)
{
	const struct shard_dataset_options d = {.size = sizeof(d), .check = check};
	static struct wanted rank[RANKS];
	static struct lent lent[RANKS];
	struct shard_loader *l[RANKS];
	struct shard_loader_stats s;
	uint64_t hashed = 0;
	struct prng p = {1};

	reopen(&d);
	for (uint32_t i = 0; i < RANKS; i++) {
		lent[i].count = 0;
		wanted_open(&rank[i], (struct shard_loader_options){.batch_records = 9,
								    .order.seed = 4,
								    .rank = i,
								    .world = RANKS,
								    .order.shuffle = shuffle,
								    .tail = SHARD_PAD,
								    .thread_count = 4,
								    .path = 1 + i});
		l[i] = loader_of(&rank[i]);
	}
	for (unsigned n = 2 * (unsigned)(shard_loader_step_count(l[0]) + 1); n; n--)
		for (uint32_t i = 0; i < RANKS; i++)
			consume(&rank[i], l[i], &lent[i], &p, 1, 1);
	for (uint32_t i = 0; i < RANKS; i++) {
		give_all(&rank[i], l[i], &lent[i]);
		CHECK_NO_COMPLAINT(&rank[i]);
		shard_loader_stats(l[i], &s);
		hashed += s.checked_unit_count;
		close_loader(l[i]);
	}
	return hashed;
}

TEST(every_unit_is_hashed_once_whoever_comes_first)
{
	static const uint32_t sides[] = {8, 26, 40}; /* 21 records to a unit, 2, and 1 */
	uint64_t units;

	inject_nothing();
	for (size_t i = 0; i < COUNT(sides); i++) {
		open_photos(sides[i], SHARD_RAW, sizes, COUNT(sizes));
		units = 0;
		for (size_t k = 0; k < COUNT(sizes); k++)
			for (uint32_t g = 0; g < 2; g++)
				units += (sizes[k] + schema.group[g].unit_records - 1) / schema.group[g].unit_records;
		for (uint32_t shuffle = SHARD_SEQUENTIAL; shuffle <= SHARD_SHUFFLE_WINDOWS; shuffle++) {
			STORY("side %u, shuffle %u", sides[i], shuffle);
			CHECK_EQ(hashed_by_all(shuffle, SHARD_CHECK_FIRST), units);
			CHECK(hashed_by_all(shuffle, SHARD_CHECK_ALWAYS) > units);
		}
	}
	drop_dataset();
	remove_tree(folder.text);
}

TEST_MAIN()
