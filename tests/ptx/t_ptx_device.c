/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ptx_device.c - loaders on a driver without a GPU that runs the PTX which it was given: batches
 * are the host's, and with a fault in the text they are not
 *
 * The loader loads its text into the fake driver and launches kernels of it.  There the interpreter
 * runs that text, with the launch's own grid, parameters and shared memory, and may touch no more
 * of the device's memory than the launch names.  A kernel behind it on the stream compares.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=cuda_map_least_bytes
 * TIMEOUT: 600
 * TAKES: 10
 */
#include "shard_transform.h"
#include "tests/cuda/pooling.h"
#include "tests/cuda/transforming.h"
#include "tests/ptx/faults.h"
/* behind kernels that are compiled as C */
#include "tests/cuda/checking.h"

#define KERNELS	    (EMULATED_KERNELS + 1) /* the transform's, and gather_rows */
#define ALL_KERNELS (KERNELS + 2)	   /* and those that check units */

/* ---- a GPU that is an interpreter ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	const void *image;
	struct ptx_program *program;
} loaded[4];				 /* lock */
static unsigned ran[ALL_KERNELS], moved; /* lock: launches of each kernel; texts with a fault */
static const char *kernel_with_fault;	 /* NULL: texts are taken as they come */
static unsigned fault_at;		 /* in which of its stores */

static const char *kernel_name(size_t k)
{
	static const char *const others[] = {"gather_rows", "check_long", "check_short"};

	return k < EMULATED_KERNELS ? emulated_kernels[k].name : others[k - EMULATED_KERNELS];
}

/* The text with the address of one of the kernel's stores to the device moved by one element. */
static char *with_fault(const char *text, const char *kernel)
{
	char head[100], line[FAULT_LINE] = "", changed[FAULT_LINE], *out;
	const char *at;
	size_t room = strlen(text) + FAULT_LINE;
	unsigned stores = 0;

	snprintf(head, sizeof(head), ".entry %s(", kernel);
	at = strstr(text, head);
	if (!at)
		return NULL;
	while (stores <= fault_at) {
		at = strchr(at, '\n') + 1;
		line_copy(at, line);
		if (line[0] == '}')
			return NULL;
		stores += !strncmp(line, "st.", 3) && strncmp(line, "st.shared", 9);
	}
	move_address(line, access_bytes(line), changed);
	out = malloc(room);
	snprintf(out, room, "%.*s%s%s", (int)(at - text), text, changed, at + strlen(line));
	moved++;
	return out;
}

static struct ptx_program *program_of(const void *image, char error[PTX_ERROR_BYTES])
{
	char *changed;
	size_t i = 0;

	while (i < COUNT(loaded) - 1 && loaded[i].image && loaded[i].image != image)
		i++;
	if (!loaded[i].program) {
		changed = kernel_with_fault ? with_fault(image, kernel_with_fault) : NULL;
		loaded[i].image = image;
		loaded[i].program = ptx_read(changed ? changed : image, error);
		free(changed);
	}
	return loaded[i].program;
}

static void forget_programs(const char *kernel_to_spoil)
{
	for (size_t i = 0; i < COUNT(loaded); i++)
		ptx_free(loaded[i].program);
	memset(loaded, 0, sizeof(loaded));
	memset(ran, 0, sizeof(ran));
	kernel_with_fault = kernel_to_spoil;
	moved = 0;
}

static void grant(struct ptx_launch *l, uint64_t at, uint64_t bytes, bool writable)
{
	l->region[l->region_count++] = (struct ptx_region){at, bytes, fake->at(at), writable, !writable, NULL};
}

