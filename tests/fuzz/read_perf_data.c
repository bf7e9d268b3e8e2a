// SPDX-License-Identifier: GPL-2.0
/*
 * A libFuzzer target: perf reads the input as a perf.data file, and then asks everything
 * that report, annotate, script and inject ask about BPF programs and kernel text.
 *
 *	input ──> memfd ──> perf_session: header features and records
 *	                      │
 *	                      ├──> report, bpf report, header info      to /dev/null
 *	                      ├──> code, lines, names, disassembly      of each kernel map
 *	                      └──> the BPF features, as inject writes   to another memfd
 *
 * An input in the pipe format is read as a pipe. Nothing is read from this machine: no
 * kernel symbols, no files that the input names. No process is started.
 *
 * mutate_perf_data.c changes inputs, `make fuzz` builds and runs the target.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <internal/lib.h>
#include "perf.h"
#include "util/addr_location.h"
#include "util/annotate.h"
#include "util/bpf-code.h"
#include "util/bpf-event.h"
#include "util/bpf-lines.h"
#include "util/bpf-print.h"
#include "util/bpf-prog.h"
#include "util/bpf-report.h"
#include "util/build-id.h"
#include "util/callchain.h"
#include "util/data.h"
#include "util/debug.h"
#include "util/dso.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/header.h"
#include "util/hist.h"
#include "util/machine.h"
#include "util/map.h"
#include "util/maps.h"
#include "util/sample.h"
#include "util/session.h"
#include "util/sort.h"
#include "util/srcline.h"
#include "util/symbol.h"
#include "util/tool.h"
#include "ui/progress.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An input has few maps; more of them show nothing new. */
#define MAX_MAPS 64

struct reader {
	struct perf_tool	tool;
	struct bpf_report	*bpf_report;
};

struct kernel_maps {
	struct map	*maps[MAX_MAPS];
	size_t		nr;
};

static FILE *null;

/* -- records ---------------------------------------------------------------------- */

static int read_sample(const struct perf_tool *tool, union perf_event *event __maybe_unused,
		       struct perf_sample *sample, struct machine *machine)
{
	struct reader *reader = container_of(tool, struct reader, tool);
	struct hist_entry_iter iter = {
		.sample	= sample,
		.ops	= symbol_conf.cumulate_callchain ? &hist_iter_cumulative :
							   &hist_iter_normal,
	};
	struct addr_location al;
	int err;

	addr_location__init(&al);
	err = machine__resolve(machine, &al, sample);
	if (!err)
		err = bpf_report__add_sample(reader->bpf_report, &al, sample);
	if (!err)
		err = hist_entry_iter__add(&iter, &al, PERF_MAX_STACK_DEPTH, NULL);
	addr_location__exit(&al);
	return err;
}

static int read_bpf_event(const struct perf_tool *tool, union perf_event *event,
			  struct perf_sample *sample, struct machine *machine)
{
	struct reader *reader = container_of(tool, struct reader, tool);
	int err = perf_event__process_bpf(tool, event, sample, machine);

	perf_event__fprintf(event, machine, null);
	return err ?: bpf_report__add_bpf_event(reader->bpf_report, event, sample);
}

static int read_ksymbol(const struct perf_tool *tool, union perf_event *event,
			struct perf_sample *sample, struct machine *machine)
{
	perf_event__fprintf(event, machine, null);
	return perf_event__process_ksymbol(tool, event, sample, machine);
}

static int read_text_poke(const struct perf_tool *tool, union perf_event *event,
			  struct perf_sample *sample, struct machine *machine)
{
	perf_event__fprintf(event, machine, null);
	return perf_event__process_text_poke(tool, event, sample, machine);
}

static int read_bpf_metadata(const struct perf_tool *tool __maybe_unused,
			     struct perf_session *session __maybe_unused,
			     union perf_event *event)
{
	perf_event__fprintf(event, NULL, null);
	return 0;
}

