/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_jobs.c - `shardpack -j N` limits the threads that compute, from the first record to the last
 * byte read back
 *
 * The command runs from main() on, in a child.  A thread that converts, hashes or checks must have
 * one of N turns, and a thread that waits for the disk must have none.
 *
 * LDFLAGS: -Wl,--wrap=turns_open,--wrap=turns_close
 * LDFLAGS: -Wl,--wrap=converter_run,--wrap=fixed_fill,--wrap=checksum64,--wrap=record_check_holes
 * LDFLAGS: -Wl,--wrap=sha256_update
 * LDFLAGS: -Wl,--wrap=file_temp_sync,--wrap=read_ahead_now,--wrap=drain_put,--wrap=drain_wait
 */
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "libshard/base/turns.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "libshard/verify/verify.h"
#include "libshard/write/write.h"
#include "shard_pack.h"
#include "tests/test.h"
#include "tools/shardpack/make/make.h"

#define main shardpack_main
int shardpack_main(int argc, char **argv);
#include "tools/shardpack/main.c"
#undef main

enum work { CONVERTS, HASHES_UNITS, HASHES_FILES, READS_BACK, WAITS, WORK_COUNT };

#define SMALL_BYTES 4096

static const char *const work_names[] = {"convert", "hash units", "hash files", "read back", "wait"};

/* What the command did; it writes, and the test reads. */
struct seen {
	uint32_t turn_count;
	atomic_int done[WORK_COUNT];  /* how often it was done */
	atomic_int wrong[WORK_COUNT]; /* of these, without a turn, or waiting with one */
	atomic_int computing, most;   /* threads, now and ever */
	int held_in_the_end;	      /* turns */
};

static struct seen *seen;		    /* memory that both processes share */
static bool broken;			    /* the control: a shardpack without turns */
static atomic_bool packing;		    /* turns are there, and so are threads that share them */
static _Thread_local int turns_held, depth; /* of this thread; how many kinds of work it is in */

struct shard_turns *__real_turns_open(uint32_t count);
struct shard_turns *__wrap_turns_open(uint32_t count);
void __real_turns_close(struct shard_turns *t);
void __wrap_turns_close(struct shard_turns *t);

static void take_counted(void *context)
{
	if (broken)
		return;
	turns_take(context);
	turns_held++;
}

static void give_counted(void *context)
{
	if (broken)
		return;
	turns_held--;
	turns_give(context);
}

struct shard_turns *__wrap_turns_open(uint32_t count)
{
	struct shard_turns *t = malloc(sizeof(*t));

	seen->turn_count = count;
	packing = true;
	*t = (struct shard_turns){__real_turns_open(count), take_counted, give_counted};
	return t;
}

void __wrap_turns_close(struct shard_turns *t)
{
	packing = false;
	if (t)
		__real_turns_close(t->context);
	free(t);
}

static void begin(enum work work)
{
	int now = !depth++ ? ++seen->computing : 0;

	if (now > seen->most)
		seen->most = now;
	seen->done[work] += packing;
	seen->wrong[work] += packing && turns_held != 1;
	sched_yield(); /* others may do what they like */
}

static void end(void)
{
	seen->computing -= !--depth;
}

static void waits(void)
{
	seen->done[WAITS] += packing;
	seen->wrong[WAITS] += packing && turns_held;
}

/* ---- work ---- */

void __real_converter_run(struct converter *c, struct result *r);
void __wrap_converter_run(struct converter *c, struct result *r);
void __wrap_converter_run(struct converter *c, struct result *r)
{
	begin(CONVERTS);
	__real_converter_run(c, r);
	end();
}

void __real_fixed_fill(struct fixed *f, struct fixed_block *b);
void __wrap_fixed_fill(struct fixed *f, struct fixed_block *b);
void __wrap_fixed_fill(struct fixed *f, struct fixed_block *b)
{
	begin(CONVERTS);
	__real_fixed_fill(f, b);
	end();
}

uint64_t __real_checksum64(const void *data, size_t bytes);
uint64_t __wrap_checksum64(const void *data, size_t bytes);
uint64_t __wrap_checksum64(const void *data, size_t bytes)
{
	uint64_t hash;

	begin(HASHES_UNITS);
	hash = __real_checksum64(data, bytes);
	end();
	return hash;
}

void __real_sha256_update(struct sha256 *s, const void *data, size_t bytes);
void __wrap_sha256_update(struct sha256 *s, const void *data, size_t bytes);
void __wrap_sha256_update(struct sha256 *s, const void *data, size_t bytes)
{
	if (bytes < SMALL_BYTES) { /* of a receipt, outside of turns */
		__real_sha256_update(s, data, bytes);
		return;
	}
	begin(HASHES_FILES);
	__real_sha256_update(s, data, bytes);
	end();
}

int __real_record_check_holes(const struct record_holes *holes, const void *data, uint64_t stride, uint64_t first,
			      uint64_t count, struct shard_error *err);
int __wrap_record_check_holes(const struct record_holes *holes, const void *data, uint64_t stride, uint64_t first,
			      uint64_t count, struct shard_error *err);
int __wrap_record_check_holes(const struct record_holes *holes, const void *data, uint64_t stride, uint64_t first,
			      uint64_t count, struct shard_error *err)
{
	int rc;

	begin(READS_BACK);
	rc = __real_record_check_holes(holes, data, stride, first, count, err);
	end();
	return rc;
}

/* ---- waiting ---- */

int __real_file_temp_sync(struct file_temp *t, struct shard_error *err);
int __wrap_file_temp_sync(struct file_temp *t, struct shard_error *err);
int __wrap_file_temp_sync(struct file_temp *t, struct shard_error *err)
{
	waits();
	return __real_file_temp_sync(t, err);
}

