/* The pager of the interactive shell.
 *
 * What is written is held until it is more than a screen; then $PAGER (less when there is none) is
 * started and gets it. While the user reads, Ctrl-C is the pager's: it neither ends the shell nor
 * leaves the pager behind. A user who leaves early ends the output, which is no error. */
#include "cli/pager.h"

#include "core/base/buf.h"
#include "core/base/mem.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HELD_MAX (64u << 20) /* one line may be long */

struct sv_pager {
    FILE *file, *pipe;
    const char *command;
    struct sv_buf held;
    size_t n_lines, height;
};

static size_t terminal_height(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2)
        return size.ws_row;
    return 24;
}

static void write_held(struct sv_pager *p, FILE *to)
{
    if (p->held.len)
        fwrite(p->held.data, 1, p->held.len, to);
    sv_buf_clear(&p->held);
}

static void start(struct sv_pager *p)
{
    setenv("LESS", "FRSX", 0); /* do not wrap, leave the screen as it is */
    p->pipe = popen(p->command, "w");
    if (!p->pipe)
        p->pipe = stdout;
    write_held(p, p->pipe);
}

static ssize_t write_piece(void *ctx, const char *bytes, size_t n)
{
    struct sv_pager *p = ctx;
    if (p->pipe) {
        bool is_taken = fwrite(bytes, 1, n, p->pipe) == n && fflush(p->pipe) == 0;
        return is_taken ? (ssize_t)n : -1;
    }
    sv_buf_add(&p->held, bytes, n);
    for (size_t i = 0; i < n; i++)
        p->n_lines += bytes[i] == '\n';
    if (p->n_lines + 2 > p->height || p->held.failed)
        start(p);
    return (ssize_t)n;
}

struct sv_pager *sv_pager_open(void)
{
    const char *command = getenv("PAGER");
    if (!isatty(STDOUT_FILENO) || (command && !*command))
        return NULL;
    struct sv_pager *p = sv_alloc(sizeof *p);
    p->command = command ? command : "less";
    p->height = terminal_height();
    sv_buf_init(&p->held, HELD_MAX);
    p->file = fopencookie(p, "w", (cookie_io_functions_t){.write = write_piece});
    if (!p->file) {
        sv_buf_fini(&p->held);
        free(p);
        return NULL;
    }
    fflush(stdout);
    return p;
}

FILE *sv_pager_file(struct sv_pager *p)
{
    return p->file;
}

void sv_pager_close(struct sv_pager *p)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    if (!p)
        return;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &ignore, &before);
    fclose(p->file);
    if (!p->pipe)
        write_held(p, stdout);
    else if (p->pipe != stdout)
        pclose(p->pipe);
    fflush(stdout);
    sigaction(SIGINT, &before, NULL);
    sv_buf_fini(&p->held);
    free(p);
}
