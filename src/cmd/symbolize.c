/* stave symbolize: names for functions that had none when a trace was recorded.
 *
 * Frames of files without symbols are "[libc.so.6+0x1234]": the file, and where in it the function
 * begins. The recorder leaves the build ids of these files in the metadata. By them the symbols are
 * found: in /usr/lib/debug, or at the servers of DEBUGINFOD_URLS. Two passes over the input: the
 * ids come at its end. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "core/base/late.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "files/open.h"
#include "record/stacks/names.h"
#include "store/demangle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOLS_BYTES ((size_t)512 << 20) /* of one file */
enum { MODULES_MAX = 4096, FRAME_MAX = 512 };

struct symbolize {
    struct sv_output_choice out;
    const char *from;
    bool strict;
};

/* A file of the trace. */
struct module {
    char *name, *id;
    struct sv_elf elf;
    bool is_tried, has_symbols;
    uint64_t n_named, n_left;
};

struct names {
    struct sv_sink sink; /* first: the callbacks find the rest */
    struct sv_sink *next;
    struct sv_dict *dict;
    struct module *modules;
    size_t n, cap;
    struct sv_map
        known; /* text of a frame → its name + 1, as a string of the dictionary; 1: none */
    struct sv_batch batch;
    void *client; /* of debuginfod; NULL: not asked for, or not possible */
    bool is_asked;
};

/* ---- where symbols are ---- */

typedef struct debuginfod_client debuginfod_client;
debuginfod_client *debuginfod_begin(void);
void debuginfod_end(debuginfod_client *c);
int debuginfod_find_debuginfo(debuginfod_client *c, const unsigned char *id, int len, char **path);
#define FUNCTIONS(F) F(debuginfod_begin) F(debuginfod_end) F(debuginfod_find_debuginfo)
static struct {
    FUNCTIONS(SV_LATE_MEMBER)
} lib;

/* Nothing is asked of a network unless the user names its servers. */
static void ask_for_servers(struct names *n)
{
    static const char *const names[] = {FUNCTIONS(SV_LATE_NAME)};
    const char *urls = getenv("DEBUGINFOD_URLS");
    char why[200];
    n->is_asked = true;
    if (!urls || !*urls)
        return;
    if (sv_late_load("libdebuginfod.so.1", "libdebuginfod1", names, sizeof names / sizeof *names,
                     &lib, why, sizeof why))
        n->client = lib.debuginfod_begin();
    else
        sv_console_note("DEBUGINFOD_URLS is set, but its servers cannot be asked: %s", why);
}

static int open_by_server(struct names *n, const char *id)
{
    unsigned char bytes[SV_BUILD_ID_MAX];
    int len = 0;
    if (!n->is_asked)
        ask_for_servers(n);
    for (; n->client && id[2 * len] && id[2 * len + 1] && len < SV_BUILD_ID_MAX; len++) {
        unsigned byte;
        if (sscanf(id + 2 * len, "%2x", &byte) != 1)
            return -1;
        bytes[len] = (unsigned char)byte;
    }
    return n->client ? lib.debuginfod_find_debuginfo(n->client, bytes, len, NULL) : -1;
}

/* Its symbols, if they are anywhere: never of a file with another id. */
static bool read_symbols(struct names *n, struct module *m)
{
    char path[300], id[2 * SV_BUILD_ID_MAX + 1];
    if (strlen(m->id) < 4 || strspn(m->id, "0123456789abcdef") != strlen(m->id))
        return false;
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%.200s.debug", m->id, m->id + 2);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        fd = open_by_server(n, m->id);
    if (fd < 0)
        return false;
    bool is_it = sv_debug_info_build_id(fd, id) && strcmp(id, m->id) == 0;
    bool is_read = is_it && sv_elf_read(fd, SYMBOLS_BYTES, &m->elf);
    close(fd);
    return is_read;
}

/* ---- frames ---- */

/* "[libc.so.6+0x1234]" → its file and the address. */
static struct module *module_of(struct names *n, const char *text, size_t len, uint64_t *address)
{
    const char *plus = len > 6 && text[0] == '[' ? memrchr(text, '+', len) : NULL;
    char digits[20], *end;
    size_t n_digits = plus ? (size_t)(text + len - plus) - 4 : 0;
    if (!plus || text[len - 1] != ']' || plus + 4 >= text + len || plus[1] != '0' ||
        plus[2] != 'x' || n_digits == 0 || n_digits >= sizeof digits)
        return NULL;
    memcpy(digits, plus + 3, n_digits);
    digits[n_digits] = 0;
    *address = strtoull(digits, &end, 16);
    if (*end)
        return NULL;
    for (size_t i = 0; i < n->n; i++)
        if (strlen(n->modules[i].name) == (size_t)(plus - text) - 1 &&
            memcmp(n->modules[i].name, text + 1, (size_t)(plus - text) - 1) == 0)
            return &n->modules[i];
    return NULL;
}

