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
#include "tools/shardpack/plan/bad_input.h"

struct image_list;
struct labels;
struct request;

enum archive_kind {
	MEMBER_FILE,
	MEMBER_LINK,  /* it may stand for an image, a field or a folder of images */
	MEMBER_OTHER, /* a device, called like an image */
};

/* A member that may be of use.  Those that are no files make bad inputs of what they belong to. */
struct archive_member {
	uint64_t name_at; /* in names */
	/*
	 * of the name, up to the first dot of its last component; 0: there is none, or WebDataset
	 * passes over it
	 */
	uint32_t key_bytes;
	uint32_t number; /* in the order of the archive */
	enum archive_kind kind;
	uint64_t offset, bytes; /* of one that is no file: of its header, and 0 */
};

struct image_archive {
	const struct request *request;
	const char *path;  /* below the root */
	char *where;	   /* for messages */
	uint32_t file;	   /* of the plan: where the members lie */
	struct text names; /* its shelf has the members, too */
	struct archive_member *member;
	uint64_t count, capacity;
	/*
	 * Why nothing can be said of what follows the last member; no reason if that is the end.
	 * Then the rest is one bad input, and so is a sample that the cut may go through.
	 */
	struct bad_input cut;
};

/* What is wrong with a member that is no file. */
int image_archive_blame(const struct image_archive *a, const struct archive_member *m, struct bad_input *bad);

/* List the archive at `path` below the root.  Returns the exit code; close it all the same. */
int image_archive_open(struct image_archive *a, const struct request *r, const char *path);
void image_archive_close(struct image_archive *a);

int image_archive_out_of_memory(const struct image_archive *a);
const char *image_archive_name(const struct image_archive *a, const struct archive_member *m);

/* The label of an image by its name or folder, as labels_find() has it. */
int image_archive_label(const struct image_archive *a, const struct archive_member *image, struct labels *labels,
			char *out, struct bad_input *bad);

/*
 * Add an image to a list.  `fields`: as of image_list_add().  With `bad` it is a bad one, and
 * `label` may be NULL; a member without bytes has offset 0.
 */
int image_archive_add(const struct image_archive *a, const struct archive_member *image, const char *label,
		      const struct text *fields, const struct bad_input *bad, struct image_list *images);

/* Add all images, each as a sample. */
int image_archive_add_all(const struct image_archive *a, struct labels *labels, struct image_list *images);

/* Add the rest of an archive that is cut, as one bad input that has its path. */
int image_archive_add_cut(const struct image_archive *a, struct image_list *images);

#endif
