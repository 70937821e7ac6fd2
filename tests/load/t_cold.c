/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_cold.c - files that are opened again, reads that the kernel interrupts, and disks behind a
 * network
 *
 * LDFLAGS: -Wl,--wrap=open64,--wrap=uring_get,--wrap=statfs64
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/vfs.h>

#include "libshard/io/io.h"
#include "tests/store/fixture.h"

#define RECORDS 90u

static const uint64_t sizes[] = {30, 30, 30};
static struct path folder;
static struct shard_schema schema;

/* ---- what the system answers ---- */

static atomic_int full_opens; /* so many opens of shards fail, with `full_of` */
static int full_of = EMFILE;
static atomic_int interruptions; /* so many reads of io_uring end with `interrupted_by` */
static int interrupted_by;
static long type_of_all; /* of every file system, if not 0 */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
struct engine_read *__real_uring_get(struct uring *u, int *result);
struct engine_read *__wrap_uring_get(struct uring *u, int *result);
int __real_statfs64(const char *path, struct statfs *out);
int __wrap_statfs64(const char *path, struct statfs *out);

static bool takes_one(atomic_int *left)
{
	return atomic_load(left) > 0 && atomic_fetch_sub(left, 1) > 0;
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (strstr(path, ".shard") && takes_one(&full_opens)) {
		errno = full_of;
		return -1;
	}
	return __real_open64(path, flags, mode);
}

struct engine_read *__wrap_uring_get(struct uring *u, int *result)
{
	struct engine_read *r = __real_uring_get(u, result);

	if (r && takes_one(&interruptions))
		*result = -interrupted_by;
	return r;
}

int __wrap_statfs64(const char *path, struct statfs *out)
{
	int rc = __real_statfs64(path, out);

	if (!rc && type_of_all)
		out->f_type = type_of_all;
	return rc;
}

/* ---- an epoch ---- */

static void make_dataset(void)
{
	schema = photo_schema(64, SHARD_RAW); /* 12,288 bytes: records of their own, read one by one */
	CHECK_OK(shard_schema_lay_out(&schema, 4096, &fixture_err));
	new_folder(&folder, "t_cold");
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
}

static struct shard_dataset *open_dataset(void)
{
	struct shard_reader *r;
	struct shard_dataset *ds;

	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	for (uint64_t k = 0; k < COUNT(sizes); k++)
		CHECK_OK(shard_dataset_reader(ds, k, &r, &fixture_err)); /* from here on it is known */
	return ds;
}

