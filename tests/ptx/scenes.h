/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scenes.h - a launch of each kernel, drawn from a seed, and what the definition in C makes of it
 *
 * The device's addresses mean nothing to the host.  Images, records and outputs lie at any
 * alignment that the library may give them.  A launch is granted exactly the bytes that it needs,
 * and what is behind the output must not change.
 */
#ifndef TESTS_PTX_SCENES_H
#define TESTS_PTX_SCENES_H

#include "libshard/gpu/gather.h"
#include "libshard/gpu/gpu.h"
#include "libshard/transform/transform.h"
#include "shard_transform.h"
#include "tests/cuda/check_twin.h"
#include "tests/ptx/ptx.h"
#include "tests/store/whole.h"

#define SCENE_FROM    UINT64_C(0x7f1000000000)
#define SCENE_TABLE   UINT64_C(0x7f2000000000)
#define SCENE_TO      UINT64_C(0x7f3000000000)
#define SCENE_GUARD   64u
#define SCENE_RECORDS 5u
#define SCENE_CHECKS  (UINT64_C(1) << 63) /* a bit of the seed: units are checked */

struct scene {
	char name[TRANSFORM_NAME_BYTES], story[200];
	struct ptx_launch launch;
	union {
		struct transform_call transform;
		struct gather_call gather;
		struct check_call check;
	} call;
	uint8_t *from, *table, *got, *want, *written;
	uint64_t out_bytes;
	struct shard_size size[SCENE_RECORDS]; /* of images, if they differ */
	bool partly;			       /* gather: bytes between arrays stay as they are */
};

/* The program of a text, which the library ships, or a plant changed. */
static inline struct ptx_program *read_well(const char *text)
{
	char error[PTX_ERROR_BYTES];
	struct ptx_program *p = ptx_read(text, error);

	if (!p)
		test_fail(__FILE__, __LINE__, "%s", error);
	return p;
}

static inline struct shard_transform_options scene_options(struct prng *p, struct shard_field *field)
{
	static const uint32_t dtypes[] = {SHARD_F16, SHARD_BF16, SHARD_F32, SHARD_F32, SHARD_U8};
	bool likely = prng_below(p, 2),
	     planar = !likely && !prng_below(p, 2); /* likely: what the fast kernels are for */
	uint32_t height = 1 + (uint32_t)prng_below(p, 70), width = 1 + (uint32_t)prng_below(p, 70) + 8 * likely,
		 channels = likely ? 3 : 1 + (uint32_t)prng_below(p, 4);
	struct shard_transform_options o = {.size = sizeof(o),
					    .crop = (uint32_t)prng_below(p, 3),
					    .dtype = dtypes[prng_below(p, 5)],
					    .layout = prng_below(p, 2) ? SHARD_CHW : SHARD_HWC,
					    .pixels = (uint32_t)prng_below(p, 4),
					    .flip = 0.5};
	bool resized = o.crop == SHARD_CROP_RESIZED;
	uint32_t high = resized ? 90 : height, wide = resized ? 90 : width;

	*field = (struct shard_field){
		.name = "image",
		.dtype = SHARD_U8,
		.layout = planar ? SHARD_CHW : SHARD_HWC,
		.ndim = 3,
		.shape = {planar ? channels : height, planar ? height : width, planar ? width : channels},
		.bytes = (uint64_t)height * width * channels};
	o.height = prng_below(p, 5) ? 1 + (uint32_t)prng_below(p, high) : high;
	o.width = likely ? 8 * (1 + (uint32_t)prng_below(p, wide / 8)) : 1 + (uint32_t)prng_below(p, wide);
	if (resized && prng_below(p, 2)) {
		o.area_min = 0.0001;
		o.ratio_min = 0.1;
		o.ratio_max = 10;
	}
	for (int c = 0; c < 4 && o.dtype != SHARD_U8; c++) {
		o.mean[c] = (float)(prng_below(p, 1000) / 1000.0);
		o.std[c] = (float)(0.1 + prng_below(p, 900) / 1000.0);
	}
	return o;
}

/*
 * With `edges`, half of the rows touch edges of their image, and most of these lie at the first or
 * the last byte of the batch.  There the bytes end that a kernel may read, and it has to leave its
 * fast way.
 */
