/* Paje traces, as starpu_fxt_tool, SimGrid and others write them: containers, states, events,
 * variables, links.
 *
 * Opened through the table of formats. The head of a file says which number each kind of line has
 * and which fields ("%EventDef PajeSetState 10"); lines are read by these definitions. A container
 * becomes a track, each kind of state or event a row below it, a variable a counter, a link (a
 * transfer) a slice from its start to its end. Fields that the format does not know become
 * arguments. Times count in seconds, in StarPU's files in milliseconds, from the beginning of the
 * run: no clock of the machine. */
#include "core/base/map.h"
#include "core/base/mem.h"
#include "formats/decimal.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEFS_MAX = 64,
    FIELDS_MAX = 24,
    ENTITIES_MAX = 1 << 20,
    DEPTH_MAX = 100, /* states that are open at once in one row */
    LINKS_MAX = 1 << 16
};

enum what {
    UNKNOWN,
    DEFINE_CONTAINER_TYPE,
    DEFINE_TYPE, /* of states, events, variables, links */
    DEFINE_VALUE,
    CREATE_CONTAINER,
    DESTROY_CONTAINER,
    SET_STATE,
    PUSH_STATE,
    POP_STATE,
    RESET_STATE,
    NEW_EVENT,
    SET_VARIABLE,
    ADD_VARIABLE,
    SUB_VARIABLE,
    START_LINK,
    END_LINK
};

static const struct {
    const char *name;
    enum what what;
} line_kinds[] = {
    {"PajeDefineContainerType", DEFINE_CONTAINER_TYPE},
    {"PajeDefineStateType", DEFINE_TYPE},
    {"PajeDefineEventType", DEFINE_TYPE},
    {"PajeDefineVariableType", DEFINE_TYPE},
    {"PajeDefineLinkType", DEFINE_TYPE},
    {"PajeDefineEntityValue", DEFINE_VALUE},
    {"PajeCreateContainer", CREATE_CONTAINER},
    {"PajeDestroyContainer", DESTROY_CONTAINER},
    {"PajeSetState", SET_STATE},
    {"PajePushState", PUSH_STATE},
    {"PajePopState", POP_STATE},
    {"PajeResetState", RESET_STATE},
    {"PajeNewEvent", NEW_EVENT},
    {"PajeSetVariable", SET_VARIABLE},
    {"PajeAddVariable", ADD_VARIABLE},
    {"PajeSubVariable", SUB_VARIABLE},
    {"PajeStartLink", START_LINK},
    {"PajeEndLink", END_LINK},
};

enum role { TIME, NAME, ALIAS, TYPE, CONTAINER, VALUE, KEY, FROM, TO, COLOR, N_ROLES };

/* Older files have other words for the same. */
static const struct {
    const char *name;
    enum role role;
} role_names[] = {
    {"Time", TIME},
    {"Name", NAME},
    {"Alias", ALIAS},
    {"Type", TYPE},
    {"ContainerType", TYPE},
    {"EntityType", TYPE},
    {"Container", CONTAINER},
    {"Value", VALUE},
    {"Key", KEY},
    {"StartContainer", FROM},
    {"SourceContainer", FROM},
    {"StartContainerType", COLOR}, /* of definitions: not used */
    {"EndContainer", TO},
    {"DestContainer", TO},
    {"EndContainerType", COLOR},
    {"Color", COLOR},
};

struct definition {
    int64_t number;
    enum what what;
    size_t n;
    int roles[FIELDS_MAX]; /* enum role, or N_ROLES: an argument of its own */
    sv_str names[FIELDS_MAX];
};

struct entity {
    sv_str name;
    sv_track track;     /* containers */
    uint64_t first_row; /* of a container: index + 1 */
};

/* What one container shows of one type. */
struct row {
    sv_track track;
    uint32_t depth;
    double value;  /* of a variable */
    uint64_t next; /* of the same container: index + 1 */
};

struct link {
    int64_t ts_ns;
    sv_str from, value;
    uint64_t next_free; /* of a place that is not used: the next one, + 1 */
};

