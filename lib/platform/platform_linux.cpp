// What only Linux has. The rest is in platform_posix.cpp.

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include <climits>
#include <cstdlib>

#include "platform/files/system_files_linux.hpp"
#include "platform/memory/memory_limits_linux.hpp"
#include "platform/memory/touch_pages_posix.hpp"
#include "platform/stacks/stack_memory.hpp"
#include "platform/tools/memory_probes.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::platform {
namespace {

// From the kernel's mman-common.h. The system's headers may be older than the running kernel.
constexpr int advice_populate_write = 23;

/// Returns whether the kernel (5.14 and later) supports the advice. For a range of no bytes it
/// rejects only unknown advice.
bool knows_populate_write(void* address) noexcept {
    return madvise(address, 0, advice_populate_write) == 0;
}

/// Sizes in /proc/self/statm (proc(5)), in bytes; 0 if they are unknown.
struct ProcessSizes {
    std::size_t address_space = 0;
    std::size_t resident = 0;
    std::size_t data = 0;
};

ProcessSizes read_process_sizes() noexcept {
    LineReader lines("/proc/self/statm");
    std::string_view line;
    if (!lines.next(line)) return {};
    std::size_t bytes[6];  // size, resident, shared, text, lib, data
    for (std::size_t& size : bytes) {
        size = parse_number(take_field(line, ' ')).value_or(0) * page_bytes();
    }
    return {bytes[0], bytes[1], bytes[5]};
}

using Resource = decltype(RLIMIT_AS);

std::size_t resource_limit(Resource resource) noexcept {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return no_limit;
    return static_cast<std::size_t>(limit.rlim_cur);
}

std::size_t left_of(std::size_t limit, std::size_t used) noexcept {
    return limit == no_limit ? no_limit : limit - std::min(limit, used);
}

/// Returns what RLIMIT_DATA leaves. Since Linux 4.7 it counts all private writable memory, which
/// includes committed memory.
std::size_t left_by_data_limit() noexcept {
    const std::size_t limit = resource_limit(RLIMIT_DATA);
    return limit == no_limit ? no_limit : left_of(limit, read_process_sizes().data);
}

/// The machine's memory, known even if /proc is not mounted.
struct Machine {
    std::size_t memory = no_limit;
    std::size_t memory_and_free_swap = no_limit;
};

Machine read_machine() noexcept {
    struct sysinfo info {};
    if (sysinfo(&info) != 0) return {};
    const auto memory = static_cast<std::size_t>(info.totalram) * info.mem_unit;
    return {memory, memory + static_cast<std::size_t>(info.freeswap) * info.mem_unit};
}

// While one such call runs, forks and mappings of other threads wait, and first touches wait behind
// those. Each piece therefore takes less than a millisecond. First touches are slower, so their
// pieces are smaller.
constexpr std::size_t dropped_at_once = std::size_t{16} << 20;
constexpr std::size_t populated_at_once = std::size_t{1} << 20;

/// Splits the range at multiples of `max_piece` bytes and calls `call` for one piece after another,
/// until a call returns false.
template <class Call>
bool in_pieces(void* address, std::size_t bytes, std::size_t max_piece, Call call) noexcept {
    auto* begin = static_cast<char*>(address);
    char* const end = begin + bytes;
    while (begin < end) {
        const std::size_t to_multiple =
            max_piece - reinterpret_cast<std::uintptr_t>(begin) % max_piece;
        const std::size_t piece = std::min(to_multiple, static_cast<std::size_t>(end - begin));
        if (!call(begin, piece)) return false;
        begin += piece;
    }
    return true;
}

}  // namespace

// sched_getcpu(3). No system call where the C library has the kernel publish the number in memory
// (glibc 2.35 and later) or the kernel answers in user space.
unsigned current_processor() noexcept {
    const int processor = sched_getcpu();
    return processor < 0 ? 0 : static_cast<unsigned>(processor);
}

// Pages ------------------------------------------------------------------------------------------

bool decommit(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return in_pieces(address, bytes, dropped_at_once, [](void* begin, std::size_t piece) {
        // Keeps the pages accessible. Otherwise each piece would become a separate mapping, of
        // which the kernel allows 65530.
        if (madvise(begin, piece, MADV_DONTNEED) == 0) return true;
        // Pages locked by mlockall are not dropped until they are unlocked.
        return munlock(begin, piece) == 0 && madvise(begin, piece, MADV_DONTNEED) == 0;
    });
}

bool offer(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return in_pieces(address, bytes, dropped_at_once, [](void* begin, std::size_t piece) {
        return madvise(begin, piece, MADV_FREE) == 0;
    });
}