static inline void scene_row(const struct scene *s, const struct transform_plan *plan, struct prng *p, bool edges,
			     uint32_t records, struct shard_transform_row *row)
{
	uint32_t from = (uint32_t)prng_below(p, records);
	bool touches = edges && prng_below(p, 2), corner = touches && prng_below(p, 4), last = prng_below(p, 2);
	struct transform_image image;

	from = !corner ? from : last ? records - 1 : 0;
	image = transform_image_of(plan, NULL, s->size, from);
	transform_draw(plan, &image, 7, prng_next(p), 0, row);
	row->from = from;
	if (!touches)
		return;
	if (plan->crop == SHARD_CROP_RESIZED) {
		row->width = prng_below(p, 2) ? image.width : 1 + (uint32_t)prng_below(p, image.width);
		row->height = prng_below(p, 2) ? image.height : 1 + (uint32_t)prng_below(p, image.height);
	}
	row->x = (corner ? last : prng_below(p, 2)) ? image.width - row->width : 0;
	row->y = (corner ? last : prng_below(p, 2)) ? image.height - row->height : 0;
}

static inline void scene_output(struct scene *s, struct prng *p, uint64_t bytes, uint32_t shift)
{
	s->out_bytes = bytes;
	s->got = malloc(bytes + SCENE_GUARD);
	s->want = malloc(bytes + SCENE_GUARD);
	s->written = calloc(bytes + 1, 1);
	memset(s->got, 0xa5, bytes + SCENE_GUARD);
	memset(s->want, 0xa5, bytes + SCENE_GUARD);
	s->launch.region[0] = (struct ptx_region){SCENE_TO + shift, bytes, s->got, true, false, s->written};
	s->launch.region_count = 1;
	s->launch.name = s->name;
	s->launch.parameter = &s->call;
	s->launch.seed = prng_next(p);
}

/* How many there are of each, and bytes before, between and behind them. */
struct scene_layout {
	uint32_t records, rows, shift; /* shift: of the output, from a multiple of 16 */
	uint64_t before, lead, gap_below;
	bool edges; /* parts that the library does not draw, too */
};

static inline void scene_rows(struct scene *s, struct prng *p, const struct transform_plan *plan,
			      const struct scene_layout *l)
{
	struct transform_call *c = &s->call.transform;
	void *scratch = aligned_alloc(16, (transform_twin_bytes(plan) + 15) & ~UINT64_C(15));

	for (uint32_t i = 0; i < s->launch.grid[1]; i++) {
		struct transform_image image;
		struct shard_transform_row row;

		scene_row(s, plan, p, l->edges, l->records, &row);
		image = transform_image_of(plan, s->from + l->before + row.from * c->record_step, s->size, row.from);
		transform_put_row(plan, c, i, &row, image.width, row.from);
		transform_twin(plan, &row, &image, s->want + i * plan->row_bytes, scratch);
	}
	free(scratch);
}

static inline void scene_lay_out(struct scene *s, struct prng *p, const struct transform_plan *plan,
				 const struct scene_layout *l)
{
	struct transform_call *c = &s->call.transform;
	uint64_t bytes, table = (uint64_t)plan->channels * 256 * plan->element_bytes;
	struct transform_plan largest = *plan;
	uint32_t shared;
	struct shard_error err;

	if (s->size[0].height && plan->crop == SHARD_CROP_RESIZED) { /* the library lays it out so, too */
		largest.in_height = s->size[0].height;
		largest.in_width = s->size[0].width;
	}
	CHECK_OK(transform_grid(&largest, TRANSFORM_SHARED_BYTES, c, &shared, &err));
	transform_shape(plan, !l->shift, c, s->name);
	scene_output(s, p, l->rows * plan->row_bytes, l->shift);
	s->launch.threads = TRANSFORM_THREADS;
	s->launch.grid[0] = transform_blocks(c);
	s->launch.grid[1] = l->rows;
	s->launch.shared_bytes = shared;
	c->record_step = plan->image_bytes + (l->gap_below ? prng_below(p, l->gap_below) : 0);
	bytes = l->before + (l->records - 1) * c->record_step + plan->image_bytes;
	s->launch.table_end = (uint32_t)table;
	s->from = malloc(bytes);
	prng_fill(p, s->from, bytes);
	s->table = malloc(table);
	for (uint32_t i = 0; i < plan->channels * 256; i++)
		memcpy(s->table + i * plan->element_bytes, &plan->bits[i / 256][i % 256], plan->element_bytes);
	c->from = SCENE_FROM + l->lead + l->before;
	c->from_end = SCENE_FROM + l->lead + bytes;
	c->table = SCENE_TABLE;
	c->to = SCENE_TO + l->shift;
	s->launch.region[1] = (struct ptx_region){c->from, bytes - l->before, s->from + l->before, false, true, NULL};
	s->launch.region[2] = (struct ptx_region){SCENE_TABLE, table, s->table, false, true, NULL};
	s->launch.region_count = 3;
	scene_rows(s, p, plan, l);
	snprintf(s->story, sizeof(s->story), "%s, %u x %u x %u to %u x %u, %u rows", s->name, plan->in_height,
		 plan->in_width, plan->channels, plan->height, plan->width, l->rows);
}

