/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ptx_kernels.c - the PTX that the library ships, run by an interpreter, gives the bits of the
 * definitions in C; and a text with a planted fault does not
 *
 * `make check` runs some cases of a seed that never changes; `make check-ptx` sets ALL_N, and
 * draws.  A sanitizer looks for mistakes of the interpreter: with it there are fewer cases, too few
 * for the planted faults.
 *
 * TIMEOUT: 600
 * TAKES: 10
 */
#include "tests/ptx/faults.h"
#include "tests/ptx/scenes.h"

static struct ptx_program *transform, *gather, *check;
static unsigned ran[FAULT_KERNELS]; /* cases of each kernel of kernel_scenes */

static struct ptx_program *program_of(const struct scene *s)
{
	return !strncmp(s->name, "check_", 6) ? check : s->partly ? gather : transform;
}

static void run_cases(uint64_t first, unsigned count)
{
	char error[PTX_ERROR_BYTES];

	for (uint64_t seed = first; seed < first + count; seed++) {
		struct scene s;

		scene_open(&s, seed);
		STORY("seed %" PRIu64 ": %s", seed, s.story);
		if (!scene_run(&s, program_of(&s), error))
			test_fail(__FILE__, __LINE__, "%s", error);
		keep_scene(program_of(&s), &s, seed);
		ran[scenes_of(s.name) - kernel_scenes]++;
		scene_close(&s);
	}
}

static bool sanitized(void)
{
	return getenv("VARIANT") && *getenv("VARIANT");
}

/* The cases that are the same each time. */
static void open_programs(void)
{
	if (transform)
		return;
	transform = read_well(transform_ptx);
	gather = read_well(gather_ptx);
	check = read_well(check_ptx);
	run_cases(0, getenv("ALL_N") ? 300 : sanitized() ? 70 : 280);
	run_cases(SCENE_CHECKS, getenv("ALL_N") ? 2000 : sanitized() ? 100 : 400);
}

static void check_kernels(const struct ptx_program *p)
{
	for (uint32_t k = 0; k < p->kernel_count; k++) {
		unsigned all, lines = lines_ran(p, p->kernel[k].name, &all), cases;

		cases = ran[scenes_of(p->kernel[k].name) - kernel_scenes];
		STORY("%s", p->kernel[k].name);
		printf("%s: %u cases, which ran %u of %u instructions\n", p->kernel[k].name, cases, lines, all);
		CHECK(cases > 0);
		CHECK(!getenv("ALL_N") || lines >= all - all / 4);
	}
}

TEST(shipped_kernels_give_the_bits_of_their_definitions)
{
	open_programs();
	if (getenv("ALL_N") && getenv("SEED")) {
		uint64_t first = strtoull(getenv("SEED"), NULL, 10) << 20;

		run_cases(first, 200);
		run_cases(first | SCENE_CHECKS, 2000);
	}
	check_kernels(transform);
	check_kernels(gather);
	check_kernels(check);
}

TEST(planted_faults_are_caught)
{
	open_programs();
	if (sanitized())
		return;
	plant_all(transform_ptx, transform, getenv("ALL_N") ? 3 : 1);
	plant_all(gather_ptx, gather, getenv("ALL_N") ? 3 : 1);
	plant_all(check_ptx, check, getenv("ALL_N") ? 3 : 1);
	faults_check(getenv("ALL_N") ? 60 : 30);
	ptx_free(transform);
	ptx_free(gather);
	ptx_free(check);
}

TEST_MAIN()