struct paje {
    struct sv_lines lines;
    struct definition defs[DEFS_MAX];
    size_t n_defs;
    struct definition *defining; /* inside %EventDef */
    struct sv_map by_number;     /* → index + 1 in defs */
    struct entity *entities;
    size_t n_entities, cap_entities;
    struct sv_map types, containers; /* name or alias (sv_str) → index + 1 */
    struct sv_map values;            /* type << 32 | name or alias → index + 1 */
    struct row *rows;
    size_t n_rows, cap_rows;
    struct sv_map by_place; /* container << 32 | type → index + 1 */
    struct link *links;
    size_t n_links, cap_links, n_open;
    uint64_t free_link;   /* index + 1 */
    struct sv_map by_key; /* type << 32 | key → index + 1 */
    bool is_starpu;
};

/* One line by its definition. */
struct fields {
    struct sv_text known[N_ROLES];
    int64_t ts_ns;
    const struct definition *def;
    struct sv_fields words; /* once more, for the arguments */
};

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++)
        if (line.len > 14 && memcmp(line.bytes, "%EventDef", 9) == 0)
            return sv_bytes_find(line.bytes, line.len, "Paje") ? 98 : 0;
    return 0;
}

/* ---- definitions ---- */

static bool begin_definition(struct paje *s, struct sv_fields *f)
{
    struct sv_text name = sv_field_next(f), number = sv_field_next(f);
    struct definition *d = &s->defs[s->n_defs];
    bool is_new;
    if (s->n_defs == DEFS_MAX || name.len == 0)
        return sv_lines_bad(&s->lines, "at most 64 %EventDef with name and number");
    *d = (struct definition){0};
    if (!sv_text_i64(number, &d->number))
        return sv_lines_bad(&s->lines, "a number after %EventDef and its name");
    for (size_t i = 0; i < sizeof line_kinds / sizeof *line_kinds; i++)
        if (sv_text_is(name, line_kinds[i].name))
            d->what = line_kinds[i].what;
    *sv_map_add(&s->by_number, (uint64_t)d->number, &is_new) = ++s->n_defs;
    s->defining = d;
    return true;
}

static bool add_field(struct paje *s, struct sv_text name)
{
    struct definition *d = s->defining;
    if (!d || name.len == 0 || d->n == FIELDS_MAX)
        return sv_lines_bad(&s->lines, "at most 24 fields inside %EventDef");
    d->roles[d->n] = N_ROLES;
    for (size_t i = 0; i < sizeof role_names / sizeof *role_names; i++)
        if (sv_text_is(name, role_names[i].name))
            d->roles[d->n] = (int)role_names[i].role;
    d->names[d->n++] = sv_dict_str(s->lines.dict, name.bytes, name.len);
    return true;
}

/* %EventDef NAME NUMBER, % FIELD TYPE, %EndEventDef; with or without a blank after the percent
 * sign. */
static bool header_line(struct paje *s, const char *p, size_t len)
{
    struct sv_fields f = {p + 1, p + len};
    struct sv_text word = sv_field_next(&f);
    if (sv_text_is(word, "EventDef"))
        return begin_definition(s, &f);
    if (sv_text_is(word, "EndEventDef")) {
        s->defining = NULL;
        return true;
    }
    return word.len == 0 || add_field(s, word);
}

/* ---- fields ---- */

/* A word, or a text in double quotes without them. */
static bool next_word(struct sv_fields *f, struct sv_text *word)
{
    while (f->p < f->end && (*f->p == ' ' || *f->p == '\t'))
        f->p++;
    if (f->p == f->end || *f->p != '"') {
        *word = sv_field_next(f);
        return word->len > 0;
    }
    const char *close = memchr(f->p + 1, '"', (size_t)(f->end - f->p - 1));
    if (!close)
        return false;
    *word = (struct sv_text){f->p + 1, (uint32_t)(close - f->p - 1)};
    f->p = close + 1;
    return true;
}

/* The fields that the format does not know, for the event that is put next. */
static void add_arguments(struct sv_batch *b, const struct fields *x)
{
    struct sv_fields f = x->words;
    struct sv_text word;
    for (size_t i = 0; i < x->def->n && next_word(&f, &word); i++)
        if (x->def->roles[i] == N_ROLES && word.len)
            sv_put_value(b, x->def->names[i], word);
}

