/* The file of an image: head, sections, checksums, table.
 *
 * Written once from front to back, the head last, so that a file that was cut has none. Opening
 * maps the file and looks at its head, table and checksums only; sv_image_verify() compares the
 * sections with their checksums. Nothing here knows what is in a section. */
#include "store/image.h"

#include "core/base/err.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/files/write_all.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLES     16u                 /* chunks of a long section */
#define SHORT_BYTES ((uint64_t)1 << 20) /* a section up to this size is verified as a whole */
#define FLUSH_BYTES ((uint64_t)64 << 20)
#define SECTIONS    4096u

#ifndef MADV_POPULATE_READ /* of Linux 5.14; older ones refuse it, and pages come one by one */
#define MADV_POPULATE_READ 22
#endif

static const char magic[16] = "stave index 01\n";

struct image_head {
    char magic[16];
    uint32_t version, byte_order;
    struct sv_image_key key;
    uint64_t file_bytes;
    uint64_t table_at, n_sections;
    uint64_t sums_at, n_sums;
    uint64_t table_sum, sums_sum;
    uint64_t sum; /* of the head before this */
};
_Static_assert(sizeof(struct image_head) == 184, "raise SV_IMAGE_VERSION");

struct image_section {
    char name[SV_IMAGE_NAME];
    uint64_t at, bytes, first_sum;
    uint32_t item_size, unused;
};
_Static_assert(sizeof(struct image_section) == 56, "raise SV_IMAGE_VERSION");

#define BYTE_ORDER_MARK 0x01020304u

/* ---- checksums ---- */

#define SUM_STEP 0x9fb21c651e98df25ull

static inline uint64_t sum_step(uint64_t sum, uint64_t word)
{
    sum ^= word;
    return (sum << 29 | sum >> 35) * SUM_STEP;
}

/* Four independent sums of 64 bits. Each step is a bijection of the word and of the sum, so that
 * one changed word always changes the result. */
static uint64_t sum_of(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint64_t lanes[4] = {n, n + 1, n + 2, n + 3}, w[4];
    for (; n >= sizeof w; n -= sizeof w, p += sizeof w) {
        memcpy(w, p, sizeof w);
        for (unsigned i = 0; i < 4; i++)
            lanes[i] = sum_step(lanes[i], w[i]);
    }
    if (n) {
        memset(w, 0, sizeof w);
        memcpy(w, p, n);
        for (unsigned i = 0; i < 4; i++)
            lanes[i] = sum_step(lanes[i], w[i]);
    }
    uint64_t sum = 0;
    for (unsigned i = 0; i < 4; i++)
        sum = sv_mix64(sum ^ lanes[i]) + i;
    return sum;
}

static uint64_t chunks_of(uint64_t bytes)
{
    return bytes / SV_IMAGE_CHUNK + (bytes % SV_IMAGE_CHUNK != 0);
}

static uint64_t aligned(uint64_t at)
{
    return (at + SV_IMAGE_ALIGN - 1) / SV_IMAGE_ALIGN * SV_IMAGE_ALIGN;
}

/* ---- writing ---- */

struct sv_image_writer {
    struct image_section *sections;
    const void **bytes;
    void **owned;
    size_t n, cap, cap_bytes, n_owned, cap_owned;
    uint64_t end, n_sums; /* of the sections so far */
};

struct sv_image_writer *sv_image_writer_new(void)
{
    struct sv_image_writer *w = sv_alloc(sizeof *w);
    w->end = SV_IMAGE_ALIGN;
    return w;
}

void sv_image_writer_free(struct sv_image_writer *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_owned; i++)
        free(w->owned[i]);
    free(w->owned);
    free(w->bytes);
    free(w->sections);
    free(w);
}

void sv_image_add(struct sv_image_writer *w, const char *name, const void *bytes, size_t size,
                  size_t item_size)
{
    w->sections = sv_grow(w->sections, &w->cap, w->n + 1, sizeof *w->sections);
    w->bytes = sv_grow(w->bytes, &w->cap_bytes, w->n + 1, sizeof *w->bytes);
    struct image_section *s = &w->sections[w->n];
    *s = (struct image_section){
        .at = w->end, .bytes = size, .first_sum = w->n_sums, .item_size = (uint32_t)item_size};
    memcpy(s->name, name, strnlen(name, sizeof s->name - 1));
    w->bytes[w->n++] = bytes;
    w->end = aligned(w->end + size);
    w->n_sums += chunks_of(size);
}

