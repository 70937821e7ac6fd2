/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.h - open, read, verify, select and mix packed datasets, and feed them to a training loop
 *
 *   record    one sample: fixed size, the same layout in every shard of the dataset
 *   field     a named tensor in the record: `image` u8 [224,224,3], `label` i64 []
 *   group     fields stored together at one fixed stride; usually payload and meta
 *   unit      one record, or enough of them to make 4 KiB: what one hash covers
 *   shard     one immutable file of records (format/SHARD.md)
 *   dataset   a folder: dataset.manifest and the shards it names, one index space
 *   loader    turns an epoch's order of records into batches in large memory slots
 *
 * A trainer in C needs this header alone.  shard_gpu.h delivers batches on a GPU, shard_transform.h
 * crops and normalises images, shard_pack.h writes datasets, and shard_inspect.h looks inside a
 * shard.  In all five:
 *
 *   Result     SHARD_OK is 0, and errors are negative.  SHARD_END is the one positive value; it is
 *              not an error.  On error, output arguments keep their values.
 *   Errors     `err` may be NULL.  It is written only when a call fails.
 *   Ownership  *_open() gives the caller a handle.  *_close() takes it back, frees all of it, and
 *              accepts NULL.  Pointers that come from a handle die with it.
 *   Threads    Readers and datasets are constant once they are open: share them freely.
 *              Writers, seals and loaders belong to one thread at a time.
 *   Options    `struct shard_x_options o = {.size = sizeof o};`, then set what you need.
 *              Zero means the default.  A NULL pointer means all defaults.  `reserved` members are
 *              0: a later option may take their place.
 *   Units      _bytes counts bytes, _count counts things, _ns is nanoseconds.
 *   Memory     All integers and records are little-endian, and so must the machine be.
 */
#ifndef SHARD_H
#define SHARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHARD_VERSION_MAJOR 0 /* raised when the ABI breaks; part of the soname */
/* Raised when symbols or trailing options are added; while MAJOR is 0, also as MAJOR is. */
#define SHARD_VERSION_MINOR 3
#define SHARD_VERSION_PATCH 0

#define SHARD_API __attribute__((visibility("default")))

/* The version of the running library, "MAJOR.MINOR.PATCH", and of the libraries that it uses. */
SHARD_API const char *shard_version(void);
SHARD_API const char *shard_version_details(void);

/* ---- errors ----------------------------------------------------------------------------- */

/* Grouped by what the caller can do about it.  The values are ABI and never reused. */
enum shard_status {
	SHARD_OK = 0,
	SHARD_END = 1,		  /* nothing left; not an error */
	SHARD_E_ARGUMENT = -1,	  /* fix the call: bad option, index past the end */
	SHARD_E_MEMORY = -2,	  /* an allocation failed; ask for less */
	SHARD_E_IO = -3,	  /* the system refused; os_code is its errno */
	SHARD_E_CORRUPT = -4,	  /* bytes break the format or a hash; do not retry */
	SHARD_E_UNSUPPORTED = -5, /* well-formed, but needs a newer or fuller build */
	SHARD_E_MISMATCH = -6,	  /* intact, but not what the manifest says */
	SHARD_E_EXISTS = -7,	  /* something else has that name; nothing was touched */
	SHARD_E_DEVICE = -8,	  /* the GPU driver refused; os_code is its result */
	SHARD_E_CANCELLED = -9,	  /* a callback asked to stop */
	SHARD_E_TIMEOUT = -10,	  /* not within the given time; nothing is lost, try again */
};

/* What went wrong, for a person: which file, which thing, its value, the limit. */
struct shard_error {
	int32_t status;	    /* enum shard_status, as returned */
	int32_t os_code;    /* errno, or the driver's CUresult with DEVICE; else 0 */
	char message[1024]; /* one line, NUL-terminated, safe for a terminal; long paths are cut in the middle */
};

/* Static text such as "corrupt".  Never NULL, not even for an unknown code. */
SHARD_API const char *shard_status_name(int status);

/* Bytes that belong to a handle, at any alignment.  `data` is NULL only if `bytes` is 0. */
struct shard_view {
	const void *data;
	size_t bytes;
};

/* ---- schema: what a record looks like --------------------------------------------------- */

#define SHARD_GROUPS_MAX    8
#define SHARD_FIELDS_MAX    24
#define SHARD_DIMS_MAX	    8
#define SHARD_NAME_BYTES    48 /* with the NUL */
#define SHARD_KEY_BYTES_MAX 1024

/* clang-format off */
enum shard_dtype {
	SHARD_U8 = 1, SHARD_I8, SHARD_U16, SHARD_I16, SHARD_U32, SHARD_I32, SHARD_U64, SHARD_I64,
	SHARD_F16, SHARD_BF16, SHARD_F32, SHARD_F64, SHARD_BOOL,
};
enum shard_kind { SHARD_TENSOR = 0, SHARD_RAGGED = 1, SHARD_STRING = 2 };
enum shard_layout { SHARD_LAYOUT_NONE = 0, SHARD_HWC = 1, SHARD_CHW = 2, SHARD_YUV420 = 3, SHARD_LAYOUT_TOKENS = 4 };
enum shard_semantic {
	SHARD_SEMANTIC_NONE = 0, SHARD_IMAGE = 1, SHARD_LABEL = 2, SHARD_LENGTH = 3, SHARD_TOKENS = 4,
	SHARD_MASK = 5, SHARD_BOXES = 6, SHARD_TEXT = 7,
};
/* clang-format on */
enum shard_codec { SHARD_RAW = 0, SHARD_LZ4 = 1 };
enum shard_pack_order { SHARD_ORDER_UNKNOWN = 0, SHARD_ORDER_SOURCE = 1, SHARD_ORDER_SHUFFLE = 2 };

