/* Columns of utilisation logs; see meters.h. Called by the readers of these logs and of files that
 * were made of them. */
#include "formats/logs/meters.h"
#include "subjects/io/words.h"

#include <string.h>

static const struct sv_meter meters[] = {
    {"%usr", SV_METER_CPU, "user", "%", 1},
    {"%user", SV_METER_CPU, "user", "%", 1},
    {"%nice", SV_METER_CPU, "nice", "%", 1},
    {"%sys", SV_METER_CPU, "system", "%", 1},
    {"%system", SV_METER_CPU, "system", "%", 1},
    {"%iowait", SV_METER_CPU, "iowait", "%", 1},
    {"%irq", SV_METER_CPU, "irq", "%", 1},
    {"%soft", SV_METER_CPU, "softirq", "%", 1},
    {"%steal", SV_METER_CPU, "steal", "%", 1},
    {"%guest", SV_METER_CPU, "guest", "%", 1},
    {"%gnice", SV_METER_CPU, "guest_nice", "%", 1},
    {"%idle", SV_METER_CPU, "idle", "%", 1},
    {"sm", SV_METER_GPU, "sm", "%", 1},
    {"mem", SV_METER_GPU, "memory", "%", 1},
    {"enc", SV_METER_GPU, "encoder", "%", 1},
    {"dec", SV_METER_GPU, "decoder", "%", 1},
    {"fb", SV_METER_GPU, "framebuffer", "bytes", 1048576},
    {"rMB/s", SV_METER_DISK, "read", "B/s", 1048576},
    {"wMB/s", SV_METER_DISK, "write", "B/s", 1048576},
    {"rkB/s", SV_METER_DISK, "read", "B/s", 1024},
    {"wkB/s", SV_METER_DISK, "write", "B/s", 1024},
    {"rsec/s", SV_METER_DISK, "read", "B/s", 512},
    {"wsec/s", SV_METER_DISK, "write", "B/s", 512},
    {"MB_read/s", SV_METER_DISK, "read", "B/s", 1048576},
    {"MB_wrtn/s", SV_METER_DISK, "write", "B/s", 1048576},
    {"kB_read/s", SV_METER_DISK, "read", "B/s", 1024},
    {"kB_wrtn/s", SV_METER_DISK, "write", "B/s", 1024},
    {"r/s", SV_METER_DISK, "reads", "1/s", 1},
    {"w/s", SV_METER_DISK, "writes", "1/s", 1},
    {"util", SV_METER_DISK, "busy", "%", 1},
    {"aqu-sz", SV_METER_DISK, "queue", "requests", 1},
    {"r_await", SV_METER_DISK, "read_wait", "ms", 1},
    {"w_await", SV_METER_DISK, "write_wait", "ms", 1},
};

const struct sv_meter *sv_meter_named(enum sv_meter_of of, struct sv_text word)
{
    for (size_t i = 0; i < sizeof meters / sizeof *meters; i++)
        if ((of == SV_METER_ANY || of == meters[i].of) && sv_text_is(word, meters[i].word))
            return &meters[i];
    return NULL;
}

sv_track sv_meter_cpu(struct sv_lines *l, struct sv_text cpu)
{
    char name[32] = "CPU ";
    sv_track group = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "CPU", 3);
    int64_t number;
    if (sv_text_is(cpu, "all"))
        return group;
    if (cpu.len > 8 || !sv_text_i64(cpu, &number) || number < 0)
        return 0;
    memcpy(name + 4, cpu.bytes, cpu.len);
    return sv_lines_group(l, group, SV_TRACK_CPU, name, 4 + cpu.len);
}

sv_track sv_meter_disk(struct sv_lines *l, struct sv_text disk)
{
    sv_track disks = sv_lines_group(l, 0, SV_TRACK_CUSTOM, SV_ROW_DISKS, strlen(SV_ROW_DISKS));
    return sv_lines_group(l, disks, SV_TRACK_CUSTOM, disk.bytes, disk.len);
}

void sv_meter_put(struct sv_lines *l, struct sv_batch *b, const struct sv_meter *m, sv_track row,
                  int64_t ts_ns, double value)
{
    sv_put_counter(l, b, sv_lines_counter(l, row, m->counter, m->unit), ts_ns, value * m->scale);
}