static void reader__init_tool(struct perf_tool *tool)
{
	perf_tool__init(tool, /*ordered_events=*/true);
	tool->sample		= read_sample;
	tool->mmap		= perf_event__process_mmap;
	tool->mmap2		= perf_event__process_mmap2;
	tool->comm		= perf_event__process_comm;
	tool->namespaces	= perf_event__process_namespaces;
	tool->cgroup		= perf_event__process_cgroup;
	tool->exit		= perf_event__process_exit;
	tool->fork		= perf_event__process_fork;
	tool->attr		= perf_event__process_attr;
	tool->build_id		= perf_event__process_build_id;
	tool->id_index		= perf_event__process_id_index;
	tool->event_update	= perf_event__process_event_update;
	tool->feature		= perf_event__process_feature;
	tool->bpf		= read_bpf_event;
	tool->ksymbol		= read_ksymbol;
	tool->text_poke		= read_text_poke;
	tool->bpf_metadata	= read_bpf_metadata;
	tool->show_feat_hdr	= SHOW_FEAT_HEADER_FULL_INFO;
	tool->no_warn		= true;
	tool->ordering_requires_timestamps = true;
}

/* -- questions -------------------------------------------------------------------- */

static int kernel_maps__add(struct map *map, void *data)
{
	struct kernel_maps *all = data;

	if (all->nr == ARRAY_SIZE(all->maps))
		return 1;
	all->maps[all->nr++] = map__get(map);
	return 0;
}

static void ask_address(struct machine *machine, struct map *map, u64 addr)
{
	struct dso *dso = map__dso(map);
	const struct bpf_line *line = dso__bpf_line(dso, addr);
	char *name = dso__bpf_func_name(dso, addr);
	unsigned int line_nr;
	char *file = NULL;
	u8 code[16];

	if (line)
		fprintf(null, "%s:%u %s", line->file, line->line, line->text);
	fprintf(null, "%s", name ?: "");
	dso__bpf_addr2line(dso, addr, &file, &line_nr);
	dso__data_read_addr(dso, map, machine, addr, code, sizeof(code));
	free(file);
	free(name);
}

static void ask_symbol(struct perf_session *session, struct map *map, struct symbol *sym)
{
	struct map_symbol ms = {
		.thread	= NULL,
		.map	= map__get(map),
		.sym	= sym,
	};
	struct evsel *evsel = evlist__first(session->evlist);
	const struct arch *arch;
	char why[1024];
	int err;

	scnprintf_no_bpf_info(perf_session__env(session), sym->name, why, sizeof(why));
	err = symbol__annotate(&ms, evsel, &arch);
	if (err)
		symbol__strerror_disassemble(&ms, err, why, sizeof(why));
	if (symbol__annotation(sym)->src)
		annotated_source__purge(symbol__annotation(sym)->src);
	map_symbol__exit(&ms);
}

static void ask_map(struct perf_session *session, struct map *map)
{
	struct machine *machine = &session->machines.host;
	struct dso *dso = map__dso(map);
	char label[BPF_LABEL_SIZE], tag[BPF_PROG_TAG_SIZE];
	struct bpf_code code;
	struct symbol *sym;

	if (!dso__is_bpf_text(dso) && dso__binary_type(dso) != DSO_BINARY_TYPE__OOL)
		return;

	dso__get_bpf_label(dso, label);
	dso__get_bpf_tag(dso, tag);
	fprintf(null, "%s %s %s", label, tag, dso__bpf_type(dso));
	if (!dso__bpf_code(dso, &code))
		fwrite(code.insns, code.len, 1, null);

	for (u64 addr = map__start(map); addr < map__end(map); addr += 5) {
		ask_address(machine, map, addr);
		if (addr - map__start(map) > 256)
			break;
	}
	ask_address(machine, map, map__end(map) - 1);

	sym = map__find_symbol(map, map__map_ip(map, map__start(map)));
	if (sym && evlist__nr_entries(session->evlist))
		ask_symbol(session, map, sym);
}

static void ask_maps(struct perf_session *session)
{
	struct kernel_maps all = { .nr = 0, };

	maps__for_each_map(machine__kernel_maps(&session->machines.host), kernel_maps__add, &all);
	for (size_t i = 0; i < all.nr; i++) {
		ask_map(session, all.maps[i]);
		map__put(all.maps[i]);
	}
}