/* A field.  A packer sets the upper part, shard_schema_lay_out() the lower one. */
struct shard_field {
	char name[SHARD_NAME_BYTES]; /* [A-Za-z_][A-Za-z0-9_.-]*, unique */
	uint32_t dtype, kind, layout, semantic;
	uint32_t group;			/* below group_count */
	uint32_t ndim;			/* 0 is a scalar */
	uint32_t shape[SHARD_DIMS_MAX]; /* row-major; of a ragged field, the largest shape */
	uint32_t ragged_axes;		/* bit i: axis i varies; 0 for a tensor */
	uint32_t length_field;		/* number of the u32 field with the lengths; 0 for a tensor */

	uint64_t offset; /* from the start of the record within its group */
	uint64_t bytes;	 /* of one record */
	uint64_t stride; /* of the group: distance of neighbouring records */
};

struct shard_group {
	uint32_t codec; /* enum shard_codec; set by a packer */

	uint32_t align_log2;	/* the stride is a multiple of 2^align_log2 */
	uint32_t unit_records;	/* records under one hash */
	uint32_t chunk_records; /* records compressed together; 0 if raw */
	uint64_t record_bytes;	/* what the fields use of a record */
	uint64_t stride;	/* record_bytes and padding */
};

struct shard_schema {
	uint32_t group_count, field_count;
	struct shard_group group[SHARD_GROUPS_MAX];
	struct shard_field field[SHARD_FIELDS_MAX];
};

/* The field of that name, or NULL.  Look it up once, outside the loop. */
SHARD_API const struct shard_field *shard_schema_find(const struct shard_schema *schema, const char *name);

/* Bytes of an element; 0 for an undefined type. */
SHARD_API size_t shard_dtype_bytes(uint32_t dtype);

/* Of an image, in pixels. */
struct shard_size {
	uint32_t height, width;
};

/*
 * The number of the field with height and width of the images in field number `field`, if each image
 * has a size of its own.  SHARD_FIELDS_MAX if there is none, so compare the result with field_count.
 *
 * Such images are called whole (format/SHARD.md 2.11).  `field` is ragged u8 [A,C] with semantic
 * SHARD_IMAGE, layout SHARD_HWC and 1 to 4 channels, and axis 0 alone varies.  The other field is a
 * u32 tensor [2], called like the first with "_size" behind it.
 *
 * A loader checks sizes.  It delivers the fields with lengths and sizes beside the images, whatever
 * its option `fields` says.  `size` of struct shard_rows then has the [record_count] sizes of the
 * images as they are stored: 0 x 0 for a masked row.  They are in host memory even if the batch is
 * on a GPU.
 */
SHARD_API uint32_t shard_image_size_field(const struct shard_schema *schema, uint32_t field);

/*
 * Height and width of the whole image `field` of a record.  group[g] points to the record's bytes in
 * group g; only the length and the size are read.  Opening a dataset does not look at sizes, so call
 * this before you use one.  CORRUPT, with rule I57 or I59, if the image would not lie in its field;
 * the message names `record`.  ARGUMENT if `field` does not hold whole images.
 */
SHARD_API int shard_image_size(const struct shard_schema *schema, uint32_t field, const void *const *group,
			       uint64_t record, struct shard_size *size, struct shard_error *err);

/*
 * 1 if the field has a list of texts (format/SHARD.md 2.12), else 0: ragged u8 [N,B], SHARD_TEXT.
 * Each row is a text in UTF-8, which ends before the first zero byte or with the row.
 */
SHARD_API int shard_field_is_texts(const struct shard_field *field);

/* ---- dataset: shards as one index space ------------------------------------------------- */

struct shard_dataset;

/*
 * When a unit is compared with its hash.  A loader that delivers on a GPU may leave this to the GPU,
 * with DEVICE and ALWAYS: see shard_loader_next_device().  Then DEVICE hashes at each use, too.
 */
enum shard_check {
	SHARD_CHECK_DEVICE = 0, /* hash a unit at its first use, and whenever this process reads it from a device */
	SHARD_CHECK_ALWAYS = 1, /* hash it at each use; a loader hashes a chunk each time that it decodes it */
	SHARD_CHECK_NEVER = 2,	/* check the structure only; for storage that is verified by other means */
	SHARD_CHECK_FIRST = 3,	/* hash each unit when it is first used, and never again */
};

/* Makes an error of the SIGBUS of a map that is cut or unreadable; chains a handler.  1 is ON. */
enum shard_guard { SHARD_GUARD_ON = 0, SHARD_GUARD_OFF = 2 };

struct shard_dataset_options {
	size_t size;
	uint32_t check;	       /* enum shard_check */
	uint32_t guard;	       /* enum shard_guard */
	const char *expect_id; /* NULL, or the id that the manifest must have, else MISMATCH */
};

struct shard_dataset_info {
	uint64_t record_count, shard_count, class_count, data_bytes; /* bytes of all shard files */
	uint64_t seed;						     /* of the pack-time shuffle */
	uint32_t order;						     /* enum shard_pack_order */
	uint32_t has_plan_digest;
	uint8_t plan_digest[32];
	char id[65]; /* the manifest's SHA-256 in hex: what a training job records */
};

