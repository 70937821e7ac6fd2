/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.h - the members of a ZIP archive, and their places
 *
 * By its central directory, ZIP64 too; each member's own header must say the same.  Strict, as
 * tar.h, and as there the caller gives a function that reads.
 */
#ifndef SHARD_SHARDPACK_PARSE_ZIP_H
#define SHARD_SHARDPACK_PARSE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZIP_NAME_BYTES_MAX 4095
#define ZIP_WHY_BYTES	   320
#define ZIP_STORED	   0
#define ZIP_DEFLATED	   8

struct zip_member {
	uint16_t method;		      /* ZIP_STORED or ZIP_DEFLATED */
	uint32_t crc;			      /* of the bytes when unpacked */
	uint64_t offset, packed_bytes, bytes; /* of the data in the archive; unpacked */
	size_t name_bytes;
	bool is_link; /* the data is the path of another file or folder */
	char name[ZIP_NAME_BYTES_MAX + 1];
};

struct zip {		/* set the first four, zero the rest */
	uint64_t bytes; /* of the archive */
	/* exactly `bytes`, all within the archive */
	bool (*read)(void *context, uint64_t offset, void *out, size_t bytes);
	void *context;
	char *why; /* ZIP_WHY_BYTES: the fault; empty if reading failed */

	bool begun;
	uint64_t at, end; /* of the central directory: the next entry, and its end */
	uint64_t left;	  /* entries */
	uint64_t begin;	  /* of the central directory */
};

enum zip_status { ZIP_MEMBER, ZIP_END, ZIP_BAD };

/* The next member, in the order of the directory.  After BAD there is none. */
enum zip_status zip_next(struct zip *z, struct zip_member *out);

#endif
