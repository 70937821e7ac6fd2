/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_inspect.h - look inside a dataset and its shards: names, statistics, keys, sections, hashes
 *
 * For tools that show, verify or compare datasets.  A trainer needs shard.h only, whose first comment
 * holds for this header, too.
 */
#ifndef SHARD_INSPECT_H
#define SHARD_INSPECT_H

#include "shard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- names -------------------------------------------------------------------------------- */

/* What a number stands for. */
enum shard_name_of {
	SHARD_NAME_DTYPE = 1,	/* enum shard_dtype: "u8" */
	SHARD_NAME_KIND,	/* enum shard_kind: "ragged" */
	SHARD_NAME_LAYOUT,	/* enum shard_layout: "hwc" */
	SHARD_NAME_SEMANTIC,	/* enum shard_semantic: "image" */
	SHARD_NAME_CODEC,	/* enum shard_codec: "lz4" */
	SHARD_NAME_PIXELS,	/* enum shard_pixels, as recipes and tokens write it: "pillow-13" */
	SHARD_NAME_MISS_REASON, /* enum shard_miss_reason: "truncated" */
	SHARD_NAME_SECTION,	/* the type of a section: "DATA" */
};

/* The name that manifests and shards use for a value.  NULL if there is none: value or kind is not defined. */
SHARD_API const char *shard_name(enum shard_name_of what, uint32_t value);

/* ---- statistics of a dataset --------------------------------------------------------------- */

/* Exact sums over one channel of a u8 field.  The mean is sum / count. */
struct shard_moments {
	uint64_t count;
	uint64_t sum;
	uint64_t sum_squares_low, sum_squares_high; /* 128 bits, so that no dataset overflows them */
};

/* Statistics from the manifest.  END if it has none. */
SHARD_API int shard_dataset_moments(const struct shard_dataset *ds, uint32_t field, uint32_t channel,
				    struct shard_moments *out, struct shard_error *err);
SHARD_API int shard_dataset_class_records(const struct shard_dataset *ds, uint32_t field, uint64_t class_idx,
					  uint64_t *out, struct shard_error *err);

/* ---- inputs that are left out ------------------------------------------------------------ */

/* Why an input did not become a record. */
enum shard_miss_reason {
	SHARD_MISS_EMPTY = 1,
	SHARD_MISS_NOT_AN_IMAGE = 2,
	SHARD_MISS_DECODE = 3,	/* the decoder gave up */
	SHARD_MISS_DAMAGED = 4, /* the decoder warned of damaged pixels */
	SHARD_MISS_TRUNCATED = 5,
	SHARD_MISS_LIMIT = 6, /* too many pixels or scans, or too much memory */
	SHARD_MISS_UNSUPPORTED = 7,
	SHARD_MISS_KEY = 8,	    /* the key is not UTF-8, or too long */
	SHARD_MISS_MISSING = 9,	    /* there is no such file */
	SHARD_MISS_INCOMPLETE = 10, /* a part of the input is not there: image, label or field */
	SHARD_MISS_VALUE = 11,	    /* a label or the value of a field is not possible */
	SHARD_MISS_MEMBER = 12,	    /* a member of an archive that is cut, or a link in it */
	SHARD_MISS_VANISHED = 13,   /* its file was there when the plan was made, and is gone */
};
enum shard_miss_how { SHARD_SKIPPED = 1, SHARD_QUARANTINED = 2 };

struct shard_miss {
	uint64_t ordinal; /* of the input, in the plan's pack order */
	uint32_t reason;  /* enum shard_miss_reason */
	uint32_t how;	  /* enum shard_miss_how */
};

/* ---- reader: one shard, mapped ----------------------------------------------------------- */

struct shard_reader;
struct shard_reader_options {
	size_t size;
	uint32_t check; /* enum shard_check */
	uint32_t guard; /* enum shard_guard */
	/*
	 * 1: read and check only the header page, the footer page and the statistics, in half the
	 * time, and map nothing.  Schema, info, moments and class records are then there, and all
	 * other calls fail with ARGUMENT.
	 */
	uint32_t pages_only;
	uint32_t reserved; /* 0 */
};

struct shard_info {
	uint64_t file_bytes, record_count, planned_records, plan_shard;
	uint64_t unit_count, miss_count, key_count;
	uint32_t version_major, version_minor, section_count, section_align_log2;
	uint8_t plan_digest[32];
	uint8_t root[16];
	uint8_t header_hash[16];
};

/*
 * Map the shard at `path` and check its structure (I1 to I42 of format/SHARD.md).  After that no
 * call reads outside of the file, whatever it holds.  Reads two pages, however many records there
 * are.  The file must not shrink while it is open.  If it does, calls that read it fail with IO.
 * SIGBUS comes instead without the guard, and if you read a view, a key or provenance yourself and
 * not with shard_reader_guarded().
 */