static inline void scene_transform(struct scene *s, struct prng *p)
{
	struct shard_field field;
	struct shard_transform_options o = scene_options(p, &field);
	struct scene_layout l = {.records = 1 + (uint32_t)prng_below(p, SCENE_RECORDS),
				 .rows = 1 + (uint32_t)prng_below(p, 4),
				 .edges = true};
	struct transform_plan plan;
	struct shard_error err;

	l.before = prng_below(p, 20);
	l.lead = prng_below(p, 64);
	if (field.layout == SHARD_HWC && prng_below(p, 2)) { /* images differ in size */
		bool resizes = o.crop == SHARD_CROP_RESIZED;

		whole_field(p, &field, (struct shard_size){resizes ? 1 : o.height, resizes ? 1 : o.width}, s->size,
			    SCENE_RECORDS);
		s->size[l.records - 1] = s->size[0]; /* so that some end with the batch */
	}
	CHECK_OK(transform_plan_make(&plan, &field, &o, &err));
	plan.seed = prng_next(p);
	if (!prng_below(p, 40) && plan.row_bytes < 2000)
		l.rows = TRANSFORM_ROWS;
	if (!prng_below(p, 4))
		l.shift = plan.element_bytes * (1 + (uint32_t)prng_below(p, 16 / plan.element_bytes - 1));
	l.gap_below = 40;
	scene_lay_out(s, p, &plan, &l);
	transform_spread(&s->call.transform, 1, 1 + (uint32_t)prng_below(p, 6));
	s->launch.grid[0] = transform_blocks(&s->call.transform);
	if (!prng_below(p, 3)) /* fewer lines at a time, or none */
		s->call.transform.stage_bytes = (uint32_t)prng_below(p, s->call.transform.stage_bytes + UINT64_C(1));
}

/* Arrays of a slab and of a batch, at multiples of 64 or of nothing.  Rows of a slab may be further apart. */
static inline void scene_pieces(struct gather_call *c, struct prng *p, uint64_t *slab, uint64_t *batch)
{
	static const uint32_t usual[] = {8, 4, 2, 1, 16, 3072, 16384, 16383, 16385, 32768, 100, 20000};

	for (uint32_t i = 0; i < c->piece_count; i++) {
		uint32_t bytes =
			prng_below(p, 2) ? usual[prng_below(p, COUNT(usual))] : 1 + (uint32_t)prng_below(p, 9000);
		uint64_t to = prng_below(p, 3) ? 64 : 1, step;

		if (c->row_count > 60)
			bytes = 1 + bytes % 200;
		*slab = (*slab + to - 1) / to * to;
		*batch = (*batch + to - 1) / to * to;
		step = bytes + prng_below(p, 2) * prng_below(p, 100);
		step = prng_below(p, 2) ? (step + 15) / 16 * 16 : step;
		c->piece[i] = (struct gather_piece){*slab, *batch, bytes, (uint32_t)step};
		*slab += step * c->slab_rows;
		*batch += (uint64_t)bytes * (c->first_row + c->row_count);
	}
}