void *sv_image_add_new(struct sv_image_writer *w, const char *name, size_t size, size_t item_size)
{
    void *bytes = sv_alloc(size + 1);
    SV_APPEND(w->owned, w->n_owned, w->cap_owned) = bytes;
    sv_image_add(w, name, bytes, size, item_size);
    return bytes;
}

uint64_t sv_image_size(const struct sv_image_writer *w)
{
    return aligned(w->end + w->n_sums * sizeof(uint64_t)) + w->n * sizeof *w->sections;
}

static int put_at(int fd, const void *bytes, size_t n, uint64_t at, struct sv_err *err)
{
    return sv_write_all_at(fd, bytes, n, at) ? 0 : sv_err_sys(err, "cannot write the index");
}

struct writing {
    int fd;
    uint64_t *sums;
    uint64_t since_flush;
    bool (*stop)(void *);
    void *ctx;
};

/* Now and then what was written goes to the disk, so that nothing waits long for it at the end. */
static int flush(struct writing *x, uint64_t at, size_t n, struct sv_err *err)
{
    x->since_flush += n;
    if (x->since_flush < FLUSH_BYTES)
        return 0;
    if (x->stop && x->stop(x->ctx))
        return sv_error(err, SV_EAGAIN, "stopped");
    const unsigned how = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                         SYNC_FILE_RANGE_WAIT_AFTER;
    (void)sync_file_range(x->fd, (off_t)(at + n - x->since_flush), (off_t)x->since_flush, how);
    x->since_flush = 0;
    return 0;
}

static int write_section(struct writing *x, const struct image_section *s, const uint8_t *bytes,
                         struct sv_err *err)
{
    uint64_t *sum = x->sums + s->first_sum;
    for (uint64_t done = 0; done < s->bytes; done += SV_IMAGE_CHUNK) {
        size_t n = s->bytes - done < SV_IMAGE_CHUNK ? (size_t)(s->bytes - done) : SV_IMAGE_CHUNK;
        *sum++ = sum_of(bytes + done, n);
        int code = put_at(x->fd, bytes + done, n, s->at + done, err);
        if (code >= 0)
            code = flush(x, s->at + done, n, err);
        if (code < 0)
            return code;
    }
    return 0;
}

static int write_ends(const struct sv_image_writer *w, const struct writing *x,
                      const struct sv_image_key *key, struct sv_err *err)
{
    struct image_head h = {.version = SV_IMAGE_VERSION,
                           .byte_order = BYTE_ORDER_MARK,
                           .key = *key,
                           .file_bytes = sv_image_size(w),
                           .n_sections = w->n,
                           .sums_at = w->end,
                           .n_sums = w->n_sums};
    size_t sums = (size_t)w->n_sums * sizeof *x->sums, table = w->n * sizeof *w->sections;
    memcpy(h.magic, magic, sizeof h.magic);
    h.table_at = aligned(w->end + sums);
    h.table_sum = sum_of(w->sections, table);
    h.sums_sum = sum_of(x->sums, sums);
    h.sum = sum_of(&h, offsetof(struct image_head, sum));
    int code = put_at(x->fd, x->sums, sums, h.sums_at, err);
    if (code >= 0)
        code = put_at(x->fd, w->sections, table, h.table_at, err);
    if (code >= 0)
        code = put_at(x->fd, &h, sizeof h, 0, err);
    /* A short one is verified as a whole whenever it is opened. */
    if (code >= 0 && h.file_bytes > SHORT_BYTES && fdatasync(x->fd) != 0)
        code = sv_err_sys(err, "cannot write the index");
    return code;
}

