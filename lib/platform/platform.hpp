#pragma once

/// The operating system, whole: nothing above this layer names one. One file a system implements
/// it. Rules:
///  - addresses and sizes given to it are multiples of `page_bytes()`, unless it says otherwise;
///  - a call that fails says so by its result, and changes nothing unless it says otherwise;
///  - no call throws, or allocates with `malloc`, so that it may be called where `malloc` is served
///    by us;
///  - abilities that a system lacks are reported by value, not by a macro.

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

// Pages ------------------------------------------------------------------------------------------

/// Bytes of a page of the system: a power of two, 4 KiB at least. Cheap.
std::size_t page_bytes() noexcept;
/// Bytes of a huge page; 2 MiB where the system has none.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Address space ----------------------------------------------------------------------------------

/// Address space of `bytes`, rounded up to whole pages and aligned to `alignment` (a power of two)
/// and to a page, that takes no memory: any access faults. nullptr on failure.
void* reserve(std::size_t bytes, std::size_t alignment) noexcept;
/// What became of a reservation at a certain address.
enum class ReservedAt : std::uint8_t { done, taken, refused };
/// Reserves these whole pages, which are not accessible, if nothing else lies in any of them:
/// otherwise they are `taken`. `refused`: the system has no address space left for this process.
ReservedAt reserve_at(void* address, std::size_t bytes) noexcept;
/// Ends a reservation, or a part of one in whole pages, with all that is committed in it. False
/// where the addresses stay reserved.
bool release(void* address, std::size_t bytes) noexcept;

/// Makes [address, address + bytes) of a reservation readable and writable: zeros, unless it was
/// committed before and not decommitted since. Committing twice is harmless. False on failure.
[[nodiscard]] bool commit(void* address, std::size_t bytes) noexcept;
/// Drops the pages of committed memory, those too that are locked in memory (mlockall), and keeps
/// its address range; its content is lost. Before it is used again it must be committed again, and
/// then reads as zeros. False when the system refused: then it is still committed, with the content
/// of what was not dropped before.
[[nodiscard]] bool decommit(void* address, std::size_t bytes) noexcept;
/// Whether what was decommitted may be touched nevertheless, and `prefault` called on it.
bool decommit_keeps_access() noexcept;
/// Makes whole pages of a reservation what they are when they are committed first: zeros, without a
/// NUMA policy or a wish for huge pages, and not locked. False when the system refused: then
/// nothing has changed.
[[nodiscard]] bool commit_anew(void* address, std::size_t bytes) noexcept;

/// Gets every page of committed memory from the system now, its content unchanged. Where this
/// fails, pages come at first touch as usual. False on failure.
bool prefault(void* address, std::size_t bytes) noexcept;
/// Asks for huge pages in the whole huge pages inside [address, address + bytes). A wish: false
/// where the system has none to give or does not know them. Any address and size.
bool prefer_huge_pages(void* address, std::size_t bytes) noexcept;
/// The larger pages that the system gives to memory which asks for them, and to no other.
struct FolioSizes {
    bool huge = false;       ///< huge pages
    std::size_t medium = 0;  ///< the largest size between a page and a huge page; 0: none
};
/// Reads the system's settings, which takes tens of microseconds. None of them where all memory
/// gets huge pages.
FolioSizes folio_sizes() noexcept;
/// Asks for medium pages, and for no huge page, in these whole pages: the first page of each huge
/// page makes no wish, which splits the mapping there. False where the system refuses it.
bool prefer_medium_pages(void* address, std::size_t bytes) noexcept;
/// What is touched from now on in these whole pages shall come in usual ones. What is in memory
/// stays as it is. False where the system refuses it.
bool prefer_small_pages(void* address, std::size_t bytes) noexcept;

/// Committed memory outside of any reservation, zeros, aligned to `alignment` (a power of two);
/// nullptr on failure. `unmap` takes the same address and size.
void* map(std::size_t bytes, std::size_t alignment) noexcept;
void unmap(void* address, std::size_t bytes) noexcept;

/// Whether `move_memory` can be had here at all.
bool can_move_memory() noexcept;
/// Moves committed memory with its content, not by copying, to other addresses of a reservation.
/// Where it was is committed and reads as zeros then. Neither lies in both ranges. False on
/// failure. Then the memory has its content still, of which pages may have been moved back by
/// copying. Where it was to go is committed and reads as zeros, or has what was there before.
[[nodiscard]] bool move_memory(void* to, void* from, std::size_t bytes) noexcept;

// Shared memory ----------------------------------------------------------------------------------

/// Memory of this process that others of its user may read, found by a descriptor of this process.
struct SharedMemory {
    void* address = nullptr;  // nullptr: it could not be had
    int file = -1;
    // Which file that was, so that it can be told from one that took its number.
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
};
/// Who else may write shared memory.
enum class Writers : bool { none, same_user };
/// `bytes` of zeros in a file without a path, which other processes see as `name`: of a fixed size,
/// and, without other writers, for them to read only, as far as the system can seal it. Its
/// descriptor is closed by exec and stands where programs do not look for theirs. No address where
/// the system has none of this.
SharedMemory share_memory(const char* name, std::size_t bytes,
                          Writers writers = Writers::none) noexcept;