static bool take_fields(struct paje *s, const struct definition *d, struct sv_fields f,
                        struct fields *x)
{
    *x = (struct fields){.def = d, .words = f};
    for (size_t i = 0; i < d->n; i++) {
        struct sv_text word;
        if (!next_word(&f, &word))
            return sv_lines_bad(&s->lines, "as many fields as its %EventDef has");
        if (d->roles[i] != N_ROLES)
            x->known[d->roles[i]] = word;
    }
    if (x->known[TIME].bytes && !sv_decimal_ns(x->known[TIME], s->is_starpu ? 6 : 9, &x->ts_ns))
        return sv_lines_bad(&s->lines, "a time");
    return true;
}

/* ---- names ---- */

static sv_str str_of(struct paje *s, struct sv_text t)
{
    return sv_dict_str(s->lines.dict, t.bytes, t.len);
}

/* scope: of values, whose short names mean something else in each type. */
static bool define(struct paje *s, struct sv_map *map, uint64_t scope, const struct fields *x,
                   sv_track track)
{
    struct sv_text alias = x->known[ALIAS].len ? x->known[ALIAS] : x->known[NAME];
    bool is_new;
    if (alias.len == 0 || s->n_entities == ENTITIES_MAX)
        return sv_lines_bad(&s->lines, "a name, and not more than a million of them");
    s->entities = sv_grow(s->entities, &s->cap_entities, s->n_entities + 1, sizeof *s->entities);
    sv_str name = str_of(s, x->known[NAME].len ? x->known[NAME] : alias);
    s->entities[s->n_entities++] = (struct entity){name, track, 0};
    *sv_map_add(map, scope << 32 | str_of(s, alias), &is_new) = s->n_entities;
    uint64_t *by_name = sv_map_add(map, scope << 32 | name, &is_new);
    if (is_new) /* lines may call it by its name, too */
        *by_name = s->n_entities;
    return true;
}

static uint64_t find(struct paje *s, const struct sv_map *map, struct sv_text word)
{
    const uint64_t *i = sv_map_find(map, sv_dict_find_str(s->lines.dict, word.bytes, word.len));
    return word.len && i ? *i : 0;
}

static sv_str value_name(struct paje *s, const struct fields *x)
{
    sv_str value = str_of(s, x->known[VALUE]);
    const uint64_t *i = sv_map_find(&s->values, find(s, &s->types, x->known[TYPE]) << 32 | value);
    return i ? s->entities[*i - 1].name : value;
}

static bool create_container(struct paje *s, const struct fields *x)
{
    uint64_t parent = find(s, &s->containers, x->known[CONTAINER]);
    sv_str name = str_of(s, x->known[NAME].len ? x->known[NAME] : x->known[ALIAS]);
    sv_track track = sv_dict_child(s->lines.dict, parent ? s->entities[parent - 1].track : 0,
                                   SV_TRACK_CUSTOM, name);
    return define(s, &s->containers, 0, x, track);
}

/* The row of this line's container and type; NULL: one of them is not known. */
static struct row *row_of(struct paje *s, const struct fields *x, unsigned kind)
{
    uint64_t c = find(s, &s->containers, x->known[CONTAINER]);
    uint64_t t = find(s, &s->types, x->known[TYPE]);
    bool is_new;
    if (!c || !t) {
        sv_lines_bad(&s->lines, c ? "a type that was defined" : "a container that was created");
        return NULL;
    }
    uint64_t *at = sv_map_add(&s->by_place, c << 32 | t, &is_new);
    if (is_new) {
        SV_APPEND(s->rows, s->n_rows, s->cap_rows) =
            (struct row){.track = sv_dict_child(s->lines.dict, s->entities[c - 1].track, kind,
                                                s->entities[t - 1].name),
                         .next = s->entities[c - 1].first_row};
        s->entities[c - 1].first_row = *at = s->n_rows;
    }
    return &s->rows[*at - 1];
}

/* ---- events ---- */

static void end_states(struct paje *s, struct sv_batch *b, struct row *r, int64_t ts_ns)
{
    for (; r->depth > 0; r->depth--)
        sv_put_event(&s->lines, b, SV_END, ts_ns, r->track, 0, "");
}

