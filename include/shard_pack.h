/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_pack.h - write shards and seal them into a dataset, count statistics, and look inside a
 * shard
 *
 * For programs that make datasets, and for tools that inspect them.  A trainer needs shard.h only,
 * whose first comment holds for this header, too.
 *
 * In order: fill in a schema and have it laid out; write each shard; seal the folder.
 */
#ifndef SHARD_PACK_H
#define SHARD_PACK_H

#include "shard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layout ----------------------------------------------------------------------------- */

/* The names that manifests use, such as "u8" and "hwc"; NULL for an undefined value. */
SHARD_API const char *shard_dtype_name(uint32_t dtype);
SHARD_API const char *shard_kind_name(uint32_t kind);
SHARD_API const char *shard_layout_name(uint32_t layout);
SHARD_API const char *shard_semantic_name(uint32_t semantic);
SHARD_API const char *shard_codec_name(uint32_t codec);
/* Of an enum shard_pixels, as recipes and tokens write it; NULL for SHARD_PIXELS_RECIPE. */
SHARD_API const char *shard_pixels_name(uint32_t pixels);

/*
 * Fill in what follows from the upper parts of fields and groups: offsets, bytes, strides, units
 * and chunks, as format/SHARD.md 2.9 advises.  `align` is 0, or 4096 for records that O_DIRECT can
 * read alone.  ARGUMENT names the field and the rule.
 */
SHARD_API int shard_schema_lay_out(struct shard_schema *schema, uint32_t align, struct shard_error *err);

/*
 * Choose the group of each field whose group is SHARD_GROUP_BY_SIZE, and set group_count.  Fields
 * of at most 16 bytes, such as labels, go to group 1, others to group 0: then a reader of the small
 * ones does not read the large ones.  If no field were in group 0, all go there.  Call this before
 * shard_schema_lay_out().
 */
#define SHARD_GROUP_BY_SIZE UINT32_MAX
SHARD_API void shard_schema_group(struct shard_schema *schema);

/*
 * shardpack and libshard.Writer make the same bytes of the same inputs until this number changes.
 * Plans and provenance name it.  The version of the library is not in a dataset, so a new release
 * gives datasets the same bytes and ids.
 */
#define SHARD_BYTES_VERSION 3

/* ---- what packers do alike -------------------------------------------------------------- */

/*
 * Say what a field is by its name, for sources that cannot say it.  `label`, a scalar of an
 * integer type, becomes an i64 with semantic SHARD_LABEL.  `image`, of three axes of which the
 * last or the first has 1, 3 or 4 channels, gets semantic SHARD_IMAGE and its layout.  Other
 * fields stay as they are.  Looks at name, dtype and shape.
 */
SHARD_API void shard_field_infer(struct shard_field *field);

/*
 * How many records go into each shard but the last: `records`, or as many as fit in `bytes`.  If
 * both are 0, a shard gets an eighth of the `total` records, within 64 MiB and 1 GiB.  If `total`
 * is SHARD_COUNT_UNKNOWN, it gets 256 MiB.  The schema is laid out.  Fails with ARGUMENT if both
 * are given, or if a shard would have more than 8 TiB.
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

/* ---- statistics ------------------------------------------------------------------------- */

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

/*
 * Exact sums over each channel of the images of a shard, and the number of values that are NaN or
 * infinite.  All are integers, so any order and any split of the records gives the same ones.  The
 * writer itself counts the records of each class: class_count in its options.
 *
 *	shard_tally_open(&tally, schema, &err);
 *	shard_writer_append(writer, group, key, key_bytes, &err);	for each record
 *	shard_tally_add(tally, group);
 *	shard_tally_write(tally, writer, &err);				before shard_writer_finish()
 *
 * A tally belongs to one thread at a time.  Where several threads make records, each has a tally of
 * its own, and the thread that has the writer merges them.
 */
struct shard_tally;
struct shard_writer;

/* The schema is laid out, and not used after this call. */
SHARD_API int shard_tally_open(struct shard_tally **out, const struct shard_schema *schema, struct shard_error *err);
SHARD_API void shard_tally_close(struct shard_tally *t);

/* Count a record: group[g] points to the record_bytes of group g. */
SHARD_API void shard_tally_add(struct shard_tally *t, const void *const *group);

/* Move what `from` has counted to `t`, of the same schema: `from` is back at zero.  `t` NULL: to nowhere. */
SHARD_API void shard_tally_move(struct shard_tally *t, struct shard_tally *from);

/*
 * How many values of a field are NaN, and how many are infinite; 0 if it does not hold
 * floating-point numbers.  shard_tally_write() records them; a packer should tell them, too.
 */
SHARD_API void shard_tally_not_finite(const struct shard_tally *t, uint32_t field, uint64_t *nan, uint64_t *infinite);

