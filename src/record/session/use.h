/* How `stave record` is used: configurations, injected libraries, folders of runs, archives, logs,
 * long recordings. What is recorded is the recorder's business. */
#ifndef SV_RECORD_SESSION_USE_H
#define SV_RECORD_SESSION_USE_H

#include "cli/command.h"
#include "record/session/injections.h"

struct sv_yaml;
struct sv_recorder;
struct sv_record_options;

/* The options of this side, a member `use` of the command's own. */
struct sv_record_use {
    const char *config, *log_tz, *out_dir, *rotate, *last, *gpu_interval;
    const char *sync_address;
    struct sv_words inject, logs;
    bool io, archive, copy_output, sync, no_inject;
};

#define SV_RECORD_USE_OPTIONS(type)                                                               \
    {0,                                                                                           \
     "config",                                                                                    \
     "FILE",                                                                                      \
     SV_OPT_TEXT,                                                                                 \
     offsetof(type, use.config),                                                                  \
     "options and command from a YAML file: each long option is a key, 'command' a list of "      \
     "words; the command line takes precedence",                                                  \
     NULL,                                                                                        \
     "The run"},                                                                                  \
        {0,                                                                                       \
         "inject",                                                                                \
         "WHAT",                                                                                  \
         SV_OPT_LIST,                                                                             \
         offsetof(type, use.inject),                                                              \
         "load Stave's libraries into the command: " SV_INJECTIONS(                               \
             SV_INJECTION_COMMA) "separated by commas; may be given several times",               \
         SV_INJECTIONS(SV_INJECTION_BLANK),                                                       \
         NULL},                                                                                   \
        {0,                                                                                       \
         "no-inject",                                                                             \
         NULL,                                                                                    \
         SV_OPT_FLAG,                                                                             \
         offsetof(type, use.no_inject),                                                           \
         "load nothing into the command that --inject does not name (default: hooks of PyTorch "  \
         "into Python; without root also the libraries io and locks)",                            \
         NULL,                                                                                    \
         NULL},                                                                                   \
        {0,                                                                                       \
         "log",                                                                                   \
         "FILE",                                                                                  \
         SV_OPT_LIST,                                                                             \
         offsetof(type, use.logs),                                                                \
         "add the command's MLPerf (:::MLLOG) or DLIO log, read at the end, to the trace; "       \
         "may be given several times",                                                            \
         NULL,                                                                                    \
         "The run"},                                                                              \
        {0,                                                                                       \
         "log-tz",                                                                                \
         "ZONE",                                                                                  \
         SV_OPT_TEXT,                                                                             \
         offsetof(type, use.log_tz),                                                              \
         "the time zone of DLIO's log (default: this machine's)",                                 \
         NULL,                                                                                    \
         "The run"},                                                                              \
        {0,                                                                                       \
         "out-dir",                                                                               \
         "DIR",                                                                                   \
         SV_OPT_TEXT,                                                                             \
         offsetof(type, use.out_dir),                                                             \
         "write to a new numbered folder in DIR: trace, report.txt, report.json, "                \
         "timeline.png",                                                                          \
         NULL,                                                                                    \
         "The run"},                                                                              \
        {0,                                                                                       \
         "archive",                                                                               \
         NULL,                                                                                    \
         SV_OPT_FLAG,                                                                             \
         offsetof(type, use.archive),                                                             \
         "pack trace, logs, report and picture into a .tar.zst beside the trace",                 \
         NULL,                                                                                    \
         "The run"},                                                                              \
        {0,                                                                                       \
         "copy-output",                                                                           \
         NULL,                                                                                    \
         SV_OPT_FLAG,                                                                             \
         offsetof(type, use.copy_output),                                                         \
         "copy what the command prints to stdout.log and stderr.log; it then writes to "          \
         "pipes instead of the terminal",                                                         \
         NULL,                                                                                    \
         "The run"},                                                                              \
        {0,                                                                                       \
         "sync",                                                                                  \
         NULL,                                                                                    \
         SV_OPT_FLAG,                                                                             \
         offsetof(type, use.sync),                                                                \
         "under a launcher: relate the clocks of all ranks to rank 0's by pings, at the start, "  \
         "every 30 s and at the end; 'stave merge' then states the error between hosts",          \
         NULL,                                                                                    \
         "Ranks"},                                                                                \
        {0,                                                                                       \
         "sync-address",                                                                          \
         "HOST[:PORT]",                                                                           \
         SV_OPT_TEXT,                                                                             \
         offsetof(type, use.sync_address),                                                        \
         "with --sync: the address by which other hosts reach rank 0 (default: 127.0.0.1, for "   \
         "ranks on one host)",                                                                    \
         NULL,                                                                                    \
         "Ranks"},                                                                                \
        {0,                                                                                       \
         "rotate",                                                                                \
         "SIZE|TIME[,COUNT]",                                                                     \
         SV_OPT_TEXT,                                                                             \
         offsetof(type, use.rotate),                                                              \
         "start a new file whenever the trace has reached SIZE (512M) or TIME has passed "        \
         "(10min); each file is a complete trace: "                                               \
         "OUT is the newest, OUT-0001 the first; with COUNT only the newest COUNT are kept",      \
         NULL,                                                                                    \
         "Long recordings"},                                                                      \
        {0,                                                                                       \
         "last",                                                                                  \
         "TIME|SIZE",                                                                             \
         SV_OPT_TEXT,                                                                             \
         offsetof(type, use.last),                                                                \
         "keep only the last TIME (30s) or SIZE (256M) in a ring; 'stave trigger' or SIGUSR1 "    \
         "saves it as OUT-0001, OUT-0002 and so on, the end of the recording as OUT",             \
         NULL,                                                                                    \
         NULL},                                                                                   \
        {0,                                                                                       \
         "gpu-interval",                                                                          \
         "TIME",                                                                                  \
         SV_OPT_TEXT,                                                                             \
         offsetof(type, use.gpu_interval),                                                        \
         "sampling interval of GPUs (NVIDIA by NVML, AMD by sysfs): utilisation, memory, power, " \
         "temperature, per process where available; 0 disables it (default 200ms)",               \
         NULL,                                                                                    \
         "Utilisation"},                                                                          \
    {                                                                                             \
        0, "io", NULL, SV_OPT_FLAG, offsetof(type, use.io),                                       \
            "record system calls even if the configuration has no-io", NULL, "System calls"       \
    }

