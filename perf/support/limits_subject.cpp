/// A program of perf/limits that uses malloc only. `blocks BYTES [as|data MIB]` sets a limit if one
/// is given, then allocates and writes blocks of this size until malloc fails, frees them, and does
/// so three times; it prints the MiB that it got each time. `phases MIB` allocates, writes and
/// frees so much in blocks of 200 B to 20 MiB, each phase on a thread of its own; it prints "fine".

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

namespace {

std::size_t size_of(const char* text) {
    return std::strtoull(text, nullptr, 10);
}

/// The blocks form a list, so that the program keeps no memory of its own for them.
struct Block {
    Block* next;
};

std::size_t fill(Block*& first, std::size_t bytes, std::size_t most) {
    std::size_t got = 0;
    for (; got < most; got += bytes) {
        void* const memory = std::malloc(bytes);
        if (memory == nullptr) break;
        std::memset(memory, 1, bytes);
        first = new (memory) Block{first};
    }
    return got;
}

void free_all(Block* first) {
    while (first != nullptr) std::free(std::exchange(first, first->next));
}

int allocate_all(std::size_t bytes) {
    for (int round = 0; round != 3; ++round) {
        Block* first = nullptr;
        const std::size_t got = fill(first, bytes, SIZE_MAX);
        free_all(first);
        std::printf("%zu ", got >> 20);
    }
    return 0;
}

int run_phases(std::size_t most) {
    for (int round = 0; round != 3; ++round) {
        for (std::size_t bytes = 200; bytes <= std::size_t{20} << 20; bytes *= 5) {
            bool is_enough = false;
            std::thread([&] {
                Block* first = nullptr;
                is_enough = fill(first, bytes, most) >= most;
                free_all(first);
            }).join();
            if (!is_enough) return 3;
        }
    }
    std::puts("fine");
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view work = count > 2 ? arguments[1] : "";
    if (work == "phases") return run_phases(size_of(arguments[2]) << 20);
    if (work != "blocks") return 2;
    if (count == 5) {
        const rlim_t bytes = size_of(arguments[4]) << 20;
        const rlimit limit{bytes, bytes};
        const bool is_data = std::string_view(arguments[3]) == "data";
        if (setrlimit(is_data ? RLIMIT_DATA : RLIMIT_AS, &limit) != 0) return 2;
    }
    return allocate_all(size_of(arguments[2]));
}
