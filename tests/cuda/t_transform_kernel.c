/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transform_kernel.c - the kernels' source, run thread by thread, and the twin in C: the same
 * bits
 *
 * What no compiler for a GPU has touched: that ptxas takes what nvcc made of it is
 * tests/cuda/ptx.sh's affair.  Addresses are the host's here, in allocations of their exact length,
 * so a sanitizer sees every byte that is read too much.
 *
 * TIMEOUT: 600
 */
#include "libshard/gpu/gpu.h"
#include "libshard/transform/transform.h"
#include "shard_transform.h"
#include "tests/child.h"
#include "tests/cuda/emulate.h"
#include "tests/store/whole.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TRIES 200
#else
#define TRIES 400
#endif
#define RECORDS 5u
#define ROWS	6u

/* What one comparison needs. */
struct scene {
	struct transform_plan plan;
	struct transform_call call;
	uint32_t shared_bytes, threads, misaligned;
	char name[TRANSFORM_NAME_BYTES];
	uint8_t *memory, *images; /* what was allocated; the first image in it */
	uint64_t stride;
	struct shard_size size[RECORDS]; /* of the images, if they differ */
	struct shard_transform_row row[ROWS];
	uint32_t row_count;
	uint8_t *table, *got, *want;
	void *scratch;
};

static struct shard_error err;

/* ---- making one ---- */

static struct shard_transform_options random_options(struct prng *p, struct shard_field *field)
{
	static const uint32_t dtypes[] = {SHARD_F16, SHARD_BF16, SHARD_F32, SHARD_F32, SHARD_U8};
	uint32_t height = 1 + (uint32_t)prng_below(p, 70), width = 1 + (uint32_t)prng_below(p, 70),
		 channels = 1 + (uint32_t)prng_below(p, 4);
	bool planar = prng_below(p, 3) == 0, likely = prng_below(p, 2); /* what the fast kernels are for */
	struct shard_transform_options o = {.crop = SHARD_CROP_RANDOM + (uint32_t)prng_below(p, 2),
					    .dtype = dtypes[prng_below(p, 5)],
					    .layout = prng_below(p, 2) ? SHARD_CHW : SHARD_HWC,
					    .pixels = (height + width) % 4,
					    .flip = 0.5};

	if (likely) {
		channels = 3;
		planar = false;
		width = 8 + width;
	}
	*field = (struct shard_field){.name = "image",
				      .dtype = SHARD_U8,
				      .layout = planar ? SHARD_CHW : SHARD_HWC,
				      .ndim = 3,
				      .shape = {height, width, channels},
				      .bytes = (uint64_t)height * width * channels};
	if (planar)
		memcpy(field->shape, (uint32_t[]){channels, height, width}, 3 * sizeof(uint32_t));
	if (o.crop == SHARD_CROP_RESIZED) {
		o.height = 1 + (uint32_t)prng_below(p, 90);
		o.width = likely ? 8 * (1 + (uint32_t)prng_below(p, 8)) : 1 + (uint32_t)prng_below(p, 90);
		o.area_min = 0.0001;
		o.ratio_min = 0.1;
		o.ratio_max = 10;
	} else {
		o.height = 1 + (uint32_t)prng_below(p, height);
		o.width = likely ? 8 * (1 + (uint32_t)prng_below(p, width / 8)) : 1 + (uint32_t)prng_below(p, width);
	}
	for (int c = 0; c < 4 && o.dtype != SHARD_U8; c++) {
		o.mean[c] = (float)(prng_below(p, 1000) / 1000.0);
		o.std[c] = (float)(0.1 + prng_below(p, 900) / 1000.0);
	}
	return o;
}

static uint16_t line_word(const struct transform_plan *plan, const struct shard_transform_row *row)
{
	bool down_first = plan->crop == SHARD_CROP_RESIZED && transform_is_down_first(plan, row);

	return (uint16_t)(row->y | (down_first ? TRANSFORM_DOWN_FIRST : 0));
}