static bool put_state(struct paje *s, struct sv_batch *b, const struct fields *x, enum what what)
{
    struct row *r = row_of(s, x, SV_TRACK_CUSTOM);
    if (!r)
        return false;
    if (what == POP_STATE) {
        if (r->depth == 0)
            return sv_lines_bad(&s->lines, "a state that was pushed before");
        r->depth--;
        sv_put_event(&s->lines, b, SV_END, x->ts_ns, r->track, 0, "");
        return true;
    }
    if (what == PUSH_STATE && r->depth == DEPTH_MAX)
        return sv_lines_bad(&s->lines, "at most 100 states on top of each other");
    sv_str name = value_name(s, x);
    if (what != PUSH_STATE)
        end_states(s, b, r, x->ts_ns);
    if (what == RESET_STATE)
        return true;
    add_arguments(b, x);
    sv_put_event(&s->lines, b, SV_BEGIN, x->ts_ns, r->track, name, "state");
    r->depth++;
    return true;
}

/* Its states end with it; more than one line may give are left open. */
static bool destroy_container(struct paje *s, struct sv_batch *b, const struct fields *x)
{
    uint64_t c = find(s, &s->containers, x->known[NAME]);
    uint32_t n = 0;
    for (uint64_t at = c ? s->entities[c - 1].first_row : 0; at; at = s->rows[at - 1].next) {
        n += s->rows[at - 1].depth;
        if (n > DEPTH_MAX)
            break;
        end_states(s, b, &s->rows[at - 1], x->ts_ns);
    }
    return true;
}

static bool put_instant(struct paje *s, struct sv_batch *b, const struct fields *x)
{
    const struct row *r = row_of(s, x, SV_TRACK_CUSTOM);
    if (!r)
        return false;
    add_arguments(b, x);
    sv_put_event(&s->lines, b, SV_INSTANT, x->ts_ns, r->track, value_name(s, x), "event");
    return true;
}

static bool put_variable(struct paje *s, struct sv_batch *b, const struct fields *x, enum what what)
{
    struct row *r = row_of(s, x, SV_TRACK_COUNTER);
    double v;
    if (!r)
        return false;
    if (!sv_text_double(x->known[VALUE], &v))
        return sv_lines_bad(&s->lines, "a number as value of a variable");
    r->value = what == SET_VARIABLE ? v : what == ADD_VARIABLE ? r->value + v : r->value - v;
    sv_put_counter(&s->lines, b, r->track, x->ts_ns, r->value);
    return true;
}

static bool start_link(struct paje *s, const struct fields *x, uint64_t key)
{
    bool is_new;
    if (s->n_open == LINKS_MAX)
        return sv_lines_bad(&s->lines, "fewer links that are open at once");
    uint64_t *at = sv_map_add(&s->by_key, key, &is_new);
    if (is_new && s->free_link) {
        *at = s->free_link;
        s->free_link = s->links[*at - 1].next_free;
    } else if (is_new) {
        s->links = sv_grow(s->links, &s->cap_links, s->n_links + 1, sizeof *s->links);
        *at = ++s->n_links;
    }
    s->n_open += is_new;
    s->links[*at - 1] = (struct link){x->ts_ns, str_of(s, x->known[FROM]), value_name(s, x), 0};
    return true;
}

static void name_end(struct paje *s, struct sv_batch *b, const char *key, struct sv_text alias)
{
    uint64_t i = find(s, &s->containers, alias);
    struct sv_text name = i ? sv_dict_text(s->lines.dict, s->entities[i - 1].name) : alias;
    sv_add_text(&s->lines, b, key, name);
}