/* One epoch; the result of the last call. */
static int epoch(struct shard_dataset *ds, uint32_t path, struct shard_loader_stats *stats, struct shard_error *err)
{
	struct shard_loader_options o = {.size = sizeof(o),
					 .batch_records = 10,
					 .order.seed = 3,
					 .path = path,
					 .thread_count = 1,
					 .order.shuffle = SHARD_SHUFFLE_GLOBAL};
	struct shard_loader *l;
	struct shard_batch b;
	int rc;

	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	while ((rc = shard_loader_next(l, &b, err)) == SHARD_OK) {
		for (uint32_t i = 0; i < b.record_count; i++)
			check_photo(&schema, 0, b.record[i], (const uint8_t *)b.group[0].data + i * b.group[0].stride);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	shard_loader_stats(l, stats);
	shard_loader_close(l);
	return rc;
}

TEST(with_too_many_open_files_it_closes_some_and_goes_on)
{
	static const uint32_t paths[] = {SHARD_PATH_DIRECT, SHARD_PATH_PREAD};
	struct shard_loader_stats stats;
	struct shard_error err = {.message = ""};
	struct shard_dataset *ds;

	make_dataset();
	for (size_t i = 0; i < COUNT(paths); i++) {
		STORY("path %u", paths[i]);
		ds = open_dataset();
		/* With O_DIRECT and without: both refused once.  Then it closes what it held. */
		atomic_store(&full_opens, paths[i] == SHARD_PATH_DIRECT ? 2 : 1);
		CHECK_EQ(epoch(ds, paths[i], &stats, &err), SHARD_END);
		CHECK(atomic_load(&full_opens) <= 0);
		/* And if there is none after all, that is what it says. */
		atomic_store(&full_opens, 1000);
		CHECK_EQ(epoch(ds, paths[i], &stats, &err), SHARD_E_IO);
		CHECK(strstr(err.message, "cannot be opened again: Too many open files"));
		atomic_store(&full_opens, 0);
		shard_dataset_close(ds);
	}
}

TEST(what_happened_to_a_shard_is_told)
{
	static const uint32_t paths[] = {SHARD_PATH_DIRECT, SHARD_PATH_PREAD};
	static const struct {
		const char *what, *words;
	} rows[] = {{"gone", "cannot be opened again: No such file"},
		    {"replaced", "was replaced while in use; open the dataset again"},
		    {"stale on NFS", "was replaced while in use; open the dataset again"},
		    {"replaced by a shorter one", "was replaced while in use; open the dataset again"},
		    {"cut", "was cut while in use; open the dataset again"},
		    {"extended", "was extended while in use; open the dataset again"}};
	struct path shard, copy;
	uint8_t *data;
	size_t bytes;

	for (size_t i = 0; i < COUNT(rows) * COUNT(paths); i++) {
		const char *what = rows[i / COUNT(paths)].what;
		struct shard_error err = {.message = ""};
		struct shard_loader_stats stats;
		struct shard_dataset *ds;

		STORY("path %u, %s", paths[i % COUNT(paths)], what);
		make_dataset();
		tmp(&shard, "t_cold.%d/1.shard", (int)getpid());
		tmp(&copy, "t_cold.%d/copy", (int)getpid());
		ds = open_dataset();
		data = file_bytes(shard.text, &bytes);
		file_make(copy.text, data, bytes - !strcmp(what, "replaced by a shorter one"));
		free(data);
		if (what[0] == 'r')
			CHECK_EQ(rename(copy.text, shard.text), 0);
		else if (what[0] == 'g')
			CHECK_EQ(unlink(shard.text), 0);
		else if (what[0] == 's') {
			full_of = ESTALE;
			atomic_store(&full_opens, 1000);
		} else /* all records are still there */
			CHECK_EQ(truncate(shard.text, (off_t)bytes + (what[0] == 'c' ? -1 : 1)), 0);
		CHECK_EQ(epoch(ds, paths[i % COUNT(paths)], &stats, &err), SHARD_E_IO);
		full_of = EMFILE;
		atomic_store(&full_opens, 0);
		CHECK(strstr(err.message, what[0] == 's' ? ".shard: " : "/1.shard: ")); /* all of them are stale */
		CHECK(strstr(err.message, rows[i / COUNT(paths)].words));
		shard_dataset_close(ds);
	}
}

TEST(reads_that_are_interrupted_are_finished)
{
	static const int codes[] = {EINTR, EAGAIN, ECANCELED};
	struct shard_loader_stats stats;
	struct shard_error err = {.message = ""};
	struct shard_dataset *ds;

	make_dataset();
	ds = open_dataset();
	CHECK_EQ(epoch(ds, SHARD_PATH_DIRECT, &stats, &err), SHARD_END);
	if (!stats.has_uring)
		SKIP("no io_uring here");
	for (size_t i = 0; i < COUNT(codes); i++) {
		STORY("%s", strerror(codes[i]));
		interrupted_by = codes[i];
		atomic_store(&interruptions, 7);
		CHECK_EQ(epoch(ds, SHARD_PATH_DIRECT, &stats, &err), SHARD_END);
		CHECK(atomic_load(&interruptions) <= 0);
	}
	interrupted_by = EIO; /* the control: an error that is one */
	atomic_store(&interruptions, 1);
	CHECK_EQ(epoch(ds, SHARD_PATH_DIRECT, &stats, &err), SHARD_E_IO);
	shard_dataset_close(ds);
}

/* One hash covers four records there, so no way may read one of them alone and call it good. */
TEST(units_of_several_large_records)
{
	struct shard_loader_stats stats;
	struct shard_error err = {.message = ""};
	struct shard_dataset *ds;

	for (int damaged = 0; damaged < 2; damaged++)
		for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++) {
			STORY("path %u%s", path, damaged ? ", damaged" : "");
			schema = photo_schema(64, SHARD_RAW);
			CHECK_OK(shard_schema_lay_out(&schema, 4096, &fixture_err));
			schema.group[0].unit_records = 4;
			new_folder(&folder, "t_cold");
			write_dataset(folder.text, &schema, sizes, COUNT(sizes));
			if (damaged)
				damage_record(&folder, 1, 0, 6 * schema.group[0].stride + 77);
			ds = open_dataset();
			CHECK_EQ(epoch(ds, path, &stats, &err), damaged ? SHARD_E_CORRUPT : SHARD_END);
			CHECK(!damaged || strstr(err.message, "1.shard: I44: unit 1 of group 0"));
			shard_dataset_close(ds);
		}
}

/* A map of a file on a server is a signal when the network fails, so it is read instead. */
TEST(files_of_a_server_are_not_mapped)
{
	static const long types[] = {NFS_SUPER_MAGIC, V9FS_MAGIC, 0x00c36400, 0x0bd00bd0, 0x47504653,
				     0xff534d42,      0xfe534d42, 0x65735546, 0x19830326};
	struct shard_loader_stats stats;
	struct shard_error err = {.message = ""};
	struct shard_dataset *ds;

	make_dataset();
	ds = open_dataset();
	CHECK_EQ(epoch(ds, SHARD_PATH_MAP, &stats, &err), SHARD_END); /* all of it is in memory now */
	for (size_t i = 0; i < COUNT(types); i++) {
		STORY("file system %lx", types[i]);
		type_of_all = types[i];
		CHECK_EQ(epoch(ds, SHARD_PATH_AUTO, &stats, &err), SHARD_END);
		CHECK(stats.pread_bytes >= RECORDS * 12288);
		CHECK_EQ(stats.direct_bytes, 0);
	}
	type_of_all = TMPFS_MAGIC;
	CHECK_EQ(epoch(ds, SHARD_PATH_AUTO, &stats, &err), SHARD_END);
	CHECK(stats.pread_bytes < RECORDS * 12288);
	type_of_all = NFS_SUPER_MAGIC;
	CHECK_EQ(epoch(ds, SHARD_PATH_MAP, &stats, &err), SHARD_END); /* but for who asks for it */
	CHECK_EQ(stats.pread_bytes, 0);
	shard_dataset_close(ds);
}

TEST_MAIN()