int sv_image_write(const struct sv_image_writer *w, int fd, const struct sv_image_key *key,
                   bool (*stop)(void *), void *ctx, struct sv_err *err)
{
    struct writing x = {.fd = fd,
                        .sums = sv_alloc(((size_t)w->n_sums + 1) * sizeof *x.sums),
                        .stop = stop,
                        .ctx = ctx};
    int code =
        ftruncate(fd, (off_t)sv_image_size(w)) == 0 ? 0 : sv_err_sys(err, "cannot write the index");
    for (size_t i = 0; i < w->n && code >= 0; i++)
        code = write_section(&x, &w->sections[i], w->bytes[i], err);
    if (code >= 0)
        code = write_ends(w, &x, key, err);
    free(x.sums);
    return code;
}

/* ---- reading ---- */

struct sv_image {
    const uint8_t *bytes;
    size_t size;
    const struct image_head *head;
    const struct image_section *sections;
    const uint64_t *sums;
    bool is_mapped;
};

/* [at, at + n × size) lies in the file, aligned for the struct. */
static bool fits(const struct sv_image *im, uint64_t at, uint64_t n, size_t size)
{
    return at % sizeof(uint64_t) == 0 && at <= im->size && n <= (im->size - at) / size;
}

static bool check_head(const struct sv_image *im, const struct sv_image_key *key)
{
    const struct image_head *h = im->head;
    return im->size >= sizeof *h && memcmp(h->magic, magic, sizeof h->magic) == 0 &&
           h->version == SV_IMAGE_VERSION && h->byte_order == BYTE_ORDER_MARK &&
           h->sum == sum_of(h, offsetof(struct image_head, sum)) && h->file_bytes == im->size &&
           (!key || memcmp(key, &h->key, sizeof *key) == 0) && h->n_sections <= SECTIONS &&
           fits(im, h->table_at, h->n_sections, sizeof(struct image_section)) &&
           fits(im, h->sums_at, h->n_sums, sizeof(uint64_t));
}

static bool check_section(const struct sv_image *im, const struct image_section *s)
{
    const struct image_head *h = im->head;
    uint64_t chunks = chunks_of(s->bytes);
    return s->name[SV_IMAGE_NAME - 1] == '\0' && s->at % SV_IMAGE_ALIGN == 0 &&
           fits(im, s->at, s->bytes, 1) && s->item_size && s->bytes % s->item_size == 0 &&
           s->first_sum <= h->n_sums && chunks <= h->n_sums - s->first_sum;
}

static bool check_image(struct sv_image *im, const struct sv_image_key *key)
{
    const struct image_head *h = im->head;
    if (!check_head(im, key))
        return false;
    im->sections = (const void *)(im->bytes + h->table_at);
    im->sums = (const void *)(im->bytes + h->sums_at);
    if (h->table_sum != sum_of(im->sections, (size_t)h->n_sections * sizeof *im->sections) ||
        h->sums_sum != sum_of(im->sums, (size_t)h->n_sums * sizeof *im->sums))
        return false;
    for (uint64_t i = 0; i < h->n_sections; i++)
        if (!check_section(im, &im->sections[i]))
            return false;
    return true;
}

struct sv_image *sv_image_of_bytes(const void *bytes, size_t size, const struct sv_image_key *key)
{
    struct sv_image *im = sv_alloc(sizeof *im);
    im->bytes = bytes;
    im->size = size;
    im->head = bytes;
    if (check_image(im, key))
        return im;
    free(im);
    return NULL;
}

struct sv_image *sv_image_open(int fd, const struct sv_image_key *key)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)SV_IMAGE_ALIGN ||
        (uint64_t)st.st_size > SIZE_MAX / 4)
        return NULL;
    size_t size = (size_t)st.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    struct sv_image *im = sv_image_of_bytes(bytes, size, key);
    if (im)
        im->is_mapped = true;
    else
        munmap(bytes, size);
    return im;
}

void sv_image_close(struct sv_image *im)
{
    if (!im)
        return;
    if (im->is_mapped)
        munmap((void *)(uintptr_t)im->bytes, im->size);
    free(im);
}

const void *sv_image_find(const struct sv_image *im, const char *name, size_t item_size,
                          uint64_t *n)
{
    for (uint64_t i = 0; im && i < im->head->n_sections; i++) {
        const struct image_section *s = &im->sections[i];
        if (strcmp(s->name, name) != 0 || s->item_size != item_size)
            continue;
        *n = s->bytes / item_size;
        return im->bytes + s->at;
    }
    *n = 0;
    return NULL;
}

