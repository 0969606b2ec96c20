/* The kind of track that a public row is, for sessions and for files. */
#pragma once

#include "core/stream/dict.h"

#include <stave/stave.h>

static inline unsigned sv_track_kind_of_row(enum stave_row row)
{
    switch (row) {
    case STAVE_ROW_GPU: return SV_TRACK_GPU;
    case STAVE_ROW_STREAM: return SV_TRACK_STREAM;
    case STAVE_ROW_PLAIN: break;
    }
    return SV_TRACK_CUSTOM;
}
