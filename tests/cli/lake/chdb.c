/* chdb LIBRARY SQL: runs the statement with ClickHouse's library (libchdb) and prints the answer as
 * lines of JSON arrays. Compiled by tests/cli/parquet_chdb.sh; the library's own header is not in
 * its package, so its functions are declared here. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "chdb: %s\n", dlerror());
        return 3;
    }
    void **(*connect)(int, char **);
    void *(*query)(void *, const char *, const char *);
    const char *(*buffer)(void *);
    size_t (*length)(void *);
    const char *(*error)(void *);
    *(void **)&connect = dlsym(library, "chdb_connect");
    *(void **)&query = dlsym(library, "chdb_query");
    *(void **)&buffer = dlsym(library, "chdb_result_buffer");
    *(void **)&length = dlsym(library, "chdb_result_length");
    *(void **)&error = dlsym(library, "chdb_result_error");
    if (!connect || !query || !buffer || !length || !error)
        return 3;
    char *const program = argv[0];
    void **connection = connect(1, (char *[]){program, NULL});
    if (!connection)
        return 3;
    void *result = query(*connection, argv[2], "JSONCompactEachRow");
    if (!result || error(result)) {
        fprintf(stderr, "chdb: %s\n", result ? error(result) : "no result");
        return 1;
    }
    fwrite(buffer(result), 1, length(result), stdout);
    fflush(stdout);
    return ferror(stdout) ? 4 : 0;
}
