/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_paths.c - mapped, past the page cache and pread, by io_uring and without: the same batches, and
 * errors that say so
 *
 * The map is the slow twin that the others are compared with.  What the system may refuse is
 * refused here: io_uring by a seccomp filter in an unprivileged child that may lock 64 KiB,
 * O_DIRECT at open and at the read, alignments that do not fit.
 *
 * LDFLAGS: -Wl,--wrap=direct_open,--wrap=engine_put,--wrap=engine_get,--wrap=file_seems_cached
 * LDFLAGS: -Wl,--wrap=file_major_faults
 */
#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "libshard/io/io.h"
#include "libshard/loader/loader.h"
#include "shard_pack.h"
#include "tests/load/reads.h"
#include "tests/refuse_uring.h"
#include "tests/store/fixture.h"

#if defined(__SANITIZE_THREAD__)
#define RECORDS 120u /* what it looks for needs steps and threads, not bytes, each of which costs it much more */
#else
#define RECORDS 300u
#endif
static const uint64_t sizes[] = {RECORDS / 5 * 2, RECORDS / 5 * 2, RECORDS / 5};
static struct path folder;
static struct shard_schema schema;

/* ---- what the system says ---- */

static bool warm = true; /* what file_seems_cached() says */
static int warm_answers; /* if not 0: so many times, and the truth from then on */
static bool faults_hidden;
static uint32_t guard; /* enum shard_guard, of all datasets */

uint64_t __real_file_major_faults(void);
uint64_t __wrap_file_major_faults(void);
bool __real_file_seems_cached(int fd, uint64_t bytes, bool *whole);
bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole);

bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole)
{
	if (warm_answers && !--warm_answers) {
		warm_answers = 1;
		return __real_file_seems_cached(fd, bytes, whole);
	}
	if (whole)
		*whole = warm;
	return warm;
}

uint64_t __wrap_file_major_faults(void)
{
	return faults_hidden ? 0 : __real_file_major_faults();
}

/* ---- a dataset, and everything that a loader says of it ---- */

static void make_dataset(uint32_t side, uint32_t align)
{
	schema = photo_schema(side, SHARD_RAW);
	CHECK_OK(shard_schema_lay_out(&schema, align, &fixture_err));
	new_folder(&folder, "t_paths");
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
}

struct story {
	uint64_t rows, hash; /* of the bytes of all rows, in their order */
	int rc;
	struct shard_loader_stats stats;
	struct shard_error err;
};

static uint64_t add(uint64_t h, const void *data, size_t bytes)
{
	uint8_t digest[16];
	uint64_t x;

	shard_xxh128(data, bytes, digest);
	memcpy(&x, digest, sizeof(x));
	return (h ^ x) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static struct story run(uint32_t path, uint32_t threads, uint32_t check)
{
	struct shard_dataset_options d = {.size = sizeof(d), .check = check, .guard = guard};
	struct shard_loader_options o = {.size = sizeof(o),
					 .batch_records = RECORDS / 6,
					 .order.seed = 3,
					 .path = path,
					 .thread_count = threads,
					 .order.shuffle = SHARD_SHUFFLE_GLOBAL};
	struct story s = {0};
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_batch b;

	CHECK_OK(shard_dataset_open(&ds, folder.text, &d, &fixture_err));
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	for (int ends = 0; ends < 2;) {
		s.rc = shard_loader_next(l, &b, &s.err);
		if (s.rc < 0)
			break;
		if (s.rc == SHARD_END) {
			ends++;
			continue;
		}
		for (uint32_t i = 0; i < b.record_count; i++, s.rows++) {
			/* the twin; the others are compared with it */
			if (path == SHARD_PATH_MAP && check == SHARD_CHECK_ALWAYS)
				check_photo(&schema, 0, b.record[i],
					    (const uint8_t *)b.group[0].data + i * b.group[0].stride);
			s.hash = add(s.hash, &b.record[i], sizeof(b.record[i]));
			for (uint32_t f = 0; f < 3; f++)
				s.hash = add(s.hash, (const uint8_t *)b.field[f].data + i * b.field[f].stride,
					     schema.field[f].bytes);
		}
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	shard_loader_stats(l, &s.stats);
	shard_loader_close(l);
	shard_dataset_close(ds);
	return s;
}

static struct story twin(void)
{
	struct story s = run(SHARD_PATH_MAP, 1, SHARD_CHECK_ALWAYS);

	CHECK_EQ(s.rc, SHARD_END);
	CHECK_EQ(s.rows, 2 * RECORDS);
	CHECK_EQ(s.stats.direct_bytes + s.stats.pread_bytes, 0);
	return s;
}

static bool has_direct(void)
{
	struct path p;
	struct stat st;
	struct direct_file f;
	bool direct;

	tmp(&p, "t_paths.%d/0.shard", (int)getpid());
	CHECK_EQ(stat(p.text, &st), 0);
	CHECK_EQ(__real_direct_open(p.text, (uint64_t)st.st_ino, (uint64_t)st.st_size, true, &f), 0);
	direct = f.direct;
	direct_close(&f);
	return direct;
}

/* ---- the tests ---- */

TEST(all_paths_deliver_the_same)
{
	static const struct {
		uint32_t side, align;
	} shapes[] = {
		{224, 0}, {224, 4096}, {77, 0}, {37, 0}}; /* a multiple of 512, of 4096, of neither, and just large */
	for (size_t i = 0; i < COUNT(shapes); i++) {
		struct story want;

		make_dataset(shapes[i].side, shapes[i].align);
		want = twin();
		for (system_says = AS_IT_IS; system_says <= ALIGN_4096; system_says++)
			for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++)
				for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_FIRST; check++) {
					uint32_t threads = 1 + 2 * (check != SHARD_CHECK_ALWAYS);
					struct story got;

					if (system_says != AS_IT_IS && path != SHARD_PATH_DIRECT)
						continue; /* it is not asked */
					STORY("side %u, align %u, system %u, path %u, check %u, threads %u",
					      shapes[i].side, shapes[i].align, system_says, path, check, threads);
					warm = check % 2;
					got = run(path, threads, check);
					CHECK_EQ(got.rc, SHARD_END);
					CHECK_EQ(got.rows, want.rows);
					CHECK_EQ(got.hash, want.hash);
				}
		system_says = AS_IT_IS;
	}
}

