/* Bands of file and block I/O for the time line. */
#pragma once

#include "plot/bands.h"

extern const struct sv_bands_io sv_io_bands;
