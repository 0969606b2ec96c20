/* Puts the frames of a stack together. Called by the probes while they decode, when the process
 * mostly still lives; files and maps of one that is gone are those that were read before.
 *
 * Each native frame of the interpreter's loop stands for a run of Python's frames: those up to one
 * that entered the loop. They are matched from the outside in: the innermost loop may have begun
 * without a frame of its own yet. */
#include "record/stacks/stacks.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/python_said.h"
#include "core/stream/frame_text.h"
#include "record/stacks/debug_info.h"
#include "record/stacks/names.h"
#include "record/stacks/python.h"
#include "record/stacks/unwind.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PYTHON_UNKNOWN_MAX = 64 };

struct sv_stacks {
    struct sv_symbols *symbols;
    struct sv_stacks_options options;
    struct sv_frame_names *names;
    struct sv_python_codes *codes;
    struct sv_map pythons; /* processes that have one */
    struct sv_map asked;   /* process → readings of its maps when Python was looked for */
    struct sv_unwound unwound;
    uint64_t n_whole, n_no_rules, n_too_deep, n_homeless;
    char no_rules[128];     /* the first file without unwind information */
    char other_python[160]; /* the first Python that is not known */
};

/* A stack that is being put together, innermost first. */
struct building {
    struct sv_stacks *s;
    const struct sv_wire_head *head;
    const struct sv_wire_stack *stack;
    const struct sv_wire_pyframe *python;
    const char **frames;
    int n;
    unsigned next_python;
    unsigned n_runs, n_loops; /* of Python's frames; of native frames that stand for them */
};

static void free_of_file(struct sv_code_file *f)
{
    sv_cfi_free(f->cfi);
    sv_debug_info_free(f->debug);
}

struct sv_stacks *sv_stacks_new(struct sv_symbols *symbols, const struct sv_stacks_options *options)
{
    struct sv_stacks *s = sv_alloc(sizeof *s);
    s->symbols = symbols;
    s->options = *options;
    s->names = sv_names_new(!options->hides_files);
    s->codes = sv_python_codes_new();
    sv_symbols_on_free(symbols, free_of_file);
    if (options->has_kernel) /* what is slow comes before the command */
        sv_symbols_read_kernel(symbols);
    return s;
}

void sv_stacks_free(struct sv_stacks *s)
{
    if (!s)
        return;
    sv_names_free(s->names);
    sv_python_codes_free(s->codes);
    sv_map_fini(&s->asked);
    sv_map_fini(&s->pythons);
    free(s);
}

void sv_stacks_sweep(struct sv_stacks *s)
{
    sv_names_sweep(s->names);
}

bool sv_stacks_code(struct sv_stacks *s, const struct sv_wire_code *code, size_t size)
{
    return sv_python_codes_add(s->codes, code, size);
}

bool sv_stacks_way(const char *text, enum sv_stack_way *way)
{
    static const char *const words[] = {"none", "fp", "dwarf"};
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(text, words[i]) == 0) {
            *way = (enum sv_stack_way)i;
            return true;
        }
    return false;
}

/* ---- Python ---- */

static void look_for_python(struct sv_stacks *s, uint32_t pid)
{
    bool is_new;
    uint64_t readings = sv_symbols_readings(s->symbols, pid);
    uint64_t *asked = sv_map_add(&s->asked, pid, &is_new);
    if (*asked == readings || !s->options.found_python)
        return;
    *asked = readings;
    struct sv_python_at at;
    struct sv_python_words words;
    struct sv_wire_python offsets;
    if (!sv_symbols_python(s->symbols, pid, &at) ||
        !sv_python_ask(pid, at.runtime, at.version, &words))
        return;
    if (sv_python_offsets(&words, &offsets)) {
        sv_map_add(&s->pythons, pid, &is_new);
        s->options.found_python(s->options.ctx, pid, &offsets);
    } else if (!s->other_python[0] && words.version)
        snprintf(s->other_python, sizeof s->other_python, "CPython %u.%u", words.version >> 24,
                 words.version >> 16 & 0xff);
    else if (!s->other_python[0])
        snprintf(s->other_python, sizeof s->other_python, "a CPython before 3.11");
}