static void run_ptx(const struct fake_kernel_call *c)
{
	struct ptx_launch l = {.name = c->name,
			       .grid = {c->grid[0], c->grid[1]},
			       .threads = c->block[0],
			       .shared_bytes = c->shared_bytes,
			       .parameter = c->arguments[0]};
	char error[PTX_ERROR_BYTES] = "";
	struct ptx_program *p;
	size_t k = 0;

	while (strcmp(kernel_name(k), c->name))
		k++;
	if (k < EMULATED_KERNELS) {
		struct transform_call call;

		memcpy(&call, c->arguments[0], sizeof(call));
		grant(&l, call.to, fake->bytes_from(call.to), true);
		grant(&l, call.from, call.from_end - call.from, false);
		grant(&l, call.table, fake->bytes_from(call.table), false);
	} else if (k >= KERNELS) {
		struct check_call call;

		memcpy(&call, c->arguments[0], sizeof(call));
		grant(&l, call.to, call.row_count * sizeof(struct check_result), true);
		grant(&l, call.from, (call.row_count - 1) * call.step + call.bytes, false);
	} else {
		struct gather_call call;

		memcpy(&call, c->arguments[0], sizeof(call));
		grant(&l, call.to, fake->bytes_from(call.to), true);
		grant(&l, call.from, fake->bytes_from(call.from), false);
	}
	for (uint32_t i = 0; i < l.region_count; i++)
		if (!l.region[i].store || l.region[i].bytes > fake->bytes_from(l.region[i].at)) {
			complain(&gpu, "%s is told of memory that is not there", c->name);
			return;
		}
	pthread_mutex_lock(&lock);
	l.seed = ++ran[k];
	p = program_of(c->image, error);
	if (!p || !ptx_run(p, &l, error))
		complain(&gpu, "%s: %s", c->name, error);
	pthread_mutex_unlock(&lock);
}

/* In the place of the twins in C. */
static void kernels_open(void)
{
	static const size_t transform_bytes[] = {sizeof(struct transform_call)},
			    gather_bytes[] = {sizeof(struct gather_call)}, check_bytes[] = {sizeof(struct check_call)};

	for (size_t k = 0; k < ALL_KERNELS; k++)
		fake->kernel(kernel_name(k), run_ptx, 1,
			     k < EMULATED_KERNELS ? transform_bytes
			     : k < KERNELS	  ? gather_bytes
						  : check_bytes);
}

/* ---- a few batches of each kind ---- */

#define KINDS 36u /* of transforms: which kernel runs is the library's to say */

static void transform_batches(unsigned kind, unsigned steps, bool pooled)
{
	static const uint32_t dtypes[] = {SHARD_F16, SHARD_U8, SHARD_F32};
	struct shard_transform_options o = imagenet(kind % 3, dtypes[kind / 3 % 3],
						    kind / 9 % 2 ? SHARD_HWC : SHARD_CHW, kind < KINDS / 2 ? 24 : 17);
	struct shard_loader_options lo = {.batch_records = 5, .tail = SHARD_KEEP, .order.seed = kind};
	struct transforming f;

	STORY("crop %u, dtype %u, layout %u, side %u", o.crop, o.dtype, o.layout, o.height);
	if (pooled) {
		lo.order.shuffle = SHARD_SHUFFLE_WINDOWS;
		lo.order.run_records = 3;
		lo.order.window_runs = 1;
		lo.order.lane_count = 3;
		lo.gpu.pool_bytes = least_pool(lo);
	}
	transforming_open(&f, lo, &o, 5, (enum stream_kind)(kind % STREAM_KINDS), kind);
	kernels_open();
	fake->seed(kind, 300);
	transforming_steps(&f, steps);
	fake->settle();
	if (!kernel_with_fault)
		CHECK_SOUND_TRAINING();
	transforming_close(&f);
	trainer_check_clean();
}

static void gather_batches(unsigned round)
{
	struct training t;

	STORY("round %u", round);
	open_pool(&t, all_in_pool(round), round);
	kernels_open();
	run(&t, calls_of(&t) + 3, 1);
	train_give_all(&t);
	if (!kernel_with_fault)
		CHECK_SOUND_TRAINING();
	training_close(&t);
	trainer_check_clean();
}

TEST(batches_by_the_shipped_ptx_are_the_hosts)
{
	unsigned more = getenv("ALL_N") ? 4 : 1, step = getenv("ALL_N") ? 1 : 5;

	forget_programs(NULL);
	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned kind = 0; kind < KINDS; kind++)
		transform_batches(kind, 2 * more, false);
	for (unsigned kind = 0; kind < KINDS; kind += step)
		transform_batches(kind, 2 * more, true);
	for (unsigned round = 0; round < 2 * more; round++)
		gather_batches(round);
	for (size_t k = 0; k < KERNELS; k++) {
		STORY("%s", kernel_name(k));
		printf("%s: %u launches\n", kernel_name(k), ran[k]);
		CHECK(ran[k] > 0);
	}
}