/* Half of what is stored HWC differs in size; half of that is laid out for its largest image. */
static void make_plan(struct scene *s, struct prng *p, struct shard_field *field,
		      const struct shard_transform_options *o)
{
	bool resizes = o->crop == SHARD_CROP_RESIZED;
	struct shard_size least = {resizes ? 1 : o->height, resizes ? 1 : o->width};
	struct transform_plan bounds;

	if (field->layout == SHARD_HWC && prng_below(p, 2))
		whole_field(p, field, least, s->size, RECORDS);
	CHECK_OK(transform_plan_make(&s->plan, field, o, &err));
	s->plan.seed = prng_next(p);
	bounds = s->plan;
	if (s->plan.is_whole && prng_below(p, 2)) {
		bounds.in_height = s->size[0].height;
		bounds.in_width = s->size[0].width;
	}
	CHECK_OK(transform_grid(&bounds, TRANSFORM_SHARED_BYTES, &s->call, &s->shared_bytes, &err));
}

static struct transform_image image_at(const struct scene *s, uint32_t from)
{
	return transform_image_of(&s->plan, s->images + from * s->stride, s->size, from);
}

static void scene_open(struct scene *s, struct prng *p)
{
	struct shard_field field;
	struct shard_transform_options o = random_options(p, &field);
	size_t before = prng_below(p, 20), bytes;

	memset(s, 0, sizeof(*s));
	make_plan(s, p, &field, &o);
	s->stride = field.bytes + prng_below(p, 40);
	bytes = before + (RECORDS - 1) * s->stride + field.bytes;
	s->memory = malloc(bytes);
	s->images = s->memory + before;
	prng_fill(p, s->memory, bytes);
	s->row_count = 1 + (uint32_t)prng_below(p, ROWS);
	for (uint32_t i = 0; i < s->row_count; i++) {
		uint32_t from = (uint32_t)prng_below(p, RECORDS);
		struct transform_image image = image_at(s, from);

		transform_draw(&s->plan, &image, 7, prng_next(p), 0, &s->row[i]);
		s->row[i].from = from;
		s->call.line_pixels[i] = (uint16_t)image.width;
	}
	s->misaligned = prng_below(p, 4) ? 0 : s->plan.element_bytes;
	s->table = malloc(s->plan.channels * 256 * s->plan.element_bytes);
	for (uint32_t i = 0; i < s->plan.channels * 256; i++)
		memcpy(s->table + i * s->plan.element_bytes, &s->plan.bits[i / 256][i % 256], s->plan.element_bytes);
	s->got = malloc(s->row_count * s->plan.row_bytes + 64);
	s->want = malloc(s->row_count * s->plan.row_bytes + 64);
	s->scratch = aligned_alloc(16, (transform_twin_bytes(&s->plan) + 15) & ~UINT64_C(15));
	s->threads = prng_below(p, 8) ? 1 + (uint32_t)prng_below(p, 5) : 64;
	transform_shape(&s->plan, !s->misaligned, &s->call, s->name);
	transform_spread(&s->call, 1, 1 + (uint32_t)prng_below(p, 6));
	if (!prng_below(p, 3)) /* fewer lines at a time, or none */
		s->call.stage_bytes = (uint32_t)prng_below(p, s->call.stage_bytes + UINT64_C(1));
	s->call.from = (uintptr_t)s->images;
	s->call.from_end = (uintptr_t)s->memory + bytes;
	s->call.record_step = s->stride;
	s->call.table = (uintptr_t)s->table;
	s->call.to = (uintptr_t)s->got + s->misaligned;
	for (uint32_t i = 0; i < s->row_count; i++)
		s->call.row[i] = (struct transform_row){
			s->row[i].from, (uint16_t)(s->row[i].x | (s->row[i].flip ? TRANSFORM_FLIP : 0)),
			line_word(&s->plan, &s->row[i]), (uint16_t)s->row[i].width, (uint16_t)s->row[i].height};
}