void sv_stacks_exec(struct sv_stacks *s, uint32_t pid, const char *program)
{
    const char *slash = strrchr(program, '/');
    if (!s->options.asks_procfs || !s->options.found_python ||
        strncmp(slash ? slash + 1 : program, "python", 6) != 0)
        return;
    sv_symbols_read(s->symbols, pid);
    look_for_python(s, pid);
}

void sv_stacks_end(struct sv_stacks *s, uint32_t pid)
{
    if (!sv_map_remove(&s->asked, pid))
        return;
    uint64_t inode = sv_symbols_unread(s->symbols, pid);
    if (inode && s->options.knows_program && !sv_map_find(&s->pythons, pid))
        s->options.knows_program(s->options.ctx, inode);
    if (sv_map_remove(&s->pythons, pid)) {
        sv_python_codes_end(s->codes, pid);
        s->options.found_python(s->options.ctx, pid, NULL);
    }
}

/* Does this frame end a run of frames that one call of the interpreter's loop has? */
static bool ends_run(const struct sv_wire_pyframe *f)
{
    return f->is_entry || f->owner >= SV_PYTHON_SHIM;
}

static unsigned count_runs(const struct building *b)
{
    unsigned n = 0;
    for (unsigned i = 0; i < b->stack->n_python; i++)
        n += ends_run(&b->python[i]) || i + 1 == b->stack->n_python;
    return n;
}

static void put(struct building *b, const char *text)
{
    if (b->n < SV_STACKS_FRAMES)
        b->frames[b->n++] = text;
}

static void put_python_frame(struct building *b, const struct sv_wire_pyframe *f)
{
    char text[1024];
    if (f->owner >= SV_PYTHON_SHIM)
        return;
    size_t n = sv_python_frame(b->s->codes, b->head->tgid, f, !b->s->options.hides_files, text,
                               sizeof text);
    put(b, n ? sv_names_text(b->s->names, text, n) : "[python]");
}

/* The next run of Python's frames, or all that are left. */
static void put_run(struct building *b, bool is_all)
{
    while (b->next_python < b->stack->n_python) {
        const struct sv_wire_pyframe *f = &b->python[b->next_python++];
        put_python_frame(b, f);
        if (ends_run(f) && !is_all)
            return;
    }
}

/* ---- native frames ---- */

/* Where the loop of the interpreter is, its frames are. More loops than runs: the innermost has
 * none. Fewer (the stack was cut, or a loop has no name): the outermost one has what is left. */
static void put_loop(struct building *b, const struct sv_named *named, unsigned loop)
{
    unsigned surplus = b->n_loops > b->n_runs ? b->n_loops - b->n_runs : 0;
    if (loop < surplus || b->next_python == b->stack->n_python)
        put(b, named->texts[0]);
    else
        put_run(b, loop + 1 == b->n_loops && b->s->unwound.end == SV_UNWIND_WHOLE);
}

static void put_native(struct building *b, const struct sv_code_at *at, size_t n)
{
    unsigned loop = 0;
    b->n_loops = 0;
    for (size_t i = 0; i < n; i++)
        b->n_loops += at[i].file && sv_names_of(b->s->names, &at[i])->is_python_loop;
    for (size_t i = 0; i < n; i++) {
        const struct sv_named *named = at[i].file ? sv_names_of(b->s->names, &at[i]) : NULL;
        if (!named)
            put(b, "[unknown]");
        else if (named->is_python_loop)
            put_loop(b, named, loop++);
        else
            for (unsigned k = 0; k < named->n; k++)
                put(b, named->texts[k]);
    }
}

