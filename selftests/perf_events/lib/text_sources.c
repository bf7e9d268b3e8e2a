// SPDX-License-Identifier: GPL-2.0
/* The table of all sources, and the texts and records that belong to one of them. */
#include <fnmatch.h>

#include "ksym_snapshot.h"
#include "test_env.h"
#include "text_sources.h"

const struct ksym_source ksym_sources[NR_SOURCES] = {
	{ "BPF programs", "bpf_prog_*_ksym_prog", false, GOES,
	  make_progs, unmake_fds },
	{ "BPF subprograms", "bpf_prog_*_F", false, GOES,
	  make_subprogs, unmake_fds },
	{ "BPF exception callbacks", "bpf_prog_*_F", false, GOES,
	  make_exception_callback, unmake_fds },
	{ "BPF trampolines", "bpf_trampoline_*", false, GOES,
	  make_trampolines, unmake_fds },
	{ "BPF dispatcher", "bpf_dispatcher_*", false, STAYS,
	  make_dispatcher, unmake_fds },
	{ "struct_ops", "bpf__" OPS "_*", false, GOES,
	  make_struct_ops, unmake_struct_ops },
	{ "dummy struct_ops", "bpf__bpf_dummy_ops_*", false, AT_ONCE,
	  make_dummy_struct_ops, unmake_fds },
	{ "socket filters", "cbpf_prog_*", true, GOES,
	  make_socket_filters, unmake_fds },
	{ "seccomp filters", "cbpf_prog_*", true, GOES,
	  make_seccomp_filters, unmake_seccomp_filters },
	{ "ftrace trampolines", "ftrace_trampoline", false, GOES,
	  make_ftrace, unmake_ftrace },
	{ "kprobe pages", "kprobe_insn_page", false, STAYS,
	  make_kprobes, unmake_fds },
	{ "optprobe pages", "kprobe_optinsn_page", false, STAYS,
	  make_kprobes, unmake_fds },
	{ "modules", "dummy", true, GOES,
	  make_module, unmake_module },
	{ "ITS thunks", "its_thunks", true, STAYS,
	  make_its, unmake_nothing },
};

int live_of(const struct ksym_play *play, const struct ksym_source *src)
{
	int nr = 0;
	size_t i;

	for (i = 0; i < play->live.nr; i++)
		nr += !fnmatch(src->pattern, play->live.texts[i].name, 0);
	return nr;
}

int records_of(const struct ksym_rings *rings, size_t from,
	       const struct ksym_source *src, bool unregister)
{
	int nr = 0;
	size_t i;

	for (i = from; i < rings->nr_recs; i++) {
		const struct ksym_rec *rec = &rings->recs[i];

		if (rec->type == PERF_RECORD_MMAP2 ? !unregister :
		    ksym_rec__is(rec, unregister) && !ksym_rec__is_replay(rec))
			nr += !fnmatch(src->pattern, rec->name, 0);
	}
	return nr;
}

void wait_for_end(struct ksym_play *play, struct ksym_rings *rings,
		  const struct ksym_source *src, int before)
{
	__u64 end = now_ms() + WAIT_MS, now;

	while (!ksym_play__drain(play, rings) && live_of(play, src) > before) {
		now = now_ms();
		if (now >= end)
			return;
		poll(rings->fds, rings->nr, end - now);
	}
}
