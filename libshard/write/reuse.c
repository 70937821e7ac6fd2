/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reuse.c - a shard of another dataset, under a name of its own: a hard link, shared blocks, or a
 * copy
 *
 * A shard is never changed, so two datasets may have one file.  Only a copy writes bytes: these are
 * compared with the manifest on their way, and read back as a writer does it.
 */
#include "libshard/write/write.h"

#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "libshard/verify/verify.h"

#define PIECE_BYTES (2u << 20)

struct reuse {
	const struct shard_reader *from;
	const uint8_t *sha256;
	const char *path;
	int fd; /* of `from` */
	struct shard_error *err;
};

/* All rules, and the SHA-256, of the file that has `path` now. */
static int read_all(struct reuse *u, struct shard_reader *r, const char *path)
{
	struct sha256 sha;
	uint8_t digest[SHA256_BYTES];
	struct verify_whole whole = {.path = path, .sha = &sha};
	int rc;

	sha256_init(&sha);
	rc = verify_whole(r, &whole, u->err);
	if (rc)
		return rc;
	sha256_final(&sha, digest);
	return dataset_check_sha256(u->path, digest, u->sha256, u->err);
}

/* It says nothing about what is in the file. */
static bool is_of_system(int rc, const struct shard_error *why)
{
	return rc == SHARD_E_MEMORY || (rc == SHARD_E_IO && why->os_code);
}

/* The name is taken: by this shard, or by something else? */
static int compare_existing(struct reuse *u)
{
	struct shard_error local, *why = u->err ? u->err : &local;
	struct shard_reader *r = NULL;
	const char *what = "is not a valid shard";
	struct shown s;
	int rc;

	if (file_is_same(u->from->path, u->path))
		return file_make_durable(u->path, u->err);
	rc = shard_reader_open(&r, u->path, NULL, why);
	if (!rc && memcmp(r->pages->root, u->from->pages->root, sizeof(r->pages->root))) {
		what = "is another shard";
		rc = SHARD_E_MISMATCH;
	} else if (!rc) {
		what = "is damaged";
		rc = read_all(u, r, u->path);
	}
	shard_reader_close(r);
	if (!rc) /* the process that put it there may not have done that */
		return file_make_durable(u->path, u->err);
	if (is_of_system(rc, why))
		return rc;
	return error_set(u->err, SHARD_E_EXISTS, "%s: already exists and %s; it was left as it is", show(&s, u->path),
			 what);
}

/* A hard link: the file that is open, also where only its pages can tell. */
static int make_link(struct reuse *u)
{
	struct shard_error local, *why = u->err ? u->err : &local;
	struct shard_reader *r = NULL;
	bool is_seen, is_same;
	int rc = file_link(u->from->path, u->fd, u->path, &is_seen, u->err);

	if (rc || is_seen)
		return rc;
	rc = shard_reader_open(&r, u->path, NULL, why);
	is_same = !rc && !memcmp(r->pages->root, u->from->pages->root, sizeof(r->pages->root));
	shard_reader_close(r);
	if (is_same) /* if the name was there, its maker may not have done that */
		return file_make_durable(u->path, u->err);
	return is_of_system(rc, why) ? rc : file_link_undo(u->from->path, u->path, u->err);
}

static int copy_bytes(struct reuse *u, struct file_temp *t)
{
	uint8_t digest[SHA256_BYTES], *memory = buffer_open(PIECE_BYTES);
	struct sha256 sha;
	int rc = memory ? file_temp_reserve(t, u->from->file_bytes, u->err)
			: error_set(u->err, SHARD_E_MEMORY, "no memory for copying shards");

	sha256_init(&sha);
	for (uint64_t at = 0, n; !rc && at < u->from->file_bytes; at += n) {
		n = min_u64(PIECE_BYTES, u->from->file_bytes - at);
		rc = file_read_at(u->fd, memory, (size_t)n, at, u->from->path, u->err);
		if (rc)
			break;
		sha256_update(&sha, memory, (size_t)n);
		rc = file_temp_write(t, memory, (size_t)n, u->err);
	}
	mem_free(memory);
	if (rc)
		return rc;
	sha256_final(&sha, digest);
	return dataset_check_sha256(u->from->path, digest, u->sha256, u->err);
}

/* What has the temporary name is the shard, as far as its pages tell; a copy is read as a whole. */
static int read_back(struct reuse *u, struct file_temp *t, bool copied)
{
	char *path = mem_join(t->dir, t->temp);
	struct shard_reader *r = NULL;
	struct shown s;
	int rc = path ? SHARD_OK : error_set(u->err, SHARD_E_MEMORY, "no memory for a path");

	if (!rc && copied)
		file_drop_cache(t->fd);
	if (!rc)
		rc = reader_open_as(&r, path, u->path, NULL, u->err);
	if (!rc && memcmp(r->pages->root, u->from->pages->root, sizeof(r->pages->root)))
		rc = error_set(u->err, SHARD_E_IO, "%s: the disk returned another shard than was written",
			       show(&s, u->path));
	if (!rc && copied)
		rc = read_all(u, r, path);
	shard_reader_close(r);
	mem_free(path);
	return rc;
}

/* Through a temporary file: shared blocks, or a copy. */
static int publish(struct reuse *u, uint32_t *how)
{
	struct file_temp t;
	int rc = file_temp_create(&t, u->path, u->err), cloned = SHARD_E_UNSUPPORTED;

	if (!rc && *how <= SHARD_REUSE_CLONE) {
		*how = SHARD_REUSE_CLONE;
		cloned = file_temp_clone(&t, u->fd, u->from->file_bytes, u->err);
		rc = cloned == SHARD_E_UNSUPPORTED ? SHARD_OK : cloned;
	}
	if (!rc && cloned == SHARD_E_UNSUPPORTED) {
		*how = SHARD_REUSE_COPY;
		rc = copy_bytes(u, &t);
	}
	if (!rc)
		rc = file_temp_sync(&t, u->err);
	if (!rc)
		rc = read_back(u, &t, *how == SHARD_REUSE_COPY);
	if (!rc)
		rc = file_temp_publish(&t, false, u->err);
	file_temp_discard(&t);
	return rc;
}

int reuse_shard(const struct shard_reader *from, const uint8_t sha256[32], const char *path, uint32_t *how,
		struct shard_error *err)
{
	struct reuse u = {.from = from, .sha256 = sha256, .path = path, .fd = -1, .err = err};
	uint64_t bytes;
	int rc = file_open(from->path, &u.fd, &bytes, NULL, err), linked = SHARD_E_UNSUPPORTED;

	if (rc)
		return rc;
	if (*how == SHARD_REUSE_LINK)
		linked = make_link(&u);
	/* Nothing is written if the name is taken. */
	rc = linked != SHARD_E_UNSUPPORTED ? linked : file_exists(path) ? SHARD_E_EXISTS : publish(&u, how);
	if (rc == SHARD_E_EXISTS) {
		rc = compare_existing(&u);
		*how = SHARD_REUSE_THERE;
	}
	file_close(u.fd);
	return rc;
}

int reuse_sync(const char *path, struct shard_error *err)
{
	char *dir = mem_text(path);
	int rc = dir ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for a path");

	if (dir)
		*strrchr(dir, '/') = '\0'; /* the seal's folder is before it */
	if (!rc)
		rc = file_make_durable(dir, err);
	mem_free(dir);
	return rc;
}
