#pragma once

/// @file
/// The interface to the operating system. Nothing above this layer names an operating system, and
/// each system implements the interface in files of its own. Rules:
///  - Addresses and sizes are multiples of `page_bytes()`, unless a function says otherwise.
///  - A call that fails changes nothing, unless its comment says otherwise, and reports the failure
///    by its result. It neither throws nor calls `malloc`, so that it can be used where this
///    library serves `malloc`.
///  - Capabilities that a system lacks are reported by value, not by a macro.

#include <atomic>

#include "base/alignment.hpp"
#include "base/text.hpp"

namespace tensorpool::platform {

/// Writes one line to stderr that begins with "tensorpool: ", then aborts the process. For misuse
/// after which no further call of the library can be correct. Allocates nothing.
[[noreturn]] TENSORPOOL_PRINTF_LIKE void fail(const char* format, ...) noexcept;

/// Writes one line to stderr that begins with "tensorpool: ". Used only for output that the user
/// requested.
TENSORPOOL_PRINTF_LIKE void say(const char* format, ...) noexcept;

// Pages ------------------------------------------------------------------------------------------

/// Returns the size of a page of the system in bytes: a power of two, at least 4 KiB. Cheap.
std::size_t page_bytes() noexcept;
/// The size of a huge page in bytes; 2 MiB on systems without huge pages.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Address space ----------------------------------------------------------------------------------

/// Reserves address space of `bytes`, rounded up to whole pages and aligned to a page and to
/// `alignment` (a power of two). It takes no memory, and any access to it faults. Returns nullptr
/// on failure.
void* reserve(std::size_t bytes, std::size_t alignment) noexcept;
/// The result of a reservation at a given address.
enum class ReservedAt : std::uint8_t { done, taken, refused };
/// Reserves these whole pages, which are then inaccessible. Returns `taken` if any of them is
/// already mapped, and `refused` if the process has no address space left.
ReservedAt reserve_at(void* address, std::size_t bytes) noexcept;
/// Ends a reservation, or a part of one in whole pages, including any committed memory in it.
/// Returns false if the addresses stay reserved.
bool release(void* address, std::size_t bytes) noexcept;

/// Returns whole pages of a reservation to their state before the first commit: inaccessible and
/// without memory. Returns false if the system refused: then nothing has changed.
[[nodiscard]] bool reserve_again(void* address, std::size_t bytes) noexcept;

/// Makes [address, address + bytes) of a reservation readable and writable. The memory is zero
/// unless it was committed before and not decommitted since. Committing twice is harmless. Returns
/// false on failure.
[[nodiscard]] bool commit(void* address, std::size_t bytes) noexcept;
/// Makes whole pages of a reservation readable, as zeros. Until they are committed, no limit counts
/// them but that of address space. Returns false on failure.
[[nodiscard]] bool make_readable(void* address, std::size_t bytes) noexcept;
/// Drops the pages of committed memory, including pages locked by mlockall, and keeps the address
/// range. The content is lost: it reads as zeros. Returns false if the system refused: the range is
/// then still committed and keeps the content of pages that were not yet dropped.
[[nodiscard]] bool decommit(void* address, std::size_t bytes) noexcept;
/// Makes whole pages of committed memory inaccessible, until they are committed again or reserved
/// again. They keep their content. Returns false if the system refused: then nothing has changed.
[[nodiscard]] bool make_inaccessible(void* address, std::size_t bytes) noexcept;
/// Lets the system take pages of committed memory at any time from now on, for instance before it
/// ends a process because memory is short. A page that was taken reads as zeros. A page that is
/// written stays from then on; until then, its content must not be relied on. Returns false if the
/// system has no such offer.
[[nodiscard]] bool offer(void* address, std::size_t bytes) noexcept;
/// Resets whole pages of a reservation to the state after their first commit: zeros, not locked,
/// and without a NUMA policy or a request for huge pages. Returns false if the system refused: then
/// nothing has changed.
[[nodiscard]] bool commit_anew(void* address, std::size_t bytes) noexcept;

/// Gets every page of committed memory from the system now; the content is unchanged. Returns false
/// on failure: pages then come at first touch as usual.
bool prefault(void* address, std::size_t bytes) noexcept;
/// Requests huge pages for the whole huge pages inside [address, address + bytes). This is a hint.
/// Returns false if the system has no huge pages or refuses. Any address and size.
bool prefer_huge_pages(void* address, std::size_t bytes) noexcept;
/// The larger page sizes that the system gives only to memory that requests them.
struct FolioSizes {
    bool huge = false;       ///< huge pages
    std::size_t medium = 0;  ///< the largest size between a page and a huge page, in bytes; 0 if
                             ///< none
};
/// Reads the system's settings, which takes tens of microseconds. Returns no sizes if all memory
/// gets huge pages anyway.
FolioSizes folio_sizes() noexcept;
/// Requests medium pages, and no huge pages, for these whole pages. The first page of each huge
/// page is excluded from the request, which splits the mapping there. Returns false if the system
/// refuses.
bool prefer_medium_pages(void* address, std::size_t bytes) noexcept;
/// Requests normal pages for memory touched from now on in these whole pages. Pages already in
/// memory stay as they are. Returns false if the system refuses.
bool prefer_small_pages(void* address, std::size_t bytes) noexcept;

/// Maps zeroed, committed memory outside of any reservation, aligned to `alignment` (a power of
/// two). Returns nullptr on failure. `unmap` takes the same address and size.
void* map(std::size_t bytes, std::size_t alignment) noexcept;
void unmap(void* address, std::size_t bytes) noexcept;

/// Returns whether the system supports `move_memory`.
bool can_move_memory() noexcept;
/// Moves committed memory with its content to other addresses of a reservation without copying. The
/// old range stays committed and then reads as zeros. The ranges must not overlap. Returns false on
/// failure: the memory then has its content, although pages of it may have been moved and copied
/// back, and the target range is committed and reads as zeros or as before.
[[nodiscard]] bool move_memory(void* to, void* from, std::size_t bytes) noexcept;

// Shared memory ----------------------------------------------------------------------------------

/// Memory of this process that other processes of the same user can read, identified by a
/// descriptor of this process.
struct SharedMemory {
    void* address = nullptr;  // nullptr on failure
    int file = -1;
    // Identify the file, to distinguish it from another one that reuses the descriptor number.
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
};
/// Which other processes may write shared memory.
enum class Writers : bool { none, same_user };
/// Creates `bytes` of zeros in a file without a path, which other processes see as `name`. Its size
/// is fixed, and with Writers::none other processes can only read it, as far as the system can seal
/// it. Its descriptor is closed by exec and has a high number, out of the way of the program's own.
/// Returns a null address if the system does not support this.
SharedMemory share_memory(const char* name, std::size_t bytes,
                          Writers writers = Writers::none) noexcept;
/// Requests that the child of a fork does not inherit this mapping. A hint.
void keep_from_forks(void* address, std::size_t bytes) noexcept;
/// Sends file descriptors to the process of this user that listens on a socket of this name in the
/// abstract name space (unix(7), SOCK_SEQPACKET). They are sent as one message of one byte. Returns
/// false if no process listens, or one of another user.
bool hand_files_over(const char* socket_name, const int* files, unsigned count) noexcept;
/// Sends a text to the same socket as a message of its own.
bool send_note(const char* socket_name, const char* text) noexcept;
/// Creates shared memory in the file `<folder>/<number of this process>`, which is readable by this
/// user only. The file is locked (flock) for as long as its descriptor is open. An existing file of
/// an ended process is replaced.
SharedMemory share_memory_in(const char* folder, std::size_t bytes) noexcept;
/// Gets the pages of shared memory from the system now; the content is unchanged. Touching a page
/// that the system cannot provide would end the process. Returns false if some pages could not be
/// had, and true if that is unknown.
[[nodiscard]] bool get_shared_pages(void* address, std::size_t bytes) noexcept;
/// Removes the file of `share_memory_in`, if it is still the same one.
void remove_shared_file(const char* folder, const SharedMemory& memory) noexcept;
/// Closes the descriptor, if it still refers to the same file. The memory stays mapped.
void close_shared_memory(const SharedMemory& memory) noexcept;
/// Moves the whole mapping `by` to `address`, where it replaces another mapping of the same size.
/// Returns false on failure: both mappings are then unchanged.
[[nodiscard]] bool replace_mapping(void* address, void* by, std::size_t bytes) noexcept;

/// Makes the memory at `address` private to this process, for the child of a fork, which must not
/// write its parent's. Pages written from now on are copies; the rest reads as the file does. Takes
/// no address space. Returns false on failure, for example if the descriptor was closed; the memory
/// is then unchanged.
[[nodiscard]] bool make_private(void* address, const SharedMemory& memory,
                                std::size_t bytes) noexcept;

// NUMA -------------------------------------------------------------------------------------------

/// Returns the number of memory nodes; 1 if it is unknown.
unsigned numa_node_count() noexcept;

// Memory limits ----------------------------------------------------------------------------------

/// Returns the total memory in bytes: the machine's, or the container's limit if that is lower.
std::size_t total_memory() noexcept;
/// Returns how many bytes this process may still take. This is the minimum of what the system has
/// available, what each limit of the container leaves and what RLIMIT_AS leaves. Droppable caches
/// of the container do not count as used. Never fails: a value that cannot be read does not limit.
std::size_t available_memory() noexcept;
/// Returns how many bytes may still be committed in address space that is already reserved, to
/// which RLIMIT_AS does not apply.
std::size_t committable_memory() noexcept;
/// Returns how many bytes of this process are in memory now; 0 if it is unknown.
std::size_t resident_memory() noexcept;
/// Returns how many bytes of address space the process may still reserve; SIZE_MAX if there is no
/// limit.
std::size_t available_address_space() noexcept;

// Threads and processes --------------------------------------------------------------------------

/// Identifies a function that is called when threads end: 0 or more, or `no_exit_handler`.
using ExitHandler = int;
inline constexpr ExitHandler no_exit_handler = -1;
/// The maximum number of handlers a process may add. Each takes one of the system's few keys, which
/// all libraries of the process share.
inline constexpr int max_exit_handlers = 6;

/// Adds a function that is called when threads end, for each thread that called
/// `call_at_thread_exit`. It runs on the ending thread, after the destructors of C++ thread-local
/// objects. If the thread calls `call_at_thread_exit` again from within the function, the function
/// is called again, a few times at most (four with POSIX threads). The order of several functions
/// is unspecified. A function cannot be removed. May be called on any thread. Returns
/// `no_exit_handler` on failure.
[[nodiscard]] ExitHandler add_thread_exit_handler(void (*function)()) noexcept;
/// Requests that the handler is called when the calling thread ends. Returns false on failure and
/// for `no_exit_handler`: the handler will then not be called.
[[nodiscard]] bool call_at_thread_exit(ExitHandler handler) noexcept;

/// Returns the number by which the system's tools identify the calling thread.
std::uint64_t current_thread_id() noexcept;

/// Must be called once in a process before the first of the calls below. It returns at once while
/// the process has one thread, and takes some 20 ms later. Returns false if the system has no such
/// fences.
[[nodiscard]] bool prepare_fences() noexcept;
/// Returns whether the process has one thread; false if it is unknown.
bool is_single_threaded() noexcept;
/// Makes every thread of this process execute a full fence during this call. The caller then sees
/// what each thread stored before its fence, and loads after the fence see what the caller stored
/// before the call. Returns false if no thread executed a fence.
[[nodiscard]] bool fence_all_threads() noexcept;

/// Data by which other processes recognize this process. Fields are 0 or "" if they are unknown.
struct ProcessIdentity {
    std::uint64_t number = 0;
    std::uint64_t name_space = 0;   // the name space in which it has that number: an inode
    std::uint64_t start_ticks = 0;  // start time, in ticks since the machine started
    char name[16] = {};
};
ProcessIdentity identify_process() noexcept;

// The rest ---------------------------------------------------------------------------------------

/// The processor's name as its maker gives it, truncated to 63 characters; "" if it is unknown.
struct ProcessorName {
    char text[64] = {};
};
ProcessorName processor_name() noexcept;
/// Returns the number of the processor that runs the calling thread, or 0 if the system does not
/// say. The thread may be on another processor by the time of the return.
unsigned current_processor() noexcept;
/// Returns nanoseconds since 1970, UTC.
std::uint64_t wall_clock_ns() noexcept;
/// Returns the nanoseconds of a clock that never goes back; its zero is arbitrary.
std::uint64_t monotonic_clock_ns() noexcept;
/// Returns for how many nanoseconds processors have run the calling thread. Takes a system call.
std::uint64_t thread_time_ns() noexcept;
/// Returns the value of the variable, or nullptr if it is not set, or if the program runs with
/// other rights than its caller (set-user-id). It is valid until the environment is changed.
const char* environment_variable(const char* name) noexcept;
/// Writes the whole text to the standard error stream, unbuffered.
void write_to_stderr(const char* text, std::size_t bytes) noexcept;

/// Returns a word of 1 that is 0 in every child of this process that has its own memory, whether or
/// not the handlers of a fork were called: clone(2) and _Fork call none. The word is never freed.
/// Returns nullptr if the system has no such memory.
std::atomic<std::uint32_t>* make_process_mark() noexcept;

/// Keeps the shared library or plugin that contains this code loaded until the process ends, also
/// after dlclose: the system calls its functions later, such as those for threads that end. Does
/// nothing if the code is part of the program itself. Call it while the library is loaded. Returns
/// false if the code may be unloaded, as on systems other than Linux.
bool keep_loaded() noexcept;

/// Returns `bytes` rounded up to whole pages of the system.
inline std::size_t whole_pages(std::size_t bytes) noexcept {
    return base::align_up(bytes, page_bytes());
}

/// Makes whole pages of committed memory inaccessible and drops their content, until
/// `remove_guard`. On Linux 6.13 and later it takes no mapping of its own (MADV_GUARD_INSTALL of
/// madvise(2)); it survives `decommit`, and `prefault` over such pages fails. Returns false if the
/// system refuses.
[[nodiscard]] bool install_guard(void* address, std::size_t bytes) noexcept;
/// Makes pages accessible again for which `install_guard` succeeded. They read as zeros or as
/// before. Returns false if the system refuses.
bool remove_guard(void* address, std::size_t bytes) noexcept;

/// Returns bits that other programs cannot predict.
std::uint64_t random_bits() noexcept;

/// What a thread did when it faulted.
enum class FaultAccess : std::uint8_t { unknown, read, write };

/// Called for each fault of a thread that accessed `address`. It does not return if the fault is
/// its own to report. It runs in a signal handler.
using FaultFunction = void (*)(const void* address, FaultAccess access) noexcept;

/// Installs handlers for SIGSEGV and SIGBUS that call `function`, once per process. Faults for
/// which the function returns, and signals that another process or thread sent, are passed to the
/// actions that were there before, unchanged. Returns false if the system has no such signals or
/// refuses. The handlers run on the thread's alternative stack if it has one.
[[nodiscard]] bool handle_faults(FaultFunction function) noexcept;

}  // namespace tensorpool::platform
