/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ptx_kernel_counts.c - what the shipped kernels ask of a GPU, counted and held below ceilings
 *
 * `make ptx-counts` prints the table.  After a change of the kernels, write it into docs/GPU.md.
 *
 * TAKES: 20
 */
#include "tests/ptx/ptx_count.h"
#include "tests/ptx/scenes.h"

#define ROWS	   2u
#define BATCH_ROWS 256u /* rows are spread over blocks as if there were so many, */
#define BLOCKS	   528u /* on a GPU of 132 multiprocessors */

/* What is counted of a launch.  The first two and SHARED are multiples of the least. */
enum figure { LOADS, STORES, WAITS, CHAIN, SHARED, WORK, FRACTIONS, FIGURES };
static const char *const figure_names[FIGURES] = {
	"sectors loaded", "sectors stored",	     "waits",
	"chain",	  "passes of shared memory", "instructions of a thread for 16 bytes",
	"f64 for a row"};

/* Ceilings stand in the order of `enum figure`. */
static const struct counted {
	const char *kernel, *story;
	uint32_t in_height, in_width, side, channels; /* of a gather: channels x side x side are its bytes */
	uint32_t dtype, layout, crop, pixels;
	bool planar;
	double most[FIGURES];
} counted[] = {
	/* clang-format off */
	{"transform_crop_chw_16", "256 to 224", 256, 256, 224, 3, SHARD_F16, SHARD_CHW, SHARD_CROP_RANDOM, 0, false,
	 {1.25, 1, 1, 1, 2.5, 110, 0}},
	{"transform_crop_chw_32", "256 to 224", 256, 256, 224, 3, SHARD_F32, SHARD_CHW, SHARD_CROP_RANDOM, 0, false,
	 {1.55, 1, 1, 1, 2.5, 65, 0}},
	{"transform_crop_hwc_16", "256 to 224", 256, 256, 224, 3, SHARD_F16, SHARD_HWC, SHARD_CROP_RANDOM, 0, false,
	 {1.25, 1, 1, 1, 2.7, 155, 0}},
	{"transform_crop_hwc_32", "256 to 224", 256, 256, 224, 3, SHARD_F32, SHARD_HWC, SHARD_CROP_RANDOM, 0, false,
	 {1.55, 1, 1, 1, 2.3, 95, 0}},
	{"transform_crop_any_16", "256 to 224, planes", 256, 256, 224, 3, SHARD_F16, SHARD_CHW, SHARD_CROP_RANDOM, 0,
	 true, {1.4, 1, 1, 1, 1.8, 540, 0}},
	{"transform_crop_any_32", "32 to 28, grey", 32, 32, 28, 1, SHARD_F32, SHARD_CHW, SHARD_CROP_RANDOM, 0, false,
	 {2.6, 1, 1, 1, 1.9, 445, 0}},
	{"transform_resize_16", "256 to 224", 256, 256, 224, 3, SHARD_F16, SHARD_CHW, SHARD_CROP_RESIZED, 0, false,
	 {1.2, 1, 12, 1, 1.2, 780, 65e3}},
	{"transform_resize_16", "320 x 256, down first", 320, 256, 224, 3, SHARD_F16, SHARD_CHW, SHARD_CROP_RESIZED,
	 SHARD_PIXELS_PILLOW_13, false, {1.25, 1, 14, 1, 1.2, 900, 68e3}},
	{"transform_resize_32", "512 to 224", 512, 512, 224, 3, SHARD_F32, SHARD_HWC, SHARD_CROP_RESIZED, 0, false,
	 {1.2, 1, 48, 1, 1.6, 950, 115e3}},
	{"gather_rows", "150528 bytes", 0, 0, 224, 3, 0, 0, 0, 0, false, {1, 1, 1, 1, 0, 30, 0}},
	/* clang-format on */
};
#define COUNTED COUNT(counted)