/* A slice on the row of the link's kind, from where it started to where it ended. */
static bool end_link(struct paje *s, struct sv_batch *b, const struct fields *x, uint64_t key)
{
    const uint64_t *at = sv_map_find(&s->by_key, key);
    const struct row *r = row_of(s, x, SV_TRACK_CUSTOM);
    if (!r)
        return false;
    if (!at)
        return sv_lines_bad(&s->lines, "a start of this link before its end");
    struct link l = s->links[*at - 1];
    add_arguments(b, x);
    name_end(s, b, "from", sv_dict_text(s->lines.dict, l.from));
    name_end(s, b, "to", x->known[TO]);
    sv_add_text(&s->lines, b, "key", x->known[KEY]);
    struct sv_event *e = sv_put_event(&s->lines, b, SV_SLICE, l.ts_ns, r->track, l.value, "link");
    e->dur_ns = x->ts_ns > l.ts_ns ? x->ts_ns - l.ts_ns : 0;
    uint64_t gone = *at;
    sv_map_remove(&s->by_key, key);
    s->links[gone - 1].next_free = s->free_link;
    s->free_link = gone;
    s->n_open--;
    return true;
}

static bool put_line(struct paje *s, struct sv_batch *b, enum what what, const struct fields *x)
{
    uint64_t key = find(s, &s->types, x->known[TYPE]) << 32 |
                   (what == START_LINK || what == END_LINK ? str_of(s, x->known[KEY]) : 0);
    switch (what) {
    case DEFINE_CONTAINER_TYPE:
    case DEFINE_TYPE: return define(s, &s->types, 0, x, 0);
    case DEFINE_VALUE: return define(s, &s->values, find(s, &s->types, x->known[TYPE]), x, 0);
    case CREATE_CONTAINER: return create_container(s, x);
    case SET_STATE:
    case PUSH_STATE:
    case POP_STATE:
    case RESET_STATE: return put_state(s, b, x, what);
    case NEW_EVENT: return put_instant(s, b, x);
    case SET_VARIABLE:
    case ADD_VARIABLE:
    case SUB_VARIABLE: return put_variable(s, b, x, what);
    case START_LINK: return start_link(s, x, key);
    case END_LINK: return end_link(s, b, x, key);
    case DESTROY_CONTAINER: return destroy_container(s, b, x);
    case UNKNOWN: break;
    }
    return true;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct paje *s = (struct paje *)l;
    struct sv_fields f = {p, p + len};
    struct fields x;
    int64_t number;
    if (len == 0 || *p == '#')
        return true;
    if (*p == '%')
        return header_line(s, p, len);
    struct sv_text first = sv_field_next(&f);
    if (first.len == 0)
        return true;
    const uint64_t *at = sv_text_i64(first, &number) ? sv_map_find(&s->by_number, (uint64_t)number)
                                                     : NULL;
    if (!at)
        return sv_lines_bad(l, "a number that an %EventDef has");
    const struct definition *d = &s->defs[*at - 1];
    if (d->what == UNKNOWN) {
        sv_report_add(l->source.report, SV_SKIPPED, "line of a kind that Paje does not have", 1,
                      l->pos, NULL);
        return true;
    }
    /* StarPU names its types so and counts milliseconds. */
    if (d->what == DEFINE_CONTAINER_TYPE && sv_bytes_find(p, len, "\"MPI Program\""))
        s->is_starpu = true;
    return take_fields(s, d, f, &x) && put_line(s, b, d->what, &x);
}

static void fini(struct sv_lines *l)
{
    struct paje *s = (struct paje *)l;
    struct sv_map *maps[] = {&s->by_number, &s->types,    &s->containers,
                             &s->values,    &s->by_place, &s->by_key};
    if (s->n_open > 0)
        sv_report_add(l->source.report, SV_SKIPPED, "link without an end", s->n_open, SV_NO_POS,
                      NULL);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        sv_map_fini(maps[i]);
    free(s->entities);
    free(s->rows);
    free(s->links);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct paje),
    .max_events = DEPTH_MAX + 2,
    .gives = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "line that is not Paje's",
    .line = line,
    .fini = fini,
};

/* starpu_fxt_tool makes it of prof_file_* */
static const char *const covered_by[] = {"fxt", NULL};

const struct sv_format sv_paje_format = {
    .name = "paje",
    .help = "a Paje trace, StarPU's paje.trace among them",
    .lacks = "the start of the run in world time",
    .files = "Paje traces, `paje.trace` of `starpu_fxt_tool` among them",
    .times = "seconds (StarPU: milliseconds) since the run's beginning",
    .probe = probe,
    .lines = &kind,
    .covered_by = covered_by,
};
