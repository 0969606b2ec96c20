/* How `stave record` is used: configurations, injected libraries, folders of runs, archives, logs, long recordings. What is recorded is the
 * recorder's business. */
#ifndef SV_CMD_RECORD_USE_H
#define SV_CMD_RECORD_USE_H

#include "cmd/command.h"

struct sv_yaml;
struct sv_recorder;
struct sv_record_options;

/* The options of this side, a member `use` of the command's own. */
struct sv_record_use {
    const char *config, *inject;
    bool io;
};

#define SV_RECORD_USE_OPTIONS(type)                                                               \
    {0,                                                                                           \
     "config",                                                                                    \
     "FILE",                                                                                      \
     SV_OPT_TEXT,                                                                                 \
     offsetof(type, use.config),                                                                  \
     "options and command from a YAML file: each long option is a key, 'command' a list of "      \
     "words; what the command line gives wins",                                                   \
     NULL},                                                                                       \
        {0,                                                                                       \
         "inject",                                                                                \
         "WHAT",                                                                                  \
         SV_OPT_TEXT,                                                                             \
         offsetof(type, use.inject),                                                              \
         "load Stave's libraries into the command: opencl, nvtx, itt, cuda; separated by commas", \
         "opencl nvtx itt cuda"},                                                                 \
    {                                                                                             \
        0, "io", NULL, SV_OPT_FLAG, offsetof(type, use.io),                                       \
            "system calls after all, where a configuration says no-io", NULL                      \
    }

/* --config (record_config.c): fills what the command line left open. The texts live as long as *out. */
int sv_record_config(const char *path, const struct sv_option *table,
                     struct sv_record_options *options, struct sv_words *command,
                     struct sv_yaml **out, struct sv_err *err);

/* --inject (inject.c): checks the list and sets the environment of the command that is started later. */
int sv_inject(const char *list, struct sv_err *err);

#endif
