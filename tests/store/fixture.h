/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h - small shards and datasets for tests of store/ and load/, and files below $TMPDIR
 *
 * Records are a function of (group, index), so that a test knows what it must read without having
 * kept it.
 */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "libshard/write/write.h"
#include "shard.h"
#include "shard_pack.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Prints what the library said and fails: for calls that must succeed. */
#define CHECK_OK(call)                                                                            \
	do {                                                                                      \
		struct shard_error *said_ = &fixture_err;                                         \
		int got_;                                                                         \
                                                                                                  \
		said_->message[0] = 0;                                                            \
		got_ = (call);                                                                    \
		if (got_)                                                                         \
			test_fail(__FILE__, __LINE__, "%s: %d, %s", #call, got_, said_->message); \
	} while (0)

static struct shard_error fixture_err; /* what calls inside CHECK_OK() are given; of the test's own thread only */

/* ---- random numbers: SplitMix64, so a seed in a message is enough to see a failure again ---- */

struct prng {
	uint64_t state;
};

static inline uint64_t prng_next(struct prng *p)
{
	uint64_t z = p->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline uint64_t prng_below(struct prng *p, uint64_t n)
{
	return prng_next(p) % n;
}

static inline void prng_fill(struct prng *p, void *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)out)[i] = (uint8_t)(prng_next(p) >> 40);
}

/* ---- files ---- */

struct path {
	char text[512];
};

/* A name below $TMPDIR. */
__attribute__((format(printf, 2, 3))) static inline const char *tmp(struct path *p, const char *fmt, ...)
{
	const char *dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	int used = snprintf(p->text, sizeof(p->text), "%s/", dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->text + used, sizeof(p->text) - (size_t)used, fmt, ap);
	va_end(ap);
	return p->text;
}

static inline bool file_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static inline uint8_t *file_bytes(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *data;

	CHECK(f && !fstat(fileno(f), &st));
	data = malloc((size_t)st.st_size + 1);
	CHECK_EQ(fread(data, 1, (size_t)st.st_size, f), st.st_size);
	fclose(f);
	*bytes = (size_t)st.st_size;
	return data;
}

static inline void file_make(const char *path, const void *data, size_t bytes)
{
	FILE *f = fopen(path, "wb");

	CHECK(f);
	CHECK_EQ(fwrite(data, 1, bytes, f), bytes);
	CHECK_EQ(fclose(f), 0);
}

static inline void file_flip(const char *path, uint64_t offset, uint8_t bits)
{
	int fd = open(path, O_RDWR);
	uint8_t b;

	CHECK(fd >= 0);
	CHECK_EQ(pread(fd, &b, 1, (off_t)offset), 1);
	b ^= bits;
	CHECK_EQ(pwrite(fd, &b, 1, (off_t)offset), 1);
	close(fd);
}

static inline void file_copy(const char *from, const char *to)
{
	size_t bytes;
	uint8_t *data = file_bytes(from, &bytes);

	file_make(to, data, bytes);
	free(data);
}

/* Entries of a folder whose names begin with `prefix`. */
static inline unsigned entries(const char *dir, const char *prefix)
{
	DIR *d = opendir(dir);
	unsigned count = 0;

	CHECK(d);
	for (struct dirent *e; (e = readdir(d));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && !strncmp(e->d_name, prefix, strlen(prefix)))
			count++;
	closedir(d);
	return count;
}

static inline int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

static inline void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A new, empty folder below $TMPDIR. */
static inline const char *new_folder(struct path *p, const char *name)
{
	tmp(p, "%s.%d", name, (int)getpid());
	remove_tree(p->text);
	CHECK_EQ(mkdir(p->text, 0755), 0);
	return p->text;
}

/* ---- photographs: an image in one group, label and weights in another ---- */

#define PHOTO_CLASSES 10u
enum { PHOTO_IMAGE, PHOTO_LABEL, PHOTO_WEIGHT };

static inline struct shard_schema photo_schema(uint32_t side, uint32_t codec)
{
	struct shard_schema s = {
		.group_count = 2,
		.field_count = 3,
		.group = {{.codec = codec}},
		.field = {{.name = "image",
			   .dtype = SHARD_U8,
			   .layout = SHARD_HWC,
			   .semantic = SHARD_IMAGE,
			   .ndim = 3,
			   .shape = {side, side, 3}},
			  {.name = "label", .dtype = SHARD_I64, .semantic = SHARD_LABEL, .group = 1},
			  {.name = "weight", .dtype = SHARD_F32, .group = 1, .ndim = 1, .shape = {3}}},
	};

	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	return s;
}

/*
 * The record_bytes of group 0 or 1 of record `idx`: slowly rising pixels, so that LZ4 finds
 * something.
 */
static inline void photo_record(const struct shard_schema *s, uint32_t group, uint64_t idx, uint8_t *out)
{
	struct prng p = {idx * 2 + group};

	memset(out, 0, (size_t)s->group[group].record_bytes);
	if (group == 0) {
		uint8_t start = (uint8_t)prng_next(&p);

		for (uint64_t i = 0; i < s->field[PHOTO_IMAGE].bytes; i += 16)
			memset(out + i, (uint8_t)(start + i / 16),
			       s->field[PHOTO_IMAGE].bytes - i < 16 ? (size_t)(s->field[PHOTO_IMAGE].bytes - i) : 16);
	}
	if (s->field[PHOTO_LABEL].group == group)
		out[s->field[PHOTO_LABEL].offset] = (uint8_t)(idx % PHOTO_CLASSES);
	if (s->field[PHOTO_WEIGHT].group == group)
		prng_fill(&p, out + s->field[PHOTO_WEIGHT].offset, 12);
}

