/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_publish.c - from a complete file to a published one: durable, read back and verified from
 * the disk, named
 */
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/file.h"
#include "libshard/io/publish.h"
#include "libshard/store/read/verify.h"
#include "libshard/store/write/writer.h"
#include "shard_pack.h"

/* The kernel said that it has the bytes; only reading them from the disk tells. */
static int read_back(struct shard_writer *w, struct shard_error *err)
{
	struct shard_reader *r = NULL;
	char *path = mem_join(w->temp.dir, w->temp.temp);
	struct shown s;
	int rc;

	if (!path)
		return error_set(err, SHARD_E_MEMORY, "no memory for a path");
	file_drop_cache(w->temp.fd);
	rc = reader_open_as(&r, path, w->path, NULL, err);
	if (!rc)
		rc = verify_all(r, path, &w->sha256, w->turns, err);
	if (!rc && memcmp(r->pages->root, w->pages.root, sizeof(w->pages.root)))
		rc = error_set(err, SHARD_E_IO, "%s: the disk returned another shard than was written",
			       show(&s, w->path));
	shard_reader_close(r);
	mem_free(path);
	return rc;
}

/*
 * The name is taken: by the identical shard, or by something else?  Not being able to tell is
 * another error than EXISTS.
 */
static int compare_existing(struct shard_writer *w, struct shard_error *err)
{
	struct shard_error local, *why = err ? err : &local;
	struct shard_reader *r = NULL;
	struct shown s;
	int rc = shard_reader_open(&r, w->path, NULL, why);
	bool same = !rc && !memcmp(r->pages->root, w->pages.root, sizeof(w->pages.root));
	const char *what = rc ? "no valid shard" : "another shard";

	if (same && w->read_back) { /* its pages are ours; its records may have suffered since */
		rc = verify_all(r, w->path, NULL, w->turns, why);
		same = rc != SHARD_E_CORRUPT;
		what = "damaged";
	}
	shard_reader_close(r);
	if (same || rc == SHARD_E_MEMORY || (rc == SHARD_E_IO && why->os_code))
		return rc;
	return error_set(err, SHARD_E_EXISTS, "%s: already exists and is %s; it was left as it is", show(&s, w->path),
			 what);
}

static int finish(struct shard_writer *w, struct shard_written *result, struct shard_error *err)
{
	int rc = writer_lay_out(w, err);

	writer_begin_wait(w);
	if (!rc)
		rc = file_temp_sync(&w->temp, err);
	writer_end_wait(w);
	if (!rc && w->read_back)
		rc = read_back(w, err);
	if (rc)
		return rc;
	memset(result, 0, sizeof(*result));
	rc = file_temp_publish(&w->temp, false, err);
	if (rc == SHARD_E_EXISTS) {
		rc = compare_existing(w, err);
		result->already = !rc;
	}
	result->file_bytes = w->pages.file_bytes;
	result->record_count = w->pages.record_count;
	result->miss_count = spool_bytes(&w->miss) / sizeof(struct disk_miss);
	memcpy(result->root, w->pages.root, sizeof(result->root));
	sha256_final(&w->sha256, result->sha256);
	return rc;
}

int shard_writer_finish(struct shard_writer *w, struct shard_written *result, struct shard_error *err)
{
	struct shard_written mine;
	int rc;

	w->in_turn = true;
	rc = w->failed || w->finished ? writer_refuse(w, err) : finish(w, &mine, err);
	w->in_turn = false;
	if (rc)
		w->failed = true;
	else if (result)
		*result = mine;
	w->finished = true;
	return rc;
}
