/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_archive_private.h - what scan_tar.c and scan_samples.c share: an archive, and what was listed of it
 */
#ifndef SHARDPACK_SCAN_TAR_PRIVATE_H
#define SHARDPACK_SCAN_TAR_PRIVATE_H

#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/labels.h"
#include "tools/shardpack/format/tar.h"

/* A regular file of the archive. */
struct entry {
	uint64_t name_at; /* in names */
	uint32_t key_bytes; /* of the name, up to the dot; 0: no sample */
	uint32_t number;
	uint64_t offset, bytes;
};

struct archive {
	struct items *it;
	struct labels *labels;
	const char *path, *where; /* below the root; for messages */
	uint32_t file;
	struct text names;
	struct entry *entry;
	uint64_t count, capacity;
	bool has_cls;
};

/* scan_tar.c */
int archive_out_of_memory(const struct archive *a);
const char *archive_name_of(const struct archive *a, const struct entry *e);
bool archive_is_suffix(const struct archive *a, const struct entry *e, const char *suffix);

/* The label of an image by its name, or the folder that holds it, into `out` of CLASS_NAME_BYTES_MAX + 1. */
int archive_find_label(const struct archive *a, const struct entry *image, char *out);

/* `fields`: as of items_add(). */
int archive_add(const struct archive *a, const struct entry *image, const char *label, const struct text *fields);

/*
 * scan_samples.c: add members of one key as one sample.  Its label is a member, .cls or as --label-key says; or, if
 * `by_name`, what archive_find_label() says, and a key without an image is none.
 */
int archive_add_samples(struct archive *a, bool by_name);


#endif /* SHARDPACK_SCAN_TAR_PRIVATE_H */
