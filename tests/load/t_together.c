/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_together.c - neighbours that are read past the map by one read: the same batches, as few reads
 * as can be, errors and damage
 *
 * In the order of the files, as a pool's feed reads them; what comes is compared with what was
 * written.
 *
 * LDFLAGS: -Wl,--wrap=direct_open,--wrap=engine_put,--wrap=engine_get
 */
#include <errno.h>

#include "tests/load/batches.h"
#include "tests/load/reads.h"

#define TOGETHER_BYTES (UINT64_C(4) << 20) /* of libshard/feed/slot_cold.c */

static const uint64_t sizes[] = {40, 1, 0, 23};
#define TOTAL 64u

static struct shard_error err;
static struct wanted wanted;
static struct shard_loader *loader;

static void open_loader(uint32_t batch_records, uint32_t path, uint32_t threads, uint32_t on_corrupt)
{
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = batch_records,
							   .path = path,
							   .thread_count = threads,
							   .repair.on_corrupt = on_corrupt,
							   .order.shuffle = SHARD_SEQUENTIAL,
							   .tail = SHARD_KEEP,
							   .slot_count = 2});
	memset(&reads, 0, sizeof(reads));
	loader = loader_of(&wanted);
}

/* Two epochs, and as much of the third as is prepared ahead. */
static void take_all(void)
{
	struct shard_batch b;

	for (int ends = 0; ends < 2 && !wanted.complaint[0];) {
		int rc = wanted_next(&wanted, loader, &b);

		ends += rc == SHARD_END;
		if (rc == SHARD_OK)
			CHECK_OK(shard_loader_release(loader, &b, &fixture_err));
	}
}

static bool has_direct(void)
{
	char path[sizeof(folder.text) + 16];
	struct direct_file f;
	struct stat st;
	bool direct;

	snprintf(path, sizeof(path), "%s/0.shard", folder.text);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(__real_direct_open(path, (uint64_t)st.st_ino, (uint64_t)st.st_size, true, &f), 0);
	direct = f.direct;
	direct_close(&f);
	return direct;
}

/*
 * How many reads an epoch takes at least: pieces of a step that are neighbours, of one shard and
 * not too long.
 */
static unsigned pieces(uint32_t batch_records)
{
	uint64_t stride = schema.group[0].stride, most = TOGETHER_BYTES / stride, at = 0, in_piece = 0;
	unsigned count = 0;

	most = most ? most : 1;
	for (size_t shard = 0; shard < COUNT(sizes); shard++)
		for (uint64_t i = 0; i < sizes[shard]; i++, at++) {
			if (!i || at % batch_records == 0 || in_piece == most) {
				count++;
				in_piece = 0;
			}
			in_piece++;
		}
	return count;
}

/* ---- as few reads as can be ---- */

TEST(neighbours_are_one_read)
{
	/* of a stride of no 512, of a multiple, and so long that 8 are enough */
	static const uint32_t sides[] = {37, 224, 400};

	for (size_t i = 0; i < COUNT(sides); i++) {
		open_photos(sides[i], SHARD_RAW, sizes, COUNT(sizes));
		if (!has_direct())
			SKIP("$TMPDIR is on a file system without O_DIRECT");
		for (uint32_t batch = 5; batch <= 60; batch += 11)
			for (system_says = ALIGN_512; system_says <= ALIGN_4096; system_says++)
				for (uint32_t threads = 1; threads <= 3; threads += 2) {
					uint32_t align = system_says == ALIGN_512 ? 512 : 4096;
					bool fits = schema.group[0].stride % align == 0;
					struct shard_loader_stats s;

					STORY("side %u, batches of %u, aligned to %u, %u threads", sides[i], batch,
					      align, threads);
					open_loader(batch, SHARD_PATH_DIRECT, threads, SHARD_CORRUPT_FAIL);
					take_all();
					CHECK_NO_COMPLAINT(&wanted);
					shard_loader_stats(loader, &s);
					close_loader(loader);
					if (fits) {
						/* each part of the first batch may end a piece */
						uint64_t parts = threads > 1 ? 2 * threads : 0;

						CHECK(reads.count >= 2 * pieces(batch) &&
						      reads.count <= 3 * pieces(batch) + parts);
						CHECK(reads.longest <= TOGETHER_BYTES &&
						      reads.longest % schema.group[0].stride == 0);
						CHECK_EQ(reads.longest,
							 (batch < TOGETHER_BYTES / schema.group[0].stride
								  ? batch < 40 ? batch : 40
							  : TOGETHER_BYTES / schema.group[0].stride < 40
								  ? TOGETHER_BYTES / schema.group[0].stride
								  : 40) *
								 schema.group[0].stride);
						CHECK(reads.bytes >= s.direct_bytes);
					} else { /* each with what surrounds it, to be copied once */
						CHECK(reads.count >= 2 * TOTAL);
						CHECK(reads.longest <= schema.group[0].stride + 2 * align);
					}
				}
	}
	system_says = AS_IT_IS;
}

/*
 * The ordinary way, too; and neighbours in the file that are none in the slot are not read
 * together.
 */