/* Why a stack does not reach the start of its thread, as its outermost native frame. */
static void put_cut(struct building *b)
{
    struct sv_stacks *s = b->s;
    const struct sv_unwound *u = &s->unwound;
    const struct sv_code_file *f = u->n ? u->frames[u->n - 1].file : NULL;
    char text[200];
    if (u->end == SV_UNWIND_WHOLE) {
        s->n_whole++;
        return;
    }
    if (u->end != SV_UNWIND_NO_RULES) {
        s->n_too_deep++;
        put(b, "[cut: the stack is deeper than 64 KiB]");
        return;
    }
    if (!f) {
        s->n_homeless++;
        return;
    }
    s->n_no_rules++;
    const char *name = f->path[0] == 0         ? "generated code"
                       : f->nameless[0] == '[' ? f->nameless + 1
                                               : f->nameless;
    int len = (int)strcspn(name, "]");
    if (!s->no_rules[0])
        snprintf(s->no_rules, sizeof s->no_rules, "%.*s", len < 100 ? len : 100, name);
    int n = snprintf(text, sizeof text, "[cut: %.*s has no unwind information]",
                     len < 100 ? len : 100, name);
    put(b, sv_names_text(s->names, text, (size_t)n));
}

static void unwind(struct building *b, const uint8_t *copy)
{
    struct sv_stacks *s = b->s;
    sv_unwind(s->symbols, b->head->tgid, (int64_t)b->head->ts_ns, b->stack->regs, copy,
              b->stack->copy_bytes, &s->unwound);
    if (b->stack->copy_bytes == 0 && s->unwound.n > 1) /* --stacks none */
        s->unwound.n = 1;
    put_native(b, s->unwound.frames, s->unwound.n);
    if (b->stack->copy_bytes)
        put_cut(b);
}

/* By frame pointers. In code that was compiled without them the kernel finds other numbers: the
 * stack ends at the first address that is no code. */
static void put_addresses(struct building *b, const uint64_t *addresses)
{
    struct sv_unwound *u = &b->s->unwound;
    u->n = 0;
    u->end = SV_UNWIND_NO_RULES;
    for (unsigned i = 0; i < b->stack->n_user && u->n < SV_UNWIND_MAX; i++) {
        struct sv_code_at at;
        if (!sv_symbols_find(b->s->symbols, b->head->tgid, addresses[i] - (i > 0),
                             (int64_t)b->head->ts_ns, &at)) {
            if (i == 0)
                put(b, "[unknown]");
            break;
        }
        u->frames[u->n++] = at;
    }
    put_native(b, u->frames, u->n);
}

/* ---- all of it ---- */

/* Recorded elsewhere: how many there are, and no names. */
static int unnamed(const struct sv_wire_stack *stack, const char **frames)
{
    bool has_user = stack->n_user || stack->regs[SV_STACK_IP];
    int n = 0;
    for (unsigned i = 0; i < stack->n_kernel; i++)
        frames[n++] = "[kernel]";
    if (has_user)
        frames[n++] = "[unknown]";
    return n;
}

/* "name (file.c:12)" is "name". */
static const char *without_place(struct sv_stacks *s, const char *text)
{
    size_t len = strlen(text);
    struct sv_frame_parts p = sv_frame_parts(text, len);
    return p.function_len < len ? sv_names_text(s->names, text, p.function_len) : text;
}

/* First of all, so that the next stack has Python's frames. */
static void see(struct sv_stacks *s, const struct sv_wire_head *head, uint64_t ip)
{
    struct sv_code_at place;
    if (sv_symbols_find(s->symbols, head->tgid, ip, (int64_t)head->ts_ns, &place))
        look_for_python(s, head->tgid);
}