const char *sv_image_section(const struct sv_image *im, size_t i, const void **bytes,
                             uint64_t *size)
{
    if (i >= im->head->n_sections)
        return NULL;
    *bytes = im->bytes + im->sections[i].at;
    *size = im->sections[i].bytes;
    return im->sections[i].name;
}

/* ---- verifying ---- */

static bool verify_chunk(const struct sv_image *im, const struct image_section *s, uint64_t chunk)
{
    uint64_t from = chunk * SV_IMAGE_CHUNK, left = s->bytes - from;
    size_t n = left < SV_IMAGE_CHUNK ? (size_t)left : SV_IMAGE_CHUNK;
    return sum_of(im->bytes + s->at + from, n) == im->sums[s->first_sum + chunk];
}

/* Pages that are in memory are put in place for many at once, which costs a third of one fault
 * each. */
static void get_ready(const struct sv_image *im, const struct image_section *s, uint64_t chunk)
{
    enum { READY = 64 };
    uint64_t from = s->at + chunk * SV_IMAGE_CHUNK, left = s->at + s->bytes - from;
    size_t n = left < READY * SV_IMAGE_CHUNK ? (size_t)left : READY * SV_IMAGE_CHUNK;
    if (im->is_mapped && chunk % READY == 0)
        (void)madvise((void *)(uintptr_t)(im->bytes + from), n, MADV_POPULATE_READ);
}

static bool verify_all(const struct sv_image *im, const struct image_section *s,
                       bool (*stop)(void *), void *ctx)
{
    uint64_t n = chunks_of(s->bytes);
    for (uint64_t i = 0; i < n; i++) {
        if (stop && i % 256 == 255 && stop(ctx))
            return true;
        get_ready(im, s, i);
        if (!verify_chunk(im, s, i))
            return false;
    }
    return true;
}

static bool verify_samples(const struct sv_image *im, const struct image_section *s)
{
    uint64_t n = chunks_of(s->bytes);
    for (uint64_t i = 0; i < SAMPLES; i++)
        if (!verify_chunk(im, s, (n - 1) * i / (SAMPLES - 1)))
            return false;
    return true;
}

bool sv_image_verify(const struct sv_image *im, unsigned how, bool (*stop)(void *), void *ctx)
{
    for (uint64_t i = 0; i < im->head->n_sections; i++) {
        const struct image_section *s = &im->sections[i];
        bool is_sampled = how & SV_IMAGE_QUICK && s->bytes > SHORT_BYTES;
        if (stop && stop(ctx))
            return true;
        if (!(is_sampled ? verify_samples(im, s) : verify_all(im, s, stop, ctx)))
            return false;
    }
    return true;
}

bool sv_image_seal(void *bytes, size_t size)
{
    struct image_head *h = bytes;
    struct sv_image im = {.bytes = bytes, .size = size};
    if (size < sizeof *h || h->n_sections > SECTIONS ||
        !fits(&im, h->table_at, h->n_sections, sizeof(struct image_section)) ||
        !fits(&im, h->sums_at, h->n_sums, sizeof(uint64_t)))
        return false;
    struct image_section *sections = (void *)((uint8_t *)bytes + h->table_at);
    uint64_t *sums = (void *)((uint8_t *)bytes + h->sums_at);
    for (uint64_t i = 0; i < h->n_sections; i++) {
        const struct image_section *s = &sections[i];
        uint64_t n = chunks_of(s->bytes);
        if (!fits(&im, s->at, s->bytes, 1) || s->first_sum > h->n_sums ||
            n > h->n_sums - s->first_sum)
            continue;
        for (uint64_t k = 0; k < n; k++) {
            uint64_t from = k * SV_IMAGE_CHUNK, left = s->bytes - from;
            sums[s->first_sum + k] = sum_of((uint8_t *)bytes + s->at + from,
                                            left < SV_IMAGE_CHUNK ? (size_t)left : SV_IMAGE_CHUNK);
        }
    }
    h->table_sum = sum_of(sections, (size_t)h->n_sections * sizeof *sections);
    h->sums_sum = sum_of(sums, (size_t)h->n_sums * sizeof *sums);
    h->sum = sum_of(h, offsetof(struct image_head, sum));
    return true;
}