static sv_str name_in(struct names *n, struct module *m, uint64_t address)
{
    if (!m->is_tried) {
        m->is_tried = true;
        m->has_symbols = read_symbols(n, m);
    }
    const struct sv_elf_symbol *s = m->has_symbols ? sv_elf_symbol(&m->elf, address) : NULL;
    if (!s)
        return 0;
    const char *mangled = m->elf.names + s->name;
    char *readable = sv_demangle(mangled);
    const char *name = readable ? readable : mangled;
    size_t len = strlen(name);
    sv_str found = sv_dict_str(n->dict, name, len < FRAME_MAX ? len : FRAME_MAX);
    free(readable);
    return found;
}

/* The name of such a text; 0: it is none, or it stays as it is. */
static sv_str name_of(struct names *n, const char *text, size_t len)
{
    uint64_t address;
    bool is_new;
    if (len < 7 || text[0] != '[')
        return 0;
    struct module *m = module_of(n, text, len, &address);
    if (!m)
        return 0;
    uint64_t *known = sv_map_add(&n->known, sv_hash_bytes(text, len, 0), &is_new);
    if (is_new) {
        sv_str found = name_in(n, m, address);
        *(known = sv_map_find(&n->known, sv_hash_bytes(text, len, 0))) = (uint64_t)found + 1;
    }
    *(*known > 1 ? &m->n_named : &m->n_left) += 1;
    return (sv_str)(*known - 1);
}

/* ---- the stage ---- */

static bool has_frames(struct names *n, const struct sv_event *e)
{
    for (unsigned i = 0; i < e->n_args; i++)
        if (e->args[i].type == SV_ARG_TEXT && e->args[i].size > 6 && e->args[i].text[0] == '[')
            return true;
    struct sv_text name = sv_dict_text(n->dict, e->name);
    return name.len > 6 && name.bytes[0] == '[';
}

static void put_event(struct names *n, const struct sv_event *from)
{
    struct sv_event *e = sv_batch_event(&n->batch);
    for (unsigned i = 0; i < from->n_args; i++) {
        struct sv_arg *a = sv_batch_arg(&n->batch);
        *a = from->args[i];
        sv_str name = a->type == SV_ARG_TEXT ? name_of(n, a->text, a->size) : 0;
        if (name) {
            struct sv_text text = sv_dict_text(n->dict, name);
            a->text = text.bytes;
            a->size = text.len & SV_TEXT_MAX;
        }
    }
    sv_batch_finish(&n->batch, e);
    const struct sv_arg *args = e->args;
    *e = *from;
    e->args = args;
    struct sv_text text = sv_dict_text(n->dict, e->name);
    sv_str name = name_of(n, text.bytes, text.len);
    e->name = name ? name : e->name;
}

static int write_events(struct sv_sink *s, const struct sv_event *events, size_t n_events,
                        struct sv_err *err)
{
    struct names *n = (struct names *)s;
    int code = 0;
    for (size_t i = 0; i < n_events && code >= 0; i++) {
        if (!has_frames(n, &events[i])) {
            code = n->next->write(n->next, &events[i], 1, err);
            continue;
        }
        sv_batch_reset(&n->batch);
        put_event(n, &events[i]);
        code = n->next->write(n->next, n->batch.events, 1, err);
    }
    return code;
}

static int close_stage(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct names *n = (struct names *)s;
    return n->next->close(n->next, failed, err);
}

static int put_stage(const void *ctx, struct sv_dict *dict, struct sv_report *report,
                     struct sv_sink **sink, struct sv_err *err)
{
    struct names *n = *(struct names *const *)ctx;
    (void)report, (void)err;
    n->dict = dict;
    n->next = *sink;
    n->sink = (struct sv_sink){.write = write_events, .close = close_stage};
    sv_sink_takes_as(&n->sink, *sink, SV_IN_NO_ORDER);
    *sink = &n->sink;
    return 0;
}

/* ---- build ids ---- */

static int ignore_events(struct sv_sink *s, const struct sv_event *events, size_t n,
                         struct sv_err *err)
{
    (void)s, (void)events, (void)n, (void)err;
    return 0;
}

