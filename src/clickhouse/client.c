/* The HTTP client for ClickHouse: one request and its answer, and inserts that run beside the work.
 * Called by load.c and run_sql.c; it knows nothing of tables. */
#include "clickhouse/client.h"

#ifndef SV_HAVE_CURL
int sv_ch_open(const struct sv_ch_target *t, struct sv_ch **out, struct sv_err *err)
{
    (void)t;
    *out = NULL;
    return sv_error(err, SV_ELIMIT,
                    "this build has no libcurl: install libcurl4-openssl-dev and build again");
}

void sv_ch_close(struct sv_ch *c)
{
    (void)c;
}

const struct sv_ch_target *sv_ch_target_of(const struct sv_ch *c)
{
    (void)c;
    return NULL;
}

int sv_ch_ask(struct sv_ch *c, const char *host, unsigned how, const char *sql, size_t len,
              struct sv_ch_take *take, struct sv_err *err)
{
    (void)host;
    (void)how;
    (void)sql;
    (void)len;
    (void)take;
    return sv_ch_open(NULL, &c, err);
}

int sv_ch_insert(struct sv_ch *c, const char *host, const char *sql, struct sv_buf *body,
                 struct sv_err *err)
{
    (void)host;
    (void)sql;
    sv_buf_fini(body);
    return sv_ch_open(NULL, &c, err);
}

int sv_ch_go_on(struct sv_ch *c, struct sv_err *err)
{
    return sv_ch_open(NULL, &c, err);
}

int sv_ch_finish(struct sv_ch *c, struct sv_err *err)
{
    return sv_ch_open(NULL, &c, err);
}

void sv_ch_forget(struct sv_ch *c)
{
    (void)c;
}
#else
#include "clickhouse/curl_late.h"
#include "clickhouse/pack.h"
#include "core/base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define WORDS_MAX 8192 /* of an error's text that are kept */

struct request {
    struct sv_ch *c;
    CURL *curl;
    char host[SV_CH_HOST_MAX];
    struct sv_buf body;        /* of an insert */
    struct sv_ch_take *take;   /* NULL: the answer is dropped */
    struct sv_buf words;       /* an answer that is no success */
    struct sv_err *err;        /* of what took the answer */
    struct curl_slist *fields; /* of an insert */
    int took;                  /* its code */
    bool is_used, is_checked;
    char error[CURL_ERROR_SIZE];
};

struct sv_ch {
    struct sv_ch_target target;
    struct curl_slist *fields;
    CURLM *multi;
    struct request asking, inserts[SV_CH_INSERTS_MAX];
    struct sv_err failed; /* the first insert that failed */
};

/* ---- answers ---- */

/* Someone's FORMAT in the statement, or another kind of server. */
static int check_form(struct request *r)
{
    char *type = NULL;
    sv_curl.curl_easy_getinfo(r->curl, CURLINFO_CONTENT_TYPE, &type);
    r->is_checked = true;
    if (type && strncmp(type, "text/tab-separated-values", 25) == 0)
        return 0;
    return sv_error(r->err, SV_EUSAGE,
                    "the answer is %.100s instead of tab-separated values: leave out FORMAT and "
                    "choose the form with --to",
                    type ? type : "of no type");
}

static size_t take_answer(char *data, size_t size, size_t n, void *ctx)
{
    struct request *r = ctx;
    long status = 0;
    n *= size;
    sv_curl.curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        size_t space = WORDS_MAX - r->words.len;
        sv_buf_add(&r->words, data, n < space ? n : space);
        return n;
    }
    if (!r->take)
        return n;
    r->took = r->is_checked ? 0 : check_form(r);
    if (r->took >= 0)
        r->took = r->take->bytes(r->take, data, n, r->err);
    return r->took < 0 ? CURL_WRITEFUNC_ERROR : n;
}

/* How the request ended, in the server's words or the library's. */
static int judge(struct request *r, CURLcode result, struct sv_err *err)
{
    char words[400];
    long status = 0;
    unsigned port = r->c->target.port;
    sv_curl.curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    if (r->took < 0)
        return r->took;
    if (result != CURLE_OK)
        return sv_error(err, SV_EIO, "ClickHouse at %.100s:%u: %.300s", r->host, port,
                        *r->error ? r->error : sv_curl.curl_easy_strerror(result));
    if (status == 200)
        return 0;
    int number = sv_ch_words((const char *)r->words.data, r->words.len, words, sizeof words);
    if (number == 0)
        return sv_error(err, SV_EIO, "ClickHouse at %.100s:%u: HTTP status %ld: %.300s", r->host,
                        port, status, words);
    return sv_err_set(err, sv_ch_is_about_sql(number) ? SV_EUSAGE : SV_EIO, SV_NO_POS,
                      "ClickHouse at %.100s:%u: %.350s", r->host, port, words);
}