/* --config (record/session/config.c): fills what the command line left open. The texts live as long
 * as *out. */
int sv_record_config(const char *path, const struct sv_option *table,
                     struct sv_record_options *options, struct sv_words *command,
                     struct sv_yaml **out, struct sv_err *err);

/* --inject (inject.c): checks the list and sets the environment of the command that is started
 * later. */
int sv_inject(const struct sv_words *lists, struct sv_err *err);
int sv_inject_names(const char *list, struct sv_err *err); /* one of them */
bool sv_inject_has(const char *name);                      /* it was in such a list */
/* Says of a command that the dynamic linker loads nothing into that it is not seen. */
void sv_inject_check(const char *command);
/* Is there such an interface, and its library? */
bool sv_inject_is_there(const char *name);
/* Which of them are here: path NULL where one is not, `needs` what its build needs, as the end of a
 * sentence. */
void sv_inject_look(void (*take)(void *ctx, const char *name, const char *path, const char *needs),
                    void *ctx);

/* --log (record/session/logs.c): reads them into the recorder's sink. A log that cannot be read is
 * reported, and is not an error. */
int sv_record_logs_check(const struct sv_record_options *options, struct sv_err *err);
void sv_record_logs(struct sv_recorder *r);

/* Where the files of a recording are (record/output/folder.c). Fills options->out.path with
 * --out-dir. */
struct sv_record_place {
    char name[256];    /* run-0001, or the trace's without its suffix: the folder in an archive */
    char folder[1024]; /* with --out-dir */
    char trace[1300], out_log[1300], err_log[1300], archive[1300];
};
int sv_record_place(struct sv_record_options *options, struct sv_record_place *place,
                    struct sv_err *err);

/* --copy-output (record/session/copy.c): opened before anything else, notified when the command has
 * its pipes, closed at the end. */
int sv_copy_open(struct sv_recorder *r, const struct sv_record_place *place, struct sv_err *err);
void sv_copy_started(struct sv_recorder *r);
int sv_copy_close(struct sv_recorder *r, struct sv_err *err);

/* --out-dir and --archive, when the trace is whole (record/output/archive.c). `first` and `newest`:
 * the numbers of its parts with --rotate. */
int sv_record_archive_check(struct sv_err *err); /* is there a zstd? */
int sv_record_package(const struct sv_record_options *options, const struct sv_record_place *place,
                      uint32_t first, uint32_t newest, struct sv_err *err);

/* --sync (record/sync/syncing.c): relations of clocks between ranks. */
int sv_record_sync_check(struct sv_record_options *options, struct sv_err *err);
int sv_record_sync_open(struct sv_recorder *r, struct sv_err *err);
void sv_record_sync_round(struct sv_recorder *r);
void sv_record_sync_close(struct sv_recorder *r); /* the last round; before the file is closed */

/* --gpu-interval (record/session/gpus.c). */
int sv_record_gpus_open(struct sv_recorder *r, struct sv_err *err);
int sv_record_gpus_round(struct sv_recorder *r, int64_t now, struct sv_err *err);
void sv_record_gpus_summary(const struct sv_recorder *r); /* a line of the summary */
void sv_record_gpus_close(struct sv_recorder *r);

#endif
