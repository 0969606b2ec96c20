/*
 * Stave: the C SDK. This folder is all that a user of libstave may include.
 *
 * The version below is the only place where it is written: the build, the package and the
 * pkg-config file read it from here.
 */
#ifndef STAVE_STAVE_H
#define STAVE_STAVE_H

#define STAVE_VERSION_MAJOR 0
#define STAVE_VERSION_MINOR 1
#define STAVE_VERSION_PATCH 0

/* What the library exports; everything else in it is hidden. */
#define STAVE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library that was loaded, "MAJOR.MINOR.PATCH". Never NULL, never freed. */
STAVE_API const char *stave_version(void);

#ifdef __cplusplus
}
#endif

#endif