/* ---- requests ---- */

static void add_url(struct sv_ch *c, const char *host, unsigned how, struct sv_buf *url)
{
    const struct sv_ch_target *t = &c->target;
    sv_buf_printf(url, "%s://%s:%u/?wait_end_of_query=1&skip_unavailable_shards=0",
                  t->is_secure ? "https" : "http", host, (unsigned)t->port);
    if (!(how & SV_CH_NO_DATABASE))
        sv_buf_printf(url, "&database=%s", t->database);
    sv_buf_str(url, "&default_format=TabSeparatedWithNamesAndTypes");
    if (how &
        /* outer joins give NULL, as everywhere else; conditions reach the tables below the views */
        SV_CH_READ)
        sv_buf_str(url, "&join_use_nulls=1&enable_optimize_predicate_expression=1&readonly=1");
}

static void set_up(struct request *r, struct sv_ch *c, const char *host, const struct sv_buf *url,
                   const void *body, size_t n)
{
    r->c = c;
    r->is_checked = false;
    r->took = 0;
    r->error[0] = 0;
    snprintf(r->host, sizeof r->host, "%s", host);
    sv_buf_clear(&r->words);
    if (!r->curl)
        r->curl = sv_curl.curl_easy_init();
    if (!r->curl)
        sv_out_of_memory(0);
    sv_curl.curl_easy_reset(r->curl);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_URL, (const char *)url->data);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_PROTOCOLS_STR,
                             c->target.is_secure ? "https" : "http");
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_PROXY, "");
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_FOLLOWLOCATION, 0L);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_CONNECTTIMEOUT, 15L);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_ERRORBUFFER, r->error);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, take_answer);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, r);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, c->fields);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_POST, 1L);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, body);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
    const char *authorities = getenv("STAVE_CLICKHOUSE_CA");
    if (authorities && *authorities)
        sv_curl.curl_easy_setopt(r->curl, CURLOPT_CAINFO, authorities);
}

int sv_ch_ask(struct sv_ch *c, const char *host, unsigned how, const char *sql, size_t len,
              struct sv_ch_take *take, struct sv_err *err)
{
    struct request *r = &c->asking;
    struct sv_buf url;
    sv_buf_init(&url, 1u << 16);
    host = host ? host : c->target.host;
    add_url(c, host, how, &url);
    sv_buf_byte(&url, 0);
    r->take = take;
    r->err = err;
    set_up(r, c, host, &url, sql, len);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_FRESH_CONNECT, how & SV_CH_ONCE ? 1L : 0L);
    int code = judge(r, sv_curl.curl_easy_perform(r->curl), err);
    sv_buf_fini(&url);
    return code;
}

/* ---- inserts ---- */

static void forget_insert(struct request *r)
{
    if (!r->is_used)
        return;
    sv_curl.curl_multi_remove_handle(r->c->multi, r->curl);
    sv_curl.curl_slist_free_all(r->fields);
    sv_buf_fini(&r->body);
    r->fields = NULL;
    r->is_used = false;
}

static void take_results(struct sv_ch *c)
{
    int left;
    for (CURLMsg *m; (m = sv_curl.curl_multi_info_read(c->multi, &left));) {
        struct request *r = NULL;
        for (size_t i = 0; i < SV_CH_INSERTS_MAX; i++)
            if (c->inserts[i].is_used && c->inserts[i].curl == m->easy_handle)
                r = &c->inserts[i];
        if (m->msg != CURLMSG_DONE || !r)
            continue;
        int code = judge(r, m->data.result, &c->failed);
        if (code == SV_EUSAGE) /* the statement is ours */
            c->failed.code = SV_EIO;
        forget_insert(r);
    }
}

static int report(struct sv_ch *c, struct sv_err *err)
{
    if (c->failed.code == SV_OK)
        return 0;
    return sv_error(err, c->failed.code, "%s", c->failed.msg);
}

int sv_ch_go_on(struct sv_ch *c, struct sv_err *err)
{
    int running;
    sv_curl.curl_multi_perform(c->multi, &running);
    take_results(c);
    return report(c, err);
}

/* Until at most `n` are under way; also after a failure: whoever cleans up must know that nothing
 * comes any more. */
static int wait_for(struct sv_ch *c, size_t n, struct sv_err *err)
{
    for (;;) {
        size_t used = 0;
        int code = sv_ch_go_on(c, err);
        for (size_t i = 0; i < SV_CH_INSERTS_MAX; i++)
            used += c->inserts[i].is_used;
        if (used <= n)
            return code;
        if (sv_curl.curl_multi_poll(c->multi, NULL, 0, 1000, NULL) != CURLM_OK)
            return sv_error(err, SV_EIO, "waiting for ClickHouse failed");
    }
}