/* The arrays of the call stand.  A batch has so many bytes; `anywhere`: the pool is at any byte. */
static inline void scene_lay_out_gather(struct scene *s, struct prng *p, uint32_t slabs, uint64_t batch, uint32_t shift,
					bool anywhere)
{
	struct gather_call *c = &s->call.gather;
	uint32_t longest = 1;

	for (uint32_t i = 0; i < c->piece_count; i++)
		longest = c->piece[i].bytes > longest ? c->piece[i].bytes : longest;
	snprintf(s->name, sizeof(s->name), "gather_rows");
	scene_output(s, p, batch, shift);
	s->launch.threads = GATHER_THREADS;
	s->launch.grid[0] = c->row_count;
	s->launch.grid[1] = (longest + GATHER_PART - 1) / GATHER_PART;
	s->from = malloc(c->slab_bytes * slabs);
	prng_fill(p, s->from, c->slab_bytes * slabs);
	s->partly = true;
	c->from = SCENE_FROM + (anywhere ? prng_below(p, 17) * prng_below(p, 2) : 0);
	c->to = SCENE_TO + shift;
	s->launch.region[1] = (struct ptx_region){c->from, c->slab_bytes * slabs, s->from, false, true, NULL};
	s->launch.region_count = 2;
	for (uint32_t k = 0; k < c->row_count; k++) {
		c->row[k] = (uint32_t)prng_below(p, (uint64_t)slabs * c->slab_rows);
		for (uint32_t i = 0; i < c->piece_count; i++) {
			const struct gather_piece *g = &c->piece[i];

			memcpy(s->want + g->to_at + (uint64_t)(c->first_row + k) * g->bytes,
			       s->from + c->row[k] / c->slab_rows * c->slab_bytes + g->from_at +
				       (uint64_t)(c->row[k] % c->slab_rows) * g->from_step,
			       g->bytes);
		}
	}
	snprintf(s->story, sizeof(s->story), "%s, %u rows of %u arrays", s->name, c->row_count, c->piece_count);
}

static inline void scene_gather(struct scene *s, struct prng *p)
{
	struct gather_call *c = &s->call.gather;
	uint32_t slabs = 1 + (uint32_t)prng_below(p, 5);
	uint64_t slab = prng_below(p, 64), batch = prng_below(p, 64);
	uint32_t shift = (uint32_t)(prng_below(p, 2) ? 0 : prng_below(p, 17));

	c->slab_rows = 1 + (uint32_t)prng_below(p, 12);
	c->piece_count = 1 + (uint32_t)prng_below(p, prng_below(p, 4) ? 5 : GATHER_PIECES);
	c->first_row = prng_below(p, 3) ? 0 : (uint32_t)prng_below(p, 50);
	c->row_count = 1 + (uint32_t)prng_below(p, prng_below(p, 8) ? 12 : GATHER_ROWS);
	scene_pieces(c, p, &slab, &batch);
	c->slab_bytes = slab + prng_below(p, 100);
	scene_lay_out_gather(s, p, slabs, batch, shift, true);
}

/* The length of units: all kinds that XXH3 has, their ends, and what is usual. */
static inline uint64_t scene_unit_bytes(struct prng *p)
{
	static const uint64_t usual[] = {0,    1,    3,	   4,	 8,    9,    16,   17,	 32,   33,   64,
					 65,   96,   97,   128,	 129,  143,  144,  240,	 241,  256,  257,
					 1023, 1024, 1025, 1088, 1089, 1151, 1152, 1153, 2048, 2049, 3072,
					 4096, 4097, 5120, 5121, 8192, 8193, 9217, 12288};
	static const uint64_t most[] = {16, 128, 240, 1100, 5000};

	return prng_below(p, 2) ? usual[prng_below(p, COUNT(usual))] : prng_below(p, most[prng_below(p, 5)] + 1);
}

/* Flip a bit of a unit: in the first or last byte, among the last ones, or anywhere. */
static inline void scene_damage(struct prng *p, uint8_t *unit, uint64_t bytes)
{
	uint64_t last = bytes < 80 ? bytes : 80, kind = prng_below(p, 4);
	uint64_t at = kind == 0	  ? 0
		      : kind == 1 ? bytes - 1
		      : kind == 2 ? bytes - 1 - prng_below(p, last)
				  : prng_below(p, bytes);

	unit[at] ^= (uint8_t)(1u << prng_below(p, 8));
}

/* The launch is granted the units that it has to read, each for itself if there are few. */
static inline void scene_grant_units(struct scene *s)
{
	struct check_call *c = &s->call.check;
	uint64_t all = (c->row_count - 1) * c->step + c->bytes;

	for (uint32_t i = 0; i < c->row_count && c->row_count < PTX_REGIONS; i++)
		if (!(c->skip[i / 32] >> i % 32 & 1))
			s->launch.region[s->launch.region_count++] = (struct ptx_region){
				c->from + i * c->step, c->bytes, s->from + i * c->step, false, true, NULL};
	if (c->row_count >= PTX_REGIONS)
		s->launch.region[s->launch.region_count++] =
			(struct ptx_region){c->from, all, s->from, false, true, NULL};
}