static void lay_out_transform(struct scene *s, struct prng *p, const struct counted *c)
{
	struct shard_field field = {.name = "image",
				    .dtype = SHARD_U8,
				    .layout = c->planar ? SHARD_CHW : SHARD_HWC,
				    .ndim = 3,
				    .shape = {c->in_height, c->in_width, c->channels},
				    .bytes = (uint64_t)c->in_height * c->in_width * c->channels};
	/* Of resized images the whole is taken, so all cases of a kernel do as much. */
	struct shard_transform_options o = {.size = sizeof(o),
					    .height = c->side,
					    .width = c->side,
					    .dtype = c->dtype,
					    .layout = c->layout,
					    .crop = c->crop,
					    .pixels = c->pixels,
					    .flip = 0.5,
					    .area_min = 1,
					    .area_max = 1,
					    .ratio_min = (double)c->in_width / c->in_height,
					    .ratio_max = (double)c->in_width / c->in_height};
	struct scene_layout l = {.records = ROWS, .rows = ROWS};
	struct transform_plan plan;
	struct shard_error err;

	if (c->planar)
		memcpy(field.shape, (uint32_t[]){c->channels, c->in_height, c->in_width}, 3 * sizeof(uint32_t));
	CHECK_OK(transform_plan_make(&plan, &field, &o, &err));
	plan.seed = prng_next(p);
	scene_lay_out(s, p, &plan, &l);
	transform_spread(&s->call.transform, BATCH_ROWS, BLOCKS);
	s->launch.grid[0] = transform_blocks(&s->call.transform);
}

static void lay_out_gather(struct scene *s, struct prng *p, const struct counted *c)
{
	struct gather_call *call = &s->call.gather;
	uint32_t bytes = c->side * c->side * c->channels;

	call->slab_rows = call->piece_count = 1;
	call->row_count = ROWS;
	call->piece[0].bytes = bytes;
	call->slab_bytes = bytes;
	scene_lay_out_gather(s, p, ROWS, ROWS * (uint64_t)bytes, 0, false);
}

static void lay_out(struct scene *s, const struct counted *c)
{
	struct prng p = {2};

	memset(s, 0, sizeof(*s));
	if (c->in_height)
		lay_out_transform(s, &p, c);
	else
		lay_out_gather(s, &p, c);
	STORY("%s, %s", c->kernel, c->story);
	CHECK_STR(s->name, c->kernel);
}

/* ---- counts ---- */

/* Bytes of the images' parts that a launch needs. */
static uint64_t needed(const struct scene *s, const struct counted *c)
{
	const struct transform_row *row = s->call.transform.row;
	uint64_t bytes = 0;

	if (!c->in_height)
		return s->out_bytes;
	for (uint32_t i = 0; i < ROWS; i++)
		bytes += (uint64_t)row[i].width * row[i].height * c->channels;
	return bytes;
}

static double part(uint64_t is, uint64_t least)
{
	return least ? (double)is / (double)least : 0;
}

static void count_in(struct ptx_program *p, const struct counted *c, struct ptx_counts *counts, double got[FIGURES])
{
	char error[PTX_ERROR_BYTES];
	struct scene s;

	lay_out(&s, c);
	s.launch.counts = counts;
	if (!scene_run(&s, p, error))
		test_fail(__FILE__, __LINE__, "%s", error);
	got[LOADS] = part(counts->load.sectors * 32, needed(&s, c));
	got[STORES] = part(counts->store.sectors * 32, s.out_bytes);
	got[WAITS] = counts->waits;
	got[CHAIN] = counts->chain;
	got[SHARED] = part(counts->shared_passes, counts->shared_least);
	got[WORK] = part(counts->instructions * 32 * 16, s.out_bytes);
	got[FRACTIONS] = part(counts->fractions, ROWS);
	scene_close(&s);
}

static const char *text_of(const struct counted *c)
{
	return c->in_height ? transform_ptx : gather_ptx;
}

static void hold_to_ceilings(const struct counted *c, const double got[FIGURES])
{
	for (int f = 0; f < FIGURES; f++)
		if (got[f] > c->most[f])
			test_fail(__FILE__, __LINE__, "%s: %g, and at most %g are allowed", figure_names[f], got[f],
				  c->most[f]);
}

TEST(kernels_ask_for_no_more_than_their_ceilings)
{
	printf("kernel                 images                 loaded stored waits loads shared  work    f64\n");
	for (const struct counted *c = counted; c < counted + COUNTED; c++) {
		struct ptx_program *p = read_well(text_of(c));
		struct ptx_counts n;
		double got[FIGURES];

		count_in(p, c, &n, got);
		ptx_free(p);
		hold_to_ceilings(c, got);
		printf("%-22s %-22s %6.2f %6.2f %5.0f %5u %6.2f %5.0f %6.0f\n", c->kernel, c->story, got[LOADS],
		       got[STORES], got[WAITS], n.loads, got[SHARED], got[WORK], got[FRACTIONS]);
	}
}

/* ---- the ceilings hold ---- */

