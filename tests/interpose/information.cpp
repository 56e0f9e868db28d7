// What the C library's functions say about memory of the pool, and that malloc_trim gives it back.

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <vector>

#include "interpose/interposed.hpp"

using namespace tensorpool::testing;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t all = 0;
    std::size_t resident = 0;
    file >> all >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::string info_text() {
    char* text = nullptr;
    std::size_t length = 0;
    std::FILE* const file = open_memstream(&text, &length);
    expect(malloc_info(0, file) == 0, "success");
    std::fclose(file);
    std::string copy(text, length);
    std::free(text);
    return copy;
}

/// Writes what malloc_stats says to nowhere, until it is cancelled.
void cancel_statistics() {
    const int errors = dup(2);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 2);
    static std::atomic<bool> has_begun;
    for (int turn = 0; turn != 50; ++turn) {
        has_begun = false;
        pthread_t thread{};
        pthread_create(
            &thread, nullptr,
            [](void*) -> void* {
                for (;; pthread_testcancel()) {
                    malloc_stats();
                    has_begun = true;
                }
            },
            nullptr);
        while (!has_begun) sched_yield();
        pthread_cancel(thread);
        void* result = nullptr;
        pthread_join(thread, &result);
        expect(result == PTHREAD_CANCELED, "a thread that was cancelled");
        malloc_stats();
    }
    dup2(errors, 2);
    close(errors);
    close(nowhere);
}

}  // namespace

int main() {
    expect_interposed();
    const struct mallinfo2 before = mallinfo2();
    std::vector<void*> blocks(256);
    for (void*& block : blocks) block = std::memset(std::malloc(mib), 1, mib);
    const struct mallinfo2 full = mallinfo2();
    expect(full.uordblks >= before.uordblks + blocks.size() * mib, "256 MiB more in use",
           full.uordblks);
    expect(full.arena >= full.uordblks, "at least what is in use", full.arena);
    // Its declaration is deprecated.
    const auto as_ints = reinterpret_cast<struct mallinfo (*)()>(dlsym(RTLD_DEFAULT, "mallinfo"));
    expect(as_ints().uordblks >= static_cast<int>(blocks.size() * mib), "the same as int");
    expect(info_text().find("<pool name=\"tensorpool\">\n<total type=\"used\" size=\"") !=
               std::string::npos,
           "the pool in the document");
    expect(info_text().ends_with("</malloc>\n"), "a whole document");
    for (void* const block : blocks) std::free(block);
    const struct mallinfo2 empty = mallinfo2();
    expect(empty.fordblks >= full.fordblks + 200 * mib, "free memory", empty.fordblks);
    const std::size_t resident = resident_bytes();
    expect(malloc_trim(0) == 1, "memory was given back");
    expect(resident_bytes() + 200 * mib < resident, "200 MiB less", resident_bytes());
    malloc_stats();
    cancel_statistics();
    return failures;
}
