/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_OFFLINE_CPUS_H
#define __PERF_OFFLINE_CPUS_H

#include <stdbool.h>
#include <stddef.h>

struct evlist;
struct offline_cpus;

struct offline_cpus *offline_cpus__new(struct evlist *evlist);
void offline_cpus__delete(struct offline_cpus *oc);
const char *offline_cpus__last_warning(const struct offline_cpus *oc);
size_t offline_cpus__look(struct offline_cpus *oc, bool warn);
void offline_cpus__finish(struct offline_cpus *oc);

#endif /* __PERF_OFFLINE_CPUS_H */
