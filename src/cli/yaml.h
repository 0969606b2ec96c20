/* YAML for configurations: a strict subset with line numbers, and a table that checks and reads it.
 *
 *     maps and lists by indentation, lists also at the column of their key, [a, b] and {a: 1} over
 *     any number of lines,
 *     plain, 'single' and "double" quoted texts on one line, comments, one leading ---.
 *
 * What a configuration does not need is refused with its line, never guessed: anchors, aliases,
 * tags, block texts (| and >), texts over several lines, several documents, tabs as indentation,
 * keys given twice. Messages read `NAME:LINE: what`.
 *
 *     static const struct sv_yaml_field fields[] = {
 *         {"port", SV_YAML_INT, 1, 65535, "where to listen", offsetof(struct config, port),
 *         .is_required = true},
 *         {0}};
 *     struct config c = {.port = 8000};
 *     if (sv_yaml_open(path, &y, err) < 0 || sv_yaml_read(y, sv_yaml_root(y), fields, &c, err) < 0)
 *     …
 *     sv_yaml_free(y); // the texts in c are y's: only when c is no longer used */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SV_YAML_BYTES_MAX ((size_t)1 << 20)
enum { SV_YAML_DEPTH_MAX = 32, SV_YAML_NODES_MAX = 100000, SV_YAML_KEYS_MAX = 500 };

enum sv_yaml_kind { SV_YAML_NOTHING, SV_YAML_SCALAR, SV_YAML_MAP, SV_YAML_LIST };

struct sv_yaml_node {
    enum sv_yaml_kind kind;
    uint32_t line;   /* of the value */
    bool is_quoted;  /* scalar: "12" and "true" are texts */
    const char *key; /* of a member of a map, NULL elsewhere */
    uint32_t key_line;
    const char *text; /* scalar: NUL-terminated, without NUL inside; "" elsewhere */
    size_t n;         /* members of a map, items of a list */
    const struct sv_yaml_node *first, *next;
};

struct sv_yaml;

/* `name` is used in messages. A document without content has a root of kind SV_YAML_NOTHING. */
int sv_yaml_parse(const char *text, size_t len, const char *name, struct sv_yaml **out,
                  struct sv_err *err);
int sv_yaml_open(const char *path, struct sv_yaml **out, struct sv_err *err);
void sv_yaml_free(struct sv_yaml *y);

const struct sv_yaml_node *sv_yaml_root(const struct sv_yaml *y);
const char *sv_yaml_name(const struct sv_yaml *y);
/* The member of a map, NULL when there is none (or node is no map). */
const struct sv_yaml_node *sv_yaml_find(const struct sv_yaml_node *map, const char *key);

/* One scalar, without a table. false: it is not one. Booleans are true/false, yes/no, on/off. */
bool sv_yaml_bool(const struct sv_yaml_node *node, bool *out);
bool sv_yaml_int(const struct sv_yaml_node *node, int64_t *out);
bool sv_yaml_number(const struct sv_yaml_node *node, double *out);

/* SV_EUSAGE with the name and the line of a node: for what a table cannot check. */
int sv_yaml_fail(const struct sv_yaml *y, const struct sv_yaml_node *node, struct sv_err *err,
                 const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* SV_EUSAGE: a key that nobody knows, with the nearest of those that there are. */
int sv_yaml_unknown(const struct sv_yaml *y, const struct sv_yaml_node *member,
                    const char *const *names, size_t n, struct sv_err *err);

/* Complaints after the first one of a document, which is the caller's `err`: one line each, in
 * their order. sv_yaml_also() merges what a check of the caller's says: own.code 0 is no
 * complaint. */
const char *const *sv_yaml_others(const struct sv_yaml *y, size_t *n);
void sv_yaml_also(struct sv_yaml *y, const struct sv_err *own, struct sv_err *err);

/* ---- by table ---- */

enum sv_yaml_type {
    SV_YAML_BOOL,   /* bool */
    SV_YAML_INT,    /* int64_t, within min and max */
    SV_YAML_NUMBER, /* double, within min and max */
    SV_YAML_TEXT,   /* const char *, not empty; one of `choices` if there are some */
    SV_YAML_TEXTS,  /* struct sv_yaml_texts: a list of texts, or a single one */
    SV_YAML_PART,   /* a map with `fields` of its own; offsets count from this field's */
    SV_YAML_ANY     /* const struct sv_yaml_node *: for lists of maps and free keys */
};

struct sv_yaml_texts {
    const char **items; /* owned by the document, like every text */
    size_t n;
};

struct sv_yaml_field {
    const char *key;
    enum sv_yaml_type type;
    double min, max; /* both 0: any */
    const char *help;
    size_t offset;
    const char *choices; /* words separated by blanks */
    const struct sv_yaml_field *fields;
    bool is_required;
};

/* Reads the members of map (a table of fields ends with a zeroed one) to where they belong in
 * *into; what is not given stays as it is. Unknown keys, wrong types, values out of range and
 * missing keys are SV_EUSAGE. An empty document reads as an empty map. */
int sv_yaml_read(struct sv_yaml *y, const struct sv_yaml_node *map,
                 const struct sv_yaml_field *fields, void *into, struct sv_err *err);
