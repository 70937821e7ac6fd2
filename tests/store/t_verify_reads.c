/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_verify_reads.c - samples, progress, and the same verdict whatever way the bytes are read
 *
 * LDFLAGS: -Wl,--wrap=verify_units,--wrap=file_seems_cached,--wrap=file_open_direct
 * LDFLAGS: -Wl,--wrap=file_read_at,--wrap=engine_is_uring,--wrap=engine_put,--wrap=engine_get
 */
#include <errno.h>
#include <fcntl.h>

#include "libshard/io/io.h"
#include "tests/store/verifying.h"

/* ---- the page cache, as tests want it ---- */

/* How the page cache, io_uring and O_DIRECT shall look. */
static enum {
	AS_IT_IS,
	HOT,
	COLD,
	COLD_DIRECT_FAILS,
	COLD_WITHOUT_URING,
	COLD_DIRECT_FAILS_WITHOUT_URING,
	COLD_WITHOUT_DIRECT
} cache;
static unsigned direct_reads, ordinary_reads, uring_reads;
static size_t longest_read; /* of those by pread */

static bool direct_fails(void)
{
	return cache == COLD_DIRECT_FAILS || cache == COLD_DIRECT_FAILS_WITHOUT_URING;
}

bool __real_file_seems_cached(int fd, uint64_t bytes, bool *whole);
bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole);
int __real_file_open_direct(const char *path);
int __wrap_file_open_direct(const char *path);
int __real_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);
int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);

bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole)
{
	return cache == AS_IT_IS ? __real_file_seems_cached(fd, bytes, whole) : cache == HOT;
}

int __wrap_file_open_direct(const char *path)
{
	return cache == COLD_WITHOUT_DIRECT ? -1 : __real_file_open_direct(path);
}

int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err)
{
	bool direct = fcntl(fd, F_GETFL) & O_DIRECT; /* threads reuse the numbers of files that others closed */

	pthread_mutex_lock(&lock);
	*(direct ? &direct_reads : &ordinary_reads) += 1;
	longest_read = bytes > longest_read ? bytes : longest_read;
	pthread_mutex_unlock(&lock);
	if (direct && direct_fails())
		return SHARD_E_IO;
	return __real_file_read_at(fd, out, bytes, offset, path, err);
}

bool __real_engine_is_uring(const struct engine *e);
bool __wrap_engine_is_uring(const struct engine *e);
void __real_engine_put(struct engine *e, struct engine_read *r);
void __wrap_engine_put(struct engine *e, struct engine_read *r);
struct engine_read *__real_engine_get(struct engine *e);
struct engine_read *__wrap_engine_get(struct engine *e);

bool __wrap_engine_is_uring(const struct engine *e)
{
	return cache != COLD_WITHOUT_URING && cache != COLD_DIRECT_FAILS_WITHOUT_URING && __real_engine_is_uring(e);
}

void __wrap_engine_put(struct engine *e, struct engine_read *r)
{
	pthread_mutex_lock(&lock);
	direct_reads++;
	uring_reads++;
	pthread_mutex_unlock(&lock);
	__real_engine_put(e, r);
}

struct engine_read *__wrap_engine_get(struct engine *e)
{
	struct engine_read *r = __real_engine_get(e);

	if (direct_fails()) {
		memset(r->dst, 0xee, r->bytes);
		r->os_code = EIO;
	}
	return r;
}

static bool has_uring(void)
{
	struct engine *e = engine_open(1, 1);
	bool has = e && __real_engine_is_uring(e);

	engine_close(e);
	return has;
}

/* ---- samples ---- */

TEST(a_sample_has_its_size_and_spreads)
{
	static const uint64_t samples[] = {1, 2, 3, 10, 49, 50, 249, 250, 1000, UINT64_MAX};
	uint64_t all = units_of(40) + units_of(7) + units_of(100) + units_of(3) + units_of(50);

	make_dataset(SHARD_RAW);
	CHECK_EQ(all, 251);
	for (size_t i = 0; i < COUNT(samples); i++) {
		struct shard_verify_options o = {.size = sizeof(o), .thread_count = 2, .sample_units = samples[i]};
		uint64_t want = samples[i] < all ? samples[i] : all;
		struct shard_verify_report report;
		struct shard_dataset *ds;
		unsigned longest = 0, gap = 0;

		STORY("%" PRIu64 " units", samples[i]);
		memset(seen, 0, sizeof(seen));
		CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
		counting = true;
		CHECK_OK(shard_dataset_verify(ds, &o, &report, &fixture_err));
		counting = false;
		shard_dataset_close(ds);
		CHECK_EQ(report.unit_count, want);
		CHECK_EQ(report.shard_count, COUNT(sizes)); /* the structure of all of them */
		/* no long stretch of group 0 without one; 26 units of group 1 lie between some */
		for (unsigned u = 0; u < 200; u++) {
			gap = seen[0][u] ? 0 : gap + 1;
			longest = gap > longest ? gap : longest;
			CHECK(seen[0][u] <= 1);
		}
		CHECK(longest <= 2 * all / want + 26);
	}
}