/*
 * Open the folder `dir`.  This reads and checks dataset.manifest only.  A shard is mapped at its
 * first use and compared with the manifest.  That use fails with MISMATCH if the shard is missing,
 * or is not the one that the manifest names.
 */
SHARD_API int shard_dataset_open(struct shard_dataset **out, const char *dir, const struct shard_dataset_options *opt,
				 struct shard_error *err);
/*
 * Several datasets as one: the records of parts[0], then those of parts[1], and so on.  A loader
 * delivers them in one order over all records.  A part may come twice, and may have no records.
 *
 *   Lives      The parts must outlive it, and were opened with the same check and guard.  It has
 *              readers of its own.
 *   Fields     The parts have the same classes, and a loader finds the fields that it is asked for
 *              to be of the same types and shapes; else it is MISMATCH.  Values that vary in length,
 *              and texts in lists, may have other greatest shapes: batches have room for the largest.
 *   Id         It has no manifest and no statistics.  Its id is the SHA-256 of the ids of its parts
 *              in order, so tokens and selections of other parts, or of another order, are refused.
 *   Limits     A part cannot be such a dataset itself, and a source of a mixture neither: name its
 *              parts.  A loader's pool is UNSUPPORTED if the parts store their records in different
 *              ways.  Tokens of a part before others were appended are refused, and so is
 *              shard_dataset_verify().
 */
SHARD_API int shard_dataset_concat(struct shard_dataset **out, struct shard_dataset *const *parts, uint32_t count,
				   struct shard_error *err);
SHARD_API void shard_dataset_close(struct shard_dataset *ds);
SHARD_API const struct shard_schema *shard_dataset_schema(const struct shard_dataset *ds);
SHARD_API void shard_dataset_info(const struct shard_dataset *ds, struct shard_dataset_info *out);

/*
 * Copy the records idx[0] to idx[count - 1], in that order.  dst has one entry per group: each
 * dst[g] that is not NULL gets count x stride decoded bytes.  Of a concatenation these are as its
 * schema says, and it is MISMATCH if a part has another field in that group.
 */
SHARD_API int shard_dataset_read(struct shard_dataset *ds, const uint64_t *idx, size_t count, void *const *dst,
				 struct shard_error *err);

/*
 * Copy a field of the records [first, first + count) to `out`, one behind the other.  Reads the
 * field's group only: of labels some bytes a record, whatever else a record holds.
 */
SHARD_API int shard_dataset_column(struct shard_dataset *ds, const struct shard_field *field, uint64_t first,
				   uint64_t count, void *out, struct shard_error *err);

/*
 * Copy the key of a record to `out`, which has room for SHARD_KEY_BYTES_MAX bytes of UTF-8 without a
 * NUL.  *bytes becomes its length: 0 if the dataset has no keys.
 */
SHARD_API int shard_dataset_key(struct shard_dataset *ds, uint64_t idx, char *out, size_t *bytes,
				struct shard_error *err);

/* Name of a class in UTF-8; NULL past the last one. */
SHARD_API const char *shard_dataset_class_name(const struct shard_dataset *ds, uint64_t class_idx);

/* ---- verify ----------------------------------------------------------------------------- */

