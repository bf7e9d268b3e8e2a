/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_KTEXT_MAPS_H
#define __PERF_KTEXT_MAPS_H

#include <linux/types.h>
#include "dso.h"

struct build_id;
struct extra_kernel_map;
struct machine;
struct map;

struct dso *dso__new_ktext(const char *name, enum dso_binary_type type, u64 size);
struct map *machine__new_module_map(struct machine *machine, u64 start, u64 end,
				    const char *name, const struct build_id *bid);
int machine__process_module_mmap(struct machine *machine,
				 const struct extra_kernel_map *xm,
				 const struct build_id *bid);

#endif /* __PERF_KTEXT_MAPS_H */