/* A shard that is missing does not move the sample of the others. */
TEST(a_missing_shard_does_not_move_the_sample)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1, .sample_units = 40};
	static struct told told;
	unsigned with[200], without[200];
	struct shard_dataset *ds;
	struct path p;

	make_dataset(SHARD_RAW);
	o.context = &told;
	o.problem = on_problem;
	told.caller = pthread_self();
	for (int turn = 0; turn < 2; turn++) {
		memset(seen, 0, sizeof(seen));
		told.count = 0;
		CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
		counting = true;
		CHECK_EQ(shard_dataset_verify(ds, &o, NULL, NULL), turn ? SHARD_E_MISMATCH : SHARD_OK);
		counting = false;
		shard_dataset_close(ds);
		memcpy(turn ? without : with, seen[0], sizeof(with));
		unlink(in_folder(&p, "0.shard"));
	}
	for (unsigned u = 40; u < 200; u++)
		CHECK_EQ(with[u], without[u]);
}

/* ---- progress ---- */

struct progress {
	unsigned calls, cancel_at;
	uint64_t last, total;
	bool odd;
	pthread_t caller;
};

static int on_progress(void *context, uint64_t done, uint64_t total)
{
	struct progress *p = context;

	p->odd = p->odd || done < p->last || done > total || (p->total && total != p->total) ||
		 !pthread_equal(p->caller, pthread_self());
	p->last = done;
	p->total = total;
	return ++p->calls == p->cancel_at ? 7 : 0;
}

TEST(progress_is_told_and_can_cancel)
{
	static const uint32_t threads[] = {1, 2, 8};

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++)
		for (size_t i = 0; i < COUNT(threads); i++)
			for (unsigned cancel = 0; cancel < 2; cancel++) {
				struct progress p = {.cancel_at = cancel, .caller = pthread_self()};
				struct shard_verify_options o = {.size = sizeof(o),
								 .thread_count = threads[i],
								 .context = &p,
								 .progress = on_progress};
				struct shard_error err = {.message = ""};
				struct shard_dataset *ds;

				STORY("codec %u, %u threads, cancel at %u", codec, threads[i], cancel);
				make_dataset(codec);
				CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
				/*
				 * a call before the threads are done is not promised for so small a
				 * dataset, so it may also complete
				 */
				if (shard_dataset_verify(ds, &o, NULL, &err)) {
					CHECK_EQ(err.status, SHARD_E_CANCELLED);
					CHECK(cancel && p.calls >= 1);
					CHECK_STR(err.message, "verification was cancelled");
				} else {
					CHECK(!cancel || !p.calls);
				}
				CHECK(!p.odd);
				CHECK(cancel || (p.calls >= 1 && p.last == p.total && p.total));
				shard_dataset_close(ds);
			}
}

static void wait_for_progress(void *context, const struct shard_error *problem)
{
	(void)context;
	(void)problem;
	usleep(2000);
}

/* Damage keeps the run busy long enough, so that cancelling it is certain. */
TEST(a_long_run_is_cancelled)
{
	struct progress p = {.cancel_at = 2, .caller = pthread_self()};
	struct shard_verify_options o = {.size = sizeof(o),
					 .thread_count = 2,
					 .context = &p,
					 .progress = on_progress,
					 .problem = wait_for_progress};
	struct shard_verify_report report;
	struct shard_error err;
	struct shard_dataset *ds;

	make_dataset(SHARD_RAW);
	damage_much();
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	CHECK_EQ(shard_dataset_verify(ds, &o, &report, &err), SHARD_E_CANCELLED);
	CHECK_EQ(p.calls, 2);
	shard_dataset_close(ds);
}

/* ---- hot, cold, and file systems that know nothing of it ---- */

/* Some 14 MiB, so that there are several pieces; 20 records damaged. */
static void make_large(uint32_t codec)
{
	const uint64_t two[] = {60, 40};

	cache = AS_IT_IS;
	schema = photo_schema(224, codec);
	new_folder(&folder, "t_verify");
	write_dataset(folder.text, &schema, two, 2);
	if (codec == SHARD_RAW)
		damage_records("1.shard", 5, 20);
	else
		for (int i = 0; i < 20; i++) {
			struct path p;
			uint64_t offset = section_of(in_folder(&p, "1.shard"), 1, 0).offset;

			file_flip(p.text, offset + 100 + (uint64_t)i * 3000, 1);
		}
}

