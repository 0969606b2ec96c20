/* An output that is a listener: unix:PATH or tcp:ADDRESS:PORT. */
#pragma once

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

union sv_stream_address {
    struct sockaddr any;
    struct sockaddr_un local;
    struct sockaddr_in inet;
};

bool sv_stream_is(const char *out);
socklen_t sv_stream_parse(const char *out, union sv_stream_address *a); /* 0: not an address */
/* NULL: fine; else what is wrong with it. */
const char *sv_stream_check(const char *out);