int __real_read_ahead_now(const struct read_ahead_job *job, struct shard_error *err);
int __wrap_read_ahead_now(const struct read_ahead_job *job, struct shard_error *err);
int __wrap_read_ahead_now(const struct read_ahead_job *job, struct shard_error *err)
{
	waits();
	return __real_read_ahead_now(job, err);
}

int __real_drain_put(struct drain *d, size_t bytes, struct shard_error *err);
int __wrap_drain_put(struct drain *d, size_t bytes, struct shard_error *err);
int __wrap_drain_put(struct drain *d, size_t bytes, struct shard_error *err)
{
	waits();
	return __real_drain_put(d, bytes, err);
}

int __real_drain_wait(struct drain *d, struct shard_error *err);
int __wrap_drain_wait(struct drain *d, struct shard_error *err);
int __wrap_drain_wait(struct drain *d, struct shard_error *err)
{
	waits();
	return __real_drain_wait(d, err);
}

/* ---- the command ---- */

#define IMAGES	     60
#define RECORD_BYTES 6144 /* of both kinds */
#define SIDE_TEXT    "64"
#define SIDE	     64

static const char *below_tmp(char path[600], const char *name)
{
	snprintf(path, 600, "%s/%s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", name);
	return path;
}

static FILE *make(const char *name)
{
	char path[600];
	FILE *f = fopen(below_tmp(path, name), "wb");

	CHECK(f);
	return f;
}

/* Images in two folders, and a file of raw records. */
static void make_sources(void)
{
	static uint8_t pixels[3 * SIDE * SIDE];
	char path[600], name[64];
	FILE *f;

	mkdir(below_tmp(path, "photos"), 0755);
	mkdir(below_tmp(path, "photos/a"), 0755);
	mkdir(below_tmp(path, "photos/b"), 0755);
	for (int i = 0; i < IMAGES; i++) {
		memset(pixels, i, sizeof(pixels));
		snprintf(name, sizeof(name), "photos/%c/%d.ppm", i % 2 ? 'a' : 'b', i);
		f = make(name);
		fprintf(f, "P6 %d %d 255\n", SIDE, SIDE);
		CHECK_EQ(fwrite(pixels, sizeof(pixels), 1, f), 1);
		CHECK_EQ(fclose(f), 0);
	}
	f = make("records");
	for (int i = 0; i < 50 * IMAGES; i++) {
		memset(pixels, i, RECORD_BYTES);
		CHECK_EQ(fwrite(pixels, RECORD_BYTES, 1, f), 1);
	}
	CHECK_EQ(fclose(f), 0);
}

static const struct {
	const char *what, *jobs, *read_back, *shard_records;
} rows[] = {
	{"images", "1", "yes", "10"}, {"images", "2", "yes", "10"}, {"images", "1", "no", "10"},
	{"raw", "1", "yes", "500"},   {"raw", "3", "yes", "500"},   {"raw", "1", "no", "500"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void pack(size_t row)
{
	static unsigned number; /* a folder of its own for each */
	char source[600], out[600], name[32];
	bool images = !strcmp(rows[row].what, "images");
	const char *words[] = {"shardpack",
			       rows[row].what,
			       below_tmp(source, images ? "photos" : "records"),
			       "-o",
			       out,
			       "-j",
			       rows[row].jobs,
			       "--read-back",
			       rows[row].read_back,
			       "--shard-records",
			       rows[row].shard_records,
			       "-q",
			       images ? "--resize" : "--schema",
			       images ? SIDE_TEXT : "x:u8[6144]",
			       images ? "--crop" : NULL,
			       SIDE_TEXT,
			       NULL};
	char *argv[20] = {NULL};
	int argc = 0, status;
	pid_t pid;

	STORY("%s%s -j %s --read-back %s", broken ? "without turns: " : "", rows[row].what, rows[row].jobs,
	      rows[row].read_back);
	snprintf(name, sizeof(name), "packed%u", number++);
	below_tmp(out, name);
	for (; words[argc]; argc++)
		argv[argc] = strdup(words[argc]);
	memset(seen, 0, sizeof(*seen));
	pid = fork();
	if (!pid) {
		int code = shardpack_main(argc, argv);

		seen->held_in_the_end = turns_held;
		_exit(code);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	CHECK_EQ(status, EXIT_DONE);
	CHECK_EQ(seen->turn_count, strtoul(rows[row].jobs, NULL, 10));
	CHECK_EQ(seen->held_in_the_end, 0);
}

TEST(no_more_threads_compute_than_jobs)
{
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(seen != MAP_FAILED);
	make_sources();
	for (size_t i = 0; i < ROWS; i++) {
		pack(i);
		for (int work = 0; work < WORK_COUNT; work++) {
			CHECK_EQ(seen->done[work] > 1, work != READS_BACK || !strcmp(rows[i].read_back, "yes"));
			if (seen->wrong[work])
				test_fail(__FILE__, __LINE__, "%d of %d times threads %s as they must not",
					  seen->wrong[work], seen->done[work], work_names[work]);
		}
		CHECK(seen->most >= 1 && seen->most <= (int)seen->turn_count);
	}
}

/* The counters count: each kind of work is seen to be done without a turn. */
TEST(without_turns_all_of_it_is_noticed)
{
	broken = true;
	for (size_t i = 0; i < ROWS; i++) {
		pack(i);
		for (int work = 0; work < WAITS; work++)
			CHECK_EQ(seen->wrong[work], seen->done[work]);
		CHECK(seen->done[CONVERTS] > 1 && seen->done[HASHES_UNITS] > 1 && seen->done[HASHES_FILES] > 1);
	}
	broken = false;
}

TEST_MAIN()
