/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.h - write, read and verify packed datasets, and feed them to a training loop
 *
 *   record    one sample: fixed size, the same layout in every shard of the dataset
 *   field     a named tensor in the record: `image` u8 [224,224,3], `label` i64 []
 *   group     fields stored together at one fixed stride; usually payload and meta
 *   unit      one record, or enough of them to make 4 KiB: what one hash covers
 *   shard     one immutable file of records (format/SHARD.md)
 *   dataset   a folder: dataset.manifest and the shards it names, one index space
 *   loader    turns an epoch's order of records into batches in large memory slots
 *
 * True of every function below, so not repeated there:
 *
 *   Result     SHARD_OK is 0, errors are negative, SHARD_END is the one positive
 *              non-error.  On error, output arguments are as they were.
 *   Errors     `err` may be NULL; it is written only when a call fails.
 *   Ownership  *_open() gives the caller a handle, *_close() takes it back, frees all and
 *              accepts NULL.  Pointers got from a handle die with that handle.
 *   Threads    readers and datasets behave as constants once open: share them freely.
 *              Writers, seals and loaders belong to one thread at a time.
 *   Options    `struct shard_x_options o = {.size = sizeof o};` then set what you need:
 *              zero means default, and a NULL pointer means all defaults.
 *   Units      _bytes counts bytes, _count counts things, _ns is nanoseconds.
 *   Memory     all integers and records are little-endian, as the machine must be.
 */
#ifndef SHARD_H
#define SHARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHARD_VERSION_MAJOR 0 /* breaks ABI; is the soname */
#define SHARD_VERSION_MINOR 1 /* adds symbols or trailing option fields */
#define SHARD_VERSION_PATCH 0

#define SHARD_API __attribute__((visibility("default")))

/* Version of the library that is running, such as "0.1.0", and of the libraries it uses, for --version. */
SHARD_API const char *shard_version(void);
SHARD_API const char *shard_version_details(void);

/* ---- errors ------------------------------------------------------------------------ */

/* Grouped by what the caller can do about it.  Values are ABI and never reused. */
enum shard_status {
	SHARD_OK = 0,
	SHARD_END = 1,            /* nothing left; not an error */
	SHARD_E_ARGUMENT = -1,    /* fix the call: bad option, index past the end */
	SHARD_E_MEMORY = -2,      /* allocation failed; ask for less */
	SHARD_E_IO = -3,          /* the system refused; os_code is its errno */
	SHARD_E_CORRUPT = -4,     /* bytes break the format or a hash; do not retry */
	SHARD_E_UNSUPPORTED = -5, /* well-formed, but needs a newer or fuller build */
	SHARD_E_MISMATCH = -6,    /* intact, but not what the manifest says */
	SHARD_E_EXISTS = -7,      /* something else already has that name; nothing was touched */
	SHARD_E_DEVICE = -8,      /* the GPU driver refused; os_code is its result */
	SHARD_E_CANCELLED = -9,   /* a callback asked to stop */
	SHARD_E_TIMEOUT = -10,    /* not within the time that was given; nothing is lost, try again */
};

/* What went wrong, for a person: which file, which thing, what it held, the limit. */
struct shard_error {
	int32_t status;     /* enum shard_status, as returned */
	int32_t os_code;    /* errno, or with DEVICE the driver's CUresult; else 0 */
	char message[1024]; /* one line, NUL-terminated, safe for a terminal; long paths lose their middle */
};

/* Static text such as "corrupt"; never NULL, even for a code that this build never met. */
SHARD_API const char *shard_status_name(int status);

/* A borrowed run of bytes.  `data` may have any alignment and be NULL if `bytes` is 0. */
struct shard_view {
	const void *data;
	size_t bytes;
};

/* ---- schema: what a record looks like ------------------------------------------------ */

#define SHARD_GROUPS_MAX 8
#define SHARD_FIELDS_MAX 24
#define SHARD_DIMS_MAX 8
#define SHARD_NAME_BYTES 48 /* with the NUL */
#define SHARD_KEY_BYTES_MAX 1024

enum shard_dtype {
	SHARD_U8 = 1, SHARD_I8, SHARD_U16, SHARD_I16, SHARD_U32, SHARD_I32, SHARD_U64, SHARD_I64,
	SHARD_F16, SHARD_BF16, SHARD_F32, SHARD_F64, SHARD_BOOL,
};
enum shard_kind { SHARD_TENSOR = 0, SHARD_RAGGED = 1, SHARD_STRING = 2 };
enum shard_layout { SHARD_LAYOUT_NONE = 0, SHARD_HWC = 1, SHARD_CHW = 2, SHARD_YUV420 = 3, SHARD_LAYOUT_TOKENS = 4 };
enum shard_semantic {
	SHARD_SEMANTIC_NONE = 0, SHARD_IMAGE = 1, SHARD_LABEL = 2, SHARD_LENGTH = 3,
	SHARD_TOKENS = 4, SHARD_MASK = 5, SHARD_BOXES = 6, SHARD_TEXT = 7,
};
enum shard_codec { SHARD_RAW = 0, SHARD_LZ4 = 1 };

/* A field.  The writer's user sets the upper part, shard_schema_lay_out() the lower one. */
struct shard_field {
	char name[SHARD_NAME_BYTES]; /* [A-Za-z_][A-Za-z0-9_.-]*, unique */
	uint32_t dtype, kind, layout, semantic;
	uint32_t group;                 /* below group_count */
	uint32_t ndim;                  /* 0 is a scalar */
	uint32_t shape[SHARD_DIMS_MAX]; /* row-major; of a ragged field, the greatest */
	uint32_t ragged_axes;           /* bit i: axis i varies; 0 for a tensor */
	uint32_t length_field;          /* number of the u32 field with the lengths; 0 for a tensor */

	uint64_t offset; /* from the start of the record within its group */
	uint64_t bytes;  /* of one record */
	uint64_t stride; /* of the group: distance of neighbouring records */
};

struct shard_group {
	uint32_t codec; /* enum shard_codec; set by the writer's user */

