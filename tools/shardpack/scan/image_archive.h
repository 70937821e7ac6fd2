/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_archive.h - the members of a tar archive or a ZIP, and the images among them
 *
 * Here each image is a sample: its class is its folder in the archive, or what --label-regex and
 * --labels say of its name. webdataset.h makes samples of several members.
 */
#ifndef SHARD_SCAN_IMAGE_ARCHIVE_H
#define SHARD_SCAN_IMAGE_ARCHIVE_H

#include <stdint.h>

#include "tools/common/text.h"

struct image_list;
struct labels;
struct request;

/* A regular file of the archive. */
struct archive_member {
	uint64_t name_at; /* in names */
	/*
	 * of the name, up to the first dot of its last component; 0: there is none, or WebDataset
	 * passes over it
	 */
	uint32_t key_bytes;
	uint32_t number; /* in the order of the archive */
	uint64_t offset, bytes;
};

struct image_archive {
	const struct request *request;
	const char *path; /* below the root */
	char *where;	  /* for messages */
	uint32_t file;	  /* of the plan: where the members lie */
	struct text names;
	struct archive_member *member;
	uint64_t count, capacity;
};

/* List the archive at `path` below the root.  Returns the exit code; close it all the same. */
int image_archive_open(struct image_archive *a, const struct request *r, const char *path);
void image_archive_close(struct image_archive *a);

int image_archive_out_of_memory(const struct image_archive *a);
const char *image_archive_name(const struct image_archive *a, const struct archive_member *m);

/* The label of an image by its name or folder, into `out` of CLASS_NAME_BYTES_MAX + 1. */
int image_archive_label(const struct image_archive *a, const struct archive_member *image, struct labels *labels,
			char *out);

/* Add an image to a list.  `fields`: as of image_list_add(). */
int image_archive_add(const struct image_archive *a, const struct archive_member *image, const char *label,
		      const struct text *fields, struct image_list *images);

/* Add all images, each as a sample. */
int image_archive_add_all(const struct image_archive *a, struct labels *labels, struct image_list *images);

#endif