TEST(each_path_is_the_one_that_was_asked_for)
{
	struct story s;

	make_dataset(224, 0);
	if (!has_direct())
		SKIP("$TMPDIR is on a file system without O_DIRECT");
	s = run(SHARD_PATH_DIRECT, 2, SHARD_CHECK_FIRST);
	CHECK(s.stats.direct_bytes >= 2 * RECORDS * schema.group[0].stride);
	CHECK_EQ(s.stats.pread_bytes, 0);
	s = run(SHARD_PATH_PREAD, 2, SHARD_CHECK_FIRST);
	CHECK(s.stats.pread_bytes >= 2 * RECORDS * schema.group[0].stride);
	CHECK_EQ(s.stats.direct_bytes, 0);
	warm = true;
	s = run(SHARD_PATH_AUTO, 1, SHARD_CHECK_FIRST);
	CHECK_EQ(s.stats.pread_bytes + s.stats.direct_bytes, 0);
}

/*
 * This little dataset fits memory.  With the guard a disk that fails is an error on the map, too;
 * without it only pread has one.
 */
TEST(a_cold_dataset_that_fits_is_mapped_under_the_guard)
{
	struct story want, mapped, read;

	make_dataset(224, 0);
	want = twin();
	warm = false;
	for (uint32_t threads = 1; threads <= 3; threads += 2)
		for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_FIRST; check++) {
			STORY("threads %u, check %u", threads, check);
			mapped = run(SHARD_PATH_AUTO, threads, check);
			guard = SHARD_GUARD_OFF;
			read = run(SHARD_PATH_AUTO, threads, check);
			guard = SHARD_GUARD_ON;
			CHECK_EQ(mapped.hash, want.hash);
			CHECK_EQ(read.hash, want.hash);
			CHECK_EQ(mapped.stats.pread_bytes + mapped.stats.direct_bytes, 0);
			CHECK(read.stats.pread_bytes >= 2 * RECORDS * schema.group[0].stride);
			/*
			 * A hash follows each fetch, in both epochs.  Where threads are in both
			 * at once, one hash may follow the fetches of both.
			 */
			if (check == SHARD_CHECK_DEVICE)
				CHECK(mapped.stats.checked_unit_count >= (threads == 1 ? 2 : 1) * RECORDS);
		}
	warm = true;
}

/* False where the files live in memory. */
static bool make_cold(void)
{
	bool cold = true;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct path p;
		int fd;

		tmp(&p, "t_paths.%d/%zu.shard", (int)getpid(), i);
		fd = open(p.text, O_RDONLY);
		CHECK(fd >= 0 && !fsync(fd));
		file_drop_cache(fd);
		cold = cold && !__real_file_seems_cached(fd, (uint64_t)lseek(fd, 0, SEEK_END), NULL);
		close(fd);
	}
	return cold;
}

/*
 * Said to be in memory, once for each shard, and not there: noticed by the step that has to wait,
 * unless nobody looks.
 */
TEST(what_is_not_in_memory_after_all_is_demoted)
{
	struct story s;

	make_dataset(224, 0);
	guard = SHARD_GUARD_OFF; /* what is read by pread, and not mapped, was demoted */
	for (int hidden = 0; hidden < 2; hidden++) {
		if (!make_cold())
			SKIP("$TMPDIR is on a file system that lives in memory");
		faults_hidden = hidden;
		warm_answers = (int)COUNT(sizes) + 1;
		s = run(SHARD_PATH_AUTO, 1, SHARD_CHECK_NEVER);
		CHECK_EQ(s.rc, SHARD_END);
		CHECK_EQ(s.stats.pread_bytes > 0, !hidden);
	}
	guard = SHARD_GUARD_ON;
	faults_hidden = false;
	warm_answers = 0;
}