TEST(other_ways_and_orders)
{
	struct shard_loader_options global = {.batch_records = 16,
					      .path = SHARD_PATH_PREAD,
					      .order.shuffle = SHARD_SHUFFLE_GLOBAL,
					      .tail = SHARD_KEEP};

	open_photos(224, SHARD_RAW, sizes, COUNT(sizes));
	open_loader(16, SHARD_PATH_PREAD, 1, SHARD_CORRUPT_FAIL);
	take_all();
	close_loader(loader);
	CHECK_NO_COMPLAINT(&wanted);
	CHECK(reads.count <= 3 * pieces(16));
	wanted_open(&wanted, global);
	memset(&reads, 0, sizeof(reads));
	loader = loader_of(&wanted);
	take_all();
	close_loader(loader);
	CHECK_NO_COMPLAINT(&wanted);
	CHECK(reads.count > 2 * TOTAL * 3 / 4);
}

/*
 * A disk has work all the time: several reads of a step are under way at once, and those of several
 * threads.
 */
TEST(reads_are_under_way_together)
{
	open_photos(400, SHARD_RAW, sizes, COUNT(sizes));
	for (uint32_t threads = 1; threads <= 2; threads++) {
		STORY("%u threads", threads);
		open_loader(40, SHARD_PATH_DIRECT, threads, SHARD_CORRUPT_FAIL);
		take_all();
		close_loader(loader);
		CHECK_NO_COMPLAINT(&wanted);
		CHECK(reads.most >= 5); /* 40 records of 8 a read */
	}
}

/* ---- what goes wrong ---- */

TEST(a_wrong_neighbour_is_noticed)
{
	open_photos(224, SHARD_RAW, sizes, COUNT(sizes));
	reopen(&(struct shard_dataset_options){.size = sizeof(struct shard_dataset_options),
					       .check = SHARD_CHECK_NEVER});
	open_loader(16, SHARD_PATH_PREAD, 1, SHARD_CORRUPT_FAIL);
	reads.shift_longer_than = reads.shift = schema.group[0].stride;
	take_all();
	close_loader(loader);
	CHECK(strstr(wanted.complaint, "row 0: image is not that of record 0"));
}

TEST(each_record_of_a_read_is_hashed_by_itself)
{
	struct shard_batch b;

	open_photos(224, SHARD_RAW, sizes, COUNT(sizes));
	damage_record(&folder, 0, 0, 7 * schema.group[0].stride + 70);
	damage_record(&folder, 0, 0, 19 * schema.group[0].stride);
	for (uint32_t path = SHARD_PATH_DIRECT; path <= SHARD_PATH_PREAD; path++) {
		STORY("path %u", path);
		reopen(NULL);
		open_loader(16, path, 1, SHARD_CORRUPT_MASK);
		for (unsigned step = 0; step < 4; step++) {
			CHECK_OK(shard_loader_next(loader, &b, &fixture_err));
			for (uint32_t i = 0; i < b.record_count; i++) {
				bool damaged = b.record[i] == 7 || b.record[i] == 19;

				CHECK_EQ(b.row_flags[i], damaged ? SHARD_ROW_MASKED : 0);
				if (!damaged)
					check_bytes(&wanted, &b, i);
			}
			CHECK_OK(shard_loader_release(loader, &b, &fixture_err));
		}
		close_loader(loader);
		CHECK_NO_COMPLAINT(&wanted);
		CHECK(reads.longest > schema.group[0].stride);
	}
}

/*
 * A disk that fails; a way that the file system takes back at the read, after which the same comes
 * by another.
 */
TEST(a_read_that_fails)
{
	struct shard_batch b;
	char says[64];

	open_photos(224, SHARD_RAW, sizes, COUNT(sizes));
	if (!has_direct())
		SKIP("$TMPDIR is on a file system without O_DIRECT");
	snprintf(says, sizeof(says), "0.shard: reading %" PRIu64 " bytes at ", 16 * schema.group[0].stride);
	system_says = ALIGN_512;
	for (int at = 1; at <= 2; at++) {
		STORY("read %d", at);
		open_loader(16, SHARD_PATH_DIRECT, 1, SHARD_CORRUPT_FAIL);
		fail_read = at;
		fail_code = EIO;
		for (int i = 1; i < at; i++) {
			CHECK_OK(shard_loader_next(loader, &b, &fixture_err));
			CHECK_OK(shard_loader_release(loader, &b, &fixture_err));
		}
		CHECK_EQ(shard_loader_next(loader, &b, &err), SHARD_E_IO);
		CHECK(strstr(err.message, says));
		CHECK_OK(shard_loader_seek(loader, 0, 0, &fixture_err));
		take_all();
		close_loader(loader);
		CHECK_NO_COMPLAINT(&wanted);
		open_loader(16, SHARD_PATH_DIRECT, 1, SHARD_CORRUPT_FAIL);
		fail_read = at;
		fail_code = EINVAL;
		take_all();
		close_loader(loader);
		CHECK_NO_COMPLAINT(&wanted);
		CHECK_EQ(fail_read, 0);
	}
	system_says = AS_IT_IS;
}

TEST_MAIN()