static void print_report(struct perf_session *session)
{
	struct ui_progress prog;
	struct evsel *evsel;

	ui_progress__init(&prog, 1, NULL);
	evlist__for_each_entry(session->evlist, evsel) {
		struct hists *hists = evsel__hists(evsel);

		if (hists__collapse_resort(hists, &prog) < 0)
			return;
		evsel__output_resort(evsel, &prog);
		hists__fprintf(hists, /*show_header=*/true, 0, 0, 0, null,
			       /*ignore_callchains=*/!symbol_conf.use_callchain);
	}
}

/* Write the BPF features alone: the others are of this machine. */
static int skip_other_feat(struct feat_copier *fc __maybe_unused, int feat,
			   struct feat_writer *fw __maybe_unused)
{
	return feat != HEADER_BPF_PROG_INFO && feat != HEADER_BPF_BTF;
}

static void write_header(struct perf_session *session)
{
	struct feat_copier fc = { .copy = skip_other_feat, };
	int fd = memfd_create("written", MFD_CLOEXEC);

	if (fd < 0)
		return;
	perf_session__inject_header(session, session->evlist, fd, &fc,
				    /*write_attrs_after_data=*/false);
	close(fd);
}

static void ask(struct perf_session *session, struct bpf_report *bpf_report)
{
	if (!bpf_report__finish(bpf_report)) {
		bpf_report__fprintf(bpf_report, null);
		bpf_report__fprintf_json(bpf_report, null);
	}
	print_report(session);
	ask_maps(session);
	write_header(session);
}

/* -- input ------------------------------------------------------------------------ */

static void read_input(struct perf_data *data)
{
	struct reader reader = { .bpf_report = bpf_report__new(), };
	struct perf_session *session;
	int err;

	reader__init_tool(&reader.tool);
	session = perf_session__new(data, &reader.tool);
	if (!IS_ERR(session)) {
		zstd_init(&session->zstd_data, 0);
		err = perf_session__process_events(session);
		perf_session__fprintf_info(session, null, /*full=*/true);
		perf_session__print_feature_parts(session);
		/* perf report stops, too: not all of the session is consistent then. */
		if (!err)
			ask(session, reader.bpf_report);
		zstd_fini(&session->zstd_data);
		perf_session__delete(session);
	}
	bpf_report__delete(reader.bpf_report);
}

/* perf takes a header of this size for that of a pipe. */
static bool is_pipe(const uint8_t *data, size_t size)
{
	struct perf_pipe_file_header header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, data, sizeof(header));
	return header.size == sizeof(header) || header.size == bswap_64(sizeof(header));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct perf_data data = { .mode = PERF_DATA_MODE_READ, .force = true, };
	char path[32];
	int fd = memfd_create("perf.data", MFD_CLOEXEC);

	if (fd < 0 || write(fd, input, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		abort();

	if (is_pipe(input, size)) {
		data.path = "-";
		data.file.fd = dup(fd);
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		data.path = path;
	}
	read_input(&data);
	perf_data__close(&data);
	close(fd);
	return 0;
}

int LLVMFuzzerInitialize(int *argc __maybe_unused, char ***argv __maybe_unused)
{
	null = fopen("/dev/null", "w");
	if (!null)
		abort();
	debug_set_file(null);
	page_size = sysconf(_SC_PAGE_SIZE);
	set_buildid_dir("/nonexistent");

	symbol_conf.symfs = "/nonexistent";
	symbol_conf.kallsyms_name = "/dev/null";
	symbol_conf.ignore_vmlinux = true;
	symbol_conf.try_vmlinux_path = false;
	symbol_conf.addr2line_path = "/nonexistent";
	symbol_conf.use_callchain = true;

	annotation_options__init();
	annotate_opts.disassemblers[0] = PERF_DISASM_CAPSTONE;
	annotate_opts.bpf_xlated = true;
	sort_order = "bpf_prog,bpf_id,bpf_tag,bpf_type,dso,sym,srcline";
	if (callchain_register_param(&callchain_param) < 0 || hists__init() < 0 ||
	    symbol__annotation_init() < 0 || symbol__init(NULL) < 0 ||
	    setup_sorting(NULL, NULL) < 0)
		abort();
	return 0;
}
