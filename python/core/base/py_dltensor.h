/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_dltensor.h - what DLPack's capsules hold
 *
 * Structures and constants are those of DLPack 1.0 (dmlc.github.io/dlpack, C API), and of the older
 * form without a version. The older form cannot say that memory is read-only: a library that asks
 * for it has to know.
 */
#ifndef SHARD_BASE_PY_DLTENSOR_H
#define SHARD_BASE_PY_DLTENSOR_H

#include <stdint.h>

struct dl_device {
	int32_t type, id;
};
struct dl_type {
	uint8_t code, bits;
	uint16_t lanes;
};
struct dl_tensor {
	void *data;
	struct dl_device device;
	int32_t ndim;
	struct dl_type dtype;
	int64_t *shape, *strides; /* strides in elements */
	uint64_t byte_offset;
};
struct dl_managed {
	struct dl_tensor tensor;
	void *context;
	void (*deleter)(struct dl_managed *);
};
struct dl_managed_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct dl_managed_versioned *);
	uint64_t flags;
	struct dl_tensor tensor;
};

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };

#endif