TEST(the_verdict_does_not_depend_on_where_the_bytes_are)
{
	static const char *const stories[] = {"as it is",
					      "hot",
					      "cold",
					      "cold, O_DIRECT fails",
					      "cold, no io_uring",
					      "cold, O_DIRECT fails, no io_uring",
					      "cold, no O_DIRECT"};
	static struct told told, first;
	struct shard_verify_report counted = {0};

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		make_large(codec);
		for (int way = AS_IT_IS; way <= COLD_WITHOUT_DIRECT; way++) {
			struct shard_verify_report report;
			bool has_direct;
			int fd;
			struct path p;

			STORY("codec %u, %s", codec, stories[way]);
			cache = way;
			direct_reads = ordinary_reads = uring_reads = 0;
			CHECK_EQ(verify(2, &told, &report, NULL), SHARD_E_CORRUPT);
			if (way == AS_IT_IS) {
				first = told;
				counted = report;
			}
			CHECK_EQ(report.problem_count, first.count);
			CHECK_EQ(report.shard_count, counted.shard_count);
			CHECK_EQ(report.record_count, counted.record_count);
			CHECK_EQ(report.unit_count, counted.unit_count);
			CHECK_EQ(report.bytes, counted.bytes);
			CHECK_EQ(told.count, first.count);
			for (unsigned k = 0; k < told.count; k++)
				CHECK_STR(told.message[k], first.message[k]);
			fd = __real_file_open_direct(in_folder(&p, "0.shard"));
			has_direct = fd >= 0;
			file_close(fd);
			CHECK(way != HOT || !direct_reads);
			CHECK(way != COLD_WITHOUT_DIRECT || !direct_reads);
			CHECK(!has_direct || way < COLD || way > COLD_DIRECT_FAILS_WITHOUT_URING || direct_reads >= 4);
			CHECK(way == AS_IT_IS || codec != SHARD_RAW ||
			      (uring_reads > 0) ==
				      (has_direct && has_uring() && (way == COLD || way == COLD_DIRECT_FAILS)));
		}
		CHECK(first.count >= (codec == SHARD_RAW ? 21 : 2)); /* units, and the SHA-256 */
	}
	cache = AS_IT_IS;
}

/* While units before it are checked, nothing is begun behind it: the whole buffer is its own. */
TEST(a_unit_longer_than_half_the_buffer_is_read_into_it)
{
	static const uint32_t mib[] = {1, 9, 1};
	struct shard_schema three = {.group_count = 3, .field_count = 3};
	struct shard_writer_options wo = {.size = sizeof(wo), .planned_records = 1};
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	struct shard_written written;
	struct shard_writer *w;
	struct shard_reader *r;
	const void *record[3];
	uint8_t *bytes = calloc(9, 1 << 20);
	struct path p;

	for (uint32_t g = 0; g < 3; g++) {
		three.field[g] =
			(struct shard_field){.dtype = SHARD_U8, .group = g, .ndim = 1, .shape = {mib[g] << 20}};
		snprintf(three.field[g].name, sizeof(three.field[g].name), "field_%u", g);
		record[g] = bytes;
	}
	CHECK_OK(shard_schema_lay_out(&three, 0, &fixture_err));
	tmp(&p, "t_verify_reads.%d.shard", (int)getpid());
	unlink(p.text);
	CHECK_OK(shard_writer_open(&w, p.text, &three, &wo, &fixture_err));
	CHECK_OK(shard_writer_append(w, record, NULL, 0, &fixture_err));
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
	shard_writer_close(w);
	CHECK_OK(shard_reader_open(&r, p.text, NULL, &fixture_err));
	cache = COLD;
	longest_read = 0;
	CHECK_OK(shard_reader_verify(r, &o, NULL, &fixture_err));
	CHECK(longest_read >= 9 << 20);
	cache = AS_IT_IS;
	shard_reader_close(r);
	unlink(p.text);
	free(bytes);
}

/*
 * While the last units of a shard are being read, one thread opens the next shard.  What is wrong
 * with that one is told after what is wrong with those units, and not at all if they end the run.
 */