TEST(a_fault_in_the_text_shows_in_batches)
{
	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (size_t k = 0; k < KERNELS; k++)
		/* These batches may not come to one of its stores, but they come to another. */
		for (fault_at = 0, gpu.complaint[0] = 0; !gpu.complaint[0]; fault_at++) {
			forget_programs(kernel_name(k));
			if (k == EMULATED_KERNELS)
				gather_batches(0);
			for (unsigned kind = 0; k < EMULATED_KERNELS && kind < KINDS && !ran[k]; kind++)
				transform_batches(kind, 2, false);
			STORY("%s, store %u", kernel_name(k), fault_at);
			CHECK(ran[k] > 0);
			CHECK_EQ(moved, 1);
		}
	forget_programs(NULL);
}

/* ---- records that a loader leaves to the GPU to check ---- */

static bool reads_short; /* the GPU reads short records in the page cache */

uint64_t __real_cuda_map_least_bytes(void);
uint64_t __wrap_cuda_map_least_bytes(void);

uint64_t __wrap_cuda_map_least_bytes(void)
{
	return reads_short ? 1 : __real_cuda_map_least_bytes();
}

/* What is sound comes, and what is damaged does not. */
TEST(loaders_check_what_the_gpu_reads)
{
	static const uint64_t one_shard[] = {103};

	reads_short = true;
	forget_programs(NULL);
	open_photos(40, SHARD_RAW, one_shard, 1);
	for (int damaged = 0; damaged < 2; damaged++) {
		struct shard_loader_options o = {
			.batch_records = 9, .order.shuffle = SHARD_SEQUENTIAL, .thread_count = 1};
		struct shard_error why = {.message = ""};
		struct shard_loader_stats s;
		struct shard_batch b;
		struct training t;

		STORY("%s", damaged ? "a damaged record" : "sound records");
		if (damaged)
			damage(0, 9 * 3 + 4);
		training_open(&t, o, NON_BLOCKING, 0);
		kernels_open();
		begin_checked(t.l, t.stream);
		train(&t, damaged ? 3 : 25, 1);
		if (damaged) {
			CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &why), SHARD_E_CORRUPT);
			CHECK(strstr(why.message, "unit 31 of group 0 (records 31 to 31): its hash is "));
		}
		shard_loader_stats(t.l, &s);
		CHECK_EQ(s.device_checked_count, damaged ? 4 * 9 : s.record_count);
		CHECK_EQ(s.recopied_count, 0);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		training_close(&t);
		trainer_check_clean();
	}
	CHECK(ran[KERNELS] > 0); /* check_long */
	forget_programs(NULL);
	drop_dataset();
	reads_short = false;
}

/* ---- units, by the functions that loaders call ---- */

struct checking {
	struct cuda_device *d;
	struct cuda_check kernels;
	void *stream;
	uint64_t memory; /* units first, then results from RESULTS_AT on */
	struct check_call call;
	struct prng p;
};

#define RESULTS_AT   (UINT64_C(1) << 20)
#define RESULT_BYTES (CHECK_ROWS * sizeof(struct check_result))

static void checking_open(struct checking *c)
{
	trainer_open();
	kernels_open();
	memset(c, 0, sizeof(*c));
	CHECK_OK(cuda_open(&c->d, SHARD_GPU_OF_STREAM, NULL, &fixture_err));
	CHECK_OK(cuda_enter(c->d, &fixture_err));
	CHECK_OK(cuda_stream_make(c->d, &c->stream, &fixture_err));
	CHECK_OK(cuda_alloc(c->d, RESULTS_AT + RESULT_BYTES, &c->memory, &fixture_err));
}

static void checking_close(struct checking *c)
{
	cuda_check_close(c->d, &c->kernels);
	cuda_free(c->d, c->memory);
	cuda_stream_drop(c->d, c->stream);
	CHECK_OK(cuda_leave(c->d, 0, &fixture_err));
	cuda_close(c->d);
	trainer_check_clean();
}

/* Units with a damaged one, a wrong hash and a skipped row among them. */
static void checking_fill(struct checking *c, uint64_t bytes, uint32_t rows)
{
	uint8_t *from = fake->at(c->memory);
	struct check_call *call = &c->call;

	*call = (struct check_call){.from = c->memory + bytes % 3,
				    .step = bytes + bytes % 2,
				    .bytes = bytes,
				    .to = c->memory + RESULTS_AT,
				    .row_count = rows,
				    .number = call->number + 1};
	prng_fill(&c->p, from, RESULTS_AT);
	from += bytes % 3;
	for (uint32_t i = 0; i < rows; i++)
		call->want[i] = checksum64(from + i * call->step, bytes) + (i % 7 == 5);
	from[(rows - 1) * call->step + bytes - 1] ^= 1;
	call->skip[rows / 2 / 32] |= 1u << rows / 2 % 32;
}

