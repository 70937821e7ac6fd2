/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.c - kernels in PTX, the text that the driver compiles, for compute capability 7.5 and later
 *
 * libshard/gpu/make_ptx.sh makes NAME.ptx from NAME.cu.  tests/cuda/ptx.sh tells when that must be
 * done again.
 *
 * The files gather.ptx and transform.ptx, byte for byte, with a NUL behind each
 *
 * The assembler reads them, so no build needs another tool.  It looks for them where the compiler
 * looks for our headers.
 */
#include "libshard/gpu/gpu.h"

/* A section for each, so that the linker drops one that is not used. */
#define EMBED(name_)                                               \
	__asm__(".pushsection .rodata." #name_ "_ptx\n"            \
		".global " #name_ "_ptx\n"                         \
		".hidden " #name_ "_ptx\n"                         \
		".type " #name_ "_ptx, %object\n" #name_ "_ptx:\n" \
		".incbin \"libshard/gpu/" #name_ ".ptx\"\n"        \
		".byte 0\n"                                        \
		".size " #name_ "_ptx, . - " #name_ "_ptx\n"       \
		".popsection\n")

EMBED(gather);
EMBED(transform);
