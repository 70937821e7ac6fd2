/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_flips.c - every single-bit flip, truncation and extension of every golden shard and manifest is
 * noticed
 *
 * A shard is opened and verified in full for each of some four million damages, so the files lie in
 * memory: the linker puts stand-ins in the place of io/, and everything else is the library.  That
 * the stand-ins change nothing is tested with real files.  Noticed means corrupt: never
 * unsupported, which would blame the reader.
 *
 * Under a sanitizer one flip of 400 and one length of 100 are tried, which the last line says; the
 * plain build has the controls.
 *
 * LDFLAGS: -Wl,--wrap=file_open,--wrap=file_close,--wrap=file_read_at
 * LDFLAGS: -Wl,--wrap=file_map
 * LDFLAGS: -Wl,--wrap=file_unmap,--wrap=file_open_direct,--wrap=file_seems_cached,--wrap=file_list
 * LDFLAGS: -Wl,--wrap=invariant_broken
 * LDFLAGS: -Wl,--wrap=buffer_open,--wrap=mem_free
 * TIMEOUT: 900
 */
#include <dirent.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/verify/verify.h"
#include "shard.h"
#include "shard_inspect.h"
#include "tests/test.h"

#define PROCESSES 2u
#define EXTENSION ((size_t)4096 * 4096) /* zeros that can be had behind a file */
#define FAKE_FD	  1000

/* ---- io/ in memory ---- */

static const uint8_t *memory; /* NULL: real files */
static size_t memory_bytes;

int __real_file_open(const char *path, int *fd, uint64_t *bytes, uint64_t *inode, struct shard_error *err);
int __wrap_file_open(const char *path, int *fd, uint64_t *bytes, uint64_t *inode, struct shard_error *err);
void __real_file_close(int fd);
void __wrap_file_close(int fd);
int __real_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);
int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);
int __real_file_map(int fd, uint64_t bytes, const char *path, const void **out, struct shard_error *err);
int __wrap_file_map(int fd, uint64_t bytes, const char *path, const void **out, struct shard_error *err);
void __real_file_unmap(const void *map, uint64_t bytes);
void __wrap_file_unmap(const void *map, uint64_t bytes);
int __real_file_open_direct(const char *path);
int __wrap_file_open_direct(const char *path);
bool __real_file_seems_cached(int fd, uint64_t bytes, bool *whole);
bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole);
int __real_file_list(const char *dir, const char *suffix, int (*on_name)(void *, const char *), void *context,
		     struct shard_error *err);
int __wrap_file_list(const char *dir, const char *suffix, int (*on_name)(void *, const char *), void *context,
		     struct shard_error *err);

int __wrap_file_open(const char *path, int *fd, uint64_t *bytes, uint64_t *inode, struct shard_error *err)
{
	if (!memory)
		return __real_file_open(path, fd, bytes, inode, err);
	*fd = FAKE_FD;
	*bytes = memory_bytes;
	if (inode)
		*inode = 1;
	return SHARD_OK;
}

void __wrap_file_close(int fd)
{
	if (fd != FAKE_FD)
		__real_file_close(fd);
}

int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err)
{
	if (!memory)
		return __real_file_read_at(fd, out, bytes, offset, path, err);
	if (offset > memory_bytes || bytes > memory_bytes - offset)
		return error_set(err, SHARD_E_IO, "past the end");
	memcpy(out, memory + offset, bytes);
	return SHARD_OK;
}

int __wrap_file_map(int fd, uint64_t bytes, const char *path, const void **out, struct shard_error *err)
{
	if (!memory)
		return __real_file_map(fd, bytes, path, out, err);
	*out = memory;
	return SHARD_OK;
}

void __wrap_file_unmap(const void *map, uint64_t bytes)
{
	if (!memory)
		__real_file_unmap(map, bytes);
}

int __wrap_file_open_direct(const char *path)
{
	return memory ? -1 : __real_file_open_direct(path);
}

bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole)
{
	return memory || __real_file_seems_cached(fd, bytes, whole);
}

int __wrap_file_list(const char *dir, const char *suffix, int (*on_name)(void *, const char *), void *context,
		     struct shard_error *err)
{
	return memory ? SHARD_OK : __real_file_list(dir, suffix, on_name, context, err);
}

