/* SPDX-License-Identifier: GPL-2.0 */
/* What bpf_prog_info tells of a program, wherever it is kept. */
#ifndef _KERNEL_BPF_PROG_INFO_H
#define _KERNEL_BPF_PROG_INFO_H

#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/refcount.h>

/* A function of a program */
struct bpf_prog_text {
	unsigned long	addr;
	u32		len;
	const void	*image;		/* len bytes */
	u8		tag[BPF_TAG_SIZE];
};

struct bpf_prog_kstats {
	u64 nsecs;
	u64 cnt;
	u64 misses;
};

/*
 * What is kept of a program that has ended. From ->prog on it is complete and
 * does not change once ->pending is false.
 */
struct bpf_prog_retained {
	struct hlist_node	hash;		/* by ->id */
	struct list_head	order;		/* by age */
	refcount_t		ref;
	u32			id;
	bool			pending;	/* the program is not freed yet */
	bool			asked;		/* somebody got a file of it */
	size_t			size;		/* without BTF, bytes */

	struct bpf_prog		*prog;		/* stands for the program */
	struct bpf_prog_text	*texts;		/* hidden ones included */
	void			*images;	/* of ->texts */
	u32			*map_ids;
	u32			nr_texts;
	u32			nr_map_ids;
	u32			attach_btf_obj_id;
	struct bpf_prog_kstats	stats;
};

void bpf_prog_get_stats(const struct bpf_prog *prog, struct bpf_prog_kstats *stats);
bool bpf_prog_id_is_ending(u32 id);
u32 bpf_prog_attach_btf_obj_id(const struct bpf_prog *prog);
u32 bpf_prog_nr_texts(const struct bpf_prog *prog, bool hidden);
struct bpf_prog_text bpf_prog_text_at(const struct bpf_prog *prog, u32 i);

#ifdef CONFIG_PERF_EVENTS
void bpf_prog_retain_begin(struct bpf_prog *prog);
bool bpf_prog_retain_fill(struct bpf_prog *prog);

/* Does bpf_prog_retain_fill() have to be called before @prog is freed? */
static inline bool bpf_prog_is_retained(const struct bpf_prog *prog)
{
	return prog->aux->retained;
}
#else
static inline void bpf_prog_retain_begin(struct bpf_prog *prog)		{ }
static inline bool bpf_prog_retain_fill(struct bpf_prog *prog)		{ return false; }
static inline bool bpf_prog_is_retained(const struct bpf_prog *prog)	{ return false; }
#endif

#endif /* _KERNEL_BPF_PROG_INFO_H */