	uint32_t align_log2;    /* the stride is a multiple of 2^this */
	uint32_t unit_records;  /* under one hash */
	uint32_t chunk_records; /* compressed together; 0 if raw */
	uint64_t record_bytes;  /* what fields use of a record */
	uint64_t stride;        /* record_bytes and padding */
};

struct shard_schema {
	uint32_t group_count, field_count;
	struct shard_group group[SHARD_GROUPS_MAX];
	struct shard_field field[SHARD_FIELDS_MAX];
};

/*
 * Fill in what follows from the upper parts: offsets, bytes, strides, units, chunks, as
 * format/SHARD.md 2.9 advises.  `align` is 0, or 4096 for records that O_DIRECT can read
 * alone.  Fails with ARGUMENT, naming the field and the rule.
 */
SHARD_API int shard_schema_lay_out(struct shard_schema *schema, uint32_t align, struct shard_error *err);

/*
 * Choose the group of each field whose group is SHARD_GROUP_BY_SIZE, and set group_count.  Fields of
 * at most 16 bytes, such as labels, go to group 1, others to group 0: then a reader of the small ones
 * does not read the large ones.  If no field were in group 0, all go there.  Call this before
 * shard_schema_lay_out().
 */
#define SHARD_GROUP_BY_SIZE UINT32_MAX
SHARD_API void shard_schema_group(struct shard_schema *schema);

/* The field of that name, or NULL. */
SHARD_API const struct shard_field *shard_schema_find(const struct shard_schema *schema, const char *name);

/* Names as manifests write them ("u8", "hwc"); NULL for a value that is not defined.  Bytes of one element, 0 likewise. */
SHARD_API const char *shard_dtype_name(uint32_t dtype);
SHARD_API const char *shard_kind_name(uint32_t kind);
SHARD_API const char *shard_layout_name(uint32_t layout);
SHARD_API const char *shard_semantic_name(uint32_t semantic);
SHARD_API const char *shard_codec_name(uint32_t codec);
SHARD_API size_t shard_dtype_bytes(uint32_t dtype);

/* Exact sums over one channel of a u8 field.  Mean is sum / count. */
struct shard_moments {
	uint64_t count;
	uint64_t sum;
	uint64_t sum_squares_low, sum_squares_high; /* 128 bits, so that no dataset overflows it */
};

/* Why an input did not become a record. */
enum shard_miss_reason {
	SHARD_MISS_EMPTY = 1,
	SHARD_MISS_NOT_AN_IMAGE = 2,
	SHARD_MISS_DECODE = 3,    /* the decoder gave up */
	SHARD_MISS_DAMAGED = 4,   /* the decoder warned of damaged pixels */
	SHARD_MISS_TRUNCATED = 5,
	SHARD_MISS_LIMIT = 6,     /* pixels, scans, memory */
	SHARD_MISS_UNSUPPORTED = 7,
	SHARD_MISS_KEY = 8,       /* key is not UTF-8, or too long */
};
enum shard_miss_how { SHARD_SKIPPED = 1, SHARD_QUARANTINED = 2 };

struct shard_miss {
	uint64_t ordinal; /* of the input, in the plan's pack order */
	uint32_t reason;  /* enum shard_miss_reason */
	uint32_t how;     /* enum shard_miss_how */
};

SHARD_API const char *shard_miss_reason_name(uint32_t reason);

/* ---- writer: one shard ---------------------------------------------------------------- */

struct shard_writer;

struct shard_writer_options {
	size_t size;               /* sizeof this struct as the caller compiled it */
	uint64_t planned_records;  /* the most that will be appended; required */
	uint64_t plan_shard;       /* number of this shard in the plan */
	const uint8_t *plan_digest;   /* 32 bytes, or NULL */
	const char *provenance;       /* UTF-8 text, or NULL */
	uint32_t keys;                /* 1: every record has a key */
	uint32_t section_align_log2;  /* 12 to 21; 0: by size */
	uint32_t skip_read_back;      /* 1: do not read the file back before publishing it */
	uint32_t reserved;
};

struct shard_written {
	uint64_t file_bytes, record_count, miss_count;
	uint8_t root[16];   /* the footer's hash; format/SHARD.md */
	uint8_t sha256[32]; /* of the whole file */
	uint32_t already;   /* 1: an identical shard was there before, and was kept */
	uint32_t reserved;
};

/*
 * Start a shard that will be published as `path`.  Until shard_writer_finish() succeeds, nothing
 * has that name: bytes go to a locked temporary file beside it, which close removes.
 * The writer holds one unit or chunk per group in memory and spools small groups to unnamed files.
 */
SHARD_API int shard_writer_open(struct shard_writer **out, const char *path, const struct shard_schema *schema,
				const struct shard_writer_options *opt, struct shard_error *err);

/*
 * Append one record: group[g] points to the record_bytes of group g.  `key` is NULL if the
 * shard has no keys.  After an error the writer only accepts close.
 */
SHARD_API int shard_writer_append(struct shard_writer *w, const void *const *group, const char *key,
				  size_t key_bytes, struct shard_error *err);

/* Account for an input that does not become a record.  Ordinals must ascend. */
SHARD_API int shard_writer_miss(struct shard_writer *w, const struct shard_miss *miss, struct shard_error *err);

/* Add to the statistics: one channel of a u8 field, or records of a class.  Totals must cover all records. */
SHARD_API int shard_writer_add_moments(struct shard_writer *w, uint32_t field, uint32_t channel,
				       const struct shard_moments *add, struct shard_error *err);
SHARD_API int shard_writer_add_class(struct shard_writer *w, uint32_t field, uint32_t class_idx, uint32_t class_count,
				     uint64_t records, struct shard_error *err);

/*
 * Complete the file, make it durable, read it back and verify it, and publish it under its name, which
 * must be free or hold the identical shard (then `already` is 1).  Fails with EXISTS if it holds
 * something else, which is left as it is.  `result` may be NULL.
 */
SHARD_API int shard_writer_finish(struct shard_writer *w, struct shard_written *result, struct shard_error *err);
SHARD_API void shard_writer_close(struct shard_writer *w);

/* ---- what packers do alike ------------------------------------------------------------- */

