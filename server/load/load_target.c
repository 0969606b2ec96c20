/* Plain blocking requests before the load begins: is the server ready, which model, what does it
 * want?
 *
 * Called once. Answers are small (64 KiB at most) and checked as JSON before they are read. */
#include "server/load/load_plan.h"

#include "core/base/json_scan.h"
#include "core/stream/json_members.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX 65536

static int connect_to(const struct sv_target *t)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = 10};
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (const struct sockaddr *)&t->address, sizeof t->address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The body after the headers, in `answer` (which has a pad after its end); the status, or -1
 * without an answer. */
static int get(const struct sv_target *t, const char *path, char *answer, const char **body,
               size_t *len)
{
    char ask[512];
    size_t n = 0;
    int fd = connect_to(t);
    if (fd < 0)
        return -1;
    int size = snprintf(ask, sizeof ask, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                        path, t->host);
    ssize_t got = send(fd, ask, (size_t)size, MSG_NOSIGNAL);
    while (got > 0 && n < ANSWER_MAX && (got = recv(fd, answer + n, ANSWER_MAX - n, 0)) > 0)
        n += (size_t)got;
    close(fd);
    memset(answer + n, 0, SV_JSON_PAD);
    const char *end = memmem(answer, n, "\r\n\r\n", 4);
    if (!end || n < 12 || memcmp(answer, "HTTP/1.", 7) != 0)
        return -1;
    *body = end + 4;
    *len = n - (size_t)(*body - answer);
    return (int)strtol(answer + 9, NULL, 10);
}

static int parse_url(const char *url, struct sv_target *t, struct sv_err *err)
{
    const char *host = strncmp(url, "http://", 7) == 0 ? url + 7 : url;
    size_t n = strcspn(host, "/");
    char name[64], *colon;
    if (n == 0 || n >= sizeof name || (host[n] == '/' && host[n + 1]))
        return sv_error(err, SV_EUSAGE, "'%s' is not an address: give http://HOST:PORT", url);
    memcpy(name, host, n);
    name[n] = 0;
    snprintf(t->host, sizeof t->host, "%s", name);
    colon = strrchr(name, ':');
    unsigned long port = 8000;
    if (colon) {
        char *end;
        port = strtoul(colon + 1, &end, 10);
        if (*end || port < 1 || port > 65535)
            return sv_error(err, SV_EUSAGE, "'%s': no port", url);
        *colon = 0;
    }
    t->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const char *number = strcmp(name, "localhost") == 0 ? "127.0.0.1" : name;
    if (inet_pton(AF_INET, number, &t->address.sin_addr) != 1)
        return sv_error(err, SV_EUSAGE, "'%s' is not an IPv4 address", name);
    return 0;
}

static int wait_ready(const struct sv_target *t, double seconds, char *answer, struct sv_err *err)
{
    const char *body;
    size_t len;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        int status = get(t, "/v2/health/ready", answer, &body, &len);
        if (status == 200)
            return 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec) >=
            seconds)
            return sv_error(
                err, SV_EIO,
                status < 0 ? "no server answers at %s; start one: stave-server --config FILE.yml"
                           : "the server at %s is not ready",
                t->host);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

static bool find(const char *json, size_t len, const char *key, struct sv_member *out)
{
    struct sv_members members = sv_members_of(json, len);
    while (sv_member_next(&members, out))
        if (sv_member_is(out, key))
            return true;
    return false;
}

static bool copy(const struct sv_member *m, char *to, size_t size)
{
    if (m->type != '"' || m->value.len >= size || memchr(m->value.bytes, '\\', m->value.len))
        return false;
    memcpy(to, m->value.bytes, m->value.len);
    to[m->value.len] = 0;
    return true;
}

static int first_model(struct sv_target *t, char *answer, struct sv_err *err)
{
    const char *body;
    size_t len;
    struct sv_member list, name;
    if (get(t, "/v2/models", answer, &body, &len) == 200 &&
        sv_json_valid((const uint8_t *)body, len) && find(body, len, "models", &list) &&
        list.type == '[') {
        struct sv_members names = sv_members_of(list.value.bytes, list.value.len);
        if (sv_member_next(&names, &name) && copy(&name, t->model, sizeof t->model))
            return 0;
    }
    return sv_error(err, SV_EFORMAT, "%s does not list its models: give --model NAME", t->host);
}

/* inputs[0]: its name, and its shape after the rows. It must be the only one, FP32 and of a known
 * size. */
static bool read_input(struct sv_target *t, const char *body, size_t len)
{
    struct sv_member list, input, m;
    if (!sv_json_valid((const uint8_t *)body, len) || !find(body, len, "inputs", &list) ||
        list.type != '[')
        return false;
    struct sv_members inputs = sv_members_of(list.value.bytes, list.value.len);
    if (!sv_member_next(&inputs, &input) || input.type != '{' ||
        !find(input.value.bytes, input.value.len, "name", &m) ||
        !copy(&m, t->input, sizeof t->input) ||
        !find(input.value.bytes, input.value.len, "datatype", &m) || m.type != '"' ||
        m.value.len != 4 || memcmp(m.value.bytes, "FP32", 4) != 0 ||
        !find(input.value.bytes, input.value.len, "shape", &m) || m.type != '[')
        return false;
    struct sv_members dims = sv_members_of(m.value.bytes, m.value.len);
    uint32_t n = 0;
    t->in_size = 1;
    for (; sv_member_next(&dims, &m); n++) {
        int64_t v;
        if (n > 3 || !sv_member_i64(&m, &v) || (n > 0 && (v < 1 || v > 1 << 22)))
            return false;
        if (n > 0) {
            t->dims[n - 1] = (uint32_t)v;
            t->in_size *= (size_t)v;
        }
    }
    t->n_dims = n - 1;
    return n >= 2 && t->in_size <= 1 << 22 && !sv_member_next(&inputs, &input);
}

static int find_model(struct sv_target *t, const char *model, char *answer, struct sv_err *err)
{
    char path[160];
    const char *body;
    size_t len;
    if (model && strlen(model) < sizeof t->model)
        memcpy(t->model, model, strlen(model) + 1);
    else if (first_model(t, answer, err) < 0)
        return SV_EFORMAT;
    snprintf(path, sizeof path, "/v2/models/%s", t->model);
    int status = get(t, path, answer, &body, &len);
    if (status != 200)
        return sv_error(err, SV_EUSAGE, "%s has no model '%s' (status %d)", t->host, t->model,
                        status);
    if (!read_input(t, body, len))
        return sv_error(err, SV_EFORMAT,
                        "%s: stave-load sends one FP32 tensor with up to three known dimensions "
                        "after the rows; '%s' takes something else",
                        t->host, t->model);
    return 0;
}

int sv_target_open(const char *url, const char *model, double wait_seconds, struct sv_target *t,
                   struct sv_err *err)
{
    char *answer = malloc(ANSWER_MAX + SV_JSON_PAD);
    if (!answer)
        return sv_error(err, SV_ENOMEM, "out of memory");
    int code = parse_url(url, t, err);
    if (code == 0)
        code = wait_ready(t, wait_seconds, answer, err);
    if (code == 0)
        code = find_model(t, model, answer, err);
    free(answer);
    return code;
}