TEST(every_unit_is_hashed_once)
{
	uint64_t units;

	make_dataset(224, 0);
	units = RECORDS + 3; /* images, and a unit of labels in each shard */
	for (uint32_t path = SHARD_PATH_MAP; path <= SHARD_PATH_PREAD; path++) {
		struct story s = run(path, 3, SHARD_CHECK_FIRST);

		STORY("path %u", path);
		CHECK_EQ(s.stats.checked_unit_count, units);
		CHECK_EQ(run(path, 3, SHARD_CHECK_NEVER).stats.checked_unit_count, 0);
	}
}

/* A disk that fails, a file that was cut, a way that the file system takes back at the read. */
TEST(errors_of_reads)
{
	static const struct {
		int code, rc;
		const char *says;
	} cases[] = {{EIO, SHARD_E_IO, "reading 150528 bytes at"}, {ENODATA, SHARD_E_IO, "was it cut while in use?"}};
	struct story want, got;

	make_dataset(224, 0);
	if (!has_direct())
		SKIP("$TMPDIR is on a file system without O_DIRECT");
	want = twin();
	system_says = ALIGN_512; /* else what is read depends on the file system */
	for (int at = 1; at < 100; at += 33) {
		for (size_t i = 0; i < COUNT(cases); i++) {
			STORY("read %d, code %d", at, cases[i].code);
			fail_read = at;
			fail_code = cases[i].code;
			got = run(SHARD_PATH_DIRECT, 1, SHARD_CHECK_FIRST);
			CHECK_EQ(got.rc, cases[i].rc);
			CHECK(strstr(got.err.message, cases[i].says));
			CHECK(strstr(got.err.message, ".shard: "));
		}
		STORY("read %d is refused", at);
		fail_read = at;
		fail_code = EINVAL;
		got = run(SHARD_PATH_DIRECT, 1, SHARD_CHECK_FIRST);
		CHECK_EQ(got.rc, SHARD_END);
		CHECK_EQ(got.hash, want.hash);
	}
	fail_read = 0;
	system_says = AS_IT_IS;
}

TEST(damage_is_found_on_every_path)
{
	struct path p;
	uint64_t offset;

	make_dataset(224, 0);
	tmp(&p, "t_paths.%d/1.shard", (int)getpid());
	offset = section_of(p.text, 1, 0).offset + 7 * schema.group[0].stride + 99;
	file_flip(p.text, offset, 4);
	for (uint32_t path = SHARD_PATH_MAP; path <= SHARD_PATH_PREAD; path++) {
		struct story s = run(path, 2, SHARD_CHECK_FIRST);

		STORY("path %u", path);
		CHECK_EQ(s.rc, SHARD_E_CORRUPT);
		CHECK(strstr(s.err.message, "1.shard: I44: unit 7 of group 0"));
	}
}

/* ---- io_uring refused ---- */

/* In a child that is nobody and may lock 64 KiB. */
static int child(int code, const struct story *want, bool uring_wanted)
{
	struct rlimit lock = {65536, 65536};
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct story s;

		if (setrlimit(RLIMIT_MEMLOCK, &lock) || (!geteuid() && (setgid(65534) || setuid(65534))))
			_exit(3);
		if (code && !refuse_uring(code))
			_exit(77);
		s = run(SHARD_PATH_DIRECT, 2, SHARD_CHECK_FIRST);
		if (s.rc != SHARD_END || s.hash != want->hash || !s.stats.direct_bytes)
			_exit(4);
		_exit((s.stats.has_uring != 0) == uring_wanted ? 0 : 5);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + status;
}

TEST(without_io_uring_the_same_comes_by_pread)
{
	struct engine *e = engine_open(4, 1);
	bool uring = engine_is_uring(e);
	struct path here, above;
	struct story want;
	int rc;

	engine_close(e);
	make_dataset(224, 0);
	if (!has_direct())
		SKIP("$TMPDIR is on a file system without O_DIRECT");
	tmp(&above, "..");
	if (!geteuid()) /* so that nobody may pass */
		CHECK_EQ(chmod(folder.text, 0755) | chmod(tmp(&here, "."), 0755) | chmod(above.text, 0755), 0);
	want = twin();
	/* the control: unprivileged, but allowed: with io_uring where the machine has it */
	rc = child(0, &want, uring);
	CHECK_EQ(rc, 0);
	rc = child(EPERM, &want, false);
	if (rc == 77)
		SKIP("no seccomp filters here");
	CHECK_EQ(rc, 0);
	CHECK_EQ(child(ENOSYS, &want, false), 0);
	remove_tree(folder.text);
}

TEST_MAIN()