/*
 * Say what a field is by its name, for sources that cannot say it.  `label`, a scalar of an
 * integer type, becomes an i64 with semantic SHARD_LABEL.  `image`, of three axes of which the
 * last or the first has 1, 3 or 4 channels, gets semantic SHARD_IMAGE and its layout.  Other
 * fields stay as they are.  Looks at name, dtype and shape.
 */
SHARD_API void shard_field_infer(struct shard_field *field);

/*
 * How many records go into each shard but the last.  The size of a shard is `records`, or as many
 * as `bytes` hold, or, if both are 0, an eighth of the `total` records of the dataset, but 64 MiB
 * to 1 GiB.  If `total` is SHARD_COUNT_UNKNOWN, that is 256 MiB.  The schema is laid out.  Fails
 * with ARGUMENT if a shard would have more than 8 TiB.
 */
#define SHARD_COUNT_UNKNOWN UINT64_MAX
SHARD_API int shard_schema_shard_records(const struct shard_schema *schema, uint64_t records, uint64_t bytes,
					 uint64_t total, uint64_t *out, struct shard_error *err);

/*
 * The field that holds a record's class: the first i64 scalar with semantic SHARD_LABEL.  NULL if
 * there is none.
 */
SHARD_API const struct shard_field *shard_schema_label(const struct shard_schema *schema);

/*
 * The label of a record: group[g] points to the record's bytes in group g.  Returns 1 if it is a
 * class, that is, a number from 0 to class_count - 1, and 0 if not.  *value is what the record
 * has, in either case.
 */
SHARD_API int shard_label_read(const struct shard_field *label, const void *const *group, uint64_t class_count,
			       int64_t *value);

/*
 * Statistics of the records of a shard: exact sums over each channel of its images, and the number
 * of records of each class.  All are integers, so any order and any split of the records gives the
 * same ones.
 *
 *	shard_tally_open(&tally, schema, class_count, &err);
 *	shard_writer_append(writer, group, key, key_bytes, &err);	for each record
 *	shard_tally_add(tally, group);
 *	shard_tally_write(tally, writer, &err);				before shard_writer_finish()
 *
 * A tally belongs to one thread at a time.  Where several threads make records, each has a tally
 * without classes, to which it adds its records.  The thread that has the writer merges these into
 * the shard's tally, and adds the classes.
 */
struct shard_tally;

/* The schema is laid out, and not used after this call.  A class_count of 0 counts no classes. */
SHARD_API int shard_tally_open(struct shard_tally **out, const struct shard_schema *schema, uint64_t class_count,
			       struct shard_error *err);
SHARD_API void shard_tally_close(struct shard_tally *t);
SHARD_API void shard_tally_clear(struct shard_tally *t); /* all back to zero */

/*
 * Count a record, or only its class.  group[g] points to the record_bytes of group g.  A label
 * that is no class is not counted, and shard_writer_finish() then refuses the shard: look at
 * labels before records are appended.
 */
SHARD_API void shard_tally_add(struct shard_tally *t, const void *const *group);
SHARD_API void shard_tally_add_class(struct shard_tally *t, const void *const *group);

/*
 * Add what `other` has counted.  Both are of the same schema, and of as many classes unless
 * `other` has none.
 */
SHARD_API void shard_tally_merge(struct shard_tally *t, const struct shard_tally *other);

/* Hand all of it to the writer. */
SHARD_API int shard_tally_write(const struct shard_tally *t, struct shard_writer *w, struct shard_error *err);

/*
 * Channels of a field that a tally sums, 0 if there are none.  Such a field is a u8 tensor of
 * three axes with semantic SHARD_IMAGE and layout SHARD_HWC or SHARD_CHW.
 */
#define SHARD_TALLY_CHANNELS_MAX 4
SHARD_API uint32_t shard_field_channels(const struct shard_field *field);

/* Add bytes to exact sums: sums[c] gets the bytes c, c + channels, c + 2 * channels and so on. */
SHARD_API void shard_sum_bytes(const void *data, uint64_t bytes, uint32_t channels, struct shard_moments *sums);

/* ---- seal: shards become a dataset ------------------------------------------------------- */

struct shard_seal;

struct shard_seal_options {
	size_t size;
	const uint8_t *plan_digest;     /* 32 bytes, or NULL */
	const char *const *class_names; /* class_count texts in UTF-8, or NULL */
	uint64_t class_count;
	uint64_t seed;    /* of the pack-time shuffle */
	uint32_t order;   /* enum shard_pack_order */
	uint32_t replace; /* 1: an existing manifest is replaced */
};
enum shard_pack_order { SHARD_ORDER_UNKNOWN = 0, SHARD_ORDER_SOURCE = 1, SHARD_ORDER_SHUFFLE = 2 };

/*
 * Collect the shards of folder `dir` in the order of the calls, then write dataset.manifest, durably and at once.
 * add opens each shard, checks its structure and that its schema is that of the others.  `sha256` is 32 bytes, or
 * NULL to have the file read and hashed.
 */
SHARD_API int shard_seal_open(struct shard_seal **out, const char *dir, const struct shard_seal_options *opt,
			      struct shard_error *err);
SHARD_API int shard_seal_add(struct shard_seal *s, const char *file, const uint8_t *sha256, struct shard_error *err);
SHARD_API int shard_seal_finish(struct shard_seal *s, struct shard_error *err);
SHARD_API void shard_seal_close(struct shard_seal *s);

/* ---- small services for packers ------------------------------------------------------------ */

/* Write a small file durably and at once.  With `replace` 0 fails with EXISTS if the name is taken. */
SHARD_API int shard_publish(const char *path, const void *data, size_t bytes, int replace, struct shard_error *err);

/* Remove temporary files in `dir` that no living writer holds.  `count` (may be NULL) says how many. */
SHARD_API int shard_remove_temps(const char *dir, uint64_t *count, struct shard_error *err);

SHARD_API void shard_sha256(const void *data, size_t bytes, uint8_t out[32]);
SHARD_API void shard_xxh128(const void *data, size_t bytes, uint8_t out[16]); /* low half first, little-endian */

/*
 * Places [first, first + count) of a shuffle of [0, n): idx[i] is what stands at place first + i.  The one-level order of
 * format/ORDER.md for epoch 2^64 - 1, which no loader reaches.
 */
