// Uses the global pool before, in and after main. Prints "all given back" and exits with 0 if every
// object found its block unchanged.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <tensorpool/memory_pool.hpp>

namespace {

using tensorpool::get_global_memory_pool;

constexpr std::size_t small = 1000;
constexpr std::size_t large = 300'000;

/// Holds blocks from its construction until its destruction.
class Holder {
public:
    explicit Holder(char mark) : mark_(mark) {
        std::memset(small_, mark_, small);
        std::memset(large_, mark_, large);
    }
    ~Holder() {
        if (small_[small - 1] != mark_ || large_[large - 1] != mark_) std::_Exit(1);
        if (!get_global_memory_pool().owns(small_)) std::_Exit(2);
        get_global_memory_pool().deallocate(small_, small);
        get_global_memory_pool().deallocate(large_, large);
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

private:
    char mark_;
    char* small_ = static_cast<char*>(get_global_memory_pool().allocate(small));
    char* large_ = static_cast<char*>(get_global_memory_pool().allocate(large));
};

/// Constructed first, so destroyed last.
struct Last {
    ~Last() {
        if (get_global_memory_pool().get_total_allocated() != 0) std::_Exit(3);
        std::puts("all given back");
        std::fflush(stdout);
    }
};

const Last last;
const Holder made_before_main('a');
thread_local const Holder of_thread('t');

}  // namespace

int main() {
    static const Holder made_in_main('m');
    std::thread([] {
        if (&of_thread == nullptr) std::_Exit(4);
        void* const block = get_global_memory_pool().allocate(small);
        get_global_memory_pool().deallocate(block, small);
    }).join();
    std::atexit([] {
        get_global_memory_pool().deallocate(get_global_memory_pool().allocate(small), small);
    });
}
