// A library for LD_PRELOAD beside libtensorpool_interpose.so: each process that exits appends a
// line to the file named by SERVED_FILE, with the name of its program and how many blocks it got
// from the pool. Processes that are killed or call _exit write nothing.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <tensorpool/memory_pool.hpp>

namespace {

// Copies: programs write over their environment.
char path[4096];
char program[256];

[[gnu::constructor]] void begin() {
    const char* const wanted = std::getenv("SERVED_FILE");
    char link[sizeof program] = {};
    if (wanted == nullptr || readlink("/proc/self/exe", link, sizeof link - 1) < 0) return;
    std::snprintf(path, sizeof path, "%s", wanted);
    const char* const slash = std::strrchr(link, '/');
    std::snprintf(program, sizeof program, "%s", slash == nullptr ? link : slash + 1);
}

[[gnu::destructor]] void end() {
    if (path[0] == '\0') return;
    const tensorpool::PoolStatistics served = tensorpool::get_global_memory_pool().statistics();
    char line[sizeof program + 32];
    const int bytes = std::snprintf(line, sizeof line, "%s %llu\n", program,
                                    static_cast<unsigned long long>(served.allocations));
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    (void)!write(file, line, static_cast<std::size_t>(bytes));
    close(file);
}

}  // namespace