int sv_stacks_frames(struct sv_stacks *s, const struct sv_wire_head *head,
                     const struct sv_wire_stack *stack, size_t bytes, const char **frames,
                     const char **innermost)
{
    size_t addresses = ((size_t)stack->n_kernel + stack->n_user) * sizeof(uint64_t);
    size_t python = stack->n_python * sizeof(struct sv_wire_pyframe);
    if (stack->n_kernel > SV_STACK_ADDRESSES_MAX || stack->n_user > SV_STACK_ADDRESSES_MAX ||
        stack->n_python > SV_STACK_PYTHON_MAX || stack->copy_bytes > SV_STACK_COPY_MAX ||
        bytes < addresses + python + stack->copy_bytes)
        return -1;
    const uint64_t *at = (const void *)(stack + 1);
    struct building b = {.s = s,
                         .head = head,
                         .stack = stack,
                         .python = (const void *)(at + stack->n_kernel + stack->n_user),
                         .frames = frames};
    if (!s->options.asks_procfs) {
        b.n = unnamed(stack, frames);
    } else {
        see(s, head, stack->n_user ? at[stack->n_kernel] : stack->regs[SV_STACK_IP]);
        b.n_runs = count_runs(&b);
        for (unsigned i = 0; i < stack->n_kernel; i++)
            put(&b, sv_symbols_kernel(s->symbols, at[i] - (i > 0)));
        if (stack->n_user)
            put_addresses(&b, at + stack->n_kernel);
        else if (stack->regs[SV_STACK_SP])
            unwind(&b, (const uint8_t *)(b.python + stack->n_python));
        put_run(&b, true);
        if (stack->has_more_python)
            put(&b, "[cut: more than 128 frames of Python]");
    }
    if (innermost && b.n > 0)
        *innermost = without_place(s, frames[0]);
    return b.n;
}

/* Main's lock, its condition and that of forced switches are members of _PyRuntime; no other futex
 * is. */
const char *sv_stacks_lock(struct sv_stacks *s, uint32_t pid, uint64_t address, bool *is_gil)
{
    const char *name = s->options.asks_procfs ? sv_symbols_variable(s->symbols, pid, address)
                                              : NULL;
    *is_gil = name && strcmp(name, "_PyRuntime") == 0;
    return name;
}

/* Of functions that were inlined there, the innermost one that is no wrapper of a lock. */
const char *sv_stacks_name(struct sv_stacks *s, uint32_t pid, uint64_t address, int64_t ts_ns)
{
    struct sv_code_at at;
    if (!s->options.asks_procfs || !sv_symbols_find(s->symbols, pid, address, ts_ns, &at))
        return NULL;
    const struct sv_named *named = sv_names_of(s->names, &at);
    unsigned i = 0;
    while (i + 1 < named->n && (strncmp(named->texts[i], "std::", 5) == 0 ||
                                strncmp(named->texts[i], "__gthread", 9) == 0))
        i++;
    return named->n ? named->texts[i] : NULL;
}

/* ---- at the end ---- */

size_t sv_stacks_builds(const struct sv_stacks *s, const struct sv_names_build **builds)
{
    return sv_names_builds(s->names, builds);
}

void sv_stacks_explain(const struct sv_stacks *s, void (*say)(void *ctx, const char *line),
                       void *ctx)
{
    char line[600];
    struct sv_names_lack lack = sv_names_lack(s->names);
    if (lack.n_files) {
        snprintf(line, sizeof line,
                 "%" PRIu64 " frames in %zu %s without symbols have no names: %s%s; install the "
                 "packages with their debug symbols, or programs that are not stripped ('stave "
                 "symbolize' "
                 "adds names later)",
                 lack.frames, lack.n_files, lack.n_files == 1 ? "file" : "files", lack.first,
                 lack.n_files > 3 ? " …" : "");
        say(ctx, line);
    }
    if (s->n_no_rules) {
        snprintf(line, sizeof line,
                 "%" PRIu64 " of %" PRIu64 " stacks end in code without unwind information (the "
                 "first in %s): hand-written assembly, or built with "
                 "-fno-asynchronous-unwind-tables",
                 s->n_no_rules, s->n_no_rules + s->n_whole + s->n_too_deep + s->n_homeless,
                 s->no_rules);
        say(ctx, line);
    }
    if (s->n_homeless) {
        snprintf(line, sizeof line,
                 "%" PRIu64 " stacks are of processes that ended before their maps were read, or "
                 "end in generated code",
                 s->n_homeless);
        say(ctx, line);
    }
    if (s->other_python[0]) {
        snprintf(line, sizeof line,
                 "%s is not a version whose frames stave can read (3.11 to 3.14): its stacks have "
                 "native frames only",
                 s->other_python);
        say(ctx, line);
    }
}
