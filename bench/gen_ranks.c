/* gen_ranks TEMPLATE RANKS PER_HOST DIR: copies of a file of gen_kineto, DIR/rank-0000.json and so
 * on, as the ranks of one job write them.
 *
 * For the bench of merge. Each copy has its own rank, the host and the processes of that rank, and
 * a wall clock that differs by a few microseconds from host to host. Only what differs is made
 * anew: a thousand files take as long as writing their bytes. PER_HOST 0: the files do not name
 * their host, as Kineto's do not. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCAL_MAX = 8 }; /* one digit: the copies of a text have its length */

struct text {
    char *bytes;
    size_t len;
};

static bool read_file(const char *path, struct text *t)
{
    FILE *in = fopen(path, "r");
    if (!in || fseek(in, 0, SEEK_END) != 0)
        return false;
    long size = ftell(in);
    rewind(in);
    t->len = size > 0 ? (size_t)size : 0;
    t->bytes = malloc(t->len + 1);
    bool ok = t->bytes && t->len && fread(t->bytes, 1, t->len, in) == t->len;
    fclose(in);
    if (ok)
        t->bytes[t->len] = '\0';
    return ok;
}

/* Every `from` becomes `to`, which is as long. */
static void replace(struct text *t, const char *from, const char *to)
{
    size_t len = strlen(from);
    for (char *p = t->bytes; (p = memmem(p, t->len - (size_t)(p - t->bytes), from, len)); p += len)
        memcpy(p, to, len);
}

/* The processes of one of the ranks of a host: its own pids, and its GPU. */
static void localise(struct text *t, unsigned local)
{
    char to[32];
    snprintf(to, sizeof to, "%05u", 30142 + local * 1000);
    replace(t, "30142", to);
    snprintf(to, sizeof to, "%05u", 30219 + local * 1000);
    replace(t, "30219", to);
    snprintf(to, sizeof to, "\"pid\": %u,", local);
    replace(t, "\"pid\": 0,", to);
    snprintf(to, sizeof to, "\"GPU %u\"", local);
    replace(t, "\"GPU 0\"", to);
}

static bool write_rank(const struct text *t, unsigned rank, unsigned per_host, const char *path)
{
    static const char rank_key[] = "\"rank\": 3", base_key[] = "\"baseTimeNanoseconds\": ";
    const char *at = strstr(t->bytes, rank_key), *end = t->bytes + t->len;
    const char *base = memmem(end - 200, 200, base_key, sizeof base_key - 1);
    FILE *out = fopen(path, "w");
    if (!out || !at || !base)
        return false;
    unsigned host = per_host ? rank / per_host : rank;
    fwrite(t->bytes, 1, (size_t)(at - t->bytes), out);
    fprintf(out, "\"rank\": %u", rank);
    at += sizeof rank_key - 1;
    fwrite(at, 1, (size_t)(base - at), out);
    if (per_host)
        fprintf(out, "\"host_name\": \"node%04u\",\n  ", host);
    fprintf(out, "%s%" PRId64 "\n}\n", base_key,
            (int64_t)1711964646000000000 + (int64_t)host * 37 % 1000 * 1000);
    return fclose(out) == 0;
}

int main(int argc, char **argv)
{
    struct text copies[LOCAL_MAX] = {0}, original = {0};
    unsigned ranks = argc == 5 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned per_host = argc == 5 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    if (ranks == 0 || per_host > LOCAL_MAX) {
        fprintf(stderr, "usage: gen_ranks TEMPLATE RANKS PER_HOST DIR\n");
        return 2;
    }
    bool ok = read_file(argv[1], &original);
    for (unsigned rank = 0; ok && rank < ranks; rank++) {
        unsigned local = per_host ? rank % per_host : 0;
        struct text *t = &copies[local];
        char path[4096];
        if (!t->bytes) {
            *t = (struct text){malloc(original.len + 1), original.len};
            memcpy(t->bytes, original.bytes, original.len + 1);
            localise(t, local);
        }
        snprintf(path, sizeof path, "%s/rank-%04u.json", argv[4], rank);
        ok = write_rank(t, rank, per_host, path);
    }
    if (!ok)
        perror("gen_ranks");
    for (unsigned i = 0; i < LOCAL_MAX; i++)
        free(copies[i].bytes);
    free(original.bytes);
    return ok ? 0 : 3;
}
