/* Calls that copy between descriptors, and what each of them moved: a line per call with its name,
 * bytes, offset read from and offset written to (-1: that end has none), then the two paths ("-":
 * none).
 *
 *     copies FROM TO          FROM exists and has 64 KiB at least; TO is made
 *     copies FROM TO threads  the same, by two threads at a time */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *from_path, *to_path;
static char names[2][2] = {"1", "2"};

static void report(const char *name, ssize_t bytes, long long from_at, long long to_at,
                   const char *from, const char *to)
{
    if (bytes <= 0) {
        fprintf(stderr, "copies: %s: %s\n", name, strerror(errno));
        exit(1);
    }
    printf("%s %zd %lld %lld %s %s\n", name, bytes, from_at, to_at, from, to);
}

static void *copy(void *name)
{
    char path[4096];
    off_t at, to_at;
    int channel[2], pair[2];
    snprintf(path, sizeof path, "%s%s", to_path, (const char *)name);
    int from = open(from_path, O_RDONLY), to = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (from < 0 || to < 0 || pipe(channel) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        perror("copies");
        exit(1);
    }
    at = 1000;
    report("sendfile", sendfile(to, from, &at, 2000), 1000, 0, from_path, path);
    report("sendfile", sendfile(to, from, NULL, 700), 0, 2000, from_path, path);
    report("sendfile", sendfile(pair[0], from, NULL, 900), 700, -1, from_path, "-");
    at = 3000;
    report("copy_file_range", copy_file_range(from, &at, to, NULL, 500, 0), 3000, 2700, from_path,
           path);
    to_at = 9000;
    report("copy_file_range", copy_file_range(from, NULL, to, &to_at, 600, 0), 1600, 9000,
           from_path, path);
    at = 4000;
    report("splice", splice(from, &at, channel[1], NULL, 800, 0), 4000, -1, from_path, "-");
    to_at = 12000;
    report("splice", splice(channel[0], NULL, to, &to_at, 800, 0), -1, 12000, "-", path);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t other;
    if (argc < 3)
        return 2;
    from_path = argv[1];
    to_path = argv[2];
    if (argc > 3 && pthread_create(&other, NULL, copy, names[1]) != 0)
        return 1;
    copy(names[0]);
    if (argc > 3)
        pthread_join(other, NULL);
    return 0;
}