SHARD_API int shard_reader_open(struct shard_reader **out, const char *path, const struct shard_reader_options *opt,
				struct shard_error *err);
SHARD_API void shard_reader_close(struct shard_reader *r);
SHARD_API const struct shard_schema *shard_reader_schema(const struct shard_reader *r);
SHARD_API void shard_reader_info(const struct shard_reader *r, struct shard_info *out);

/*
 * Copy `count` neighbouring records of a group, decoded, to `dst`: count x stride bytes.  With NULL
 * they are only checked, as shard_reader_view() does for one; not of compressed groups.
 */
SHARD_API int shard_reader_read(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, void *dst,
				struct shard_error *err);

/* A record in place, without a copy.  UNSUPPORTED for compressed groups. */
SHARD_API int shard_reader_view(struct shard_reader *r, uint32_t group, uint64_t idx, struct shard_view *out,
				struct shard_error *err);

/* The key of a record: UTF-8, not NUL-terminated.  0 bytes if the shard has no keys. */
SHARD_API int shard_reader_key(struct shard_reader *r, uint64_t idx, struct shard_view *out, struct shard_error *err);
SHARD_API int shard_reader_provenance(struct shard_reader *r, struct shard_view *out, struct shard_error *err);
/*
 * Whose pixels a resize gives, by the line "pixels NAME" of the recipe in the provenance: an enum
 * shard_pixels.  Rows first if there is no such line.  UNSUPPORTED if this release does not know
 * the name.  It is the default of a transform.
 */
SHARD_API int shard_reader_pixels(struct shard_reader *r, uint32_t *pixels, struct shard_error *err);
SHARD_API int shard_reader_miss(struct shard_reader *r, uint64_t idx, struct shard_miss *out, struct shard_error *err);

/*
 * Run work(context), which reads views, keys or provenance of this shard.  Where SIGBUS would end
 * the process, work is left at once, and this fails with IO.  work may not lock, allocate, or call
 * this library.  If a handler of SIGBUS is installed later, or a thread blocks that signal, this is
 * noticed after 16 calls.  The same for views of all shards of a dataset: shard_dataset_guarded()
 * below.
 */
SHARD_API int shard_reader_guarded(const struct shard_reader *r, void (*work)(void *context), void *context,
				   struct shard_error *err);

/* Statistics of this shard.  END if it has none of that field and channel, or class. */
SHARD_API int shard_reader_moments(struct shard_reader *r, uint32_t field, uint32_t channel, struct shard_moments *out,
				   struct shard_error *err);
SHARD_API int shard_reader_class_records(struct shard_reader *r, uint32_t field, uint64_t class_idx, uint64_t *out,
					 struct shard_error *err);

/* A section, for tools that show the structure of a file.  shard_name() has a name for its type. */
struct shard_section {
	uint64_t offset, bytes, item_count;
	uint32_t type, group;
	uint8_t hash[16];
};
SHARD_API int shard_reader_section(const struct shard_reader *r, uint32_t idx, struct shard_section *out,
				   struct shard_error *err);

/* Check every rule of format/SHARD.md, as shard_dataset_verify() does for a dataset. */
SHARD_API int shard_reader_verify(struct shard_reader *r, const struct shard_verify_options *opt,
				  struct shard_verify_report *report, struct shard_error *err);

/* ---- shards of a dataset ----------------------------------------------------------------- */

struct shard_entry {
	const char *file; /* relative to the folder; not NUL-terminated */
	uint32_t file_name_bytes, reserved;
	uint64_t file_bytes, record_count, first_record;
	uint8_t root[16];
	uint8_t sha256[32];
};

/*
 * What the manifest says of shard `shard_idx`, and the reader of that shard.  The reader is opened
 * if it is not open yet.  It belongs to the dataset.
 */
SHARD_API int shard_dataset_entry(const struct shard_dataset *ds, uint64_t shard_idx, struct shard_entry *out,
				  struct shard_error *err);
SHARD_API int shard_dataset_reader(struct shard_dataset *ds, uint64_t shard_idx, struct shard_reader **out,
				   struct shard_error *err);
/* As shard_reader_guarded(), for views, keys and provenance of any shard of the dataset. */
SHARD_API int shard_dataset_guarded(const struct shard_dataset *ds, void (*work)(void *context), void *context,
				    struct shard_error *err);
/* The manifest's text, as it lies in the file. */
SHARD_API void shard_dataset_manifest(const struct shard_dataset *ds, struct shard_view *out);

/*
 * Open a shard for yourself, and compare it with the manifest.  Close the reader before the dataset.
 * A reader of shard_dataset_reader(), and each view, keeps its shard mapped as long as the dataset is
 * open, and a process may have no more than vm.max_map_count maps.  This one keeps it until close.
 */
SHARD_API int shard_dataset_open_reader(const struct shard_dataset *ds, uint64_t shard_idx, struct shard_reader **out,
					struct shard_error *err);

#ifdef __cplusplus
}
#endif
#endif
