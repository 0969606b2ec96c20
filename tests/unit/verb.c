/* Verbs in this process: see verb.h. */
#include "tests/unit/verb.h"

#include "cli/console.h"
#include "tests/harness/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 32, FILES = 32 };

char verb_said[1 << 14], verb_shown[1 << 14];
char verb_message[512];
static char before[PATH_MAX];

void verb_enter(const char *name)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", test_scratch(name));
    REQUIRE(getcwd(before, sizeof before) && mkdir(folder, 0700) == 0 && chdir(folder) == 0);
    REQUIRE(mkdir("sessions", 0700) == 0);
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/sessions");
    setenv("STAVE_SESSION_DIR", folder, 1);
}

void verb_leave(void)
{
    unsetenv("STAVE_SESSION_DIR");
    REQUIRE(chdir(before) == 0);
}

static int capture(int fd, const char *name)
{
    int usual = dup(fd), to = open(test_scratch(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(usual >= 0 && to >= 0 && dup2(to, fd) == fd);
    close(to);
    return usual;
}

static void give_back(int fd, int usual, const char *name, char *text, size_t size)
{
    dup2(usual, fd);
    close(usual);
    FILE *f = fopen(test_scratch(name), "r");
    REQUIRE(f != NULL);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

/* The words of a line, in its place. */
static int split(char *line, char *argv[WORDS])
{
    int n = 0;
    for (char *at = line; *(at += strspn(at, " ")) && n < WORDS - 1;) {
        bool is_quoted = *at == '\'';
        argv[n++] = at += is_quoted;
        at += strcspn(at, is_quoted ? "'" : " ");
        if (*at)
            *at++ = '\0';
    }
    argv[n] = NULL;
    return n;
}

int verb(const struct sv_command *c, const char *line)
{
    char words[2048], *argv[WORDS];
    struct sv_words operands = {0};
    struct sv_err err = {0};
    void *options = calloc(1, c->options_size);
    snprintf(words, sizeof words, "%s", line);
    int argc = split(words, argv);
    sv_common = (struct sv_common){0};
    sv_console_init(c->name, "never", false);
    fflush(stdout);
    int out = capture(STDOUT_FILENO, "stdout"), errors = capture(STDERR_FILENO, "stderr");
    int code = sv_command_parse(c, argc, argv, options, &operands, &err);
    if (code >= 0)
        code = c->run(options, &operands, &err);
    fflush(stdout);
    fflush(stderr);
    give_back(STDERR_FILENO, errors, "stderr", verb_said, sizeof verb_said);
    give_back(STDOUT_FILENO, out, "stdout", verb_shown, sizeof verb_shown);
    snprintf(verb_message, sizeof verb_message, "%s", err.msg);
    sv_words_free(&operands);
    sv_words_free(&sv_common.given);
    free(options);
    return code;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

const char *verb_files(void)
{
    static char text[1 << 12];
    char all[FILES][128];
    size_t n = 0, at = 0;
    DIR *d = opendir(".");
    REQUIRE(d != NULL);
    for (const struct dirent *e; (e = readdir(d)) && n < FILES;)
        if (e->d_name[0] != '.' && strcmp(e->d_name, "sessions") != 0)
            snprintf(all[n++], sizeof all[0], "%.127s", e->d_name);
    closedir(d);
    qsort(all, n, sizeof all[0], by_name);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "", all[i]);
    return text;
}
