/* What stave-server and stave-load have in common: a command struct run as a program of its own. */
#pragma once

#include "cli/command.h"

/* Parses, runs, prints errors; the exit code. Besides its options every program knows --version,
 * and for the build `man` and `completion SHELL`. */
int sv_program_main(const struct sv_command *c, int argc, char **argv);