static int find_modules(const struct symbolize *o, const char *path, struct names *n,
                        struct sv_err *err)
{
    struct sv_opened in;
    struct sv_dict *dict = sv_dict_new();
    struct sv_sink nowhere = {.write = ignore_events, .takes = SV_HAS_ANYTHING};
    int code = sv_open_input(path, o->from, 0, dict, &in, err);
    if (code >= 0)
        code = sv_run_into(&in, &nowhere, o->strict, "looking for build ids", err);
    static const char key[] = SV_BUILD_ID_KEY;
    for (uint32_t i = 0; code >= 0 && i < dict->n_meta && n->n < MODULES_MAX; i++) {
        struct sv_text name = sv_dict_text(dict, dict->meta[i].key),
                       id = sv_dict_text(dict, dict->meta[i].value);
        if (name.len < sizeof key || memcmp(name.bytes, key, sizeof key - 1) != 0 ||
            id.len > 2 * SV_BUILD_ID_MAX)
            continue;
        n->modules = sv_grow(n->modules, &n->cap, n->n + 1, sizeof *n->modules);
        n->modules[n->n++] = (struct module){
            .name = sv_strndup(name.bytes + sizeof key - 1, name.len + 1 - sizeof key),
            .id = sv_strndup(id.bytes, id.len)};
    }
    sv_opened_close(&in);
    sv_dict_free(dict);
    if (code >= 0 && n->n == 0)
        return sv_error(err, SV_EFOUND,
                        "%s has no build ids: all its functions have names, or an older stave "
                        "recorded it",
                        path);
    return code;
}

static void report_modules(const struct names *n)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    for (size_t i = 0; i < n->n; i++) {
        const struct module *m = &n->modules[i];
        if (!m->n_named && !m->n_left)
            continue;
        char a[32], b[32];
        sv_console_note("%s: %s frames have names now, %s do not%s", m->name,
                        sv_human_count(a, m->n_named), sv_human_count(b, m->n_left),
                        m->has_symbols  ? ""
                        : urls && *urls ? "; its symbols are neither in /usr/lib/debug nor at the "
                                          "servers of DEBUGINFOD_URLS"
                                        : "; its symbols are not in /usr/lib/debug: install "
                                          "them, or set DEBUGINFOD_URLS");
    }
}

static void fini(struct names *n)
{
    for (size_t i = 0; i < n->n; i++) {
        free(n->modules[i].name);
        free(n->modules[i].id);
        sv_elf_fini(&n->modules[i].elf);
    }
    free(n->modules);
    sv_map_fini(&n->known);
    sv_batch_fini(&n->batch);
    if (n->client)
        lib.debuginfod_end(n->client);
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct symbolize *o = options;
    struct names n = {0}, *p = &n;
    int code = sv_expect_operands(operands, 1, 1, "trace", err);
    if (code < 0)
        return code;
    if (!o->out.path)
        return sv_error(err, SV_EUSAGE, "where to? -o OUT names the trace with names");
    if (strcmp(operands->items[0], "-") == 0)
        return sv_error(err, SV_EUSAGE, "the trace is read twice: give a file");
    code = sv_check_inputs(operands->items, 1, o->out.path, err);
    if (code < 0)
        return code;
    sv_batch_init(&n.batch);
    code = find_modules(o, operands->items[0], &n, err);
    if (code >= 0)
        code = sv_copy_trace(&(struct sv_copy){.path = operands->items[0],
                                               .from = o->from,
                                               .out = &o->out,
                                               .strict = o->strict,
                                               .what = "adding names",
                                               .is_result = true,
                                               .before = put_stage,
                                               .ctx = &p},
                             err);
    if (code >= 0)
        report_modules(&n);
    fini(&n);
    return code;
}

static const struct sv_option options[] = {
    SV_OUTPUT_OPTIONS(struct symbolize),
    SV_INPUT_OPTIONS(struct symbolize),
    {0},
};

static const struct sv_example examples[] = {
    {"stave symbolize run.pftrace -o named.pftrace", "with the symbols that are installed here"},
    {"DEBUGINFOD_URLS=https://debuginfod.debian.net stave symbolize run.pftrace -o named.pftrace",
     "with those that a server has"},
    {0},
};

const struct sv_command sv_command_symbolize = {
    .name = "symbolize",
    .operands = "TRACE -o OUT",
    .summary = "name functions that had no symbols when they were recorded",
    .description =
        "Stacks of stripped programs and libraries have frames such as [libc.so.6+0x1234]: the "
        "file, and where in it the function begins. 'stave record' notes the build ids of these "
        "files in the trace. By them this verb finds their symbols, in /usr/lib/debug, or, if "
        "DEBUGINFOD_URLS is set, at those servers (by libdebuginfod, which keeps what it has "
        "fetched), and writes the trace with names. Symbols of another build are never used. "
        "Without DEBUGINFOD_URLS nothing is asked of a network.\n\n"
        "It can be done on another machine than the recording, and repeated when more symbols are "
        "there.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct symbolize),
    .run = run,
};
