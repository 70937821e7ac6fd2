/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ptx_count.c - the counter itself: small kernels whose counts are known
 */
#include "tests/ptx/ptx_count.h"
#include "tests/store/fixture.h"

/* A kernel of 32 threads with the address of 4096 bytes, around a body; %rd2: 4 for each thread. */
#define HEAD                                                                                                     \
	".version 6.3\n.target sm_75\n.address_size 64\n.extern .shared .align 16 .b8 room[];\n"                 \
	".visible .entry k(\n.param .align 8 .b8 k_param_0[8]\n)\n.maxntid 32, 1, 1\n{\n.reg .pred %p<3>;\n"     \
	".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f64 %fd<4>;\nld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, " \
	"%tid.x;\n"                                                                                              \
	"mul.wide.u32 %rd2, %r1, 4;\n"
#define HEAD_INSTRUCTIONS 2 /* and a load of the parameter */
#define AT		  UINT64_C(0x7f0000000000)

static void count_body(const char *body, struct ptx_counts *counts)
{
	static uint64_t store[512];
	uint64_t parameter = AT;
	struct ptx_launch l = {.name = "k",
			       .grid = {1, 1},
			       .threads = 32,
			       .shared_bytes = 8192,
			       .parameter = &parameter,
			       .region = {{AT, sizeof(store), (uint8_t *)store, true, true, NULL}},
			       .region_count = 1,
			       .seed = 5,
			       .counts = counts};
	char text[4096], error[PTX_ERROR_BYTES];
	struct ptx_program *p;

	for (size_t i = 0; i < COUNT(store); i++)
		store[i] = AT;
	snprintf(text, sizeof(text), "%s%sret;\n}\n", HEAD, body);
	p = ptx_read(text, error);
	if (!p || !ptx_run(p, &l, error))
		test_fail(__FILE__, __LINE__, "%s", error);
	ptx_free(p);
}

#define NEIGHBOURS "add.s64 %rd3, %rd1, %rd2;\n"
#define FAR	   "mul.wide.u32 %rd2, %r1, 128;\nadd.s64 %rd3, %rd1, %rd2;\n"

static const struct {
	const char *story, *body;
	uint64_t load_sectors, load_bytes, store_sectors, shared_passes, shared_least;
} traffic[] = {
	{"neighbours load 4 bytes", NEIGHBOURS "ld.global.u32 %r2, [%rd3];\n", 4, 128, 0, 0, 0},
	{"neighbours store 4 bytes", NEIGHBOURS "st.u32 [%rd3], %r1;\n", 0, 0, 4, 0, 0},
	{"far apart, a sector each", FAR "ld.global.u32 %r2, [%rd3];\n", 32, 128, 0, 0, 0},
	{"all the same", "ld.global.u32 %r2, [%rd1];\n", 1, 4, 0, 0, 0},
	{"half of the threads", NEIGHBOURS "setp.lt.u32 %p1, %r1, 16;\n@%p1 ld.global.u32 %r2, [%rd3];\n", 2, 64, 0, 0,
	 0},
	{"16 bytes each", FAR "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd3];\n", 32, 512, 0, 0, 0},
	{"a bank each", "shl.b32 %r2, %r1, 2;\nst.shared.u32 [%r2], %r1;\n", 0, 0, 0, 1, 1},
	{"one word for all", "ld.shared.u32 %r3, [room+16];\n", 0, 0, 0, 1, 1},
	{"two of a bank", "shl.b32 %r2, %r1, 3;\nld.shared.u32 %r3, [%r2];\n", 0, 0, 0, 2, 1},
	{"all of one bank", "shl.b32 %r2, %r1, 7;\nld.shared.u32 %r3, [%r2];\n", 0, 0, 0, 32, 1},
	{"bytes of neighbouring words", "ld.shared.u8 %r3, [%r1];\n", 0, 0, 0, 1, 1},
	{"16 bytes each, side by side", "shl.b32 %r2, %r1, 4;\nld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];\n", 0, 0,
	 0, 4, 4},
	{"16 bytes each, 64 apart", "shl.b32 %r2, %r1, 6;\nld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];\n", 0, 0, 0,
	 16, 4},
};