/* What a worse compiler, or a worse kernel, might do to a line.  The pixels stay as they are. */
static const struct {
	enum figure figure;
	const char *kernel, *line; /* lines that begin so */
	const char *behind;	   /* R: the first register between its braces; A: the register of its address */
	unsigned times;
} plants[] = {
	{LOADS, "transform_crop_chw_16", "ld.global.nc.v4.u32 ", "ld.global.nc.v4.u32 {%z1, %z2, %z3, %z4}, [A];\n", 1},
	{WAITS, "transform_crop_chw_16", "ld.global.nc.v4.u32 ", "add.s32 R, R, 0;\n", 1},
	{WAITS, "gather_rows", "ld.global.nc.v4.u32 ", "add.s32 R, R, 0;\n", 1},
	{CHAIN, "transform_crop_hwc_32", "ld.global.nc.v4.u32 ",
	 "cvt.u64.u32 %y1, R;\nand.b64 %y1, %y1, 0;\nadd.s64 %y1, A, %y1;\nld.global.nc.u32 %z1, [%y1];\n", 1},
	{SHARED, "transform_crop_any_16", "bar.sync ",
	 "mov.u32 %z1, %tid.x;\nshl.b32 %z1, %z1, 7;\nand.b32 %z1, %z1, 4095;\nld.shared.u32 %z2, [%z1];\n", 99},
	{WORK, "transform_crop_hwc_16", "ld.shared.u16 ", "mov.u32 %z1, %tid.x;\n", 2},
	{FRACTIONS, "transform_resize_16", "div.rn.f64 ", "add.rn.f64 %x1, %x1, %x1;\n", 9},
	/* Of this one the line itself goes. */
	{STORES, "transform_crop_hwc_16", "st.v4.u32 ", NULL, 1},
};

/* "{a, b, c, d}, [e]", in any order, to these. */
static void operands_of(const char *line, char part[4][16], char address[16])
{
	const char *open = strchr(line, '{');

	if (sscanf(open, "{%15[^,], %15[^,], %15[^,], %15[^}]", part[0], part[1], part[2], part[3]) != 4 ||
	    sscanf(strchr(line, '['), "[%15[^]+]", address) != 1)
		test_fail(__FILE__, __LINE__, "'%.60s' is not understood", line);
}

/* Write what is planted; NULL is a store of 16 bytes as four of 4. */
static void plant_behind(FILE *out, const char *line, const char *behind)
{
	char part[4][16] = {""}, address[16] = "";
	bool has_parts = strchr(line, '{') && strchr(line, '{') < strchr(line, '\n');

	if (has_parts)
		operands_of(line, part, address);
	for (unsigned k = 0; !behind && k < 4; k++)
		fprintf(out, "st.u32 [%s+%u], %s;\n", address, 4 * k, part[k]);
	for (; behind && *behind; behind++)
		if (has_parts && (*behind == 'R' || *behind == 'A'))
			fputs(*behind == 'R' ? part[0] : address, out);
		else
			fputc(*behind, out);
}

static char *planted(const char *text, size_t i)
{
	size_t bytes;
	char *made = NULL;
	FILE *out = open_memstream(&made, &bytes);

	for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
		int length = (int)strcspn(at, "\n") + 1;
		bool here = !strncmp(at, plants[i].line, strlen(plants[i].line));

		if (!here || plants[i].behind)
			fprintf(out, "%.*s", length, at);
		if (!strncmp(at, "{\n", 2))
			fputs(".reg .b32 %z<5>;\n.reg .b64 %y<2>;\n.reg .f64 %x<2>;\n", out);
		for (unsigned n = 0; here && n < plants[i].times; n++)
			plant_behind(out, at, plants[i].behind);
	}
	fclose(out);
	return made;
}

TEST(what_asks_for_more_is_noticed)
{
	if (getenv("VARIANT") && *getenv("VARIANT")) /* the same interpreter on the same cases: nothing new */
		return;
	for (size_t i = 0; i < COUNT(plants); i++) {
		const struct counted *c = counted;
		struct ptx_program *p;
		struct ptx_counts n;
		double got[FIGURES];
		char *text;

		while (strcmp(c->kernel, plants[i].kernel))
			c++;
		text = planted(text_of(c), i);
		p = read_well(text);
		count_in(p, c, &n, got);
		STORY("%s in %s", figure_names[plants[i].figure], c->kernel);
		CHECK(got[plants[i].figure] > c->most[plants[i].figure]);
		ptx_free(p);
		free(text);
	}
}

TEST_MAIN()