SHARD_API int shard_shuffle(uint64_t seed, uint64_t n, uint64_t first, uint64_t count, uint64_t *idx, struct shard_error *err);

/* ---- reader: one shard, mapped --------------------------------------------------------------- */

struct shard_reader;

enum shard_check {
	SHARD_CHECK_FIRST = 0, /* hash each unit when it is first used */
	SHARD_CHECK_ALWAYS = 1, /* and each time; by a loader, a chunk each time that it is decoded */
	SHARD_CHECK_NEVER = 2, /* structure only; for storage that is verified by other means */
};

struct shard_reader_options {
	size_t size;
	uint32_t check; /* enum shard_check */
	uint32_t guard; /* 1: a truncated or unreadable map is an error, not SIGBUS; installs a chained handler */
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
 * Map the shard at `path` and check its structure (I1 to I42 of format/SHARD.md), after which no call
 * can be led out of bounds.  O(1): reads two pages, whatever the number of records.
 * The file must not shrink while open: without `guard`, the kernel answers that with SIGBUS.
 */
SHARD_API int shard_reader_open(struct shard_reader **out, const char *path, const struct shard_reader_options *opt,
				struct shard_error *err);
SHARD_API void shard_reader_close(struct shard_reader *r);
SHARD_API const struct shard_schema *shard_reader_schema(const struct shard_reader *r);
SHARD_API void shard_reader_info(const struct shard_reader *r, struct shard_info *out);

/* Copy `count` neighbouring records of a group, count x stride bytes, decoded, into `dst`. */
SHARD_API int shard_reader_read(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, void *dst,
				struct shard_error *err);

/* A record in place, without a copy.  Fails with UNSUPPORTED for compressed groups. */
SHARD_API int shard_reader_view(struct shard_reader *r, uint32_t group, uint64_t idx, struct shard_view *out,
				struct shard_error *err);

/* The key of a record: UTF-8, not NUL-terminated.  Zero bytes if the shard has no keys. */
SHARD_API int shard_reader_key(struct shard_reader *r, uint64_t idx, struct shard_view *out, struct shard_error *err);
SHARD_API int shard_reader_provenance(struct shard_reader *r, struct shard_view *out, struct shard_error *err);
SHARD_API int shard_reader_miss(struct shard_reader *r, uint64_t idx, struct shard_miss *out, struct shard_error *err);

/* Statistics of this shard; END if it has none for that field and channel, or class. */
SHARD_API int shard_reader_moments(struct shard_reader *r, uint32_t field, uint32_t channel,
				   struct shard_moments *out, struct shard_error *err);
SHARD_API int shard_reader_class_records(struct shard_reader *r, uint32_t field, uint64_t class_idx, uint64_t *out,
					 struct shard_error *err);

/* One section of the file, for those who want to look: type name such as "DATA", or "?" */
struct shard_section {
	uint64_t offset, bytes, item_count;
	uint32_t type, group;
	uint8_t hash[16];
};
SHARD_API int shard_reader_section(const struct shard_reader *r, uint32_t idx, struct shard_section *out,
				   struct shard_error *err);
SHARD_API const char *shard_section_name(uint32_t type);

/* ---- dataset: shards as one index space --------------------------------------------------------- */

struct shard_dataset;

struct shard_dataset_options {
	size_t size;
	uint32_t check; /* enum shard_check */
	uint32_t guard; /* as in shard_reader_options */
};

struct shard_dataset_info {
	uint64_t record_count, shard_count, class_count, data_bytes; /* bytes of all shard files */
	uint64_t seed;            /* of the pack-time shuffle */
	uint32_t order;           /* enum shard_pack_order */
	uint32_t has_plan_digest;
	uint8_t plan_digest[32];
	char id[65];              /* the manifest's SHA-256, hex: what a training job records */
};

struct shard_entry {
	const char *file; /* relative to the folder; not NUL-terminated */
	uint32_t file_name_bytes, reserved;
	uint64_t file_bytes, record_count, first_record;
	uint8_t root[16];
	uint8_t sha256[32];
};

/*
 * Open the folder `dir`: reads and checks dataset.manifest, and no shard.  Shards are opened when first used, and
 * checked against the manifest then: MISMATCH if one is missing or is not the one named.
 */
SHARD_API int shard_dataset_open(struct shard_dataset **out, const char *dir, const struct shard_dataset_options *opt,
				 struct shard_error *err);
SHARD_API void shard_dataset_close(struct shard_dataset *ds);
SHARD_API uint64_t shard_dataset_record_count(const struct shard_dataset *ds);
SHARD_API const struct shard_schema *shard_dataset_schema(const struct shard_dataset *ds);
SHARD_API void shard_dataset_info(const struct shard_dataset *ds, struct shard_dataset_info *out);

/* Group, offset, dtype, shape and stride of a field, looked up once, outside the loop; NULL if there is none. */
SHARD_API const struct shard_field *shard_field_find(const struct shard_dataset *ds, const char *name);

/*
 * Copy the records `idx[0 .. count)`, in that order: of each group g with dst[g] not NULL, count x stride
 * bytes to dst[g], decoded.  dst has one entry per group.
 */
SHARD_API int shard_dataset_read(struct shard_dataset *ds, const uint64_t *idx, size_t count, void *const *dst,
				 struct shard_error *err);
SHARD_API int shard_dataset_key(struct shard_dataset *ds, uint64_t idx, struct shard_view *out, struct shard_error *err);

/* Name of a class, UTF-8; NULL past the last. */
SHARD_API const char *shard_dataset_class_name(const struct shard_dataset *ds, uint64_t class_idx);

/* Statistics from the manifest; END if it has none. */
SHARD_API int shard_dataset_moments(const struct shard_dataset *ds, uint32_t field, uint32_t channel,
				    struct shard_moments *out, struct shard_error *err);
SHARD_API int shard_dataset_class_records(const struct shard_dataset *ds, uint32_t field, uint64_t class_idx,
					  uint64_t *out, struct shard_error *err);

/* Shard `shard_idx` as the manifest names it; its reader, opened if need be, borrowed from the dataset. */
SHARD_API int shard_dataset_entry(const struct shard_dataset *ds, uint64_t shard_idx, struct shard_entry *out,
				  struct shard_error *err);
SHARD_API int shard_dataset_reader(struct shard_dataset *ds, uint64_t shard_idx, struct shard_reader **out,
				   struct shard_error *err);
/* The manifest's text, as it lies in the file. */
SHARD_API void shard_dataset_manifest(const struct shard_dataset *ds, struct shard_view *out);

/* ---- verify ---------------------------------------------------------------------------------------- */

struct shard_verify_options {
	size_t size;
	uint64_t sample_units; /* check the structure and this many units, spread evenly; 0: everything */
	uint32_t thread_count; /* 0: the CPUs that this process may use */
	uint32_t sha256;       /* 1: also the SHA-256 of every shard file, as after a download (datasets only) */
	void *context;         /* for both callbacks, which are called by the caller's thread only */
	/* About 10 times a second, and when all is done.  Not 0 stops with CANCELLED. */
	int (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
	/* Each problem found; verification goes on behind it.  Without it, it stops at the first. */
	void (*problem)(void *context, const struct shard_error *problem);
};

struct shard_verify_report {
	uint64_t shard_count, record_count, unit_count, bytes; /* checked */
	uint64_t problem_count;
	uint64_t elapsed_ns;
};

/*
 * Check every rule of format/SHARD.md.  The result is that of the gravest problem: damage before UNSUPPORTED before
 * MISMATCH; `err` tells the first of these.  IO means that bytes could not be read, which is not damage.
 */
SHARD_API int shard_reader_verify(struct shard_reader *r, const struct shard_verify_options *opt,
				  struct shard_verify_report *report, struct shard_error *err);
SHARD_API int shard_dataset_verify(struct shard_dataset *ds, const struct shard_verify_options *opt,
				   struct shard_verify_report *report, struct shard_error *err);

/* ---- doctor: what this machine has for a loader to use --------------------------------------------------- */

enum shard_verdict {
	SHARD_GOOD = 0,
	SHARD_SLOWER = 1,  /* all works, and something would be faster otherwise */
	SHARD_MISSING = 2, /* what needs it does not work */
	SHARD_UNKNOWN = 3, /* it could not be looked at */
};

/* What a program may want of a finding: a number, or a text. */
struct shard_fact {
	const char *name;
	const char *text; /* NULL: it is a number */
	uint64_t number;
};

/* What was looked at, what was found, what follows for a loader, what to do: texts for people, each without a full stop. */
struct shard_finding {
	const char *name; /* "io_uring"; the same on all machines */
	const char *found, *so, *advice; /* the last two may be empty */
	const struct shard_fact *fact; /* [fact_count] */
	uint32_t fact_count;
	uint32_t verdict; /* enum shard_verdict */
};

struct shard_doctor_options {
	size_t size;
	const char *path; /* of a dataset, or of any file or folder on the disk that is meant; NULL: no disk is looked at */
	void *context;
	void (*finding)(void *context, const struct shard_finding *finding); /* required; pointers in it live until it returns */
};

/*
 * Look at CPUs, memory, huge pages, io_uring, the disk behind `path` and the GPUs, and tell each finding.  Nothing is
 * changed.  Page-locking is tried on 64 MiB, with the GPU of the calling thread's context or the first one; who forks
 * later and wants the GPU in the child should not call this.  Fails only if `path` cannot be looked at.
 */
SHARD_API int shard_doctor(const struct shard_doctor_options *opt, struct shard_error *err);

/* ---- loader: batches, in a reproducible order ---------------------------------------------------------- */

struct shard_loader;

/* format/ORDER.md defines all of them: which record stands where, on any machine, for any world. */
enum shard_shuffle {
	SHARD_SHUFFLE_BY_SIZE = 0, /* global for records of 128 KiB and more that are not compressed, else windows */
	SHARD_SEQUENTIAL = 1,
	SHARD_SHUFFLE_GLOBAL = 2,  /* one level: any record may follow any other */
	SHARD_SHUFFLE_WINDOWS = 3, /* two levels: runs of neighbouring records, read together, mixed in windows */
};
enum shard_tail { SHARD_DROP = 0, SHARD_PAD = 1, SHARD_KEEP = 2 };

/* How records come to the slot.  Compressed groups, and those of less than 4096 bytes a record, are always mapped. */
enum shard_path {
	SHARD_PATH_AUTO = 0,   /* per shard: mapped if it is in memory, pread if it will fit there, else direct; on network file
				  systems pread */
	SHARD_PATH_MAP = 1,
	SHARD_PATH_DIRECT = 2, /* past the page cache, by io_uring if the system allows it; as pread where there is no such way */
	SHARD_PATH_PREAD = 3,  /* through the page cache: errors of the disk are errors, not signals */
};

/*
 * What becomes of a row whose record is damaged (a unit's hash is wrong, a chunk does not decode).  Shapes never change,
 * and what happens depends on the dataset's bytes alone, not on ranks or threads.  Damage of a shard's tables, and disks
 * that cannot be read, always fail.
 */
enum shard_on_corrupt {
	SHARD_CORRUPT_FAIL = 0,
	SHARD_CORRUPT_SUBSTITUTE = 1, /* the next good record of the dataset, label and all; the row is flagged */
	SHARD_CORRUPT_MASK = 2,	      /* zeros in all fields; the row is flagged */
};

struct shard_loader_options {
	size_t size;
	uint64_t seed;          /* with the epoch, fixes the order */
	uint32_t batch_records; /* per rank; required */
	uint32_t rank, world;   /* which share of the epoch is ours; world 0 means 1 */
	uint32_t shuffle;       /* enum shard_shuffle */
	uint32_t tail;          /* enum shard_tail: what to do with records that do not fill the ranks' last batch */
	uint32_t slot_count;    /* batches in memory, lent or prefetched; default 4, at least 2 */
	uint32_t thread_count;  /* that fill slots; default: the CPUs, at most 4 */