/*
 * Hand all of it to the writer.  If values are NaN or infinite, the provenance of the shard gets a
 * line for each field that has them (format/SHARD.md 2.8); `shardcat info` adds these up.
 */
SHARD_API int shard_tally_write(const struct shard_tally *t, struct shard_writer *w, struct shard_error *err);

/*
 * Channels of a field that a tally sums, 0 if there are none.  Such a field is a u8 tensor of
 * three axes with semantic SHARD_IMAGE and layout SHARD_HWC or SHARD_CHW.
 */
#define SHARD_TALLY_CHANNELS_MAX 4
SHARD_API uint32_t shard_field_channels(const struct shard_field *field);

/* Of an image, in pixels. */
struct shard_size {
	uint32_t height, width;
};

/*
 * The number of the field that holds height and width of the images in field number `field`, if
 * each image has a size of its own.  Such images are called whole (format/SHARD.md 2.11): `field`
 * is ragged u8 [A,C] with semantic SHARD_IMAGE, layout SHARD_HWC, 1 to 4 channels, and axis 0
 * alone varies.  The other is the tensor u32 [2] with the name of the first and "_size" behind it.
 * SHARD_FIELDS_MAX for every other field, so compare the result with field_count.
 *
 * A loader checks sizes.  It delivers the fields with lengths and sizes beside the images, whatever
 * its option `fields` says.  And `size` of struct shard_rows has [record_count] sizes of the images
 * as they are stored: 0 x 0 for a masked row.  These are in host memory even if the batch is on a
 * GPU.
 */
SHARD_API uint32_t shard_image_size_field(const struct shard_schema *schema, uint32_t field);

/*
 * 1 if the field has a list of texts (format/SHARD.md 2.12), else 0: ragged u8 [N,B], SHARD_TEXT.
 * Each row is a text in UTF-8, which ends before the first zero byte or with the row.
 */
SHARD_API int shard_field_is_texts(const struct shard_field *field);

/*
 * Height and width of the whole image `field` of a record: group[g] points to the record's bytes in
 * group g, of which those of the length and the size are read.  Opening a dataset does not look at
 * sizes, so use this before you use one: CORRUPT, and I57 or I59, if the image would not lie in its
 * field.  The message names `record`.  ARGUMENT if that field is no whole image.
 */
SHARD_API int shard_image_size(const struct shard_schema *schema, uint32_t field, const void *const *group,
			       uint64_t record, struct shard_size *size, struct shard_error *err);

/* Add bytes to exact sums: sums[c] gets the bytes c, c + channels, c + 2 * channels and so on. */
SHARD_API void shard_sum_bytes(const void *data, uint64_t bytes, uint32_t channels, struct shard_moments *sums);

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
	SHARD_MISS_VALUE = 11,	    /* a label, or the value of a field, is none that can be */
	SHARD_MISS_MEMBER = 12,	    /* of an archive that is cut, or a member that is a link */
	SHARD_MISS_VANISHED = 13,   /* its file was there for the plan, and is not any more */
};
enum shard_miss_how { SHARD_SKIPPED = 1, SHARD_QUARANTINED = 2 };

struct shard_miss {
	uint64_t ordinal; /* of the input, in the plan's pack order */
	uint32_t reason;  /* enum shard_miss_reason */
	uint32_t how;	  /* enum shard_miss_how */
};

SHARD_API const char *shard_miss_reason_name(uint32_t reason);

/* ---- writer: one shard ------------------------------------------------------------------ */

/* How a caller limits the threads that compute: a thread takes a turn, and gives it back before it waits. */
struct shard_turns {
	void *context;
	void (*take)(void *context); /* may wait */
	void (*give)(void *context);
};

struct shard_writer_options {
	size_t size;		    /* sizeof this struct as the caller compiled it */
	uint64_t planned_records;   /* the most that will be appended; required */
	uint64_t plan_shard;	    /* number of this shard in the plan */
	const uint8_t *plan_digest; /* 32 bytes, or NULL */
	const char *provenance;	    /* UTF-8 text, or NULL */
	uint32_t keys;		    /* 1: every record has a key */
	uint32_t skip_read_back;    /* 1: publish the file without reading it back */
	/*
	 * Not 0: count the records of each class by the field of shard_schema_label(), if there is
	 * one.  Append then refuses a label that is not a class: 0 to class_count - 1.
	 */
	uint64_t class_count;
	/*
	 * NULL, or turns that outlive the writer.  Then the caller must hold one when it calls
	 * append or finish, and none when it calls close.  The writer gives it back while it waits
	 * for the disk, and its own thread takes one.
	 */
	const struct shard_turns *turns;
	const char *temp_id; /* NULL, or 16 digits of 0-9a-f: the temporary file is ".tmp.NAME.DIGITS" */
};

