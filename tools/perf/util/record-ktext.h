/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_RECORD_KTEXT_H
#define __PERF_RECORD_KTEXT_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include "synthetic-events.h"

struct evlist;
struct perf_session;
struct record_opts;

/**
 * struct ktext_ops - what a recorder of kernel text needs from the command
 * @process: gets the records that are synthesized; see perf_tool__process_synth_event()
 * @process_text: gets the records that the side-band thread has read, which have times;
 *		  NULL: @process does
 * @drain: reads all records in the ring buffers of the samples, returns 0 or -errno.
 *	   NULL if the kernel must not write records of existing text there.
 * @end_signals: number of SIGINT and SIGTERM, counted by their handler: they end the
 *		 wait for programs that the kernel is still unloading
 * @keep_log: a file may have samples in text that ended before it was synthesized
 */
struct ktext_ops {
	perf_event__handler_t process;
	perf_event__handler_t process_text;
	int (*drain)(const struct perf_tool *tool);
	const volatile sig_atomic_t *end_signals;
	bool keep_log;
};

struct ktext_recorder;

void ktext_recorder__config(struct record_opts *opts, struct evlist *evlist);
struct ktext_recorder *ktext_recorder__new(struct perf_session *session,
					   struct record_opts *opts,
					   const struct ktext_ops *ops);
void ktext_recorder__delete(struct ktext_recorder *kt);
int ktext_recorder__open(struct ktext_recorder *kt, struct evlist *sb_evlist);
int ktext_recorder__synthesize(struct ktext_recorder *kt);
int ktext_recorder__send(struct ktext_recorder *kt);
int ktext_recorder__send_text(struct ktext_recorder *kt);
void ktext_recorder__mark(struct ktext_recorder *kt);
int ktext_recorder__complete(struct ktext_recorder *kt);
void ktext_recorder__switch(struct ktext_recorder *kt);
void ktext_recorder__forget(struct ktext_recorder *kt);
void ktext_recorder__stop(struct ktext_recorder *kt, int nr_signals);
int ktext_recorder__summary(const struct ktext_recorder *kt, FILE *fp);

#endif /* __PERF_RECORD_KTEXT_H */
