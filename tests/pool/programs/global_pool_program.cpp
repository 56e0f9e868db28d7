// A program around the global pool. Its argument says what it does:
//   nothing   never asks the pool for anything
//   use       uses it on two threads, then prints its figures as JSON
//   allocate  tries to get as many bytes as the next argument says: "met" or "refused"
//   quiet     uses it; the exit code is 0 when the process has as many threads and descriptors
//   after

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include <tensorpool/memory_pool.hpp>

#include "support/process_figures.hpp"

namespace {

using tensorpool::get_global_memory_pool;

void use() {
    for (std::size_t bytes = 1; bytes <= 4 << 20; bytes *= 4) {
        void* const block = get_global_memory_pool().allocate(bytes);
        std::memset(block, 1, bytes);
        get_global_memory_pool().deallocate(block, bytes);
    }
}

bool stays_quiet() {
    namespace testing = tensorpool::testing;
    const std::size_t threads = testing::thread_count();
    const std::size_t descriptors = testing::descriptor_count();
    use();
    get_global_memory_pool().reserve(8 << 20);
    get_global_memory_pool().trim();
    (void)get_global_memory_pool().statistics();
    return testing::thread_count() == threads && testing::descriptor_count() == descriptors;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view what = count > 1 ? arguments[1] : "";
    if (what == "nothing") return 0;
    if (what == "quiet") return stays_quiet() ? 0 : 1;
    if (what == "allocate" && count == 3) {
        void* const block =
            get_global_memory_pool().try_allocate(std::strtoull(arguments[2], nullptr, 10));
        std::puts(block != nullptr ? "met" : "refused");
        get_global_memory_pool().deallocate(block);
        return 0;
    }
    if (what != "use") return 2;
    use();
    std::thread(use).join();
    std::puts(to_json(get_global_memory_pool().statistics()).c_str());
    return 0;
}