/* What is launched checks all rows, and the fake driver's twin says the same. */
TEST(launches_of_a_check_store_a_result_for_each_row)
{
	static const uint64_t lengths[] = {1, 13, 128, 240, 241, 1500};
	static const uint32_t rows[] = {1, 2, 63, 64, 65, CHECK_ROWS};
	struct check_result got[CHECK_ROWS], twin[CHECK_ROWS];
	struct checking c;

	forget_programs(NULL);
	gpu.complaint[0] = 0;
	checking_open(&c);
	CHECK_OK(cuda_check_open(c.d, &c.kernels, &fixture_err));
	for (size_t i = 0; i < COUNT(lengths) * COUNT(rows); i++) {
		uint32_t count = rows[i % COUNT(rows)], seen[CHECK_SKIPPED + 1] = {0};

		checking_fill(&c, lengths[i / COUNT(rows)], count);
		STORY("%u units of %" PRIu64 " bytes", count, c.call.bytes);
		memset(fake->at(c.call.to), 0xa5, RESULT_BYTES);
		CHECK_OK(cuda_check_launch(c.d, &c.kernels, &c.call, c.stream, &fixture_err));
		CHECK_OK(cuda_stream_finish(c.d, c.stream, &fixture_err));
		CHECK_STR(gpu.complaint, "");
		memcpy(got, fake->at(c.call.to), sizeof(got));
		check_twin_open();
		memset(fake->at(c.call.to), 0xa5, RESULT_BYTES);
		CHECK_OK(cuda_check_launch(c.d, &c.kernels, &c.call, c.stream, &fixture_err));
		CHECK_OK(cuda_stream_finish(c.d, c.stream, &fixture_err));
		memcpy(twin, fake->at(c.call.to), sizeof(twin));
		kernels_open();
		CHECK_MEM(got, twin, sizeof(got));
		for (uint32_t k = 0; k < count; k++) {
			CHECK_EQ(got[k].number, c.call.number);
			seen[got[k].verdict]++;
		}
		CHECK_EQ(seen[CHECK_SKIPPED], 1);
		CHECK_EQ(seen[CHECK_SOUND] + seen[CHECK_DAMAGED] + 1, count);
		CHECK(count == 1 || got[count - 1].verdict == (count == 2 ? CHECK_SKIPPED : CHECK_DAMAGED));
	}
	CHECK(ran[KERNELS] > 0 && ran[KERNELS + 1] > 0);
	checking_close(&c);
	forget_programs(NULL);
}

TEST(a_check_that_the_driver_refuses_leaves_nothing_behind)
{
	static const struct {
		const char *call;
		unsigned nth;
		const char *message;
	} rows[] = {{"cuModuleLoadDataEx", 1, "cuModuleLoadDataEx"},
		    {"cuModuleGetFunction", 1, "cuModuleGetFunction of check_long: "},
		    {"cuModuleGetFunction", 2, "cuModuleGetFunction of check_short: "},
		    {"cuLaunchKernel", 1, "cuLaunchKernel of 2 x 1 blocks of 64 threads and 0 bytes: "}};
	struct checking c;

	for (size_t i = 0; i < COUNT(rows); i++) {
		int rc;

		STORY("%s %u", rows[i].call, rows[i].nth);
		checking_open(&c);
		checking_fill(&c, 100, 65);
		fake->fail(rows[i].call, rows[i].nth, 700);
		rc = cuda_check_open(c.d, &c.kernels, &fixture_err);
		CHECK_EQ(!rc, !strcmp(rows[i].call, "cuLaunchKernel"));
		CHECK_EQ(!rc, c.kernels.module != NULL);
		if (!rc)
			rc = cuda_check_launch(c.d, &c.kernels, &c.call, c.stream, &fixture_err);
		CHECK_EQ(rc, SHARD_E_DEVICE);
		CHECK_EQ(strncmp(fixture_err.message, rows[i].message, strlen(rows[i].message)), 0);
		checking_close(&c);
	}
}

TEST_MAIN()
