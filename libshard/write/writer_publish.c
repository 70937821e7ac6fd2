/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_publish.c - from a complete file to a published one: durable, read back and verified from
 * the disk, named
 */
#include <errno.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/io.h"
#include "libshard/verify/verify.h"
#include "libshard/write/write.h"
#include "shard_pack.h"

/* The kernel said that it has the bytes; only reading them from the disk tells. */
static int read_back(struct shard_writer *w, struct shard_error *err)
{
	char *path = mem_join(w->temp.dir, w->temp.temp);
	struct verify_whole whole = {.path = path, .turns = w->turns, .sha = &w->sha256};
	struct shard_reader *r = NULL;
	struct shown s;
	int rc = path ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for a path");

	if (!rc) {
		file_drop_cache(w->temp.fd);
		rc = reader_open_as(&r, path, w->path, NULL, err);
	}
	if (!rc)
		rc = verify_whole(r, &whole, err);
	if (!rc && memcmp(r->pages->root, w->pages.root, sizeof(w->pages.root)))
		rc = error_set(err, SHARD_E_IO, "%s: the disk returned another shard than was written",
			       show(&s, w->path));
	shard_reader_close(r);
	mem_free(path);
	return rc;
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
		struct verify_whole whole = {.path = w->path, .turns = w->turns, .sha = sha256};

		rc = verify_whole(r, &whole, why);
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
static bool is_overtaken(const struct shard_writer *w, const struct shard_error *why)
{
	return w->read_back && why->status == SHARD_E_IO && why->os_code == ENOENT && file_exists(w->path);
}

int shard_writer_finish(struct shard_writer *w, struct shard_written *result, struct shard_error *err)
{
	struct shard_error local, *why = err ? err : &local;
	struct shard_written mine;
	bool overtaken;
	int rc;

	w->in_turn = true;
	rc = w->failed || w->finished ? writer_refuse(w, why) : complete(w, why);
	if (!rc && w->read_back)
		rc = read_back(w, why);
	overtaken = rc && is_overtaken(w, why);
	if (!rc || overtaken)
		rc = publish(w, overtaken, &mine, why);
	if (!rc && result)
		*result = mine;
	w->failed = w->failed || rc;
	w->finished = true;
	w->in_turn = false;
	return rc;
}
