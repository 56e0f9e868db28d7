#pragma once

#include "base/text.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::events {

/// Counts a failed check and writes it to the timeline with the name of the pool, arena or scope.
/// After most checks the program then ends. May be called on any thread; takes no lock.
void count_failed_check(statistics::CheckKind kind, std::string_view name) noexcept;

/// The rules that a call or an access can break. SECURITY.md lists them with their names in
/// reports, which `name_of` returns.
enum class MisuseKind : unsigned char {
    double_free,        ///< a block that is free already
    foreign_free,       ///< a pointer that the pool never returned
    interior_free,      ///< a pointer into a block
    wrong_pool,         ///< a block of another pool
    wrong_size,         ///< a free with a size or an alignment that the block does not have
    mismatched_free,    ///< a free by a function that does not belong to the allocation
    overrun,            ///< bytes behind what was requested were written
    write_after_free,   ///< a free block was written
    access_beyond,      ///< an access to the guard page behind or before a block
    access_after_free,  ///< an access to a block that is free and inaccessible
    invalid_query,      ///< the size of something that is no block was requested
    corrupt_record,     ///< a record of the library is damaged
    leak,               ///< blocks in use when their owner ends
    wrong_thread,       ///< use of a one-thread object by another thread
    scope_order,        ///< a scope or a handle that ends out of order
    foreign_mark,       ///< a mark of another arena
    stale_mark,         ///< a mark that an earlier release outdated
    released_handle,    ///< a release of memory that a handle owns
    outlived_owner,     ///< a handle that ends after its pool or arena
};

/// Returns the name of a kind as reports show it, such as "double-free".
const char* name_of(MisuseKind kind) noexcept;

/// Where a block was allocated or freed.
struct MisuseStack {
    std::uint64_t thread = 0;                     // as the system's tools number it
    std::span<const std::uintptr_t> frames = {};  // as platform::capture_stack stores them
};

/// What a report says about a call or an access that broke a rule.
struct Misuse {
    static constexpr std::size_t unknown = SIZE_MAX;

    MisuseKind kind;
    const void* pointer = nullptr;
    std::size_t size = unknown;       // the usable bytes of the block
    std::size_t requested = unknown;  // the bytes that its allocation requested
    std::string_view owner = {};      // the pool, arena or allocator
    MisuseStack allocated = {};
    MisuseStack freed = {};
};

/// Counts a misuse after which the library can go on, and writes its report to stderr. Returns only
/// if TENSORPOOL_ON_MISUSE is "report", otherwise it ends the process. `format` describes the
/// misuse in words.
///
/// A report is one write. Its first line is `tensorpool: fatal: <kind> ptr=… size=… requested=…
/// pool=… thread=…`, with `error` in place of `fatal` if the process goes on; unknown values are
/// `-`. The words follow, then the stacks of the call, of the allocation and of the free, as far as
/// they are known. Allocates nothing and takes no lock of the library, so a signal handler may call
/// it.
TENSORPOOL_PRINTF_LIKE_2 void report_misuse(const Misuse& misuse, const char* format, ...) noexcept;

/// Counts a misuse that the call refuses by an exception, and writes its report with `error` to
/// stderr.
TENSORPOOL_PRINTF_LIKE_2 void note_misuse(const Misuse& misuse, const char* format, ...) noexcept;

/// Counts a misuse after which no call of the library can be relied on, writes its report as
/// `report_misuse` does, and ends the process.
[[noreturn]] TENSORPOOL_PRINTF_LIKE_2 void stop_at_misuse(const Misuse& misuse, const char* format,
                                                          ...) noexcept;

/// Writes the report of a misuse into `text`, of which at most `bytes` bytes including the final
/// null are used. Returns the length of the report without the null. Without `words`, the report
/// has no such line. `level` is "fatal" or "error".
std::size_t describe_misuse(const Misuse& misuse, const char* level, const char* words,
                            MisuseStack here, char* text, std::size_t bytes) noexcept;

}  // namespace tensorpool::events