/* The verifier's buffer, which it does not need here: made once, not four million times. */
static uint8_t *buffer;

void *__wrap_buffer_open(size_t bytes);
void __real_mem_free(void *p);
void __wrap_mem_free(void *p);

void *__wrap_buffer_open(size_t bytes)
{
	return buffer ? buffer : (buffer = malloc(bytes));
}

void __wrap_mem_free(void *p)
{
	if (p != buffer)
		__real_mem_free(p);
}

/* ---- checks that are taken out, for the control ---- */

static const char *skipped = "", *also_skipped = "";

int __wrap_invariant_broken(struct shard_error *err, int status, const char *number, const char *fmt, ...);

int __wrap_invariant_broken(struct shard_error *err, int status, const char *number, const char *fmt, ...)
{
	char text[900];
	va_list args;

	if (!strcmp(number, skipped) || !strcmp(number, also_skipped))
		return SHARD_OK;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(err, status, "%s: %s", number, text);
}

/* ---- the verdict ---- */

struct file {
	char path[300];
	uint8_t *bytes; /* and EXTENSION zeros behind them */
	size_t size;
	bool manifest;
};
static struct file files[64];
static unsigned file_count;

static int verdict(const char *path, bool manifest, struct shard_error *err)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	struct shard_dataset *ds;
	struct shard_reader *r;
	int rc;

	if (manifest) {
		rc = shard_dataset_open(&ds, path, NULL, err);
		if (!rc) {
			rc = dataset_verify_manifest(ds, err);
			shard_dataset_close(ds);
		}
		return rc;
	}
	rc = shard_reader_open(&r, path, NULL, err);
	if (!rc) {
		rc = shard_reader_verify(r, &o, NULL, err);
		shard_reader_close(r);
	}
	return rc;
}

static int in_memory(const struct file *f, size_t size, struct shard_error *err)
{
	int rc;

	memory = f->bytes;
	memory_bytes = size;
	rc = verdict("x", f->manifest, err);
	memory = NULL;
	return rc;
}

static void load(const char *path, bool manifest)
{
	struct file *f = &files[file_count++];
	struct stat st;
	FILE *in = fopen(path, "rb");

	CHECK(in && !fstat(fileno(in), &st) && file_count < 64);
	snprintf(f->path, sizeof(f->path), "%s", path);
	f->manifest = manifest;
	f->size = (size_t)st.st_size;
	f->bytes = calloc(1, f->size + EXTENSION);
	CHECK_EQ(fread(f->bytes, 1, f->size, in), f->size);
	fclose(in);
}

/* Every shard and manifest below `dir`. */
static void load_all(const char *dir)
{
	struct dirent **list;
	int n = scandir(dir, &list, NULL, alphasort);

	CHECK(n > 0);
	for (int i = 0; i < n; i++) {
		char path[300];
		const char *end = strrchr(list[i]->d_name, '.');
		struct stat st;

		snprintf(path, sizeof(path), "%.80s/%.200s", dir, list[i]->d_name);
		if (list[i]->d_name[0] != '.' && !stat(path, &st)) {
			if (S_ISDIR(st.st_mode))
				load_all(path);
			else if (end && (!strcmp(end, ".shard") || !strcmp(end, ".manifest")))
				load(path, end[1] == 'm');
		}
		free(list[i]);
	}
	free(list);
}

static void load_golden(void)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 30); /* memory of the library comes and goes four million times */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (!file_count)
		load_all("format/golden");
}

/* ---- damage ---- */

struct tally {
	uint64_t flips, lengths, undetected, not_corrupt;
};

static void note(struct tally *t, const struct file *f, int rc, const char *what, uint64_t where)
{
	t->undetected += rc == SHARD_OK;
	t->not_corrupt += rc != SHARD_OK && rc != SHARD_E_CORRUPT;
	if (rc != SHARD_E_CORRUPT && !*skipped && t->undetected + t->not_corrupt < 10)
		printf("%s: %s %" PRIu64 ": %s\n", f->path, what, where, shard_status_name(rc));
}

/* One in `every`, chosen by a hash, so that bits and bytes of all kinds are among them. */
static bool chosen(uint64_t n, uint32_t every)
{
	return every == 1 || (n * UINT64_C(0x9e3779b97f4a7c15) >> 40) % every == 0;
}