int sv_ch_finish(struct sv_ch *c, struct sv_err *err)
{
    return wait_for(c, 0, err);
}

static void add_query(struct request *r, const char *sql, struct sv_buf *url)
{
    char *escaped = sv_curl.curl_easy_escape(r->curl, sql, 0);
    if (!escaped)
        sv_out_of_memory(0);
    sv_buf_printf(url, "&query=%s", escaped);
    sv_buf_byte(url, 0);
    sv_curl.curl_free(escaped);
}

int sv_ch_insert(struct sv_ch *c, const char *host, const char *sql, struct sv_buf *body,
                 struct sv_err *err)
{
    int code = wait_for(c, SV_CH_INSERTS_MAX - 1, err);
    struct request *r = c->inserts;
    struct sv_buf url;
    if (code < 0) {
        sv_buf_fini(body);
        return code;
    }
    while (r->is_used)
        r++;
    sv_buf_init(&url, 1u << 16);
    r->body = *body;
    *body = (struct sv_buf){0};
    add_url(c, host, 0, &url);
    sv_buf_str(&url, sv_ch_pack_settings);
    add_query(r, sql, &url);
    r->is_used = true;
    r->take = NULL;
    set_up(r, c, host, &url, r->body.data, r->body.len);
    sv_buf_fini(&url);
    for (const struct curl_slist *f = c->fields; f; f = f->next)
        r->fields = sv_curl.curl_slist_append(r->fields, f->data);
    if (sv_ch_pack_header)
        r->fields = sv_curl.curl_slist_append(r->fields, sv_ch_pack_header);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, r->fields);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_FRESH_CONNECT, 1L);
    sv_curl.curl_easy_setopt(r->curl, CURLOPT_FORBID_REUSE, 1L);
    if (sv_curl.curl_multi_add_handle(c->multi, r->curl) != CURLM_OK)
        return sv_error(err, SV_EIO, "the request to ClickHouse cannot be made");
    return sv_ch_go_on(c, err);
}

/* ---- the client ---- */

static void add_field(struct sv_ch *c, const char *name, const char *value)
{
    char line[SV_CH_SECRET_MAX + 64];
    if (!*value)
        return;
    snprintf(line, sizeof line, "%s: %s", name, value);
    c->fields = sv_curl.curl_slist_append(c->fields, line);
    explicit_bzero(line, sizeof line);
}

int sv_ch_open(const struct sv_ch_target *t, struct sv_ch **out, struct sv_err *err)
{
    char why[200];
    *out = NULL;
    if (!sv_curl_load(why, sizeof why))
        return sv_error(err, SV_ELIMIT, "%s", why);
    if (sv_curl.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return sv_error(err, SV_ELIMIT, "libcurl cannot be used");
    struct sv_ch *c = *out = sv_alloc(sizeof *c);
    c->target = *t;
    c->multi = sv_curl.curl_multi_init();
    if (!c->multi)
        sv_out_of_memory(0);
    add_field(c, "X-ClickHouse-User", t->user);
    add_field(c, "X-ClickHouse-Key", t->password);
    c->fields = sv_curl.curl_slist_append(c->fields, "Expect:");
    c->fields = sv_curl.curl_slist_append(c->fields, "Content-Type: application/octet-stream");
    c->asking.c = c;
    sv_buf_init(&c->asking.words, WORDS_MAX);
    for (size_t i = 0; i < SV_CH_INSERTS_MAX; i++) {
        c->inserts[i].c = c;
        sv_buf_init(&c->inserts[i].words, WORDS_MAX);
    }
    return 0;
}

const struct sv_ch_target *sv_ch_target_of(const struct sv_ch *c)
{
    return &c->target;
}

void sv_ch_forget(struct sv_ch *c)
{
    struct sv_err ignored;
    sv_err_clear(&ignored);
    (void)sv_ch_finish(c, &ignored);
    sv_err_clear(&c->failed);
}

void sv_ch_close(struct sv_ch *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < SV_CH_INSERTS_MAX; i++) {
        forget_insert(&c->inserts[i]);
        sv_buf_fini(&c->inserts[i].words);
        if (c->inserts[i].curl)
            sv_curl.curl_easy_cleanup(c->inserts[i].curl);
    }
    sv_buf_fini(&c->asking.words);
    if (c->asking.curl)
        sv_curl.curl_easy_cleanup(c->asking.curl);
    sv_curl.curl_multi_cleanup(c->multi);
    sv_curl.curl_slist_free_all(c->fields);
    explicit_bzero(&c->target, sizeof c->target);
    free(c);
    sv_curl.curl_global_cleanup();
}
#endif
