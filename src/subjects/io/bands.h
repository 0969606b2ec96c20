/* Bands of file and block I/O for the time line. */
#ifndef SV_SUBJECTS_IO_BANDS_H
#define SV_SUBJECTS_IO_BANDS_H

#include "plot/bands.h"

extern const struct sv_bands_io sv_io_bands;

#endif