/* The share of process `turn` in the flips of a file. */
static void flip_all(struct file *f, unsigned turn, uint32_t every, struct tally *t)
{
	for (size_t at = turn; at < f->size; at += PROCESSES)
		for (unsigned bit = 0; bit < 8; bit++) {
			if (!chosen(8 * at + bit, every))
				continue;
			f->bytes[at] ^= (uint8_t)(1u << bit);
			note(t, f, in_memory(f, f->size, NULL), "bit", 8 * at + bit);
			f->bytes[at] ^= (uint8_t)(1u << bit);
			t->flips++;
		}
}

/*
 * Every shorter length; every longer one up to 8 KiB of zeros, 16 MiB of them, and the last page
 * once more.
 */
static void cut_all(struct file *f, unsigned turn, uint32_t every, struct tally *t)
{
	for (size_t size = turn; size <= f->size + 8192; size += PROCESSES) {
		if (size == f->size || !chosen(size, every))
			continue;
		note(t, f, in_memory(f, size, NULL), "length", size);
		t->lengths++;
	}
	if (turn)
		return;
	note(t, f, in_memory(f, f->size + EXTENSION, NULL), "length", f->size + EXTENSION);
	t->lengths++;
	if (f->size < 4096)
		return;
	memcpy(f->bytes + f->size, f->bytes + f->size - 4096, 4096);
	note(t, f, in_memory(f, f->size + 4096, NULL), "with its last page twice, length", f->size + 4096);
	memset(f->bytes + f->size, 0, 4096);
	t->lengths++;
}

static bool sanitized(void)
{
	return getenv("VARIANT") && *getenv("VARIANT");
}

TEST(every_flip_truncation_and_extension_is_noticed)
{
	bool sanitizer = sanitized();
	struct tally all = {0, 0, 0, 0};
	uint64_t bits = 0;
	int pipes[PROCESSES][2];

	load_golden();
	CHECK(file_count >= 17);
	for (unsigned i = 0; i < file_count; i++) {
		struct shard_error err = {.message = ""};

		bits += 8 * files[i].size;
		if (in_memory(&files[i], files[i].size, &err))
			test_fail(__FILE__, __LINE__, "%s, undamaged: %s", files[i].path, err.message);
	}
	fflush(stdout);
	for (unsigned p = 0; p < PROCESSES; p++) {
		CHECK_EQ(pipe(pipes[p]), 0);
		if (!fork()) {
			struct tally t = {0, 0, 0, 0};

			for (unsigned i = 0; i < file_count; i++) {
				flip_all(&files[i], p, sanitizer ? 400 : 1, &t);
				cut_all(&files[i], p, sanitizer ? 100 : 1, &t);
			}
			fflush(stdout);
			_exit(write(pipes[p][1], &t, sizeof(t)) != sizeof(t));
		}
		close(pipes[p][1]);
	}
	for (unsigned p = 0; p < PROCESSES; p++) {
		struct tally t;
		int status;

		CHECK_EQ(read(pipes[p][0], &t, sizeof(t)), sizeof(t)); /* nothing comes from a child that crashed */
		close(pipes[p][0]);
		CHECK(wait(&status) > 0 && !status);
		all.flips += t.flips;
		all.lengths += t.lengths;
		all.undetected += t.undetected;
		all.not_corrupt += t.not_corrupt;
	}
	CHECK(sanitizer ? all.flips > bits / 800 : all.flips == bits);
	if (sanitizer)
		printf("of %" PRIu64 " flips one in 400, of lengths one in 100:\n", bits);
	printf("%" PRIu64 " flips, %" PRIu64 " lengths, %" PRIu64 " undetected\n", all.flips, all.lengths,
	       all.undetected);
	CHECK_EQ(all.undetected, 0);
	CHECK_EQ(all.not_corrupt, 0);
}

/* ---- controls ---- */

static struct file *golden(const char *name)
{
	for (unsigned i = 0; i < file_count; i++)
		if (strstr(files[i].path, name))
			return &files[i];
	return NULL;
}