bool commit_anew(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    if (mmap(address, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return false;
    }
    probe_mapping(address, bytes);
    // After mlockall(MCL_FUTURE) it has its pages already, and they are locked.
    (void)decommit(address, bytes);
    return true;
}

bool prefault(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return in_pieces(address, bytes, populated_at_once, [](void* begin, std::size_t piece) {
        if (madvise(begin, piece, advice_populate_write) == 0) return true;
        if (errno != EINVAL || knows_populate_write(begin)) return false;
        touch_pages(begin, piece);
        return true;
    });
}

// NUMA -------------------------------------------------------------------------------------------

unsigned numa_node_count() noexcept {
    const SystemCalls system_calls;
    LineReader lines("/sys/devices/system/node/online");
    std::string_view list;
    return lines.next(list) ? count_numa_nodes(list) : 1;
}

// Memory limits ----------------------------------------------------------------------------------

std::size_t total_memory() noexcept {
    const SystemCalls system_calls;
    return std::min(read_memory_limits("").total, read_machine().memory);
}

std::size_t available_memory() noexcept {
    return std::min(committable_memory(), available_address_space());
}

std::size_t committable_memory() noexcept {
    const SystemCalls system_calls;
    return std::min({read_memory_limits("").committable, read_machine().memory_and_free_swap,
                     left_by_data_limit()});
}

std::size_t resident_memory() noexcept {
    const SystemCalls system_calls;
    return read_process_sizes().resident;
}

std::size_t available_address_space() noexcept {
    const SystemCalls system_calls;
    const std::size_t limit = resource_limit(RLIMIT_AS);
    if (limit == no_limit) return no_limit;
    return left_of(limit, read_process_sizes().address_space);
}

// Threads and processes --------------------------------------------------------------------------

std::uint64_t current_thread_id() noexcept {
    return static_cast<std::uint64_t>(syscall(SYS_gettid));
}

// proc(5): /proc/cpuinfo has a line "model name<tab>: ..." for each processor, except on some
// architectures.
ProcessorName processor_name() noexcept {
    const SystemCalls system_calls;
    ProcessorName name;
    LineReader lines("/proc/cpuinfo");
    std::string_view line;
    while (lines.next(line)) {
        const std::size_t colon = line.find(": ");
        if (line.substr(0, 10) != "model name" || colon == std::string_view::npos) continue;
        line.substr(colon + 2).copy(name.text, sizeof name.text - 1);
        break;
    }
    return name;
}

// The kernel reads the set of signals, and then rejects what should be done with it. memcheck would
// report that the set has no values.
bool StackMemory::is_readable(std::uintptr_t address) noexcept {
    if (has_memory_tool() && memory_tool() == MemoryTool::memcheck) return true;
    constexpr int no_way = -1;
    constexpr std::size_t bytes_of_set = 8;
    const int before = errno;
    const bool is_rejected =
        ::syscall(SYS_rt_sigprocmask, no_way, address, nullptr, bytes_of_set) == -1 &&
        errno == EINVAL;
    errno = before;
    return is_rejected;
}

#ifdef __GLIBC__
bool keep_loaded() noexcept {
    const SystemCalls system_calls;
    Dl_info found{};
    void* map = nullptr;
    if (dladdr1(reinterpret_cast<void*>(keep_loaded), &found, &map, RTLD_DL_LINKMAP) == 0) {
        return false;
    }
    const char* const path = static_cast<const link_map*>(map)->l_name;
    if (*path == '\0') return true;  // the program itself
    // Looked up: the linker warns about each static program that names dlopen.
    const auto open = reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_DEFAULT, "dlopen"));
    return open != nullptr && open(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}
#else  // musl never unloads
bool keep_loaded() noexcept {
    return true;
}
#endif

namespace {

// MREMAP_DONTUNMAP of Linux 5.7, from the kernel's mman.h; the system's headers may be older than
// the running kernel. It keeps the old range mapped, so that no other thread can map something
// there.
constexpr int keep_old_range = 4;

/// Whether something is mapped in each of these pages, which are at most a huge page.
bool is_mapped(char* address, std::size_t bytes) noexcept {
    unsigned char in_memory[huge_page_bytes / 4096];
    while (mincore(address, bytes, in_memory) != 0) {
        if (errno != EAGAIN) return errno != ENOMEM;
    }
    return true;
}

/// Copies the pages at `from` that are not zeros to `to`, and makes those at `from` zeros.
void copy_and_clear(char* to, char* from, std::size_t bytes) noexcept {
    const std::size_t page = page_bytes();
    for (std::size_t at = 0; at != bytes; at += page) {
        const char* const source = from + at;
        const bool is_zeros = *source == 0 && std::memcmp(source, source + 1, page - 1) == 0;
        if (!is_zeros) std::memcpy(to + at, source, page);
    }
    if (!decommit(from, bytes)) std::memset(from, 0, bytes);
}

/// Since Linux 6.17 one mremap moves several mappings, one after another. If it fails at one of
/// them, those before it have moved, and what they left reads as zeros. Brings their content back.
/// Returns how many bytes from `to` on are mapped without a gap, all of which are zeros then.
/// REQUIRES: `to` was zeros before the move.
std::size_t undo_move(char* to, char* from, std::size_t bytes) noexcept {
    const std::size_t page = page_bytes();
    std::size_t at = 0;
    while (at != bytes) {
        std::size_t piece = std::min(huge_page_bytes, bytes - at);
        const bool whole = is_mapped(to + at, piece);
        if (!whole) {
            const std::size_t most = piece;
            for (piece = 0; piece != most && is_mapped(to + at + piece, page);) piece += page;
        }
        if (piece != 0) copy_and_clear(from + at, to + at, piece);
        at += piece;
        if (!whole) break;
    }
    return at;
}

}  // namespace

bool move_memory(void* to, void* from, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    // A failed move is undone by what is not zeros there, which needs a target that can be read.
    if (!decommit(to, bytes) || !commit(to, bytes)) return false;
    if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | keep_old_range, to) ==
        MAP_FAILED) {
        const std::size_t mapped =
            undo_move(static_cast<char*>(to), static_cast<char*>(from), bytes);
        // Kernels up to 6.16 unmap the target before they look at what is to move. Where nothing is
        // unmapped, it is right without a new mapping, for which there may be no room.
        if (!commit_anew(to, bytes) && mapped != bytes) std::abort();
        return false;
    }
    // If this fails, the old range stays a mapping of its own, which is also correct.
    (void)commit_anew(from, bytes);
    return true;
}

bool can_move_memory() noexcept {
    const std::size_t page = page_bytes();
    auto* const pages = static_cast<char*>(reserve(2 * page, page));
    if (pages == nullptr) return false;
    const bool moved = commit(pages, page) && move_memory(pages + page, pages, page);
    release(pages, 2 * page);
    return moved;
}

}  // namespace tensorpool::platform