static void scene_close(struct scene *s)
{
	free(s->memory);
	free(s->table);
	free(s->got);
	free(s->want);
	free(s->scratch);
}

/* Both ways; are they the same, and is nothing written besides? */
static bool scene_agrees(struct scene *s, uint32_t bands)
{
	size_t bytes = s->row_count * s->plan.row_bytes + 64;

	memset(s->got, 0xa5, bytes);
	memset(s->want, 0xa5, bytes);
	for (uint32_t i = 0; i < s->row_count; i++) {
		struct transform_image image = image_at(s, s->row[i].from);

		transform_twin(&s->plan, &s->row[i], &image, s->want + s->misaligned + i * s->plan.row_bytes,
			       s->scratch);
	}
	emulate(s->name, &s->call, bands, s->row_count, s->shared_bytes, s->threads);
	return !memcmp(s->got, s->want, bytes);
}

/* ---- the same ---- */

TEST(kernels_and_twin_give_the_same_bits)
{
	unsigned ran[EMULATED_KERNELS] = {0};

	for (uint64_t seed = 0; seed < TRIES; seed++) {
		struct prng p = {seed};
		struct scene s;

		scene_open(&s, &p);
		STORY("seed %" PRIu64 ": %s, %u x %u x %u to %u x %u, %u threads", seed, s.name, s.plan.in_height,
		      s.plan.in_width, s.plan.channels, s.plan.height, s.plan.width, s.threads);
		CHECK(scene_agrees(&s, transform_blocks(&s.call)));
		for (size_t i = 0; i < EMULATED_KERNELS; i++)
			ran[i] += !strcmp(emulated_kernels[i].name, s.name);
		scene_close(&s);
	}
	for (size_t i = 0; i < EMULATED_KERNELS; i++) {
		STORY("%s", emulated_kernels[i].name);
		CHECK(ran[i] > TRIES / 100);
	}
}

/* As photographs are packed: 256 x 256 to 224 x 224. */
TEST(images_of_the_usual_size)
{
	for (uint32_t crop = SHARD_CROP_CENTER; crop <= SHARD_CROP_RESIZED; crop++) {
		struct shard_field field = {.name = "image",
					    .dtype = SHARD_U8,
					    .layout = SHARD_HWC,
					    .ndim = 3,
					    .shape = {256, 256, 3},
					    .bytes = 196608};
		struct shard_transform_options o = {
			.height = 224, .width = 224, .crop = crop, .dtype = SHARD_F16, .flip = 0.5};
		struct prng p = {crop};
		struct scene s;

		do { /* a scene of a small image, made larger */
			scene_open(&s, &p);
			scene_close(&s);
		} while (s.misaligned);
		STORY("crop %u", crop);
		CHECK_OK(transform_plan_make(&s.plan, &field, &o, &err));
		CHECK_OK(transform_grid(&s.plan, TRANSFORM_SHARED_BYTES, &s.call, &s.shared_bytes, &err));
		transform_shape(&s.plan, true, &s.call, s.name);
		CHECK_STR(s.name, crop == SHARD_CROP_RESIZED ? "transform_resize_16" : "transform_crop_chw_16");
		s.row_count = 2;
		s.stride = field.bytes;
		s.memory = s.images = malloc(RECORDS * field.bytes);
		prng_fill(&p, s.memory, RECORDS * field.bytes);
		s.table = malloc(3 * 256 * 2);
		for (uint32_t i = 0; i < 3 * 256; i++)
			memcpy(s.table + 2 * i, &s.plan.bits[i / 256][i % 256], 2);
		s.got = malloc(2 * s.plan.row_bytes + 64);
		s.want = malloc(2 * s.plan.row_bytes + 64);
		s.scratch = aligned_alloc(16, (transform_twin_bytes(&s.plan) + 15) & ~UINT64_C(15));
		for (uint32_t i = 0; i < 2; i++) {
			struct transform_image image = image_at(&s, RECORDS - 1 - i);

			transform_draw(&s.plan, &image, 0, i, 0, &s.row[i]);
			s.call.line_pixels[i] = (uint16_t)image.width;
			s.row[i].from = RECORDS - 1 - i;
			s.call.row[i] = (struct transform_row){
				s.row[i].from, (uint16_t)(s.row[i].x | (s.row[i].flip ? TRANSFORM_FLIP : 0)),
				line_word(&s.plan, &s.row[i]), (uint16_t)s.row[i].width, (uint16_t)s.row[i].height};
		}
		s.call.from = (uintptr_t)s.images;
		s.call.from_end = s.call.from + RECORDS * field.bytes;
		s.call.record_step = s.stride;
		s.call.table = (uintptr_t)s.table;
		s.call.to = (uintptr_t)s.got;
		s.threads = 4;
		CHECK(scene_agrees(&s, transform_blocks(&s.call)));
		scene_close(&s);
	}
}

