/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.h - the members of a tar archive, and their places
 *
 * Reads v7, ustar, GNU (long names, sizes in base 256) and pax (path, size).  Strict: a wrong
 * checksum, a size that leads out of the archive, a name that leads out of a folder, an end that is
 * missing and anything behind it are errors, with their offsets.  No I/O: the caller gives a
 * function that reads.
 */
#ifndef SHARD_SHARDPACK_PARSE_TAR_H
#define SHARD_SHARDPACK_PARSE_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK_BYTES	   512
#define TAR_NAME_BYTES_MAX 4095
#define TAR_WHY_BYTES	   320

enum tar_kind { TAR_FILE, TAR_FOLDER, TAR_LINK, TAR_OTHER };

struct tar_member {
	enum tar_kind kind;
	uint64_t header_offset; /* of the member's own header */
	uint64_t offset, bytes; /* of its data: within the archive */
	size_t name_bytes;
	char name[TAR_NAME_BYTES_MAX + 1]; /* no component is empty, "." or ".." */
};

struct tar {		/* set the first four, zero the rest */
	uint64_t bytes; /* of the archive */
	/* exactly `bytes`, all within the archive */
	bool (*read)(void *context, uint64_t offset, void *out, size_t bytes);
	void *context;
	char *why; /* TAR_WHY_BYTES: the fault; empty if reading failed */

	uint64_t at;
	bool has_name, has_bytes; /* from a header that describes the next one */
	uint64_t next_bytes;
	char next_name[TAR_NAME_BYTES_MAX + 1];
};

enum tar_status { TAR_MEMBER, TAR_END, TAR_BAD };

/* Does a member begin like this?  Its checksum is right. */
bool tar_is_header(const uint8_t block[TAR_BLOCK_BYTES]);

/* The next member.  After BAD there is none. */
enum tar_status tar_next(struct tar *t, struct tar_member *out);

#endif
