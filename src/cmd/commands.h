/* The list of commands, in the order of the help. Adding one is a file and a line here. */
#pragma once

#include "cli/command.h"

#define SV_COMMANDS(X) \
    X(record)          \
    X(top)             \
    X(status)          \
    X(stop)            \
    X(trigger)         \
    X(doctor)          \
    X(convert)         \
    X(symbolize)       \
    X(merge)           \
    X(sync)            \
    X(import)          \
    X(cut)             \
    X(validate)        \
    X(info)            \
    X(cat)             \
    X(query)           \
    X(stats)           \
    X(diff)            \
    X(steps)           \
    X(report)          \
    X(explain)         \
    X(whatif)          \
    X(critical_path)   \
    X(export)          \
    X(plot)            \
    X(view)            \
    X(show)            \
    X(recover)         \
    X(redact)          \
    X(listen)          \
    X(help)            \
    X(completion)      \
    X(man)             \
    X(verbs)           \
    X(formats)

#define SV_I_DECLARE(name) extern const struct sv_command sv_command_##name;
SV_COMMANDS(SV_I_DECLARE)
#undef SV_I_DECLARE