struct shard_verify_options {
	size_t size;
	uint64_t sample_units; /* check the structure and this many units, spread evenly; 0: all of them */
	uint32_t thread_count; /* 0: one for each CPU that this process may use */
	uint32_t sha256;       /* 1: also the SHA-256 of each shard file, as after a download; datasets only */
	void *context;	       /* given to both callbacks, which run in the caller's thread only */
	/* Called about 10 times a second and at the end.  Not 0: stop, with CANCELLED. */
	int (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
	/* Called for each problem; verification goes on.  Without it, the first problem ends it. */
	void (*problem)(void *context, const struct shard_error *problem);
};

struct shard_verify_report {
	uint64_t shard_count, record_count, unit_count, bytes; /* checked */
	uint64_t problem_count;
	uint64_t elapsed_ns;
};

/*
 * Check every rule of format/SHARD.md.  The result is the status of the gravest problem: CORRUPT,
 * then IO, UNSUPPORTED and MISMATCH.  `err` describes the first problem with that status.  IO means
 * that bytes could not be read, which is not damage.
 */
SHARD_API int shard_dataset_verify(struct shard_dataset *ds, const struct shard_verify_options *opt,
				   struct shard_verify_report *report, struct shard_error *err);

/* ---- loader: batches, in a reproducible order ------------------------------------------- */

struct shard_loader;

/* format/ORDER.md defines them all: which record stands where, on any machine, for any world. */
enum shard_shuffle {
	SHARD_SHUFFLE_BY_SIZE = 0, /* GLOBAL for uncompressed records of 128 KiB and more, else WINDOWS */
	SHARD_SEQUENTIAL = 1,
	SHARD_SHUFFLE_GLOBAL = 2, /* one level: any record may follow any other */
	/* two levels: runs of neighbouring records are read together, and shuffled in windows */
	SHARD_SHUFFLE_WINDOWS = 3,
};
enum shard_tail { SHARD_DROP = 0, SHARD_PAD = 1, SHARD_KEEP = 2 }; /* KEEP: in a world of 1 only */

/* How records are read.  Tables, compressed groups and those below 4096 bytes are always mapped. */
enum shard_path {
	/*
	 * For each shard: PREAD on a network file system; else MAP if it is in memory, or records
	 * are below 16 KiB, or the dataset fits in memory (PREAD without the guard); else DIRECT.
	 */
	SHARD_PATH_AUTO = 0,
	SHARD_PATH_MAP = 1,
	/* past the page cache, with io_uring if it is allowed; PREAD if the file system refuses */
	SHARD_PATH_DIRECT = 2,
	SHARD_PATH_PREAD = 3, /* through the page cache; the guard then matters for mapped parts only */
};

/*
 * What becomes of a row whose record is damaged: a wrong hash, a chunk that does not decode, or a
 * size that is not that of the image.  Shapes never change, and the result depends on the dataset's
 * bytes alone, not on ranks or threads.  Damaged tables and unreadable disks always fail.
 */
enum shard_on_corrupt {
	SHARD_CORRUPT_FAIL = 0,
	SHARD_CORRUPT_SUBSTITUTE = 1, /* the next good record of the dataset with its label; the row is flagged */
	SHARD_CORRUPT_MASK = 2,	      /* zeros in all fields; the row is flagged */
};

/* Which record comes when.  Two loaders with the same order, and the same data, give the same batches. */
struct shard_loader_order {
	uint64_t seed;	  /* with the epoch, fixes the order */
	uint32_t shuffle; /* enum shard_shuffle */
	/*
	 * The windows of format/ORDER.md.  The defaults (0) are runs of 256 KiB, windows of 40
	 * runs, and 64 lanes.  They depend on the size of a record only.  If world divides
	 * lane_count, a rank reads its own runs only; else each rank reads all of them.
	 */
	uint32_t window_runs, lane_count;
	uint32_t reserved; /* 0 */
	uint64_t run_records, phase_unit_records;
};

/* Batches in the memory of a GPU.  shard_gpu.h explains all of it. */
struct shard_loader_gpu {
	uint32_t device;     /* SHARD_GPU(n) or SHARD_GPU_OF_STREAM; 0: batches in host memory */
	uint32_t slot_count; /* batches in the GPU's memory, lent or on their way: 2 to 4; default 3 */
	void *stream;	     /* of that GPU, or NULL */
	uint64_t pool_bytes; /* not 0: keep a pool of at most that many bytes in the GPU's memory */
	uint64_t pin_most;   /* bytes of the page cache to page-lock at most, or SHARD_PIN_NOTHING; see shard_gpu.h */
};

/* What to do about damaged records. */
struct shard_loader_repair {
	uint32_t on_corrupt; /* enum shard_on_corrupt */
	uint32_t reserved;   /* 0 */
	/* Most damaged rows to replace in an epoch; one more fails with CORRUPT.  0 means 1024, UINT64_MAX no limit. */
	uint64_t corrupt_most;
};

/*
 * Each record with its neighbours: see shard_episodes_open().  Offsets count records from the one
 * that the order names: { -15, ..., 0 } are that one and the 15 before it.
 */
struct shard_loader_window {
	const struct shard_episodes *episodes; /* NULL: no windows, and the other members are 0 */
	const int32_t *offset;		       /* [offset_count] ascending; the loader copies them */
	uint32_t offset_count;
	uint32_t reserved; /* 0 */
};

struct shard_loader_options {
	size_t size;
	uint32_t batch_records;	  /* rows of a batch, for each rank; required */
	uint32_t rank, world;	  /* which share of the epoch is ours; world 0 means 1 */
	uint32_t tail;		  /* enum shard_tail: what to do with records that do not fill the last step */
	uint32_t slot_count;	  /* batches in memory, lent or prefetched; default 4, at least 2 */
	uint32_t thread_count;	  /* threads that fill slots; default: one per CPU, at most 4 */
	uint32_t path;		  /* enum shard_path */
	uint32_t fields;	  /* bit f: field f is wanted; others are not read, and have no data; 0: all */
	uint32_t resume_appended; /* 1: accept tokens from before an append */
	uint32_t reserved;	  /* 0 */
	/*
	 * The most memory for decoded chunks of compressed groups, besides the ring.  The default
	 * of 0 is as much as one window of this rank needs, or in a global order as much as all
	 * chunks need.  It is at most a quarter of the memory that is available at the first next:
	 * to the system, and within the limits of this control group and of all its parents.
	 * With less than it needs, a loader is slower: it decodes chunks more than once an epoch.
	 */
	uint64_t stage_bytes;
	struct shard_loader_order order;
	struct shard_loader_repair repair;
	struct shard_loader_gpu gpu;
	const struct shard_selection *selection;	/* NULL: all records */
	const struct shard_mix *mix;			/* NULL, or what to load instead of a dataset */
	const struct shard_loader_transform *transform; /* NULL, or how to transform images: shard_transform.h */
	struct shard_loader_window window;
};

/* Row i of record_count is at data + i x stride. */
struct shard_rows {
	const void *data; /* in a slot of the ring, 4096-aligned for groups; or on a GPU, see shard_gpu.h */
	uint64_t stride;  /* bytes */
	const struct shard_size *size; /* NULL, or in host memory, of images that differ in size */
};

enum shard_row_flag {
	SHARD_ROW_PADDED = 1,
	SHARD_ROW_SUBSTITUTED = 2,
	SHARD_ROW_MASKED = 4,
	SHARD_ROW_EDGE = 8, /* of a window: beyond its episode, so the row repeats the record at the edge */
};

struct shard_batch {
	uint64_t epoch;
	/* Of the first row of this step, over all ranks.  Rank q has the rows position + q, + q + world, ... */
	uint64_t position;
	uint64_t step; /* position / (world x batch_records): counts from 0 in each epoch */
	/*
	 * batch_records, or fewer in the last batch with SHARD_KEEP.  With windows, as many times
	 * offset_count: the rows of a window follow each other.
	 */
	uint32_t record_count;
	uint32_t slot;		   /* the loader's own; hand it back unchanged */
	const uint64_t *record;	   /* [record_count] dataset index of each row; of the substitute if it is one */
	const uint8_t *row_flags;  /* [record_count] enum shard_row_flag */
	const uint16_t *component; /* [record_count] of a mixture: whose record it is; else NULL */
	struct shard_rows group
		[SHARD_GROUPS_MAX]; /* strides of 4096 and more: whole records; else the array of its first field */
	struct shard_rows
		field[SHARD_FIELDS_MAX]; /* any field; an array of its own in groups with strides below 4096 */
};

/*
 * Prepare a loader for the life of a job.  Reads metadata only: memory and threads come with the
 * first next, and belong to the process that called it.  After fork the child can only close.
 * The dataset must outlive the loader.  ARGUMENT also if an epoch would have no step.
 */
SHARD_API int shard_loader_open(struct shard_loader **out, struct shard_dataset *ds,
				const struct shard_loader_options *opt, struct shard_error *err);
/* May be called at any time: pointers of lent batches are then dead.  Waits for reads under way. */
SHARD_API void shard_loader_close(struct shard_loader *l);

/*
 * Get the next batch, which threads have prepared meanwhile.  SHARD_END ends an epoch; the call
 * after that starts the next one.  Fails with ARGUMENT if all slots are lent: release one first.
 * A forked child gets ARGUMENT, too.  Other errors repeat until seek or resume.
 */
SHARD_API int shard_loader_next(struct shard_loader *l, struct shard_batch *batch, struct shard_error *err);

/*
 * Wait until shard_loader_next() would return at once, with a batch or an error.  TIMEOUT if that
 * takes more than `timeout_ns`; 0 polls.  For threads that have other work to do.  After a call of
 * shard_loader_next_device() or shard_loader_begin_device(), this waits for the former instead.  That
 * one may then still wait for the GPU, which has to check the batch.
 */
SHARD_API int shard_loader_wait(struct shard_loader *l, uint64_t timeout_ns, struct shard_error *err);

/* Give a batch back, in any order.  Its pointers are then dead. */
SHARD_API int shard_loader_release(struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err);

/*
 * What a field of the schema is in the batches of this loader: dtype, layout, shape, and bytes of a
 * row.  `field` is below the schema's field_count.  With more than one view the first axis of the
 * shape has the views.
 */
SHARD_API void shard_loader_field(const struct shard_loader *l, uint32_t field, struct shard_field *out);

/* Batches in an epoch, the same number for every rank. */
SHARD_API uint64_t shard_loader_step_count(const struct shard_loader *l);

/*
 * The dataset indices of this rank's rows [first, first + count) of an epoch.  Reads no record.
 *
 * `component` is NULL for a dataset.  For a mixture, component[i] has the record idx[i] of its
 * dataset; NULL leaves that out.  The rows are then those of positions epoch x epoch_records and up
 * that belong to this rank; another rank may have one more or one less.  The batches of an epoch
 * begin some positions later if the last step of the epoch before has taken these.
 */
SHARD_API int shard_loader_order(const struct shard_loader *l, uint64_t epoch, uint64_t first, uint64_t count,
				 uint16_t *component, uint64_t *idx, struct shard_error *err);

/* The epoch of the next batch, and its position in the epoch's global order. */
SHARD_API void shard_loader_tell(const struct shard_loader *l, uint64_t *epoch, uint64_t *position);

/* Continue at global `position` of `epoch`.  Waits for nothing, and lent batches stay valid. */
SHARD_API int shard_loader_seek(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err);

/*
 * The same place as a token: one line of printable text to keep in a checkpoint, with all that
 * fixes the order, and the dataset's id.  World, rank, batch size and threads may be others when a
 * job resumes.  Each record still comes once; SHARD_DROP leaves out the last incomplete step.  If
 * that is all that is left of the epoch, resume continues with the next epoch.
 */
#define SHARD_TOKEN_BYTES 512 /* with the NUL */
SHARD_API void shard_loader_token(const struct shard_loader *l, char token[SHARD_TOKEN_BYTES]);

/*
 * Continue where the token was made, in its order, not in that of the defaults.  MISMATCH if the
 * token belongs to another dataset, to an order that the options do not ask for, or to pixels that
 * a transform does not give.  SHARD_SHUFFLE_BY_SIZE asks for any order that shuffles.  ARGUMENT if
 * the token is incomplete or damaged, or if it names another order while batches are lent from a
 * pool.  After a failure the loader stays where it is.  resume_appended takes tokens of the dataset
 * before `shardpack append`, too: docs/TRAINING.md.
 */
SHARD_API int shard_loader_resume(struct shard_loader *l, const char *token, struct shard_error *err);

/* The order in use, with defaults filled in: kind is never SHARD_SHUFFLE_BY_SIZE. */
struct shard_order_info {
	uint64_t record_count, seed, run_records, phase_unit_records;
	uint32_t kind, window_runs, lane_count, reserved;
};
SHARD_API void shard_loader_order_info(const struct shard_loader *l, struct shard_order_info *out);

/*
 * The ring holds all slots.  Before the first next, the caller may lend memory for it: at least
 * shard_loader_ring_bytes(), 4096-aligned, such as a region that was page-locked with
 * cudaHostRegister.  The loader writes to it until close and never frees it.  Keep it from forked
 * children with MADV_DONTFORK, because disks may be writing to it.  A ring of the loader's own lies
 * in huge pages, and is kept from children.
 */
SHARD_API uint64_t shard_loader_ring_bytes(const struct shard_loader *l);
SHARD_API int shard_loader_lend(struct shard_loader *l, void *memory, uint64_t bytes, struct shard_error *err);

/*
 * For batches whose memory the caller keeps.  Lend a piece of memory for each slot, instead of one
 * for the ring: `count` is slot_count, and a piece has shard_loader_ring_bytes() / slot_count bytes,
 * 4096-aligned.  Not for a loader with a pool.
 *
 * shard_loader_swap() is then called instead of shard_loader_release().  The rows of the batch stay
 * where they are, and are the caller's from now on.  The slot goes on in `memory`, which is a piece
 * as above.  record, row_flags, component and the sizes of images are dead.  So what still reads the
 * rows need not be waited for: a copy to a GPU, or another thread.  Not for a loader that has a GPU.
 */
SHARD_API int shard_loader_lend_slots(struct shard_loader *l, void *const memory[], uint32_t count,
				      struct shard_error *err);
SHARD_API int shard_loader_swap(struct shard_loader *l, const struct shard_batch *batch, void *memory,
				struct shard_error *err);

/* Counters since open.  Times are sums over threads: divide them by elapsed_ns x thread_count. */
struct shard_loader_stats {
	uint64_t batch_count, record_count, bytes; /* lent by next; bytes of slots, with the padding of records */
	/* By threads.  More than next lent: threads work ahead, and a seek discards their work. */
	uint64_t filled_record_count, filled_bytes;
	uint64_t checked_unit_count;			  /* hashed */
	uint64_t elapsed_ns;				  /* since the first next */
	uint64_t next_wait_ns, next_wait_count;		  /* next waited for a batch: the trainer was faster */
	uint64_t fill_ns, fill_cpu_ns;			  /* time threads spent filling; the part of it on a CPU */
	uint64_t slot_wait_ns;				  /* threads had no free slot: the trainer was slower */
	uint64_t mapped_bytes, direct_bytes, pread_bytes; /* of filled_bytes, by how they were read */
	uint64_t substituted_count, masked_count;	  /* of the rows that were filled */
	uint32_t thread_count, has_uring;
	uint64_t stage_bytes;		 /* the most memory for decoded chunks, besides the ring */
	uint64_t decoded_chunk_count;	 /* each time that a chunk was decoded */
	uint64_t unfinished_chunk_count; /* chunks that made room before all their records were taken: many mean that
					    stage_bytes is too small.  Not counted where ranks share runs */
	uint64_t device_bytes;		 /* copied to the GPU; more than batch_count needs, as copies are ahead */
	uint64_t pageable_bytes;	 /* of these, from memory that was not page-locked */
	uint64_t pinned_bytes;		 /* of the ring that are page-locked */
	uint64_t cached_bytes;	       /* of device_bytes, that the GPU read in the page cache: no thread copied them */
	uint64_t registered_bytes;     /* of the page cache that are page-locked for this */
	uint64_t device_wait_ns;       /* next waited for the GPU: the host was ahead, as it should be */
	uint64_t device_checked_count; /* units that the GPU hashed, as it got them: not in checked_unit_count */
	uint64_t check_wait_count;     /* batches, or slabs of a pool, not checked yet when next needed them */
	uint64_t recopied_count;       /* rows that the GPU found damaged and a CPU did not: they were copied again */
};
SHARD_API void shard_loader_stats(struct shard_loader *l, struct shard_loader_stats *out);

/*
 * A line for a log, from the counters of one loader at two times.  If `before` is NULL, the line
 * covers the time since open.  If next waited less than 1 % of the time, the trainer is the slower
 * side.  If it waited longer, report() of examples/loader_report.c tells why.
 *
 *   4000 batches in 10.0 s, 82300.0 records/s, 12400.0 MB/s; next waited 0.3 % of the time
 */
#define SHARD_SUMMARY_BYTES 192 /* with the NUL; no line is longer */
SHARD_API void shard_stats_summary(const struct shard_loader_stats *now, const struct shard_loader_stats *before,
				   char text[SHARD_SUMMARY_BYTES]);

/* What was wrong with the row substituted or masked last, for a log.  END if there was none. */
SHARD_API int shard_loader_last_damage(struct shard_loader *l, struct shard_error *out);

/* ---- selections: train on some records of a dataset --------------------------------------- */

/*
 * A selection names records of one dataset, each once.  A loader that is given one delivers these
 * records and no others; all else is as with the whole dataset: order, ranks, tokens, damage, GPUs.
 *
 *	shard_select_where(&cats, ds, NULL, "label", &cat, 1, &err);
 *	shard_select_fold(&train, ds, cats, 0, 5, SHARD_FOLD_REST, seed, &err);
 *	options.selection = train;
 *
 * Records lie in it in the order of the dataset.  The order of an epoch is that of a dataset with as
 * many records (format/ORDER.md); its numbers are places in the selection.  Runs of neighbours are
 * runs of the selection, so the fewer records are selected, the further they lie apart, and the more
 * is read and hashed beside them: shard_selection_amplification() says how much.
 *
 * In memory it takes 1 1/8 bits for each record of the dataset, or 4 bytes for each selected record
 * (8 in datasets of more than 2^32), whichever is less.  Making one takes a bit for each record of
 * the dataset besides.  A selection is constant: share it freely between threads.  It may outlive
 * the dataset, and must outlive loaders that use it.
 *
 * In each call that makes one: `of` is a selection to choose from, or NULL for the whole dataset;
 * it may be closed afterwards.  ARGUMENT if no record is left, since nobody trains on nothing.
 */

/* The records idx[0] to idx[count - 1], in any order.  ARGUMENT if one comes twice. */
SHARD_API int shard_select_open(struct shard_selection **out, struct shard_dataset *ds, const uint64_t *idx,
				uint64_t count, struct shard_error *err);
SHARD_API void shard_selection_close(struct shard_selection *s);

/*
 * The records whose `field`, an integer scalar such as `label`, has one of these values.  Reads
 * this field of all records, with the checks of the dataset.
 */
SHARD_API int shard_select_where(struct shard_selection **out, struct shard_dataset *ds,
				 const struct shard_selection *of, const char *field, const int64_t *values,
				 uint64_t value_count, struct shard_error *err);

/*
 * By any other rule: the records i whose mask[i] is not 0.  There is a byte for each record of the
 * dataset, whatever `of` is.  shard_dataset_column() reads what a rule needs.
 */
SHARD_API int shard_select_mask(struct shard_selection **out, struct shard_dataset *ds,
				const struct shard_selection *of, const uint8_t *mask, uint64_t count,
				struct shard_error *err);

/*
 * Records [begin x n, end x n), rounded to the nearest, of n records in an order that `seed` fixes.
 * 0 to 0.9 and 0.9 to 1 are a training set and a validation set that have no record in common.
 */
SHARD_API int shard_select_fraction(struct shard_selection **out, struct shard_dataset *ds,
				    const struct shard_selection *of, double begin, double end, uint64_t seed,
				    struct shard_error *err);

/*
 * Part `fold` of `fold_count` parts that are equal to within one record, of the same order; or all
 * the other parts.
 */
enum shard_fold { SHARD_FOLD_PART = 0, SHARD_FOLD_REST = 1 };
SHARD_API int shard_select_fold(struct shard_selection **out, struct shard_dataset *ds,
				const struct shard_selection *of, uint32_t fold, uint32_t fold_count, uint32_t which,
				uint64_t seed, struct shard_error *err);

/* ---- selections in files */

/* Write a small file that names the dataset, and ends in a SHA-256.  EXISTS if there is one. */
SHARD_API int shard_selection_write(const struct shard_selection *s, const char *path, struct shard_error *err);
/* CORRUPT if it is damaged or another file, MISMATCH if it selects records of another dataset. */
SHARD_API int shard_selection_read(struct shard_selection **out, struct shard_dataset *ds, const char *path,
				   struct shard_error *err);

/* ---- what a selection holds */

struct shard_selection_info {
	uint64_t record_count; /* selected */
	uint64_t of_count;     /* records of the dataset */
	uint64_t memory_bytes;
	char digest[65];     /* SHA-256 in hex of dataset and records; tokens have it */
	char dataset_id[65]; /* in hex */
};
SHARD_API void shard_selection_info(const struct shard_selection *s, struct shard_selection_info *out);

/* Places [first, first + count) of the selection: idx[i] is the record at place first + i. */
SHARD_API int shard_selection_records(const struct shard_selection *s, uint64_t first, uint64_t count, uint64_t *idx,
				      struct shard_error *err);

/*
 * What a loader reads and hashes of raw and compressed units, over what it delivers: an estimate by
 * a sample.  1 for whole datasets, and for records that are units of their own.
 */
SHARD_API double shard_selection_amplification(const struct shard_selection *s, const struct shard_dataset *ds);

/* ---- windows: records with their neighbours ------------------------------------------------ */

/*
 * Frames of videos, steps of robots, and time series: a model gets a record and some before or
 * behind it.  The dataset is packed in the order of the source, and a field has a number for each
 * episode, such as a recording.  Records of an episode lie together.
 *
 *	const int32_t offset[] = {-3, -2, -1, 0};
 *
 *	shard_episodes_open(&episodes, ds, "episode", &err);
 *	options.window = (struct shard_loader_window){.episodes = episodes, .offset = offset, .offset_count = 4};
 *
 * A row of the order then becomes offset_count rows of the batch.  Windows do not leave their
 * episode: where one would, the row repeats the first or the last record of the episode, and is
 * flagged with SHARD_ROW_EDGE.  shard_select_inside() selects the records whose windows have no
 * such rows.  A selection chooses the records of the order; their neighbours may be others.
 *
 * All else is as without windows.  Order, positions, ranks and tokens are those of the records that
 * windows are around, and shard_loader_order() tells these.  A transform draws once for a window, so
 * all its images are cropped alike.  SHARD_CORRUPT_MASK masks a damaged record in each window that
 * has it.  Not for mixtures, pools, SHARD_CORRUPT_SUBSTITUTE and resume_appended.
 */
struct shard_episodes;

/*
 * Reads the field of all records, an integer scalar.  ARGUMENT if records with the same value do not
 * lie together, or the manifest does not say that they were packed in the order of the source.  In a
 * concatenation each dataset numbers its episodes for itself, and none goes on in the next one.
 * Episodes are constant: share them freely.  They may outlive the dataset, and must outlive loaders
 * that use them.
 */
SHARD_API int shard_episodes_open(struct shard_episodes **out, struct shard_dataset *ds, const char *field,
				  struct shard_error *err);
SHARD_API void shard_episodes_close(struct shard_episodes *e);

/* The records of `of`, or of the dataset, whose neighbours from `first` to `last` are in their episode. */
SHARD_API int shard_select_inside(struct shard_selection **out, struct shard_dataset *ds,
				  const struct shard_selection *of, const struct shard_episodes *e, int32_t first,
				  int32_t last, struct shard_error *err);

/* ---- mixtures of datasets ----------------------------------------------------------------- */

/*
 * A mixture trains on several datasets at once, in exact proportions.  It has components: datasets,
 * or selections of them, each with a weight.  A loader that is given one delivers records of all
 * components.
 *
 *	struct shard_mix_source sources[] = {{.ds = web, .weight = 3}, {.ds = books, .weight = 1}};
 *	shard_mix_open(&mix, sources, 2, NULL, &err);
 *	options.mix = mix;
 *	shard_loader_open(&loader, NULL, &options, &err);
 *
 * format/ORDER.md, part 12, says which record stands where.  In short:
 *
 *   Weights    A block is 64 x (sum of all weights) positions, and has exactly its share of each
 *              component.  [3, 1] and [6, 2] are two orders: longer blocks are nearer to
 *              chance.
 *   Passes     Each component comes in passes: all of its records, then all of them again in
 *              another order.  A pass goes on where an epoch ends.  So each record comes once in a
 *              pass, not in an epoch.
 *   Epochs     Epochs of a mixture only decide when next returns SHARD_END.  A step that crosses the
 *              end of one takes the first positions of the next epoch; nothing is dropped or padded.
 *              After the last epoch that ends at position 2^62 or before, next fails with ARGUMENT.
 *   Resume     The place is one number.  World, batch size and length of epochs may change.
 *
 * In batches, `component` says whose record a row is, and `record` its number in that dataset.
 * Rank q has the positions epoch x epoch_records + position that are q mod world.  The first source
 * chooses runs and the kind of order.
 *
 * Components have the fields that a loader asks for, of the same types and shapes.  If values vary
 * in length, the greatest shape of a component may be smaller: batches have the largest one, which
 * shard_loader_field() tells, and zeros behind what a record has.
 *
 * A component of fewer records than 64 runs has one window, from which all ranks read single
 * records.  Each open window of a component takes memory: 64 lanes of 40 runs of 256 KiB, unless
 * options say otherwise, in the page cache or as decoded chunks.
 */
#define SHARD_MIX_WEIGHTS_MAX 4096 /* the sum of all weights is at most this */

struct shard_mix_source {
	struct shard_dataset *ds;
	const struct shard_selection *selection; /* of ds; NULL: all records */
	uint32_t weight;			 /* 1 or more; or 0 in all sources: shard_mix_round() by size */
	uint32_t reserved;			 /* 0 */
};

enum shard_mix_stop {
	/* One pass of the component that takes longest, rounded to whole blocks. */
	SHARD_MIX_LONGEST = 0,
	SHARD_MIX_SHORTEST = 1, /* one pass of the component that takes shortest */
};

struct shard_mix_options {
	size_t size;
	uint64_t epoch_records; /* at most 2^62; 0: as `stop` says */
	uint32_t stop;		/* enum shard_mix_stop */
	uint32_t reserved;	/* 0 */
};

/*
 * The datasets and selections must outlive the mixture, and the mixture its loaders.  It is
 * constant: share it freely between threads.  The datasets must have the fields that a loader asks
 * for, stored in the same way, and the same classes if that is a label; else opening a loader is
 * MISMATCH.
 */
SHARD_API int shard_mix_open(struct shard_mix **out, const struct shard_mix_source *sources, uint32_t source_count,
			     const struct shard_mix_options *opt, struct shard_error *err);
SHARD_API void shard_mix_close(struct shard_mix *m);

/*
 * Whole weights in proportion to `share`, with the sum 4096: rounded down, at least 1, and what is
 * left goes to the largest remainders.  ARGUMENT if a share is not a number above 0, or is below
 * half of such a part: its records would come more than twice as often as was asked for.
 */
SHARD_API int shard_mix_round(const double *share, uint32_t count, uint32_t *weight, struct shard_error *err);

struct shard_mix_info {
	uint64_t epoch_records; /* positions of an epoch */
	uint32_t component_count, weight_sum;
	char digest[65]; /* SHA-256 in hex of datasets, selections and weights; a token contains it */
};
SHARD_API void shard_mix_info(const struct shard_mix *m, struct shard_mix_info *out);
/*
 * The weight of a component, and how many records it has.  `weight` or `records` may be NULL.
 * ARGUMENT past the last component.
 */
SHARD_API int shard_mix_component(const struct shard_mix *m, uint32_t component, uint32_t *weight, uint64_t *records,
				  struct shard_error *err);

#ifdef __cplusplus
}
#endif
#endif