/* A verifier without one of its checks lets flips through: so this test would notice. */
TEST(without_a_check_flips_go_unnoticed)
{
	static const struct {
		const char *number, *file;
		uint64_t bits; /* that nothing else protects; 0: some, since other rules stand behind this one */
	} rows[] = {
		/* all between the pages that is no section */
		{"I48", "unknown_section.shard", 8 * (20480 - 2 * 4096 - 16 - 8 - 26)},
		/* five records of 13 bytes */
		{"I44", "raw_one_group.shard", 8 * 13 * 5},
		{"I44", "short_last_unit.shard", 8 * 64 * 6},
		{"I43", "unknown_section.shard", 8 * 26}, /* what a later version wrote */
		{"I46", "lz4_chunks.shard", 0},		  /* an LZ4 block has more than one spelling */
		{"I3", "empty.shard", 0},		  /* the plan's digest, for one */
		{"M3", "dataset/dataset.manifest", 0},	  /* the SHA-256 of shards */
	};

	if (sanitized())
		return;
	load_golden();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally t = {0, 0, 0, 0}, sound = {0, 0, 0, 0};
		struct file *f = golden(rows[i].file);

		STORY("%s without %s", rows[i].file, rows[i].number);
		CHECK(f != NULL);
		skipped = rows[i].number;
		for (unsigned p = 0; p < PROCESSES; p++)
			flip_all(f, p, 1, &t);
		skipped = "";
		flip_all(f, 0, 64, &sound);
		CHECK_EQ(sound.undetected, 0);
		if (rows[i].bits)
			CHECK_EQ(t.undetected, rows[i].bits);
		CHECK(t.undetected > 0);
	}
}

/*
 * A shard behind which its last page stands once more: I8, I37 and I48 each notice, so all three
 * must be got around.
 */
TEST(without_its_checks_a_length_goes_unnoticed)
{
	struct file *f;

	load_golden();
	f = golden("/empty.shard");
	memcpy(f->bytes + f->size, f->bytes + f->size - 4096, 4096);
	CHECK_EQ(in_memory(f, f->size + 4096, NULL), SHARD_E_CORRUPT);
	skipped = "I8";
	/* I37 sees that nothing reaches the footer */
	CHECK_EQ(in_memory(f, f->size + 4096, NULL), SHARD_E_CORRUPT);
	also_skipped = "I37";
	CHECK_EQ(in_memory(f, f->size + 4096, NULL), SHARD_E_CORRUPT); /* I48: the old footer lies in a gap */
	memset(f->bytes + f->size - 4096, 0, 4096);
	CHECK_EQ(in_memory(f, f->size + 4096, NULL), SHARD_OK);
	skipped = also_skipped = "";
	memcpy(f->bytes + f->size - 4096, f->bytes + f->size, 4096);
	memset(f->bytes + f->size, 0, 4096);
	CHECK_EQ(in_memory(f, f->size, NULL), SHARD_OK);
}

/* Files on a disk get the same verdict, in the same words. */
TEST(real_files_get_the_same_verdict)
{
	char dir[256], path[300];
	unsigned compared = 0;

	load_golden();
	snprintf(dir, sizeof(dir), "%s/t_flips.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
	CHECK_EQ(mkdir(dir, 0755), 0);
	for (unsigned i = 0; i < file_count; i++)
		for (unsigned k = 0; k < 60; k++) {
			struct file *f = &files[i];
			uint64_t random = (k + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 16;
			size_t bit = random % (8 * f->size),
			       size = k % 3 ? f->size : random % (f->size / 4096 + 3) * 4096;
			struct shard_error ours = {.message = ""}, real = {.message = ""};
			const char *a, *b;
			FILE *out;

			STORY("%.100s, bit %zu, %zu bytes", f->path, bit, size);
			f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			snprintf(path, sizeof(path), "%.240s/%s", dir, f->manifest ? "dataset.manifest" : "x");
			out = fopen(path, "wb");
			CHECK(out && fwrite(f->bytes, 1, size, out) == size && !fclose(out));
			CHECK_EQ(verdict(f->manifest ? dir : path, f->manifest, &real), SHARD_E_CORRUPT);
			CHECK_EQ(in_memory(f, size, &ours), SHARD_E_CORRUPT);
			f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			a = strstr(ours.message, ": "); /* behind the path */
			b = strstr(real.message + strlen(dir), ": ");
			CHECK(a && b);
			CHECK_STR(a, b);
			unlink(path);
			compared++;
		}
	rmdir(dir);
	CHECK(compared >= 60 * 17);
}

TEST_MAIN()
