/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_MAP_CONTENTS_H
#define __PERF_BPF_MAP_CONTENTS_H

#include <stdio.h>

struct bpf_object;

void fprintf_bpf_maps(const struct bpf_object *obj, const char *event, FILE *fp);

#endif /* __PERF_BPF_MAP_CONTENTS_H */
