/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_publish.c - from a complete file to a published one: durable, read back and verified from
 * the disk, named
 */
#include <errno.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/file.h"
#include "libshard/io/publish.h"
#include "libshard/io/second_name.h"
#include "libshard/store/read/verify.h"
#include "libshard/store/write/writer.h"
#include "shard_pack.h"

/* Writers that are finished together, and how each is doing. */
struct finishing {
	struct shard_writer *w;
	struct shard_error *err;
	int rc;
	struct shard_reader *reader; /* of what was written */
	char *path;
};

static void open_written(struct finishing *f)
{
	struct shard_writer *w = f->w;

	f->path = mem_join(w->temp.dir, w->temp.temp);
	if (!f->path) {
		f->rc = error_set(f->err, SHARD_E_MEMORY, "no memory for a path");
		return;
	}
	file_drop_cache(w->temp.fd);
	f->rc = reader_open_as(&f->reader, f->path, w->path, NULL, f->err);
}

/* The whole file at `path`, read into memory that the writer needs no more. */
static struct verify_whole verify_of(const struct shard_writer *w, struct shard_reader *r, const char *path,
				     struct sha256 *sha, struct shard_error *err)
{
	return (struct verify_whole){.r = r,
				     .path = path,
				     .sha = sha,
				     .turns = w->turns,
				     .memory = {w->memory[0], w->memory[1]},
				     .memory_bytes = WRITER_OUT_BYTES,
				     .err = err};
}

/* The kernel said that it has the bytes; only reading them from the disk tells. */
static void read_back(struct finishing *f, uint32_t count)
{
	struct verify_whole whole[VERIFY_WHOLE_MAX];
	struct finishing *of[VERIFY_WHOLE_MAX];
	uint32_t n = 0;
	struct shown s;

	for (uint32_t i = 0; i < count; i++) {
		if (f[i].rc || !f[i].w->read_back)
			continue;
		open_written(&f[i]);
		if (f[i].rc)
			continue;
		of[n] = &f[i];
		whole[n++] = verify_of(f[i].w, f[i].reader, f[i].path, &f[i].w->sha256, f[i].err);
	}
	verify_all(whole, n);
	for (uint32_t i = 0; i < n; i++) {
		struct shard_writer *w = of[i]->w;

		of[i]->rc = whole[i].rc;
		if (!whole[i].rc && memcmp(of[i]->reader->pages->root, w->pages.root, sizeof(w->pages.root)))
			of[i]->rc =
				error_set(of[i]->err, SHARD_E_IO,
					  "%s: the disk returned another shard than was written", show(&s, w->path));
	}
	for (uint32_t i = 0; i < count; i++) {
		shard_reader_close(f[i].reader);
		mem_free(f[i].path);
	}
}

/*
 * The name is taken: by the identical shard, or by something else?  Not being able to tell is
 * another error than EXISTS.  `sha256`, if not NULL, is that of the file that is there.
 */
static int compare_existing(struct shard_writer *w, struct sha256 *sha256, struct shard_error *err)
{
	struct shard_error local, *why = err ? err : &local;
	struct shard_reader *r = NULL;
	struct shown s;
	int rc = shard_reader_open(&r, w->path, NULL, why);
	bool same = !rc && !memcmp(r->pages->root, w->pages.root, sizeof(w->pages.root));
	const char *what = rc ? "no valid shard" : "another shard";

	if (same && w->read_back) { /* its pages are ours; its records may have suffered since */
		struct verify_whole whole = verify_of(w, r, w->path, sha256, why);

		verify_all(&whole, 1);
		rc = whole.rc;
		same = rc != SHARD_E_CORRUPT;
		what = "damaged";
	}
	shard_reader_close(r);
	if (same || rc == SHARD_E_MEMORY || (rc == SHARD_E_IO && why->os_code))
		return rc;
	return error_set(err, SHARD_E_EXISTS, "%s: already exists and is %s; it was left as it is", show(&s, w->path),
			 what);
}

/* All bytes, durable. */
static int complete(struct shard_writer *w, struct shard_error *err)
{
	int rc = writer_lay_out(w, err);

	writer_begin_wait(w);
	if (!rc)
		rc = file_temp_sync(&w->temp, err);
	writer_end_wait(w);
	return rc;
}

/* With `overtaken` its file is gone before it was read back, which is when it is hashed. */
static int publish(struct shard_writer *w, bool overtaken, struct shard_written *result, struct shard_error *err)
{
	int rc;

	memset(result, 0, sizeof(*result));
	if (overtaken)
		sha256_init(&w->sha256);
	rc = overtaken ? SHARD_E_EXISTS : file_temp_publish(&w->temp, false, err);
	if (rc == SHARD_E_EXISTS) {
		rc = compare_existing(w, overtaken ? &w->sha256 : NULL, err);
		result->already = !rc;
	}
	result->file_bytes = w->pages.file_bytes;
	result->record_count = w->pages.record_count;
	result->miss_count = spool_bytes(&w->miss) / sizeof(struct disk_miss);
	memcpy(result->root, w->pages.root, sizeof(result->root));
	sha256_final(&w->sha256, result->sha256);
	return rc;
}

/*
 * Its temporary file is gone, and its name is taken: on network file systems others remove what a
 * shard needs no more.  Then the shard that is there is compared with ours.
 */
static bool is_overtaken(const struct finishing *f)
{
	return f->w->read_back && f->rc == SHARD_E_IO && f->err && f->err->os_code == ENOENT && file_exists(f->w->path);
}

/* One writer, or two.  `result` may be NULL; it is set for those that were published. */
static void finish(struct finishing *f, uint32_t count, struct shard_written *result)
{
	for (uint32_t i = 0; i < count; i++) {
		struct shard_writer *w = f[i].w;

		w->in_turn = true;
		f[i].rc = w->failed || w->finished ? writer_refuse(w, f[i].err) : complete(w, f[i].err);
	}
	read_back(f, count);
	for (uint32_t i = 0; i < count; i++) {
		struct shard_written mine;
		bool overtaken = is_overtaken(&f[i]);

		if (!f[i].rc || overtaken)
			f[i].rc = publish(f[i].w, overtaken, &mine, f[i].err);
		if (f[i].rc)
			f[i].w->failed = true;
		else if (result)
			result[i] = mine;
		f[i].w->finished = true;
		f[i].w->in_turn = false;
	}
}

int shard_writer_finish(struct shard_writer *w, struct shard_written *result, struct shard_error *err)
{
	struct finishing f = {.w = w, .err = err};

	finish(&f, 1, result);
	return f.rc;
}

int shard_writer_finish_two(struct shard_writer *const w[2], struct shard_written result[2], struct shard_error err[2])
{
	struct finishing f[2] = {{.w = w[0], .err = &err[0]}, {.w = w[1], .err = &err[1]}};

	finish(f, 2, result);
	for (uint32_t i = 0; i < 2; i++)
		if (!f[i].rc) /* what went wrong on the way may be settled, as if the same shard was there */
			err[i] = (struct shard_error){.status = SHARD_OK};
	return f[0].rc ? f[0].rc : f[1].rc;
}
