// The functions with which a program looks at the C library's memory or has it given back. What the
// pool has is added.

#include <climits>
#include <cstdlib>
#include <string_view>

#include "interpose/blocks_of_pool.hpp"
#include "interpose/next_call.hpp"
#include "platform/threads/without_cancellation.hpp"

namespace tensorpool::interpose {
namespace {

constinit Next<int (*)(std::size_t)> next_malloc_trim{"malloc_trim"};
constinit Next<int (*)(int, std::FILE*)> next_malloc_info{"malloc_info"};
constinit Next<void (*)()> next_malloc_stats{"malloc_stats"};
constinit Next<struct mallinfo2 (*)()> next_mallinfo2{"mallinfo2"};

/// Bytes of the global pool; 0 before its first use.
struct InPool {
    std::size_t capacity = 0;
    std::size_t in_use = 0;
    std::size_t peak_capacity = 0;
};

InPool look_at_pool() noexcept {
    if (must_stay_out()) return {};
    const Visit visit;
    const MemoryPool* const pool = detail::GlobalPool::used();
    if (pool == nullptr) return {};
    const PoolStatistics now = pool->statistics();
    return {now.capacity_bytes, std::min(now.in_use_bytes, now.capacity_bytes),
            now.peak_capacity_bytes};
}

int as_int(std::size_t bytes) noexcept {
    return static_cast<int>(std::min(bytes, std::size_t{INT_MAX}));
}

void write_element(const InPool& pool, std::FILE* to) noexcept {
    std::fprintf(to,
                 "<pool name=\"tensorpool\">\n"
                 "<total type=\"used\" size=\"%zu\"/>\n<total type=\"rest\" size=\"%zu\"/>\n"
                 "<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
                 "</pool>\n",
                 pool.in_use, pool.capacity - pool.in_use, pool.capacity, pool.peak_capacity);
}

/// Writes what the next allocator says, with the pool before the last tag. Without memory for a
/// copy, writes it without the pool.
int write_info(int options, std::FILE* to) noexcept {
    char* text = nullptr;
    std::size_t length = 0;
    std::FILE* const memory = open_memstream(&text, &length);
    if (memory == nullptr) return next_malloc_info.get()(options, to);
    const int result = next_malloc_info.get()(options, memory);
    if (std::fclose(memory) != 0 || text == nullptr) {
        std::free(text);
        return next_malloc_info.get()(options, to);
    }
    const std::string_view document(text, length);
    const std::size_t end = std::min(document.rfind("</malloc>"), length);
    std::fwrite(text, 1, end, to);
    if (end != length) write_element(look_at_pool(), to);
    std::fwrite(text + end, 1, length - end, to);
    std::free(text);
    return result;
}

}  // namespace
}  // namespace tensorpool::interpose

namespace interpose = tensorpool::interpose;

extern "C" {

TENSORPOOL_API int malloc_trim(std::size_t pad) noexcept {
    const bool gave = interpose::gave_memory_back();
    const int next = interpose::next_malloc_trim.get()(pad);
    return gave || next != 0 ? 1 : 0;
}

TENSORPOOL_API struct mallinfo2 mallinfo2() noexcept {
    const interpose::InPool pool = interpose::look_at_pool();
    struct mallinfo2 info = interpose::next_mallinfo2.get()();
    info.arena += pool.capacity;
    info.uordblks += pool.in_use;
    info.fordblks += pool.capacity - pool.in_use;
    return info;
}

TENSORPOOL_API struct mallinfo mallinfo() noexcept {
    const struct mallinfo2 info = mallinfo2();
    return {.arena = interpose::as_int(info.arena),
            .ordblks = interpose::as_int(info.ordblks),
            .smblks = interpose::as_int(info.smblks),
            .hblks = interpose::as_int(info.hblks),
            .hblkhd = interpose::as_int(info.hblkhd),
            .usmblks = interpose::as_int(info.usmblks),
            .fsmblks = interpose::as_int(info.fsmblks),
            .uordblks = interpose::as_int(info.uordblks),
            .fordblks = interpose::as_int(info.fordblks),
            .keepcost = interpose::as_int(info.keepcost)};
}

TENSORPOOL_API void malloc_stats() noexcept {
    const tensorpool::platform::WithoutCancellation without_cancellation;
    const interpose::InPool pool = interpose::look_at_pool();
    interpose::next_malloc_stats.get()();
    std::fprintf(stderr,
                 "tensorpool:\nsystem bytes     = %10zu\nin use bytes     = %10zu\n"
                 "max system bytes = %10zu\n",
                 pool.capacity, pool.in_use, pool.peak_capacity);
}

TENSORPOOL_API int malloc_info(int options, std::FILE* to) noexcept {
    const tensorpool::platform::WithoutCancellation without_cancellation;
    return interpose::write_info(options, to);
}
}