/* ---- and not the same, if anything is wrong ---- */

static void wrong_stride(struct scene *s)
{
	s->call.record_step += 1;
}

static void wrong_line(struct scene *s)
{
	s->call.line_pixels[0] += 1;
}

static void wrong_from(struct scene *s)
{
	s->call.from += 1;
}

static void wrong_table(struct scene *s)
{
	for (uint32_t i = 64; i < 192; i++) /* of channel 0 */
		s->table[(i + 1) * s->plan.element_bytes - 1] ^= 0x40;
}

static void wrong_flip(struct scene *s)
{
	s->call.row[0].x ^= TRANSFORM_FLIP;
}

static void wrong_row(struct scene *s)
{
	s->call.row[0].from = (s->call.row[0].from + 1) % RECORDS;
}

static void wrong_layout(struct scene *s)
{
	s->call.is_planar = !s->call.is_planar;
	if (s->call.shape != TRANSFORM_ANY)
		s->call.shape = TRANSFORM_CHW + TRANSFORM_HWC - s->call.shape;
}

#if !defined(__SANITIZE_THREAD__) /* threads of a block race then, as they should */
static void wrong_tile(struct scene *s)
{
	s->call.at_tile = s->call.at_lines; /* 0, where the table is, unless there are passes */
}
#endif

static void wrong_band(struct scene *s)
{
	s->call.band_lines -= 1;
	s->call.block_lines -= 1;
}

TEST(mistakes_of_a_launch_are_noticed)
{
	static const struct {
		const char *story;
		void (*make)(struct scene *s);
		bool tail; /* a band is missing */
	} rows[] = {
		{"stride of records", wrong_stride, false},
		{"stride of lines", wrong_line, false},
		{"a byte too far", wrong_from, false},
		{"table", wrong_table, false},
		{"mirrored", wrong_flip, false},
		{"another record", wrong_row, false},
		{"layout", wrong_layout, false},
#if !defined(__SANITIZE_THREAD__)
		{"tile over what it is made of", wrong_tile, false},
#endif
		{"band", wrong_band, false},
		{"tail of the grid", NULL, true}
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned noticed = 0, tried = 0;

		STORY("%s", rows[i].story);
		for (uint64_t seed = 0; seed < 200; seed++) {
			struct prng p = {seed + 100000};
			struct scene s;
			uint32_t bands;

			scene_open(&s, &p);
			bands = transform_blocks(&s.call);
			/*
			 * Small images hide mistakes, and none may make a kernel read past the end
			 * here.
			 */
			if (s.plan.height < 20 || s.plan.width < 8 || bands < 2 || s.row[0].from == RECORDS - 1 ||
			    s.row_count > 1 ||
			    (s.call.shape == TRANSFORM_ANY && !strncmp(s.name, "transform_crop_", 12))) {
				scene_close(&s);
				continue;
			}
			tried++;
			if (rows[i].make)
				rows[i].make(&s);
			noticed += !scene_agrees(&s, bands - rows[i].tail);
			scene_close(&s);
		}
		CHECK(tried > 0);
		CHECK(noticed > 0);
	}
}