TEST(a_shard_that_is_opened_ahead_is_not_told_ahead)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	struct shard_verify_report report;
	struct shard_error err;
	struct shard_dataset *ds;
	struct path p;

	make_large(SHARD_RAW);
	in_folder(&p, "1.shard");
	file_flip(p.text, section_of(p.text, 4, 0).offset + 8, 1); /* a table */
	for (int damaged = 1; damaged >= 0; damaged--) {
		damage_records("0.shard", 59, 1); /* the second time it mends that */
		for (int way = HOT; way <= COLD_WITHOUT_DIRECT; way++) {
			STORY("way %d, %s", way, damaged ? "with damage before" : "without");
			cache = way;
			CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
			CHECK_EQ(shard_dataset_verify(ds, &o, &report, &err), SHARD_E_CORRUPT);
			CHECK(strstr(err.message, damaged ? "/0.shard: " : "/1.shard: "));
			CHECK_EQ(report.problem_count, 1);
			CHECK_EQ(report.shard_count, 1);
			CHECK_EQ(report.record_count, 60);
			shard_dataset_close(ds);
		}
	}
	cache = AS_IT_IS;
}

/*
 * The same with a page cache that really was emptied, where the file system lets us; and on a
 * tmpfs, which cannot.
 */
TEST(files_that_are_really_cold)
{
	static struct told told, first;
	const char *place[] = {NULL, "/dev/shm"}, *was = getenv("TMPDIR");
	char *keep = strdup(was ? was : "");
	unsigned cold = 0;

	cache = AS_IT_IS;
	for (int i = 0; i < 2; i++) {
		struct stat st;

		if (place[i] && (stat(place[i], &st) || access(place[i], W_OK)))
			continue;
		if (place[i])
			setenv("TMPDIR", place[i], 1);
		STORY("in %s", place[i] ? place[i] : "$TMPDIR");
		make_large(SHARD_RAW);
		CHECK_EQ(verify(1, &first, NULL, NULL), SHARD_E_CORRUPT);
		for (int k = 0; k < 2; k++) {
			struct path p;
			int fd = open(in_folder(&p, k ? "1.shard" : "0.shard"), O_RDWR);

			CHECK(fd >= 0 && !fsync(fd));
			CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
			cold += !file_is_cached(fd, 4096, 4096);
			close(fd);
		}
		direct_reads = 0;
		CHECK_EQ(verify(1, &told, NULL, NULL), SHARD_E_CORRUPT);
		CHECK_EQ(told.count, first.count);
		for (unsigned k = 0; k < told.count; k++)
			CHECK_STR(told.message[k], first.message[k]);
		printf("in %s: %u of 2 files were cold, %u reads past the page cache\n",
		       place[i] ? place[i] : "$TMPDIR", cold, direct_reads);
		cold = 0;
		remove_tree(folder.text);
	}
	if (*keep)
		setenv("TMPDIR", keep, 1);
	else
		unsetenv("TMPDIR");
	free(keep);
}

TEST(a_file_that_is_replaced_meanwhile_is_no_damage)
{
	struct shard_error err;
	struct shard_reader *r;
	struct path p, q;

	make_dataset(SHARD_RAW);
	CHECK_OK(shard_reader_open(&r, in_folder(&p, "0.shard"), NULL, &fixture_err));
	file_copy(p.text, in_folder(&q, "copy"));
	CHECK_EQ(rename(q.text, p.text), 0);
	CHECK_EQ(shard_reader_verify(r, NULL, NULL, &err), SHARD_E_IO);
	CHECK(strstr(err.message, "was replaced while it was being verified"));
	shard_reader_close(r);
	CHECK_OK(shard_reader_open(&r, p.text, NULL, &fixture_err));
	CHECK_EQ(truncate(p.text, (off_t)r->file_bytes - 1), 0);
	CHECK_EQ(shard_reader_verify(r, NULL, NULL, &err), SHARD_E_IO);
	CHECK(strstr(err.message, "was cut while it was being verified"));
	shard_reader_close(r);
	remove_tree(folder.text);
}

/* Records come through a buffer then; the hashes of units and the index of chunks are mapped. */
TEST(tables_that_are_cut_while_units_are_read_are_an_error)
{
	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++)
		for (int how = HOT; how <= COLD_WITHOUT_DIRECT; how++) {
			uint32_t first = codec == SHARD_RAW ? SHARD_SECTION_HASH : SHARD_SECTION_CIDX;
			struct shard_error err = {.message = ""};
			struct shard_reader *r;
			struct path p;

			STORY("codec %u, cache %d", codec, how);
			make_dataset(codec);
			cache = how;
			in_folder(&p, "3.shard");
			cut_at = section_of(p.text, first, 0).offset;
			CHECK_OK(shard_reader_open(&r, p.text, NULL, &fixture_err));
			CHECK_EQ(shard_reader_verify(r, NULL, NULL, &err), SHARD_E_IO);
			CHECK(strstr(err.message, "3.shard: "));
			cut_at = 0;
			shard_reader_close(r);
		}
	cache = AS_IT_IS;
}

TEST_MAIN()
