/* law SEED EVENTS TRUTH [kill]: random events of three threads on shared and own tracks, with times
 * of their own over most of int64, odd names, deep and large arguments. What each must look like in
 * the file is a line of JSON in TRUTH (read by law.py). kill: ends by SIGKILL. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stave/stave.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, ROWS = 4, OPEN_MAX = 6, TEXT_MAX = 60000, DEPTH_MAX = 20 };

static const char *const row_names[ROWS] = {"shared", "row 1", "shared", "deep"};
static stave_track_t rows[ROWS], counters[THREADS];
static FILE *truth;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t n_numbers;
static uint64_t seed, n_events;
static int64_t zero_ns;

/* As they are given and as JSON says them. */
static const struct {
    const char *text, *json;
} words[] = {{"plain", "plain"},
             {"", ""},
             {" ", " "},
             {"\"quoted\\", "\\\"quoted\\\\"},
             {"line\nbreak\t", "line\\nbreak\\t"},
             {"\x1b[31m", "\\u001b[31m"},
             {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
             {"a.b[0]", "a.b[0]"},
             {"true", "true"},
             {"-1e5", "-1e5"},
             {"=1+1", "=1+1"},
             {"name", "name"}};
enum { WORDS = sizeof words / sizeof *words };

struct maker {
    uint64_t state;
    struct stave_args args;
    char json[TEXT_MAX];
    size_t len;
    struct open {
        uint64_t slice, n;
        stave_track_t track;
        char *begin; /* its JSON so far */
    } open[OPEN_MAX];
};

static uint64_t next(struct maker *m)
{
    m->state ^= m->state << 13, m->state ^= m->state >> 7, m->state ^= m->state << 17;
    return m->state * 0x2545f4914f6cdd1du >> 8;
}

__attribute__((format(printf, 2, 3))) static void say(struct maker *m, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    m->len += (size_t)vsnprintf(m->json + m->len, TEXT_MAX - m->len, format, list);
    va_end(list);
    if (m->len >= TEXT_MAX)
        abort();
}

/* ---- arguments: into the event and into its JSON ---- */

static void make_value(struct maker *m, const char *key, unsigned depth)
{
    static const int64_t ints[] = {0, -1, 42, INT64_MAX, INT64_MIN, (int64_t)1 << 53};
    static const double doubles[] = {0.5, -1.25, 1e300, 5e-324, 0.1};
    char text[3000];
    uint64_t kind = next(m) % 8, i = next(m);
    if (key)
        say(m, "\"%s\":", key);
    bool is_full = m->args.len > 5000; /* of 16,000 bytes */
    if (depth > 0 && depth < DEPTH_MAX && i % 2)
        kind = 6 + i / 2 % 2;
    switch (is_full || (depth >= DEPTH_MAX && kind >= 6) ? 0 : kind) {
    case 0: stave_args_int(&m->args, key, ints[i % 6]), say(m, "%" PRId64, ints[i % 6]); break;
    case 1:
        stave_args_uint(&m->args, key, UINT64_MAX - i % 9);
        say(m, "%" PRIu64, UINT64_MAX - i % 9);
        break;
    case 2:
        stave_args_double(&m->args, key, doubles[i % 5]), say(m, "%.17g", doubles[i % 5]);
        break;
    case 3:
        if (i % 3 == 0)
            stave_args_null(&m->args, key), say(m, "null");
        else
            stave_args_bool(&m->args, key, i % 2), say(m, "%s", i % 2 ? "true" : "false");
        break;
    case 4:
        memset(text, 'x', sizeof text);
        text[i % 10 ? i % 100 : sizeof text - 1] = 0;
        stave_args_text(&m->args, key, text), say(m, "\"%s\"", text);
        break;
    case 5:
        stave_args_text(&m->args, key, words[i % WORDS].text);
        say(m, "\"%s\"", words[i % WORDS].json);
        break;
    default:
        kind == 6 ? stave_args_dict(&m->args, key) : stave_args_list(&m->args, key);
        say(m, kind == 6 ? "{" : "[");
        for (uint64_t k = 0, count = i % 4; k < count && m->args.len < 8000; k++) {
            snprintf(text, sizeof text, "k%" PRIu64, k);
            say(m, "%s", k ? "," : "");
            make_value(m, kind == 6 ? text : NULL, depth + 1);
        }
        say(m, kind == 6 ? "}" : "]");
        stave_args_end(&m->args);
        break;
    }
}

static void make_args(struct maker *m, const char *key, uint64_t n)
{
    char name[16];
    stave_args_init(&m->args);
    stave_args_uint(&m->args, key, n);
    say(m, "\"%s\":%" PRIu64, key, n);
    for (uint64_t i = 0, count = next(m) % 4; i < count && m->args.len < 6000; i++) {
        snprintf(name, sizeof name, "%s%" PRIu64, key, i);
        say(m, ",");
        make_value(m, name, 0);
    }
}

/* ---- events ---- */

static void write_truth(struct maker *m)
{
    pthread_mutex_lock(&lock);
    fprintf(truth, "%s\n", m->json);
    pthread_mutex_unlock(&lock);
}

/* The beginning of a line up to its arguments; fills the event. */
static void head(struct maker *m, const char *kind, struct stave_event *e)
{
    uint64_t word = next(m) % WORDS, row = next(m) % (ROWS + 1);
    *e = (struct stave_event){.size = sizeof *e, .category = "law", .args = &m->args};
    e->name = words[word].text;
    e->track = row < ROWS ? rows[row] : STAVE_THREAD;
    m->len = 0;
    say(m, "{\"kind\":\"%s\",\"name\":\"%s\"", kind, words[word].json);
    if (row < ROWS)
        say(m, ",\"row\":\"%s\"", row_names[row]);
}

static void complete(struct maker *m)
{
    struct stave_event e;
    head(m, "slice", &e);
    int64_t far = (int64_t)(next(m) << 8) >> 2 >> next(m) % 62; /* from the first event */
    e.kind = STAVE_KIND_COMPLETE;
    e.start_ns = zero_ns + (next(m) % 3 ? (int64_t)(next(m) % 2000) : far);
    e.dur_ns = next(m) % 4 ? (int64_t)(next(m) % 1000) : (int64_t)(next(m) >> 2 >> next(m) % 50);
    say(m, ",\"ts\":%" PRId64 ",\"dur\":%" PRId64 ",\"args\":{", e.start_ns - zero_ns, e.dur_ns);
    make_args(m, "n", ++n_numbers);
    say(m, "}}");
    if (stave_emit(&e))
        write_truth(m);
}

static void instant(struct maker *m)
{
    struct stave_event e;
    head(m, "instant", &e);
    e.kind = STAVE_KIND_INSTANT;
    say(m, ",\"args\":{");
    make_args(m, "n", ++n_numbers);
    say(m, "}}");
    if (stave_emit(&e))
        write_truth(m);
}

static void end(struct maker *m, struct open *o)
{
    struct stave_event e = {.size = sizeof e, .track = o->track, .category = "law"};
    e.args = &m->args;
    m->len = 0;
    say(m, "%s,", o->begin);
    make_args(m, "e", o->n);
    say(m, "}}");
    stave_slice_end(o->slice, &e);
    write_truth(m);
    free(o->begin);
    *o = (struct open){0};
}

static void begin(struct maker *m, struct open *o)
{
    struct stave_event e;
    do
        head(m, "slice", &e);
    while (e.track == STAVE_THREAD); /* by number on tracks of one's own only */
    say(m, ",\"args\":{");
    *o = (struct open){.n = ++n_numbers, .track = e.track};
    make_args(m, "n", o->n);
    o->slice = stave_slice_begin(&e);
    o->begin = strdup(m->json);
}

static void count(struct maker *m, unsigned thread)
{
    struct stave_event e = {
        .size = sizeof e, .kind = STAVE_KIND_COUNTER, .track = counters[thread]};
    e.category = "law";
    e.value = (double)(next(m) % 100000) / 8;
    m->len = 0;
    say(m, "{\"kind\":\"counter\",\"row\":\"c%u\",\"value\":%.17g}", thread, e.value);
    if (stave_emit(&e))
        write_truth(m);
}

static void *work(void *arg)
{
    unsigned thread = (unsigned)(uintptr_t)arg;
    struct maker *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->state = (seed * THREADS + thread + 1) * 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < n_events / THREADS; i++) {
        struct open *o = &m->open[next(m) % OPEN_MAX];
        uint64_t what = next(m) % 20;
        if (what < 11)
            complete(m);
        else if (what < 13)
            instant(m);
        else if (what < 15)
            count(m, thread);
        else if (o->slice)
            end(m, o);
        else
            begin(m, o);
    }
    for (unsigned i = 0; i < OPEN_MAX; i++) {
        struct open *o = &m->open[i];
        if (!o->slice)
            continue;
        m->len = 0; /* these never end */
        say(m, "%s},\"dur\":-1}", o->begin);
        write_truth(m);
        free(o->begin);
    }
    free(m);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc < 4 || !(truth = fopen(argv[3], "w")))
        return 2;
    seed = strtoull(argv[1], NULL, 10);
    n_events = strtoull(argv[2], NULL, 10);
    stave_track_t group = stave_track(STAVE_ROOT, "group"), deep = group;
    for (int i = 0; i < 8; i++)
        deep = stave_track(deep, "deeper");
    rows[0] = stave_track(STAVE_PROCESS, row_names[0]);
    rows[1] = stave_track(group, row_names[1]);
    rows[2] = stave_track(group, row_names[2]); /* of the same name as another one */
    rows[3] = stave_track(deep, row_names[3]);
    for (unsigned i = 0; i < THREADS; i++) {
        char name[8];
        snprintf(name, sizeof name, "c%u", i);
        counters[i] = stave_counter(STAVE_PROCESS, name, "");
    }
    zero_ns = stave_now_ns();
    stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                     .kind = STAVE_KIND_COMPLETE,
                                     .category = "law",
                                     .name = "zero",
                                     .start_ns = zero_ns});
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    fclose(truth);
    if (argc > 4)
        kill(getpid(), SIGKILL);
    return 0;
}
