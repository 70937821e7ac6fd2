/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_gpus.c - several GPUs in one program: a loader stays on the one that it was made for, whichever
 * is current in the threads that use it
 *
 * The fake driver has two.  The trainer's context is on GPU 1; t.context and t.stream are its own.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill
 */
#include "tests/child.h"
#include "tests/cuda/gather_twin.h"
#include "tests/cuda/transforming.h"

#define GPU 1u /* on which training_open() has its context */

static struct shard_error err;

static bool is_active(int number)
{
	unsigned flags;
	int active;

	CU_OK(cu.cuDevicePrimaryCtxGetState(70 + number, &flags, &active));
	return active;
}

/* Of all device memory, events and streams that were made: how many are on GPU 0? */
static void check_nothing_on_the_other(void)
{
	CHECK(!is_active(0));
	for (int sin = FAKE_WRONG_CONTEXT; sin < FAKE_SINS; sin++)
		CHECK_EQ(fake->sins((enum fake_sin)sin), 0);
}

/* ---- the thread that takes batches ---- */

struct thread {
	struct training *t;
	void *context; /* that is current there; NULL: none */
	unsigned calls;
};

static void *train_there(void *context)
{
	struct thread *o = context;
	void *popped;

	if (o->context)
		CU_OK(cu.cuCtxPushCurrent(o->context));
	train(o->t, o->calls, 1);
	train_give_all(o->t);
	if (o->context)
		CU_OK(cu.cuCtxPopCurrent(&popped));
	return NULL;
}

static void train_in_thread(struct training *t, void *context, unsigned calls)
{
	struct thread o = {t, context, calls};
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, train_there, &o), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Neither a thread without a GPU nor one with another GPU moves the loader. */
TEST(the_thread_that_takes_batches_decides_nothing)
{
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned round = 0; round < 2 * 2 * 2; round++) {
		unsigned pool = round % 2, named = round / 2 % 2, kind = round / 4;
		struct shard_loader_options o = pool_options(pool);
		void *other = NULL;

		STORY("pool %u, %s, %s stream", pool, named ? "by number" : "of this thread", kind ? "own" : "default");
		o.gpu.device = named ? SHARD_GPU(GPU) : SHARD_GPU_OF_STREAM;
		training_open(&t, o, kind ? NON_BLOCKING : LEGACY, round);
		gather_twin_open();
		CHECK(!is_active(0));
		/* The GPU's own kernels run in any thread that has its context. */
		train_in_thread(&t, t.context, 3);
		CHECK_SOUND_TRAINING();
		check_nothing_on_the_other();
		/* Batches come and go while another GPU is current, as in torch.cuda.device(0). */
		CU_OK(cu.cuDevicePrimaryCtxRetain(&other, 70));
		for (unsigned step = 0; step < 12; step++) {
			struct shard_batch b;
			void *popped;
			int rc;

			CU_OK(cu.cuCtxPushCurrent(other));
			rc = shard_loader_next_device(t.l, t.stream, &b, &err);
			CU_OK(cu.cuCtxPopCurrent(&popped));
			if (!check_next(&wanted, &b, rc, &err))
				continue;
			launch_look(&t, &b, false);
			CU_OK(cu.cuCtxPushCurrent(other));
			CHECK_OK(shard_loader_join(t.l, NULL, t.stream, &fixture_err));
			CHECK_OK(shard_loader_join(t.l, t.stream, NULL, &fixture_err));
			CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
			CU_OK(cu.cuCtxPopCurrent(&popped));
		}
		fake->settle();
		CU_OK(cu.cuDevicePrimaryCtxRelease(70));
		CHECK_SOUND_TRAINING();
		check_nothing_on_the_other();
		training_close(&t);
		trainer_check_clean();
	}
}

/* A trainer that chooses its GPU in the main thread only, and takes batches in another one. */
TEST(the_first_batch_in_a_thread_without_a_gpu)
{
	struct shard_batch b;
	struct training t;
	void *popped;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned pool = 0; pool < 2; pool++) {
		struct shard_loader_options o = pool_options(pool);

		STORY("pool %u, named", pool);
		o.gpu.device = SHARD_GPU(GPU);
		training_open(&t, o, LEGACY, pool);
		gather_twin_open();
		CU_OK(cu.cuCtxPopCurrent(&popped));
		CHECK_OK(shard_loader_begin_device(t.l, NULL, &fixture_err));
		CHECK_OK(shard_loader_next_device(t.l, NULL, &b, &fixture_err));
		CHECK_OK(shard_loader_release_after(t.l, &b, NULL, &fixture_err));
		check_nothing_on_the_other();
		CU_OK(cu.cuCtxPushCurrent(t.context));
		training_close(&t);
		trainer_check_clean();

		STORY("pool %u, not named", pool);
		training_open(&t, pool_options(pool), LEGACY, pool);
		gather_twin_open();
		CU_OK(cu.cuCtxPopCurrent(&popped));
		for (unsigned i = 0; i < 2; i++) {
			CHECK_EQ(i ? shard_loader_begin_device(t.l, NULL, &err)
				   : shard_loader_next_device(t.l, NULL, &b, &err),
				 SHARD_E_ARGUMENT);
			CHECK_STR(err.message,
				  "a default stream names no GPU in a thread that has chosen none of several: "
				  "open the loader with gpu.device = SHARD_GPU(n), or give a stream of your own");
		}
		CHECK(!is_active(0));
		CU_OK(cu.cuCtxPushCurrent(t.context));
		train(&t, 12, 1); /* that was no step */
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		training_close(&t);
		trainer_check_clean();
	}
}

