/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reuse.c - a shard of another dataset, under a name of its own: a hard link, shared blocks, or a
 * copy
 *
 * A shard is never changed, so two datasets may have one file.  Only a copy writes bytes: these are
 * compared with the manifest on their way, and read back as a writer does it.
 */
#include "libshard/write/write.h"

#include <stdbool.h>
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

/* Is the digest of all bytes of the file that the manifest's? */
static int check_sha256(const struct reuse *u, const char *path, struct sha256 *sha)
{
	uint8_t digest[SHA256_BYTES];

	sha256_final(sha, digest);
	return dataset_check_sha256(path, digest, u->sha256, u->err);
}

/* The name is taken: by this shard, or by something else? */
static int compare_existing(const struct reuse *u)
{
	struct sha256 sha;
	struct verify_whole whole = {.sha = &sha};
	int rc = SHARD_OK;

	if (!file_is_same(u->from->path, u->path)) {
		sha256_init(&sha);
		rc = writer_compare_existing(u->path, u->from->pages->root, &whole, u->err);
		if (!rc)
			rc = check_sha256(u, u->path, &sha);
	}
	/* the process that put it there may not have done that */
	return rc ? rc : file_make_durable(u->path, u->err);
}

/* A hard link: the file that is open, also where only its pages can tell. */
static int make_link(const struct reuse *u)
{
	bool is_seen;
	int rc = file_link(u->from->path, u->fd, u->path, &is_seen, u->err);

	if (rc || is_seen)
		return rc;
	rc = writer_compare_existing(u->path, u->from->pages->root, NULL, u->err);
	if (!rc) /* if the name was there, its maker may not have done that */
		return file_make_durable(u->path, u->err);
	return rc == SHARD_E_EXISTS ? file_link_undo(u->from->path, u->path, u->err) : rc;
}

static int copy_bytes(const struct reuse *u, struct file_temp *t)
{
	uint8_t *memory = buffer_open(PIECE_BYTES);
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
	return rc ? rc : check_sha256(u, u->from->path, &sha);
}

/* Through a temporary file: shared blocks, or a copy. */
static int publish(const struct reuse *u, uint32_t *how)
{
	struct sha256 sha;
	struct verify_whole whole = {.sha = &sha};
	struct file_temp t;
	bool copied;
	int rc = file_temp_create(&t, u->path, u->err);

	if (!rc && *how <= SHARD_REUSE_CLONE) {
		*how = SHARD_REUSE_CLONE;
		rc = file_temp_clone(&t, u->fd, u->from->file_bytes, u->err);
		if (rc == SHARD_E_UNSUPPORTED) {
			*how = SHARD_REUSE_COPY;
			rc = SHARD_OK;
		}
	}
	copied = *how == SHARD_REUSE_COPY;
	if (!rc && copied)
		rc = copy_bytes(u, &t);
	if (!rc)
		rc = file_temp_sync(&t, u->err);
	sha256_init(&sha);
	if (!rc) /* of shared blocks the pages tell which shard it is */
		rc = writer_read_back(&t, u->from->pages->root, copied ? &whole : NULL, u->err);
	if (!rc && copied)
		rc = check_sha256(u, u->path, &sha);
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