/* A kernel without one of its barriers: some seed shows it, by other numbers or by a crash. */
static bool is_noticed(const char *kernel, unsigned barrier)
{
	int status;
	pid_t pid;

	if (child_begin(&pid, 60)) {
		emulated_without = barrier;
		for (uint64_t seed = 0; seed < 100; seed++) {
			struct prng p = {seed};
			struct scene s;

			scene_open(&s, &p);
			if (!strncmp(s.name, kernel, strlen(kernel)) && !scene_agrees(&s, transform_blocks(&s.call)))
				_exit(1);
			scene_close(&s);
		}
		_exit(0);
	}
	status = child_end(pid);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

TEST(a_missing_barrier_is_noticed)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	return; /* they would tell of it at length */
#endif
	CHECK(!is_noticed("transform_crop_", 0));
	CHECK(is_noticed("transform_crop_", 1));
	CHECK(!is_noticed("transform_crop_", 2)); /* it has one */
	/* One behind the weights, one behind the lines of the image, and one behind each pass. */
	for (unsigned barrier = 1; barrier <= 4; barrier++)
		CHECK(is_noticed("transform_resize_", barrier));
	CHECK(!is_noticed("transform_resize_", 10000));
}

/* ---- what the driver is given ---- */

TEST(the_driver_is_given_kernels_of_this_parameter)
{
	for (size_t i = 0; i < EMULATED_KERNELS; i++) {
		char text[128];

		STORY("%s", emulated_kernels[i].name);
		snprintf(text, sizeof(text), ".visible .entry %s(\n.param .align 8 .b8 %s_param_0[%zu]\n)",
			 emulated_kernels[i].name, emulated_kernels[i].name, sizeof(struct transform_call));
		CHECK(strstr(transform_ptx, text));
	}
	CHECK(sizeof(struct transform_call) <= 4096);
	CHECK(strstr(transform_ptx, ".version 6.3\n.target sm_75\n"));
}

/* A band never needs more lines, nor a pixel more taps, than there is room for. */
TEST(shared_memory_is_enough_for_any_part)
{
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct prng p = {seed};
		uint32_t in = 1 + (uint32_t)prng_below(&p, 300), out = 1 + (uint32_t)prng_below(&p, 200),
			 part = 1 + (uint32_t)prng_below(&p, in);
		struct shard_field field = {
			.name = "image", .dtype = SHARD_U8, .ndim = 2, .shape = {in, 8}, .bytes = 8 * in};
		struct shard_transform_options o = {.height = out, .crop = SHARD_CROP_RESIZED};
		int32_t weight[1024];
		struct transform_plan plan;
		struct transform_call c;
		uint32_t shared_bytes, room;

		STORY("seed %" PRIu64 ": %u of %u to %u", seed, part, in, out);
		CHECK_OK(transform_plan_make(&plan, &field, &o, &err));
		CHECK_OK(transform_grid(&plan, TRANSFORM_SHARED_BYTES, &c, &shared_bytes, &err));
		CHECK(shared_bytes <= TRANSFORM_SHARED_BYTES);
		room = (c.at_tile - c.at_lines) / c.pitch;
		for (uint32_t first = 0; first < out; first += c.band_lines) {
			uint32_t last = first + c.band_lines < out ? first + c.band_lines - 1 : out - 1;
			struct transform_taps low = transform_taps_fill(part, out, first, weight, c.down_taps);
			struct transform_taps high = transform_taps_fill(part, out, last, weight, c.down_taps);

			CHECK(low.count <= c.down_taps && high.count <= c.down_taps);
			CHECK(high.first + high.count - low.first <= (int)room);
			CHECK(high.first + high.count <= (int)part);
		}
	}
}

TEST_MAIN()