static inline size_t photo_key(uint64_t idx, char out[64])
{
	return (size_t)snprintf(out, 64, "class-%u/photo %" PRIu64 ".jpg", (unsigned)(idx % PHOTO_CLASSES), idx);
}

/* Does `stride` bytes of a group hold record `idx`, and zeros behind it? */
static inline void check_photo(const struct shard_schema *s, uint32_t group, uint64_t idx, const void *got)
{
	uint64_t stride = s->group[group].stride;
	uint8_t *want = calloc(1, (size_t)stride);

	photo_record(s, group, idx, want);
	CHECK_MEM(got, want, (size_t)stride);
	free(want);
}

/*
 * All of it is its caller's own: the thread sanitizer, which would look at each pixel, is not
 * needed.
 */
__attribute__((no_sanitize_thread)) static inline void add_moments(struct shard_writer *w, const struct shard_schema *s,
								   const uint8_t *pixels)
{
	struct shard_moments m[3] = {{0, 0, 0, 0}};

	for (uint64_t i = 0; i < s->field[PHOTO_IMAGE].bytes; i++) {
		m[i % 3].count++;
		m[i % 3].sum += pixels[i];
		m[i % 3].sum_squares_low += (uint64_t)pixels[i] * pixels[i];
	}
	for (uint32_t c = 0; c < 3; c++)
		CHECK_OK(writer_add_moments(w, PHOTO_IMAGE, c, &m[c], &fixture_err));
}

static const char *fixture_provenance = "a fixture \xe2\x86\x92 tests\n"; /* of datasets written from now on */

/*
 * Records [first, first + count) with keys and statistics, and a left-out input behind every fifth
 * of them.
 */
static inline void write_photos(const char *path, const struct shard_schema *s, uint64_t first, uint64_t count,
				struct shard_written *result)
{
	struct shard_writer_options o = {.size = sizeof(o),
					 .planned_records = count + count / 5 + 1,
					 .plan_shard = first,
					 .keys = 1,
					 .provenance = fixture_provenance,
					 .skip_read_back = 1,
					 .class_count = PHOTO_CLASSES};
	struct shard_written written;
	struct shard_writer *w;
	uint8_t *record[2];

	for (int g = 0; g < 2; g++)
		record[g] = malloc((size_t)s->group[g].record_bytes);
	CHECK_OK(shard_writer_open(&w, path, s, &o, &fixture_err));
	for (uint64_t i = first; i < first + count; i++) {
		const void *group[2] = {record[0], record[1]};
		struct shard_miss miss = {i * 2 + 1, SHARD_MISS_DECODE, SHARD_SKIPPED};
		char key[64];

		photo_record(s, 0, i, record[0]);
		photo_record(s, 1, i, record[1]);
		CHECK_OK(shard_writer_append(w, group, key, photo_key(i, key), &fixture_err));
		add_moments(w, s, record[0]);
		if ((i - first) % 5 == 4)
			CHECK_OK(shard_writer_miss(w, &miss, &fixture_err));
	}
	CHECK_OK(shard_writer_finish(w, result ? result : &written, &fixture_err));
	shard_writer_close(w);
	free(record[0]);
	free(record[1]);
}

/* Of datasets written from now on: which photograph is record 0, and the name of class 0. */
static uint64_t fixture_first;
static const char *fixture_class = "a";

/* A dataset of shards "0.shard", "1.shard", ... with so many records each. */
static inline void write_dataset(const char *dir, const struct shard_schema *s, const uint64_t *records, size_t shards)
{
	const char *const names[PHOTO_CLASSES] = {fixture_class, "b", "zw\xc3\xb6lf", "d d", "%", "f", "g", "h",
						  "i",		 "j"};
	struct shard_seal_options o = {.size = sizeof(o),
				       .class_names = names,
				       .class_count = PHOTO_CLASSES,
				       .order = SHARD_ORDER_SHUFFLE,
				       .seed = 7,
				       .replace = 1};
	struct shard_seal *seal;
	uint64_t first = fixture_first;

	CHECK_OK(shard_seal_open(&seal, dir, &o, &fixture_err));
	for (size_t i = 0; i < shards; i++) {
		struct shard_written written;
		char path[600], name[32];

		snprintf(name, sizeof(name), "%zu.shard", i);
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		write_photos(path, s, first, records[i], &written);
		CHECK_OK(shard_seal_add(seal, name, NULL, written.sha256, &fixture_err));
		first += records[i];
	}
	CHECK_OK(shard_seal_finish(seal, &fixture_err));
	shard_seal_close(seal);
}

/* Where a section of a shard lies. */
static inline struct shard_section section_of(const char *path, uint32_t type, uint32_t group)
{
	struct shard_section s = {0};
	struct shard_reader *r;
	uint32_t i = 0;

	CHECK_OK(shard_reader_open(&r, path, NULL, &fixture_err));
	while (!shard_reader_section(r, i, &s, NULL) && (s.type != type || s.group != group))
		i++;
	shard_reader_close(r);
	CHECK(s.type == type && s.group == group);
	return s;
}

/* Change a bit of the records of a group, at `offset` in them. */
static inline void damage_record(const struct path *folder_of, unsigned shard, uint32_t group, uint64_t offset)
{
	struct shard_section s;
	char path[sizeof(folder_of->text) + 32];

	snprintf(path, sizeof(path), "%s/%u.shard", folder_of->text, shard);
	s = section_of(path, 1, group);
	CHECK(offset < s.bytes);
	file_flip(path, s.offset + offset, 16);
}

#endif