/* ---- which GPU is held ---- */

TEST(the_gpu_is_held_from_open_to_close)
{
	struct shard_loader *l;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	trainer_open();
	for (uint32_t on = 0; on < 2; on++) {
		struct shard_loader_options o = {.size = sizeof(o), .batch_records = 9, .gpu.device = SHARD_GPU(on)};

		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		CHECK(is_active((int)on) && !is_active(1 - (int)on));
		shard_loader_close(l);
		CHECK(!is_active((int)on));
		o.gpu.device = SHARD_GPU_OF_STREAM; /* this thread has chosen none: the first one */
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		CHECK(is_active(0));
		shard_loader_close(l);
		o.batch_records = 0;
		CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
		trainer_check_clean();
	}
}

/*
 * A context of the caller's own is used if it is on that GPU; a stream on another GPU is refused.
 */
TEST(contexts_of_the_callers_own)
{
	void *own[2], *stream[2], *popped;
	struct shard_loader *l;
	struct shard_batch b;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	trainer_open();
	for (int i = 0; i < 2; i++) {
		own[i] = fake->context(i);
		CU_OK(cu.cuCtxPushCurrent(own[i]));
		CU_OK(cu.cuStreamCreate(&stream[i], 1));
		CU_OK(cu.cuCtxPopCurrent(&popped));
	}
	for (uint32_t on = 0; on < 2; on++) {
		struct shard_loader_options o = {
			.size = sizeof(o), .batch_records = 9, .gpu.device = SHARD_GPU(on), .gpu.stream = stream[on]};

		STORY("GPU %u", on);
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		CHECK_OK(shard_loader_next_device(l, stream[on], &b, &fixture_err));
		CHECK_EQ(shard_loader_release_after(l, &b, stream[1 - on], &err), SHARD_E_ARGUMENT);
		CHECK_OK(shard_loader_release_after(l, &b, NULL, &fixture_err));
		shard_loader_close(l);
		CHECK(!is_active(0) && !is_active(1));
		o.gpu.stream = NULL; /* the context of this thread is on GPU 0 */
		CU_OK(cu.cuCtxPushCurrent(own[0]));
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		CU_OK(cu.cuCtxPopCurrent(&popped));
		CHECK(!is_active(0) && is_active(1) == (on == 1));
		shard_loader_close(l);
		o.gpu.stream = stream[1 - on];
		CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, on ? " is not on GPU 1; give a stream of that GPU" : " is not on GPU 0; "));
		o.gpu.device = 0;
		CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, " and gpu.device 0; set gpu.device to SHARD_GPU_OF_STREAM"));
		o.gpu.device = SHARD_GPU(2);
		CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_DEVICE);
		CHECK(!strncmp(err.message, "GPU 2 (they count from 0, and CUDA_VISIBLE_DEVICES may hide some): ", 67));
	}
	for (int i = 0; i < 2; i++) {
		CU_OK(cu.cuCtxPushCurrent(own[i]));
		CU_OK(cu.cuStreamDestroy(stream[i]));
		CU_OK(cu.cuCtxPopCurrent(&popped));
		fake->drop_context(own[i]);
	}
	trainer_check_clean();
}

TEST(a_child_closes_a_loader_that_never_began)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 9, .gpu.device = SHARD_GPU(GPU)};
	struct shard_loader *l;
	struct shard_batch b;
	pid_t pid;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	trainer_open();
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	if (child_begin(&pid, 60)) {
		bool told = shard_loader_next_device(l, NULL, &b, &err) == SHARD_E_ARGUMENT &&
			    strstr(err.message, "opened the GPU, and its children cannot use it");

		shard_loader_close(l);
		_exit(told ? 0 : 1);
	}
	CHECK_EQ(child_end(pid), 0);
	CHECK(is_active(GPU));
	shard_loader_close(l);
	trainer_check_clean();
}

/* ---- transforms ---- */

/* Kernels run where the batch lies, whichever GPU is current. */
TEST(a_batch_is_transformed_where_it_is)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RANDOM, SHARD_F16, SHARD_CHW, 32);
	struct transforming f;
	void *other, *popped;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned round = 0; round < 2 * 2; round++) {
		unsigned pool = round % 2, kind = round / 2;

		STORY("pool %u, %s stream", pool, kind ? "own" : "default");
		transforming_open(&f, pool_options(pool), &o, 9, kind ? NON_BLOCKING : LEGACY, round);
		gather_twin_open();
		CU_OK(cu.cuDevicePrimaryCtxRetain(&other, 70));
		for (unsigned step = 0; step < 3; step++) {
			struct shard_batch b, here;

			CHECK_OK(shard_loader_next_device(f.t.l, f.t.stream, &b, &fixture_err));
			CHECK_OK(shard_loader_next(f.host, &here, &fixture_err));
			CU_OK(cu.cuCtxPushCurrent(other));
			CHECK_OK(shard_transform_launch(f.there, &b, NULL, 0, f.t.stream, TO(f), &fixture_err));
			CU_OK(cu.cuCtxPopCurrent(&popped));
			transforming_compare(&f, &here, NULL, 0, f.output[0]);
			CHECK_OK(shard_loader_release_after(f.t.l, &b, f.t.stream, &fixture_err));
			CHECK_OK(shard_loader_release(f.host, &here, &fixture_err));
		}
		fake->settle();
		CU_OK(cu.cuDevicePrimaryCtxRelease(70));
		CHECK_SOUND_TRAINING();
		check_nothing_on_the_other();
		transforming_close(&f);
		trainer_check_clean();
	}
}

TEST_MAIN()
