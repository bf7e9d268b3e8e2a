/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_PRINT_H
#define __PERF_BPF_PRINT_H

#include <stddef.h>
#include <stdio.h>
#include <linux/compiler.h>

struct perf_bpil;
struct perf_env;

#ifdef HAVE_LIBBPF_SUPPORT
void __bpf_event__print_bpf_prog_info(struct perf_bpil *info_linear,
				      struct perf_env *env,
				      FILE *fp);
int scnprintf_no_bpf_info(struct perf_env *env, const char *func_name, char *buf, size_t size);
int perf_env__scnprintf_bpf_counts(const struct perf_env *env, const char *prefix, char *buf,
				   size_t size);
#else
static inline void __bpf_event__print_bpf_prog_info(struct perf_bpil *info_linear __maybe_unused,
						    struct perf_env *env __maybe_unused,
						    FILE *fp __maybe_unused)
{

}

static inline int perf_env__scnprintf_bpf_counts(const struct perf_env *env __maybe_unused,
						 const char *prefix __maybe_unused,
						 char *buf __maybe_unused,
						 size_t size __maybe_unused)
{
	return 0;
}

static inline int scnprintf_no_bpf_info(struct perf_env *env __maybe_unused,
					const char *func_name __maybe_unused,
					char *buf __maybe_unused, size_t size __maybe_unused)
{
	return 0;
}
#endif // HAVE_LIBBPF_SUPPORT
#endif /* __PERF_BPF_PRINT_H */