struct shard_written {
	uint64_t file_bytes, record_count, miss_count;
	uint8_t root[16];   /* the footer's hash; format/SHARD.md */
	uint8_t sha256[32]; /* of the whole file */
	uint32_t already;   /* 1: an identical shard was there before, and was kept */
	uint32_t reserved;
};

/*
 * Start a shard that will be published as `path`.  Nothing has that name until
 * shard_writer_finish() succeeds: bytes go to a locked temporary file beside it, which close
 * removes.  The writer holds one unit or chunk of each group in memory, and spools small groups to
 * unnamed files.
 */
SHARD_API int shard_writer_open(struct shard_writer **out, const char *path, const struct shard_schema *schema,
				const struct shard_writer_options *opt, struct shard_error *err);

/*
 * Append one record: group[g] points to the record_bytes of group g.  `key` is NULL if the shard
 * has no keys.  After an error the writer accepts close only.
 */
SHARD_API int shard_writer_append(struct shard_writer *w, const void *const *group, const char *key, size_t key_bytes,
				  struct shard_error *err);

/* Account for an input that does not become a record.  Ordinals must ascend. */
SHARD_API int shard_writer_miss(struct shard_writer *w, const struct shard_miss *miss, struct shard_error *err);

/*
 * Complete the file, make it durable, read it back and verify it, and publish it under its name.
 * That name must be free, or hold the identical shard: then `already` is 1.  EXISTS if it holds
 * anything else, which is left as it is.  `result` may be NULL.
 */
SHARD_API int shard_writer_finish(struct shard_writer *w, struct shard_written *result, struct shard_error *err);

SHARD_API void shard_writer_close(struct shard_writer *w);

/* ---- seal: shards become a dataset ------------------------------------------------------ */

struct shard_seal;
struct shard_outline;

struct shard_seal_options {
	size_t size;
	const uint8_t *plan_digest;	/* 32 bytes, or NULL */
	const char *const *class_names; /* class_count texts in UTF-8, or NULL */
	uint64_t class_count;
	uint64_t seed;	  /* of the pack-time shuffle */
	uint32_t order;	  /* enum shard_pack_order */
	uint32_t replace; /* 1: replace an existing manifest */
};

/*
 * Collect the shards of folder `dir` in the order of the calls, then write dataset.manifest,
 * durably and atomically.  Each shard_seal_add() opens a shard, and checks its structure and that
 * its schema is that of the others.  `sha256` is 32 bytes; if it is NULL, the file is hashed.
 * shard_seal_add_outline() takes an outline of that very file.
 */
SHARD_API int shard_seal_open(struct shard_seal **out, const char *dir, const struct shard_seal_options *opt,
			      struct shard_error *err);
SHARD_API int shard_seal_add(struct shard_seal *s, const char *file, const uint8_t *sha256, struct shard_error *err);
SHARD_API int shard_seal_add_outline(struct shard_seal *s, struct shard_outline *o, const char *file,
				     const uint8_t *sha256, struct shard_error *err);
SHARD_API int shard_seal_finish(struct shard_seal *s, struct shard_error *err);
SHARD_API void shard_seal_close(struct shard_seal *s);

/* ---- small services --------------------------------------------------------------------- */

/* Write a small file durably and atomically.  With `replace` 0: EXISTS if the name is taken. */
SHARD_API int shard_publish(const char *path, const void *data, size_t bytes, int replace, struct shard_error *err);

/* Remove temporary files of dead writers, as docs/PACKING.md says.  `count` may be NULL. */
SHARD_API int shard_remove_temps(const char *dir, uint64_t *count, struct shard_error *err);

SHARD_API void shard_sha256(const void *data, size_t bytes, uint8_t out[32]);
SHARD_API void shard_xxh128(const void *data, size_t bytes, uint8_t out[16]); /* low half first, little-endian */

/* ---- reader: one shard, mapped ----------------------------------------------------------- */

struct shard_reader;
struct shard_reader_options {
	size_t size;
	uint32_t check; /* enum shard_check */
	uint32_t guard; /* enum shard_guard */
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

/* Its two pages and statistics alone, checked: read and not mapped, in half the time. */
SHARD_API int shard_outline_open(struct shard_outline **out, const char *path, struct shard_error *err);
SHARD_API void shard_outline_info(const struct shard_outline *o, struct shard_info *out);
SHARD_API void shard_outline_close(struct shard_outline *o);

/* Copy `count` neighbouring records of a group, decoded, to `dst`: count x stride bytes. */
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

/* A section, for tools that show a file's structure.  Its type has a name: "DATA", or "?". */
struct shard_section {
	uint64_t offset, bytes, item_count;
	uint32_t type, group;
	uint8_t hash[16];
};
SHARD_API int shard_reader_section(const struct shard_reader *r, uint32_t idx, struct shard_section *out,
				   struct shard_error *err);
SHARD_API const char *shard_section_name(uint32_t type);

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

#ifdef __cplusplus
}
#endif
#endif
