/* The vocabulary of communication: what names of operations and types mean. Called by the report
 * and by the readers; no state. */
#include "subjects/comm/words.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const names[SV_N_COMM_OPS] = {
#define SV_COMM_NAME(member, text) [SV_COMM_##member] = (text),
    SV_COMM_OPS(SV_COMM_NAME)
#undef SV_COMM_NAME
};

const char *sv_comm_op_name(unsigned op)
{
    return op < SV_N_COMM_OPS ? names[op] : names[SV_COMM_OTHER];
}

/* Words in lower case without '_' and '-': the first that occurs decides, so that those which hold
 * others come first. */
static const struct {
    const char *word;
    enum sv_comm_op op;
} words[] = {
    {"barrier", SV_COMM_BARRIER},     {"reducescatter", SV_COMM_REDUCE_SCATTER},
    {"allreduce", SV_COMM_ALLREDUCE}, {"allgather", SV_COMM_ALLGATHER},
    {"alltoall", SV_COMM_ALLTOALL},   {"broadcast", SV_COMM_BROADCAST},
    {"bcast", SV_COMM_BROADCAST},     {"scan", SV_COMM_SCAN},
    {"scatter", SV_COMM_SCATTER},     {"gather", SV_COMM_GATHER},
    {"reduce", SV_COMM_REDUCE},       {"send", SV_COMM_SEND},
    {"recv", SV_COMM_RECV},
};

enum sv_comm_op sv_comm_op_of(const char *name, size_t len)
{
    char plain[128];
    size_t n = 0;
    for (size_t i = 0; i < len && n < sizeof plain - 1; i++)
        if (name[i] != '_' && name[i] != '-')
            plain[n++] = (char)tolower((unsigned char)name[i]);
    plain[n] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(plain, words[i].word))
            return words[i].op;
    return SV_COMM_OTHER;
}

bool sv_comm_op_waits_for_all(unsigned op)
{
    return op == SV_COMM_ALLREDUCE || op == SV_COMM_ALLGATHER || op == SV_COMM_ALLTOALL ||
           op == SV_COMM_BARRIER || op == SV_COMM_REDUCE_SCATTER;
}

int64_t sv_comm_type_bytes(const char *name, size_t len)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } types[] = {{"Float", 4},   {"BFloat16", 2},      {"Half", 2},    {"Double", 8},
                 {"Long", 8},    {"Int", 4},           {"Short", 2},   {"Byte", 1},
                 {"Char", 1},    {"Bool", 1},          {"Float32", 4}, {"Float16", 2},
                 {"Int64", 8},   {"Int32", 4},         {"UInt64", 8},  {"UInt32", 4},
                 {"UInt16", 2},  {"Int8", 1},          {"UInt8", 1},   {"ComplexFloat", 8},
                 {"Float64", 8}, {"ComplexDouble", 16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == len && strncasecmp(types[i].name, name, len) == 0)
            return types[i].bytes;
    return len >= 6 && strncasecmp(name, "Float8", 6) == 0 ? 1 : 0;
}
