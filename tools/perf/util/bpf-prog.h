/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_PROG_H
#define __PERF_BPF_PROG_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/compiler.h>
#include <linux/types.h>

struct bpf_prog_info_node;
struct dso;
struct perf_env;

/**
 * struct bpf_prog - what a recording tells of a BPF program
 * @id: id of this load, from 1
 * @type: enum bpf_prog_type
 * @tag: hash of the instructions, the same for each load
 */
struct bpf_prog {
	u32	id;
	u32	type;
	u8	tag[BPF_TAG_SIZE];
};

/* of the text that bpf_prog__get_tag() writes */
#define BPF_PROG_TAG_SIZE	(2 * BPF_TAG_SIZE + 1)

/* longer names are cut */
#define BPF_PROG_NAME_SIZE	256

bool dso__is_bpf_text(const struct dso *dso);
void bpf_prog__get_tag(const struct bpf_prog *prog, char buf[BPF_PROG_TAG_SIZE]);
const char *dso__no_bpf_prog(const struct dso *dso);
void dso__get_bpf_name(struct dso *dso, char buf[BPF_PROG_NAME_SIZE]);
void dso__get_bpf_tag(struct dso *dso, char buf[BPF_PROG_TAG_SIZE]);
const char *dso__bpf_type(struct dso *dso);
int dso__cmp_bpf_prog(struct dso *left, struct dso *right);

#ifdef HAVE_LIBBPF_SUPPORT
bool dso__find_bpf_prog(struct dso *dso, struct bpf_prog *prog);
void bpf_prog_info_node__get_name(const struct bpf_prog_info_node *node, struct perf_env *env,
				  char *buf, size_t size);
int bpf_prog_info_node__cmp(const struct bpf_prog_info_node *left, struct perf_env *env_left,
			    const struct bpf_prog_info_node *right, struct perf_env *env_right);
const char *bpf_prog__type_name(const struct bpf_prog *prog);
#else
static inline bool dso__find_bpf_prog(struct dso *dso __maybe_unused,
				      struct bpf_prog *prog __maybe_unused)
{
	return false;
}

static inline void
bpf_prog_info_node__get_name(const struct bpf_prog_info_node *node __maybe_unused,
			     struct perf_env *env __maybe_unused, char *buf,
			     size_t size __maybe_unused)
{
	*buf = '\0';
}

static inline int bpf_prog_info_node__cmp(const struct bpf_prog_info_node *left __maybe_unused,
					  struct perf_env *env_left __maybe_unused,
					  const struct bpf_prog_info_node *right __maybe_unused,
					  struct perf_env *env_right __maybe_unused)
{
	return 0;
}

static inline const char *bpf_prog__type_name(const struct bpf_prog *prog __maybe_unused)
{
	return "?";
}
#endif

#endif /* __PERF_BPF_PROG_H */
