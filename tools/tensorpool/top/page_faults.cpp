#include "top/page_faults.hpp"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tensorpool::command {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_bytes = std::size_t{2} << 20;
// Large enough for the clock, small enough for any machine: 1,024 pages.
constexpr std::size_t tried_bytes = std::size_t{4} << 20;

char* align_up(void* address) {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return static_cast<char*>(address) + (huge_bytes - number % huge_bytes) % huge_bytes;
}

/// Of this thread alone: what others on a busy machine take is no cost of a fault.
double processor_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double time_touches(char* memory) {
    const double begin = processor_ns();
    for (std::size_t i = 0; i < tried_bytes; i += page_bytes) {
        *const_cast<volatile char*>(memory + i) = 1;
    }
    return (processor_ns() - begin) / (tried_bytes / page_bytes);
}

double try_once(PageSize size) {
    void* const mapped = mmap(nullptr, tried_bytes + huge_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    char* const memory = align_up(mapped);
    // A kernel without huge pages refuses both, which leaves small ones.
    madvise(memory, tried_bytes, size == PageSize::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    const double taken = time_touches(memory);
    munmap(mapped, tried_bytes + huge_bytes);
    return taken;
}

}  // namespace

double measure_fault_ns(PageSize size) {
    std::array<double, 9> rounds{};
    for (double& round : rounds) round = try_once(size);
    std::ranges::nth_element(rounds, rounds.begin() + rounds.size() / 2);
    return rounds[rounds.size() / 2];
}

}  // namespace tensorpool::command
