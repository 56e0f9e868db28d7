#include "doctor/first_touch.hpp"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace tensorpool::command {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_bytes = std::size_t{2} << 20;
// Long enough for the clock to measure, and small enough for any machine: 1,024 pages. With sizes
// between a page and a huge page, half of them are touched.
constexpr std::size_t tried_bytes = std::size_t{4} << 20;

char* align_up(void* address) {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return static_cast<char*>(address) + (huge_bytes - number % huge_bytes) % huge_bytes;
}

/// CPU time of this thread, so that other load on the machine does not count.
double processor_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Touches pieces of `piece` bytes, each starting `stride` bytes after the previous one. Returns
/// nanoseconds per page.
double time_touches(char* memory, std::size_t piece, std::size_t stride) {
    const double begin = processor_ns();
    std::size_t touched = 0;
    for (std::size_t at = 0; at < tried_bytes; at += stride) {
        for (std::size_t i = 0; i < piece; i += page_bytes, ++touched) {
            *const_cast<volatile char*>(memory + at + i) = 1;
        }
    }
    return (processor_ns() - begin) / static_cast<double>(touched);
}

double try_once(std::size_t folio_bytes) {
    void* const mapped = mmap(nullptr, tried_bytes + huge_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    char* const memory = align_up(mapped);
    const bool whole = folio_bytes == 0 || folio_bytes >= huge_bytes;
    const std::size_t piece = whole ? tried_bytes : folio_bytes;
    // Only every second piece is advised, so that no page larger than a piece fits into an advised
    // range. A kernel without huge pages rejects the advice, and small pages remain.
    madvise(memory, tried_bytes, MADV_NOHUGEPAGE);
    const std::size_t stride = whole ? tried_bytes : 2 * folio_bytes;
    for (std::size_t at = 0; folio_bytes != 0 && at < tried_bytes; at += stride) {
        madvise(memory + at, piece, MADV_HUGEPAGE);
    }
    const double taken = time_touches(memory, piece, stride);
    munmap(mapped, tried_bytes + huge_bytes);
    return taken;
}

}  // namespace

double measure_first_touch_ns(std::uint64_t folio_bytes) {
    std::array<double, 9> rounds{};
    for (double& round : rounds) round = try_once(folio_bytes);
    std::ranges::nth_element(rounds, rounds.begin() + rounds.size() / 2);
    return rounds[rounds.size() / 2];
}

}  // namespace tensorpool::command
