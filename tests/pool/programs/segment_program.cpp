// A program that inspects its own segment. Its argument selects the action:
//   count [pool]    prints the number of descriptors of segments, after using a pool if given
//   exec            uses a pool, calls exec, and prints that number
//   file            uses a pool, prints what is at <TENSORPOOL_STATISTICS_DIR>/<process number>,
//                   then forks a child that does the same, and both end normally
//   abandon         uses a pool, prints its process number and ends without running handlers
//   within AS|NOFILE|FSIZE BYTES   uses a pool under that limit; for AS, the limit is added to the
//                   address space in use; exit code 0 on success
//   fork_within ... uses a pool, and uses it again in a child forked under the limit

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <tensorpool/memory_pool.hpp>

#include "support/process_metrics.hpp"
#include "support/segment_files.hpp"

namespace {

using tensorpool::get_global_memory_pool;
using tensorpool::MemoryPool;

bool use() {
    MemoryPool& pool = get_global_memory_pool();
    const std::size_t before = pool.get_total_allocated();
    void* const block = pool.try_allocate(1000);
    if (block == nullptr) return false;
    std::memset(block, 1, 1000);
    const bool counted = pool.get_total_allocated() == before + 1024;
    pool.deallocate(block, 1000);
    return counted && pool.get_total_allocated() == before;
}

int print_count() {
    std::printf("%zu\n", tensorpool::testing::segment_files().size());
    return 0;
}

void print_file(const char* process) {
    const std::string path =
        std::string(std::getenv("TENSORPOOL_STATISTICS_DIR")) + "/" + std::to_string(getpid());
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) {
        std::printf("%s: none\n", process);
    } else {
        std::printf("%s: mode %o, %ld B\n", process, status.st_mode & 07777,
                    static_cast<long>(status.st_size));
    }
    std::fflush(stdout);
}

int wait_for(pid_t child) {
    int status = 1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int show_files() {
    if (!use()) return 1;
    print_file("parent");
    const pid_t child = fork();
    if (child == 0) {
        if (!use()) return 1;
        print_file("child");
        return 0;
    }
    return wait_for(child);
}

bool limit(std::string_view what, std::size_t more) {
    namespace testing = tensorpool::testing;
    rlimit limit{more, more};
    if (what == "AS") {
        limit.rlim_cur = limit.rlim_max = testing::memory_metrics().address_space + more;
        return setrlimit(RLIMIT_AS, &limit) == 0;
    }
    if (what == "FSIZE") return setrlimit(RLIMIT_FSIZE, &limit) == 0;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int use_within(std::string_view what, std::size_t more) {
    return limit(what, more) && use() && use() ? 0 : 1;
}

int fork_within(std::string_view what, std::size_t more) {
    void* const block = get_global_memory_pool().allocate(5000);
    if (!use() || !limit(what, more)) return 1;
    const pid_t child = fork();
    if (child != 0) return wait_for(child);
    MemoryPool& pool = get_global_memory_pool();
    if (pool.get_total_allocated() != 8192 || !use()) return 1;
    pool.deallocate(block, 5000);
    return pool.get_total_allocated() == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view what = count > 1 ? arguments[1] : "";
    if (what == "count") {
        if (count > 2 && !use()) return 1;
        return print_count();
    }
    if (what == "exec") {
        if (!use()) return 1;
        execl(arguments[0], arguments[0], "count", nullptr);
        return 1;
    }
    if (what == "file") return show_files();
    if (what == "abandon") {
        if (!use()) return 1;
        std::printf("%d\n", static_cast<int>(getpid()));
        std::fflush(stdout);
        _exit(0);
    }
    if (count == 4 && what == "within") return use_within(arguments[2], std::stoul(arguments[3]));
    if (count == 4 && what == "fork_within") {
        return fork_within(arguments[2], std::stoul(arguments[3]));
    }
    return 2;
}
