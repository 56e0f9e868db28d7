/* A program in C99 that writes an array of NumPy, maps it and locks it. It exits with 0 if all expectations hold. */

#include <stdlib.h>
#include <string.h>

#include <tensorpool/tensorpool_models.h>

#include "c_expect.h"

/* Writes a file with 1000 floats behind a header of 128 bytes. */
static void write_array(const char* path) {
    static const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (10, 100), }";
    unsigned char header[128];
    float values[1000];
    int i;
    FILE* file;
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(header + 10, dict, sizeof dict - 1);
    header[127] = '\n';
    for (i = 0; i < 1000; ++i) values[i] = (float)i;
    file = fopen(path, "wb");
    expect(file != NULL, "a file");
    if (file == NULL) exit(1);
    fwrite(header, 1, sizeof header, file);
    fwrite(values, sizeof values[0], 1000, file);
    fclose(file);
}

static void use_mapping(const char* path) {
    const tensorpool_file_part all = {0, UINT64_MAX};
    const tensorpool_file_part data = {128, 4000};
    float copied[2] = {0, 0};
    tensorpool_mapped_file* const file = tensorpool_mapped_file_open(path, all, 1);
    expect(file != NULL, "a mapping");
    expect(tensorpool_mapped_file_part(file).bytes == 4128, "the size of the file");
    expect(tensorpool_mapped_file_prefetch(file, tensorpool_prefetch_now, all) !=
               tensorpool_advised_invalid,
           "advice");
    expect(((const float*)tensorpool_mapped_file_bytes(file, data))[7] == 7.0F, "mapped bytes");
    expect(tensorpool_mapped_file_copy(file, 128 + 4 * 3, copied, 8) == tensorpool_ok, "a copy");
    expect(copied[0] == 3.0F && copied[1] == 4.0F, "copied values");
    expect(tensorpool_mapped_file_copy(file, 4128, copied, 8) == tensorpool_invalid_argument,
           "no copy beyond the end");
    tensorpool_mapped_file_close(file);
    expect(tensorpool_mapped_file_open("no such file", all, 1) == NULL, "no such file");
    expect(strstr(tensorpool_last_error(), "no such file") != NULL, "the file's name");
}

static void use_lock(const char* path) {
    const tensorpool_file_part all = {0, UINT64_MAX};
    tensorpool_mapped_file* const file = tensorpool_mapped_file_open(path, all, 1);
    tensorpool_lock_outcome outcome;
    tensorpool_memory_lock* const lock =
        tensorpool_memory_lock_create(tensorpool_mapped_file_bytes(file, all), 4128);
    tensorpool_status status;
    outcome.struct_bytes = sizeof outcome;
    status = tensorpool_memory_lock_grow_to(lock, 4128, &outcome);
    /* The system may not allow it. */
    expect((status == tensorpool_ok) == (outcome.limit == tensorpool_lock_limit_none),
           "an outcome");
    expect(status != tensorpool_ok || tensorpool_memory_lock_locked_bytes(lock) >= 4128,
           "locked bytes");
    tensorpool_memory_lock_destroy(lock);
    tensorpool_mapped_file_close(file);
}

int main(void) {
    const char* const path = "tensorpool_c_models_program.npy";
    write_array(path);
    use_mapping(path);
    use_lock(path);
    remove(path);
    return failures == 0 ? 0 : 1;
}
