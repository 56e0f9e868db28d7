#pragma once

/// @file
/// Page faults of a range that a thread of this process serves (userfaultfd(2) on Linux): pages
/// that are missing, and writes to pages that are protected. Other systems have no such service.

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

/// Which faults the system lets this process serve; each value includes those before it.
enum class FaultScope : std::uint8_t {
    none,       ///< none: the service is missing or refused
    user_mode,  ///< those of instructions; a system call that meets such a page fails with EFAULT
    all,        ///< those of system calls too
};

/// The descriptor through which a process serves its faults. A value; `close` ends it.
struct FaultSource {
    int file = -1;
    FaultScope scope = FaultScope::none;
};

/// Opens a source for this process, of at most this scope. Its scope is `none` if the system
/// refuses or lacks a part that the functions below need. Its descriptor is closed by exec and has
/// a high number, out of the way of the program's own.
FaultSource open_fault_source(FaultScope at_most = FaultScope::all) noexcept;
/// Returns whether the descriptor still refers to a source.
bool is_open(const FaultSource& source) noexcept;
/// Closes the descriptor, unless the program has closed it and uses its number for something else.
void close_fault_source(const FaultSource& source) noexcept;

/// From now on, faults of these whole pages of private memory wait until they are served: accesses
/// to missing pages and writes to protected ones. Pages that are present stay. Returns false, and
/// changes nothing, if the system refuses.
[[nodiscard]] bool watch_faults(const FaultSource& source, void* address,
                                std::size_t bytes) noexcept;
/// Ends `watch_faults`, removes all protection, and lets the threads that wait go on. Missing pages
/// then read as zeros. The child of a fork watches nothing.
void unwatch_faults(const FaultSource& source, void* address, std::size_t bytes) noexcept;

/// Whether pages are protected from writes.
enum class Writable : bool { no, yes };
/// Puts a copy of the whole pages at `from` in place of missing ones, at once for each page, and
/// lets the threads that wait for them go on. Pages that are present stay as they are. Returns
/// false if the system refuses: some pages may then be present.
[[nodiscard]] bool fill_missing(const FaultSource& source, void* to, const void* from,
                                std::size_t bytes, Writable writable) noexcept;
/// Protects pages that are present from writes, or ends that and lets the threads that wait to
/// write go on. Returns false if the system refuses.
[[nodiscard]] bool protect_from_writes(const FaultSource& source, void* address, std::size_t bytes,
                                       Writable writable) noexcept;
/// Lets the threads that wait for these pages try again.
void wake_faults(const FaultSource& source, void* address, std::size_t bytes) noexcept;

/// Returns how many more mappings the process may have until it has three quarters of those that
/// vm.max_map_count allows; SIZE_MAX if that is not known. Reads the process's list of mappings.
std::size_t mappings_left() noexcept;

/// A fault to be served.
struct PageFault {
    void* address = nullptr;
    bool is_write = false;
};
/// Waits for the next fault. Returns false if the source cannot be read any more.
[[nodiscard]] bool next_fault(const FaultSource& source, PageFault& fault) noexcept;

}  // namespace tensorpool::platform
