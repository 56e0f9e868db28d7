// A program that uses the global pool. Its argument selects the action:
//   nothing   does not use the pool
//   use       uses it on two threads, then prints its statistics as JSON
//   pools     makes two pools, destroys one of them, and uses the global pool before and after
//   allocate  requests as many bytes as the next argument says; prints "met" or "refused"
//   fork      forks while another thread sets the pool up; exit code 0 if the child could use it
//   quiet     uses the pool; exit code 0 if the numbers of threads and descriptors are unchanged,
//             except for two descriptors for segment and control unless TENSORPOOL_STATISTICS=off

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include <tensorpool/memory_pool.hpp>

#include "support/bounded_wait.hpp"
#include "support/process_metrics.hpp"

namespace {

using tensorpool::get_global_memory_pool;

void use() {
    for (std::size_t bytes = 1; bytes <= 4 << 20; bytes *= 4) {
        void* const block = get_global_memory_pool().allocate(bytes);
        std::memset(block, 1, bytes);
        get_global_memory_pool().deallocate(block, bytes);
    }
}

// The remaining pool still exists at exit, because it is never destroyed.
void make_pools() {
    use();
    static auto* const stays = new tensorpool::MemoryPool({.name = "stays"});
    stays->deallocate(stays->allocate(100), 100);
    { const tensorpool::MemoryPool ends({.name = "ends"}); }
    use();
}

bool stays_quiet() {
    namespace testing = tensorpool::testing;
    const std::size_t threads = testing::thread_count();
    const std::size_t descriptors = testing::descriptor_count();
    use();
    get_global_memory_pool().reserve(8 << 20);
    get_global_memory_pool().trim();
    (void)get_global_memory_pool().statistics();
    const bool shares = std::getenv("TENSORPOOL_STATISTICS") != std::string_view("off");
    return testing::thread_count() == threads &&
           testing::descriptor_count() == descriptors + (shares ? 2 : 0);
}

bool forks_while_it_is_set_up() {
    std::atomic<bool> go = false;
    std::thread first_user([&] {
        (void)tensorpool::testing::yield_until([&] { return go.load(); });
        use();
    });
    go = true;
    const pid_t child = fork();
    if (child == 0) {
        use();
        _exit(0);
    }
    first_user.join();
    int status = 1;
    return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view what = count > 1 ? arguments[1] : "";
    if (what == "nothing") return 0;
    if (what == "fork") return forks_while_it_is_set_up() ? 0 : 1;
    if (what == "quiet") return stays_quiet() ? 0 : 1;
    if (what == "pools") {
        make_pools();
        return 0;
    }
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