/// The child of a fork shall not have this mapping. A wish.
void keep_from_forks(void* address, std::size_t bytes) noexcept;
/// Sends descriptors of files to the process of this user that listens on a socket of this name in
/// the abstract name space (unix(7), SOCK_SEQPACKET), as one message of one byte. False where
/// nobody does, or another user.
bool hand_files_over(const char* socket_name, const int* files, unsigned count) noexcept;
/// Sends it a text, as a message of its own.
bool send_note(const char* socket_name, const char* text) noexcept;
/// The same in the file `<folder>/<number of this process>`, readable by this user only, which is
/// locked (flock) as long as its descriptor is open. A file
/// that stands there already, of an ended process, is replaced.
SharedMemory share_memory_in(const char* folder, std::size_t bytes) noexcept;
/// Gets the pages of shared memory from the system now, their content unchanged: one that it does
/// not have would end the process when it is touched. False when it has not all of them; true where
/// there is no telling.
[[nodiscard]] bool get_shared_pages(void* address, std::size_t bytes) noexcept;
/// Removes that file, if it is still this one.
void remove_shared_file(const char* folder, const SharedMemory& memory) noexcept;
/// Closes its descriptor, if that is still its own. The memory stays.
void close_shared_memory(const SharedMemory& memory) noexcept;
/// Moves a whole mapping to an address where another of the same size is, which ends. False on
/// failure; then both are as they were.
[[nodiscard]] bool replace_mapping(void* address, void* by, std::size_t bytes) noexcept;

/// The memory at `address` becomes this process's own: for the child of a fork, which has no other.
/// What is touched from now on is a copy; the rest reads as the file does. Takes no address space.
/// False on failure, as where the descriptor was closed; then it is as it was.
[[nodiscard]] bool make_private(void* address, const SharedMemory& memory,
                                std::size_t bytes) noexcept;

// NUMA -------------------------------------------------------------------------------------------

/// Number of memory nodes; 1 where there is no telling.
unsigned numa_node_count() noexcept;
/// Pages of [address, address + bytes) not yet touched shall come from `node`, or from any other
/// when that is full. False on failure.
bool prefer_numa_node(void* address, std::size_t bytes, unsigned node) noexcept;
/// Pages of [address, address + bytes) not yet touched shall come from all nodes in turn.
bool interleave_numa_nodes(void* address, std::size_t bytes) noexcept;

// Memory limits ----------------------------------------------------------------------------------

/// Bytes of memory in all: the machine's, or the container's limit where that is less.
std::size_t total_memory() noexcept;
/// Bytes that this process may still take: the least of what the system has available, what each
/// limit of the container leaves (what it already uses counted, caches that can be dropped not),
/// and what RLIMIT_AS leaves. Never fails: what cannot be read does not limit.
std::size_t available_memory() noexcept;
/// The same for memory whose address space is reserved already, which RLIMIT_AS does not limit any
/// more.
std::size_t committable_memory() noexcept;
/// Bytes of this process that are in memory now; 0 where there is no telling.
std::size_t resident_memory() noexcept;
/// Bytes of address space that the process may still reserve; SIZE_MAX without a limit.
std::size_t available_address_space() noexcept;

// Threads and processes --------------------------------------------------------------------------

/// Names a function that is called when threads end: 0 or more, or `no_exit_handler`.
using ExitHandler = int;
inline constexpr ExitHandler no_exit_handler = -1;
/// As many as a process may add: each takes one of the few keys that the system has for everybody.
inline constexpr int max_exit_handlers = 6;

/// Adds a function that is called when a thread that asked for it ends, on that thread, after the
/// destructors of C++'s thread-local objects. Called again for a thread that asks again from
/// within, a few times at most (four with POSIX threads). Which of several is called first is not
/// said. Each function is added once and stays. Any thread; `no_exit_handler` on failure.
[[nodiscard]] ExitHandler add_thread_exit_handler(void (*function)()) noexcept;
/// The calling thread asks for this one. False on failure, as for `no_exit_handler`: it will not be
/// called.
[[nodiscard]] bool call_at_thread_exit(ExitHandler handler) noexcept;

/// A number of the calling thread, the one by which the system's own tools name it.
std::uint64_t current_thread_id() noexcept;

/// Before the first of the calls below, once in a process: at once while it has one thread, some
/// 20 ms later. False where there are no such fences.
[[nodiscard]] bool prepare_fences() noexcept;
/// False where there is no telling.
bool is_single_threaded() noexcept;
/// Every thread of this process passes a full fence during this call: what it stored before, the
/// caller sees; what it loads later is no older than what the caller stored. False: none did.
[[nodiscard]] bool fence_all_threads() noexcept;

/// What others need to know this process again. 0 and "" where there is no telling.
struct ProcessIdentity {
    std::uint64_t number = 0;
    std::uint64_t name_space = 0;   // in which it has that number: an inode
    std::uint64_t start_ticks = 0;  // when it started, in ticks since the machine did
    char name[16] = {};
};
ProcessIdentity identify_process() noexcept;

// The rest ---------------------------------------------------------------------------------------

/// What the processor's maker calls it, cut to the 63 characters that fit; "" where there is no
/// telling.
struct ProcessorName {
    char text[64] = {};
};
ProcessorName processor_name() noexcept;
/// Nanoseconds since 1970, UTC.
std::uint64_t wall_clock_ns() noexcept;
/// Nanoseconds of a clock that never goes back; its zero is anywhere.
std::uint64_t monotonic_clock_ns() noexcept;
/// Nanoseconds for which processors have run the calling thread. Takes a system call.
std::uint64_t thread_time_ns() noexcept;
/// The variable's value, or nullptr. It lives until the environment is changed.
const char* environment_variable(const char* name) noexcept;
/// Writes all of it to the standard error stream, unbuffered.
void write_to_stderr(const char* text, std::size_t bytes) noexcept;
/// Ends the process at once, abnormally, as a failed check does.
[[noreturn]] void abort_process() noexcept;

}  // namespace tensorpool::platform