	/*
	 * Of windows, in the words of format/ORDER.md; 0: by the size of a record, never by anything else: runs of 256 KiB,
	 * windows of 40, 64 lanes.  In a world that divides the lanes each rank reads its own runs only; in others, all.
	 */
	uint32_t window_runs, lane_count;
	uint64_t run_records, phase_unit_records;

	uint32_t path;       /* enum shard_path */
	uint32_t on_corrupt; /* enum shard_on_corrupt */

	/*
	 * At most so much memory, besides the ring, for decoded chunks of compressed groups.  0: what a window of this rank
	 * needs (in a global order: all chunks), so that each is decoded once an epoch, but at most a quarter of the memory
	 * that is available at the first next, for the trainer and the page cache want the rest.  With less the same batches
	 * come more slowly, as chunks are decoded again; so do those in two runs, of shards that do not hold whole chunks.
	 * Only pages that are used are taken.
	 */
	uint64_t stage_bytes;

	uint32_t device_slot_count; /* batches in the memory of a GPU, lent or on their way: 2 to 4; default 3 */
	uint32_t pool_in_place;	    /* 0 or 1: with pool_bytes, see there */

	/*
	 * Not 0: a pool of at most so many bytes in the memory of the GPU.  Runs are copied there as they lie, and a kernel puts
	 * batches together: the same ones as without a pool.  It needs room for 3 windows of all lanes of this rank, and what a
	 * batch spans; the error says how much that is.  A pool with room for all of the dataset, as SHARD_POOL_ALL asks for,
	 * is filled once, in any order, and from then on nothing is copied.  Such a loader delivers by shard_loader_next_device();
	 * the slots of its ring hold parts of windows on their way, not batches.
	 *
	 * With pool_in_place groups of 4096 bytes and more are not put together: their rows stay where they are in the pool, and
	 * row_at of struct shard_rows says where; shard_finish_launch() takes them from there, in one pass.  What a batch lies in
	 * is not filled anew until it was given back, so there must be room for what device_slot_count batches span that follow
	 * each other.  Who keeps one for longer, or from before a seek, may get ARGUMENT from next until it is given back.
	 *
	 * Copies to the GPU are of many runs, reads of a disk of one, and the default of 256 KiB is short for that: where records
	 * are not in memory, run_records of 1 to 4 MiB cost less.  A pool does not choose longer ones: that is another order.
	 */
	uint64_t pool_bytes;
};
#define SHARD_POOL_ALL UINT64_MAX

/* Rows are record_count; row i of field f is at data + i x stride bytes, or, unless row_at is NULL, at data + row_at[i]. */
struct shard_rows {
	const void *data; /* in a slot of the ring; 4096-aligned for groups.  Or an address of the GPU: shard_loader_next_device() */
	uint64_t stride;
	const uint64_t *row_at; /* NULL; but with pool_in_place, of groups of 4096 bytes and more: [record_count], of the host */
};

enum shard_row_flag { SHARD_ROW_PADDED = 1, SHARD_ROW_SUBSTITUTED = 2, SHARD_ROW_MASKED = 4 };

struct shard_batch {
	uint64_t epoch;
	uint64_t position;        /* where this step starts in the epoch's global order, the same on all ranks: rank q gets
				     the positions from there on that are q (mod world), batch_records of them */
	uint64_t step;            /* position / (world x batch_records): counts from 0 in each epoch */
	uint32_t record_count;    /* batch_records, or fewer in the last one with SHARD_KEEP */
	uint32_t slot;            /* the loader's own; hand it back unchanged */
	const uint64_t *record;   /* [record_count] dataset index of each row, of the substitute if it is one */
	const uint8_t *row_flags; /* [record_count] enum shard_row_flag */
	struct shard_rows group[SHARD_GROUPS_MAX]; /* strides of 4096 and more: one block, but in a pool.  Smaller: its first field */
	struct shard_rows field[SHARD_FIELDS_MAX]; /* any field; of smaller groups, a dense array */
};

/*
 * Prepare a loader for the life of a job.  Reads metadata only; memory and threads come with the first next, and belong
 * to the process that called it: after fork the child can only close.  The dataset must outlive the loader.  Fails with
 * ARGUMENT also if an epoch would have no step.
 */
SHARD_API int shard_loader_open(struct shard_loader **out, struct shard_dataset *ds,
				const struct shard_loader_options *opt, struct shard_error *err);
/* At any time, with batches lent or not: their pointers are then dead.  Waits for reads under way. */
SHARD_API void shard_loader_close(struct shard_loader *l);

/*
 * The next batch, as threads prepared it meanwhile.  SHARD_END ends an epoch; the call after that starts the next one,
 * whose first batches are being read already.  Fails with ARGUMENT if all slots are lent (release one first) or the
 * process is another than that of the first call.  Other errors repeat until seek or resume.
 */
SHARD_API int shard_loader_next(struct shard_loader *l, struct shard_batch *batch, struct shard_error *err);

/*
 * Wait at most `timeout_ns` until shard_loader_next() need not: until a batch is ready, or it has something else to say.
 * TIMEOUT if that is not so yet; 0 only asks.  For who must look at other things while a disk is slow.  The same of
 * shard_loader_next_device(), once that or shard_loader_begin_device() was called.
 */
SHARD_API int shard_loader_wait(struct shard_loader *l, uint64_t timeout_ns, struct shard_error *err);

/* Give a batch back, in any order; its pointers are then dead. */
SHARD_API int shard_loader_release(struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err);

/* Batches of an epoch, the same number for every rank. */
SHARD_API uint64_t shard_loader_step_count(const struct shard_loader *l);

/* The dataset indices of this rank's rows [first, first + count) of an epoch, without reading any record. */
SHARD_API int shard_loader_order(const struct shard_loader *l, uint64_t epoch, uint64_t first, uint64_t count,
				 uint64_t *idx, struct shard_error *err);

/* ---- loader: stopping and going on ---- */

/* What the next call of next will deliver: its epoch, and its position in the epoch's global order. */
SHARD_API void shard_loader_tell(const struct shard_loader *l, uint64_t *epoch, uint64_t *position);

/* Continue at global position `position` of `epoch`.  Reads nothing and waits for nothing.  Lent batches stay valid. */
SHARD_API int shard_loader_seek(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err);

/*
 * The same as a token: one line of printable text to keep with a checkpoint, which also has all that fixes the order,
 * and which dataset it was.  It knows nothing of world, rank, batch size, threads: all of them may differ when a job goes
 * on, and every record of the epoch is still delivered once (with SHARD_DROP, but for the last incomplete step).
 */
#define SHARD_TOKEN_BYTES 512 /* with the NUL */
SHARD_API void shard_loader_token(const struct shard_loader *l, char token[SHARD_TOKEN_BYTES]);

/*
 * Go on where the token was made: with its kind of order, runs, windows and lanes, whatever the defaults are now.
 * Fails with MISMATCH, and stays where it is, if the token is of another dataset, or of another order than the options
 * asked for; with ARGUMENT if it is no whole token, or brings another order while batches are lent that lie in a pool.
 */
SHARD_API int shard_loader_resume(struct shard_loader *l, const char *token, struct shard_error *err);

/* The order in use, with defaults filled in: kind is never SHARD_SHUFFLE_BY_SIZE. */
struct shard_order_info {
	uint64_t record_count, seed, run_records, phase_unit_records;
	uint32_t kind, window_runs, lane_count, reserved;
};
SHARD_API void shard_loader_order_info(const struct shard_loader *l, struct shard_order_info *out);

/* ---- loader: batches on a GPU ---- */

/*
 * As shard_loader_next(), but rows are in the memory of the GPU that `stream` belongs to: kernels that are queued on
 * `stream` behind this call find the batch there.  The host waits for no copy: batches are copied ahead, on a stream of
 * the loader's own.  Only group[].data and field[].data are the GPU's; record, row_flags and row_at are the host's, as ever.
 *
 * `stream` is a cudaStream_t or CUstream.  NULL is the legacy default stream of the calling thread's device, or of the
 * first device if it has chosen none.  All streams given to one loader belong to one context, the first one's: the
 * runtime API's, PyTorch's, or the caller's own, which must live until close.
 *
 * UNSUPPORTED if the machine has no driver or no GPU; shard_loader_next() then works.  DEVICE if the driver refuses.  Once
 * this has delivered, shard_loader_next() of this loader fails.  ARGUMENT if all device slots are lent.
 */
SHARD_API int shard_loader_next_device(struct shard_loader *l, void *stream, struct shard_batch *batch, struct shard_error *err);

/*
 * What the first shard_loader_next_device() does before it waits for a batch: memory of the host and the GPU, threads, reads.
 * For who waits by shard_loader_wait(), and would wait for the first batch otherwise.  Fails as shard_loader_next_device(); may
 * be called at any time, and does nothing later.
 */
SHARD_API int shard_loader_begin_device(struct shard_loader *l, void *stream, struct shard_error *err);

/*
 * Give a batch back when all is done that was queued on `stream` before this call; its pointers are then dead.  Returns at
 * once.  For batches on the GPU, and for those of the host that copies on `stream` still read.  Work on other streams
 * must be joined to this one first (cudaStreamWaitEvent).
 */
SHARD_API int shard_loader_release_after(struct shard_loader *l, const struct shard_batch *batch, void *stream,
					 struct shard_error *err);

/*
 * What is queued on `stream` behind this call waits for what was queued on `behind` before it.  The host waits for nothing.
 * For who uses a batch on several streams: those that did not get it from next wait for the one that did, and the one that
 * it goes back on waits for them.  ARGUMENT before the first batch on a GPU.
 */
SHARD_API int shard_loader_join(struct shard_loader *l, void *stream, void *behind, struct shard_error *err);

/*
 * The number of the GPU that a stream is on, as cudaGetDevice() counts; of NULL that of the calling thread's device, or 0 if
 * it has chosen none.  Starts the driver, and nothing else.  UNSUPPORTED if there is no driver or no GPU.
 */
SHARD_API int shard_stream_gpu(void *stream, uint32_t *ordinal, struct shard_error *err);

/*
 * From the first next_device or release_after on the ring is page-locked, slot by slot and in the background, unless it was
 * lent: then its owner has done so with cudaHostRegister.  If the system refuses, batches come through pageable memory, more
 * slowly; this says why.  END if nothing was refused.
 */
SHARD_API int shard_loader_pin_problem(struct shard_loader *l, struct shard_error *out);

/* ---- loader: memory, and what it did ---- */

/*
 * Slots lie one behind the other in one ring.  Before the first next, `memory` of at least shard_loader_ring_bytes(),
 * 4096-aligned, can be lent for it, such as a region that the caller page-locked with cudaHostRegister.  It stays the
 * caller's: the loader writes to it until close, and never frees it.  Who forks meanwhile should keep it from the children
 * (MADV_DONTFORK), as disks may be writing to it.  Else the ring is the loader's own, in huge pages, and kept from them.
 */
SHARD_API uint64_t shard_loader_ring_bytes(const struct shard_loader *l);
SHARD_API int shard_loader_lend(struct shard_loader *l, void *memory, uint64_t bytes, struct shard_error *err);

/* Since open.  Times are sums over threads; divide by elapsed_ns x their number. */
struct shard_loader_stats {
	uint64_t batch_count, record_count, bytes;  /* lent by next; bytes of slots, padding of records included */
	uint64_t filled_record_count, filled_bytes; /* prepared by threads: more, as they are ahead, or were before a seek */
	uint64_t checked_unit_count;                /* hashed */
	uint64_t elapsed_ns;                        /* since the first next */
	uint64_t next_wait_ns, next_wait_count;     /* next had to wait for a batch: the trainer was faster */
	uint64_t fill_ns, fill_cpu_ns;              /* threads at work; of which on a CPU: the rest waited for disks */
	uint64_t slot_wait_ns;                      /* threads without a free slot: the trainer was slower */
	uint64_t mapped_bytes, direct_bytes, pread_bytes; /* of filled_bytes, by the way they came */
	uint64_t substituted_count, masked_count;	  /* rows, of those that were filled */
	uint32_t thread_count, has_uring;
	uint64_t stage_bytes;	      /* for decoded chunks: at most so much is in memory besides the ring */
	uint64_t decoded_chunk_count; /* each time that one was */
	uint64_t unfinished_chunk_count; /* that made room before all their records were taken, and of which some are decoded
					    again: many mean that stage_bytes is too small.  Not counted where ranks share runs */
	uint64_t device_bytes;	 /* copied to the GPU: those of batch_count and more, as it is ahead */
	uint64_t pageable_bytes; /* of which from memory that was not page-locked */
	uint64_t pinned_bytes;	 /* of the ring that are */
	uint64_t device_wait_ns; /* next had to wait until the GPU had done with a slot: the host was ahead, as it should be */
};
SHARD_API void shard_loader_stats(struct shard_loader *l, struct shard_loader_stats *out);

/*
 * What happened between two looks at the counters of one loader, as a line of text for a log: the rates, who waited how
 * long for whom, the ways by which bytes came, damaged rows, and which side is the slower one.  `before` is NULL for all
 * since open; who prints it now and then keeps `now` for the next time.  README.md says what to do about each ending.
 *
 *   12.4 GB/s, 82,300 records/s; next waited 0.3 % (12 of 4,000 times); threads filled 41 % (on a CPU 40 %),
 *   waited for slots 59 %; mapped 100 %: the trainer is the slower side
 */
#define SHARD_SUMMARY_BYTES 512 /* with the NUL; no line is longer */
SHARD_API void shard_stats_summary(const struct shard_loader_stats *now, const struct shard_loader_stats *before,
				   char text[SHARD_SUMMARY_BYTES]);

/* What was wrong with the row that was substituted or masked last, for the log; END if there was none. */
SHARD_API int shard_loader_last_damage(struct shard_loader *l, struct shard_error *out);

/* ---- finish: from the bytes of images to what a network takes --------------------------------------------- */

/*
 * Crop or random-resized-crop, flip, normalise, convert and transpose a batch, in one pass: on the CPU, or by a kernel on
 * the GPU that the batch is on.  Both give the same bits.  docs/FINISH.md defines them: those of Pillow's crop and resize
 * (bilinear, antialiased) and of torchvision's ToTensor and Normalize.
 */
struct shard_finish;

enum shard_finish_crop {
	SHARD_CROP_CENTER = 0,	/* the middle, as torchvision's CenterCrop */
	SHARD_CROP_RANDOM = 1,	/* anywhere */
	SHARD_CROP_RESIZED = 2, /* a part of random area and ratio, resized: as torchvision's RandomResizedCrop */
};

struct shard_finish_options {
	size_t size;
	uint32_t height, width; /* of the output, in pixels; 0: those of the field */
	uint32_t dtype;		/* SHARD_F16, SHARD_BF16 or SHARD_F32; 0: SHARD_F32 */
	uint32_t layout;	/* SHARD_CHW or SHARD_HWC; 0: SHARD_CHW */
	uint32_t crop;		/* enum shard_finish_crop */
	uint32_t reserved;
	float mean[4], std[4];	/* of each channel, of samples scaled to 0..1: a sample x becomes (x / 255 - mean) / std; std 0: 1 */
	double flip;		/* probability, 0 to 1, that a row is mirrored left to right */
	double area_min, area_max;   /* SHARD_CROP_RESIZED: part of the image's area; 0: 0.08 and 1 */
	double ratio_min, ratio_max; /* likewise: width by height; 0: 3/4 and 4/3 */
};

/* What one row of the output is made of. */
struct shard_finish_row {
	uint32_t from;		      /* row of the batch */
	uint32_t flip;		      /* not 0: mirrored left to right */
	uint32_t x, y, width, height; /* pixels of the image: with SHARD_CROP_RESIZED any part of it, else one of the output's size */
};

/*
 * Prepare to finish batches of this loader.  `field` is one of u8 images: [height, width, channels] or [channels, height,
 * width] as its layout says, or [height, width]; of 1 to 4 channels.  Its rank, world and seed fix what is drawn.  Nothing of
 * the loader is used behind this call.  A handle belongs to one thread at a time; several of one loader are independent.
 */
SHARD_API int shard_finish_open(struct shard_finish **out, const struct shard_loader *l, const char *field,
				const struct shard_finish_options *opt, struct shard_error *err);
/* If it has launched anything: waits until the GPU has nothing more to do.  In a forked child it frees memory only. */
SHARD_API void shard_finish_close(struct shard_finish *f);

/* Bytes of one row of the output: height x width x channels numbers, without gaps; rows follow each other. */
SHARD_API uint64_t shard_finish_row_bytes(const struct shard_finish *f);

/*
 * What chance says of this batch: row[i] for each of its rows.  A function of seed, epoch, the row's position in the epoch,
 * and `view`, which is 0 unless rows are wanted more than once: resumed jobs, and those of another world, draw the same.
 * For masks or boxes that must follow an image, and to be changed before it is given to the calls below.
 */
SHARD_API void shard_finish_draw(const struct shard_finish *f, const struct shard_batch *batch, uint32_t view, struct shard_finish_row *row);

/*
 * Finish rows of a batch in host memory to `to`, which holds row_count rows, of any alignment.  `rows` NULL: each row of the
 * batch once, as shard_finish_draw() says for view 0; row_count is then the batch's.
 */
SHARD_API int shard_finish_host(struct shard_finish *f, const struct shard_batch *batch, const struct shard_finish_row *rows,
				uint64_t row_count, void *to, struct shard_error *err);

/*
 * The same of a batch from shard_loader_next_device(), in a pool or not, on `stream`, which is that call's or one that waits
 * for it: queues kernels and returns at once.  `to` is device memory of the stream's context, which the caller keeps until
 * they are done; 16-aligned (as all of cudaMalloc's is), with a width that is a multiple of 8 pixels, is fastest.  The batch
 * goes back by shard_loader_release_after() on the same stream behind this.
 *
 * The first call brings the kernels to the stream's context, where the driver compiles them once per machine, and
 * waits for that; the others neither wait nor allocate.  All streams belong to the first one's context.  UNSUPPORTED if
 * there is no driver or GPU, DEVICE if the driver refuses.
 */
SHARD_API int shard_finish_launch(struct shard_finish *f, const struct shard_batch *batch, const struct shard_finish_row *rows,
				  uint64_t row_count, void *stream, void *to, struct shard_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SHARD_H */
