/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - kernels, which the driver compiles once for each context
 *
 * A module is the text of kernels in PTX.  All users of the same text in the same context share one
 * module.  The context is entered for all of these calls.
 *
 * The driver takes a tenth of a second to compile a module, and keeps it in the memory of the GPU.
 * A list of this process has the modules that are loaded, and the number of users of each.  The
 * last user unloads it.  A user keeps the context open.  Forked children never come here.
 */
#include "libshard/gpu/gpu.h"

#include <inttypes.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"

/* ---- PTX, the text that the driver compiles, for compute capability 7.5 and later ---- */

/*
 * libshard/gpu/make_ptx.sh makes NAME.ptx from NAME.cu.  tests/cuda/ptx.sh tells when that must be
 * done again.
 *
 * The files check.ptx, gather.ptx and transform.ptx stand here byte for byte, with a NUL behind
 * each.  The assembler reads them, so no build needs another tool.  It looks for them where the
 * compiler looks for our headers.
 */

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

EMBED(check);
EMBED(gather);
EMBED(transform);

/* ---- modules ---- */

#define LOG_BYTES	      2048u
#define MULTIPROCESSORS_USUAL 64u /* if the driver does not tell */

struct loaded {
	struct loaded *next;
	const struct cu_context *context;
	const char *ptx; /* the text is a constant, so its address tells which one it is */
	struct cu_module *module;
	uint32_t users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loaded *all; /* lock */

static int load(const struct cuda_device *d, const char *ptx, struct cu_module **out, struct shard_error *err)
{
	char log[LOG_BYTES] = "";
	int option[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
	void *value[] = {log, (void *)(uintptr_t)(sizeof(log) - 1)};
	int result = d->api->cuModuleLoadDataEx(out, ptx, sizeof(option) / sizeof(option[0]), option, value);

	if (!result)
		return SHARD_OK;
	return cuda_refused(d->api, result, err,
			    log[0] ? "cuModuleLoadDataEx cannot compile the kernels for this GPU: %.512s"
				   : "cuModuleLoadDataEx%s",
			    log);
}

int cuda_module_get(const struct cuda_device *d, const char *ptx, void **module, struct shard_error *err)
{
	struct loaded *m;
	int rc = SHARD_OK;

	pthread_mutex_lock(&lock); /* until the module is compiled, so a second user waits for that */
	for (m = all; m && (m->context != d->context || m->ptx != ptx);)
		m = m->next;
	if (!m) {
		m = mem_zalloc(sizeof(*m));
		rc = m ? load(d, ptx, &m->module, err) : error_set(err, SHARD_E_MEMORY, "no memory for kernels");
		if (!rc) {
			m->context = d->context;
			m->ptx = ptx;
			m->next = all;
			all = m;
		}
	}
	if (rc) {
		mem_free(m);
	} else {
		m->users++;
		*module = m;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void cuda_module_drop(const struct cuda_device *d, void *module)
{
	struct loaded *m = module, **p = &all;

	if (!m)
		return;
	pthread_mutex_lock(&lock);
	if (!--m->users) {
		while (*p != m)
			p = &(*p)->next;
		*p = m->next;
		d->api->cuModuleUnload(m->module);
		mem_free(m);
	}
	pthread_mutex_unlock(&lock);
}

int cuda_kernel_find(const struct cuda_device *d, const void *module, const char *name, void **kernel,
		     struct shard_error *err)
{
	struct cu_function *found;
	int result = d->api->cuModuleGetFunction(&found, ((const struct loaded *)module)->module, name);

	if (result)
		return cuda_refused(d->api, result, err, "cuModuleGetFunction of %s", name);
	*kernel = found;
	return SHARD_OK;
}

uint32_t cuda_shared_most(const struct cuda_device *d)
{
	int bytes = 0; /* an old driver cannot be asked: then it is what every GPU has */

	if (d->api->cuDeviceGetAttribute && d->api->cuDeviceGetAttribute(&bytes, CU_DEVICE_SHARED_OPTIN, d->ordinal))
		bytes = 0;
	return bytes > (int)TRANSFORM_SHARED_BYTES ? (uint32_t)bytes : TRANSFORM_SHARED_BYTES;
}

uint32_t cuda_multiprocessors(const struct cuda_device *d)
{
	int count = 0;

	if (d->api->cuDeviceGetAttribute && d->api->cuDeviceGetAttribute(&count, CU_DEVICE_MULTIPROCESSORS, d->ordinal))
		count = 0;
	return count > 0 ? (uint32_t)count : MULTIPROCESSORS_USUAL;
}

int cuda_kernel_allow(const struct cuda_device *d, void *kernel, struct shard_error *err)
{
	uint32_t most = cuda_shared_most(d); /* of all users of the module alike: none takes it from another */
	int result = d->api->cuFuncSetAttribute(kernel, CU_FUNCTION_SHARED_BYTES, (int)most);

	return result ? cuda_refused(d->api, result, err, "cuFuncSetAttribute, %" PRIu32 " bytes of shared memory",
				     most)
		      : SHARD_OK;
}

int cuda_launch(const struct cuda_device *d, void *kernel, uint32_t across, uint32_t down, uint32_t threads,
		uint32_t shared_bytes, const void *parameter, void *stream, struct shard_error *err)
{
	void *parameters[] = {(void *)(uintptr_t)parameter};
	int result =
		d->api->cuLaunchKernel(kernel, across, down, 1, threads, 1, 1, shared_bytes, stream, parameters, NULL);

	if (!result)
		return SHARD_OK;
	return cuda_refused(d->api, result, err, "cuLaunchKernel of %u x %u blocks of %u threads and %u bytes", across,
			    down, threads, shared_bytes);
}

/* ---- the kernel that gathers a batch from a pool: gather.h ---- */

int cuda_gather_open(const struct cuda_device *d, struct cuda_gather *out, struct shard_error *err)
{
	struct cuda_gather g = {.module = NULL};
	int rc = cuda_module_get(d, gather_ptx, &g.module, err);

	if (!rc)
		rc = cuda_kernel_find(d, g.module, "gather_rows", &g.kernel, err);
	if (rc)
		cuda_module_drop(d, g.module);
	else
		*out = g;
	return rc;
}

void cuda_gather_close(const struct cuda_device *d, struct cuda_gather *g)
{
	cuda_module_drop(d, g->module);
	*g = (struct cuda_gather){.module = NULL};
}

int cuda_gather_launch(const struct cuda_device *d, const struct cuda_gather *g, const struct gather_call *call,
		       void *stream, struct shard_error *err)
{
	uint32_t longest = 1;

	for (uint32_t i = 0; i < call->piece_count; i++)
		longest = call->piece[i].bytes > longest ? call->piece[i].bytes : longest;
	return cuda_launch(d, g->kernel, call->row_count, (longest + GATHER_PART - 1) / GATHER_PART, GATHER_THREADS, 0,
			   call, stream, err);
}

/* ---- the kernels that hash what lies on the GPU: check.h ---- */

int cuda_check_open(const struct cuda_device *d, struct cuda_check *out, struct shard_error *err)
{
	struct cuda_check c = {.module = NULL};
	int rc = cuda_module_get(d, check_ptx, &c.module, err);

	if (!rc)
		rc = cuda_kernel_find(d, c.module, "check_long", &c.of_long, err);
	if (!rc)
		rc = cuda_kernel_find(d, c.module, "check_short", &c.of_short, err);
	if (rc)
		cuda_module_drop(d, c.module);
	else
		*out = c;
	return rc;
}

void cuda_check_close(const struct cuda_device *d, struct cuda_check *c)
{
	cuda_module_drop(d, c->module);
	*c = (struct cuda_check){.module = NULL};
}

int cuda_check_launch(const struct cuda_device *d, const struct cuda_check *c, const struct check_call *call,
		      void *stream, struct shard_error *err)
{
	bool is_long = call->bytes > CHECK_SHORT;
	uint32_t block_rows = is_long ? CHECK_THREADS / CHECK_WARP : CHECK_THREADS;

	return cuda_launch(d, is_long ? c->of_long : c->of_short, (call->row_count + block_rows - 1) / block_rows, 1,
			   CHECK_THREADS, 0, call, stream, err);
}