/* from, step, bytes and row_count of the call stand.  Its units are filled, and all of them right. */
static inline void scene_fill_units(struct scene *s, struct prng *p)
{
	struct check_call *c = &s->call.check;
	uint64_t all = (c->row_count - 1) * c->step + c->bytes;
	uint32_t block_rows = c->bytes > CHECK_SHORT ? CHECK_THREADS / CHECK_WARP : CHECK_THREADS;

	snprintf(s->name, sizeof(s->name), c->bytes > CHECK_SHORT ? "check_long" : "check_short");
	scene_output(s, p, c->row_count * sizeof(struct check_result), 0);
	s->launch.threads = CHECK_THREADS;
	s->launch.grid[0] = (c->row_count + block_rows - 1) / block_rows;
	s->launch.grid[1] = 1;
	c->to = SCENE_TO;
	c->number = (uint32_t)prng_next(p);
	s->from = malloc(all + 1);
	prng_fill(p, s->from, all);
	for (uint32_t i = 0; i < c->row_count; i++)
		c->want[i] = checksum64(s->from + i * c->step, c->bytes);
}

/* Nothing of it changes any more. */
static inline void scene_expect_results(struct scene *s)
{
	scene_grant_units(s);
	check_twin_rows(&s->call.check, s->from, (struct check_result *)(void *)s->want);
}

static inline void scene_check(struct scene *s, struct prng *p)
{
	struct check_call *c = &s->call.check;
	uint64_t to = prng_below(p, 2) ? 64 : prng_below(p, 2) ? 16 : 1;
	bool many = !prng_below(p, 10);

	c->bytes = scene_unit_bytes(p);
	c->step = (c->bytes + prng_below(p, 20) * prng_below(p, 2) + to - 1) / to * to;
	c->from = SCENE_FROM + (prng_below(p, 2) ? 0 : prng_below(p, 17));
	c->row_count = 1 + (uint32_t)prng_below(p, !many ? PTX_REGIONS - 2 : c->bytes <= CHECK_SHORT ? CHECK_ROWS : 40);
	scene_fill_units(s, p);
	for (uint32_t i = 0; i < c->row_count; i++) {
		if (!prng_below(p, 8))
			c->want[i] ^= UINT64_C(1) << prng_below(p, 64);
		if (!prng_below(p, 8))
			c->skip[i / 32] |= 1u << i % 32;
		if (c->bytes && !prng_below(p, 4))
			scene_damage(p, s->from + i * c->step, c->bytes);
	}
	scene_expect_results(s);
	snprintf(s->story, sizeof(s->story), "%s, %u units of %" PRIu64 " bytes, %" PRIu64 " apart, from %#" PRIx64,
		 s->name, c->row_count, c->bytes, c->step, c->from);
}

/* One of eight gathers, unless the seed asks for a check. */
static inline void scene_open(struct scene *s, uint64_t seed)
{
	struct prng p = {seed};

	memset(s, 0, sizeof(*s));
	if (seed & SCENE_CHECKS)
		scene_check(s, &p);
	else if (prng_below(&p, 8))
		scene_transform(s, &p);
	else
		scene_gather(s, &p);
}

static inline void scene_close(struct scene *s)
{
	free(s->from);
	free(s->table);
	free(s->got);
	free(s->want);
	free(s->written);
}

/* Runs it; false with what is wrong.  It may be run again. */
static inline bool scene_run(struct scene *s, struct ptx_program *program, char error[PTX_ERROR_BYTES])
{
	memset(s->got, 0xa5, s->out_bytes + SCENE_GUARD);
	memset(s->written, 0, s->out_bytes);
	if (!ptx_run(program, &s->launch, error))
		return false;
	if (!s->partly && memchr(s->written, 0, s->out_bytes)) {
		snprintf(error, PTX_ERROR_BYTES, "never: a byte of the output is not written");
		return false;
	}
	snprintf(error, PTX_ERROR_BYTES, "bits: the output is not that of the definition");
	return !memcmp(s->got, s->want, s->out_bytes + SCENE_GUARD);
}

#endif