TEST(traffic_is_counted)
{
	for (size_t i = 0; i < COUNT(traffic); i++) {
		struct ptx_counts c;

		STORY("%s", traffic[i].story);
		count_body(traffic[i].body, &c);
		CHECK_EQ(c.load.sectors, traffic[i].load_sectors);
		CHECK_EQ(c.load.bytes, traffic[i].load_bytes);
		CHECK_EQ(c.store.sectors, traffic[i].store_sectors);
		CHECK_EQ(c.shared_passes, traffic[i].shared_passes);
		CHECK_EQ(c.shared_least, traffic[i].shared_least);
	}
}

#define LOAD(to_, from_) "ld.global.u64 " to_ ", [" from_ "];\n"
#define USE(of_)	 "add.s64 %rd8, " of_ ", 1;\n"

static const struct {
	const char *story, *body;
	uint32_t chain, waits, loads;
	uint64_t instructions; /* of the body */
} flow[] = {
	{"nobody needs it", LOAD("%rd4", "%rd1"), 1, 0, 1, 1},
	{"two loads, then both are used", LOAD("%rd4", "%rd1") LOAD("%rd5", "%rd1+8") USE("%rd4") USE("%rd5"), 1, 1, 2,
	 4},
	{"each is used before the next", LOAD("%rd4", "%rd1") USE("%rd4") LOAD("%rd5", "%rd1+8") USE("%rd5"), 1, 2, 2,
	 4},
	{"an address that was loaded", LOAD("%rd4", "%rd1") LOAD("%rd5", "%rd4") USE("%rd5"), 2, 2, 2, 3},
	{"an address made of one", LOAD("%rd4", "%rd1") USE("%rd4") "sub.s64 %rd4, %rd8, 1;\n" LOAD("%rd5", "%rd4"), 2,
	 1, 2, 4},
	{"the register is written anew", LOAD("%rd4", "%rd1") "mov.u64 %rd4, %rd1;\n" USE("%rd4"), 1, 0, 1, 3},
	/* 8 threads go round 3 times, 24 once, and all meet behind the loop: 3 + 3 x 3 + 1. */
	{"ways that part and meet",
	 "mov.u32 %r2, 0;\nsetp.lt.u32 %p1, %r1, 8;\nselp.b32 %r3, 3, 1, %p1;\n$again:\nadd.s32 %r2, %r2, 1;\n"
	 "setp.lt.u32 %p2, %r2, %r3;\n@%p2 bra $again;\nmov.u32 %r4, 0;\n",
	 0, 0, 0, 13},
};

TEST(chains_waits_and_instructions_are_counted)
{
	for (size_t i = 0; i < COUNT(flow); i++) {
		struct ptx_counts c;

		STORY("%s", flow[i].story);
		count_body(flow[i].body, &c);
		CHECK_EQ(c.chain, flow[i].chain);
		CHECK_EQ(c.waits, flow[i].waits);
		CHECK_EQ(c.loads, flow[i].loads);
		CHECK_EQ(c.instructions, HEAD_INSTRUCTIONS + flow[i].instructions + 1); /* 1: ret */
	}
}

TEST(fractions_and_divisions_are_counted)
{
	struct ptx_counts c;

	count_body("cvt.rn.f64.u32 %fd1, %r1;\nadd.rn.f64 %fd2, %fd1, %fd1;\ndiv.rn.f64 %fd3, %fd2, %fd1;\n"
		   "mov.f64 %fd1, %fd3;\nmov.u32 %r2, 3;\nrem.u32 %r3, %r1, %r2;\n",
		   &c);
	CHECK_EQ(c.fractions, 3 * 32);
	CHECK_EQ(c.divisions, 2 * 32);
}

TEST_MAIN()
