// Systems other than Linux: what they lack, and what is not used there.

#include <cerrno>
#include <cstdio>

#include "platform/files/spill_file.hpp"
#include "platform/memory/memory_pressure.hpp"
#include "platform/memory/numa_policy.hpp"
#include "platform/memory/page_faults.hpp"
#include "platform/platform.hpp"
#include "platform/process/processes.hpp"
#include "platform/process/socket_files.hpp"
#include "platform/stacks/stack_memory.hpp"
#include "platform/threads/own_thread.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::platform {
namespace {

FileProblem unsupported() noexcept {
    FileProblem problem;
    std::snprintf(problem.text, sizeof problem.text, "spilling is not supported on this system");
    return problem;
}

}  // namespace

SpillFile::~SpillFile() = default;

FileProblem SpillFile::open(const char*) noexcept {
    return unsupported();
}
FileProblem SpillFile::write(std::uint64_t, std::span<const std::byte>) noexcept {
    return unsupported();
}
FileProblem SpillFile::settle(std::uint64_t, std::uint64_t) noexcept {
    return unsupported();
}
FileProblem SpillFile::read(std::uint64_t, std::span<std::byte>, ReadFrom) const noexcept {
    return unsupported();
}
void SpillFile::read_ahead(std::uint64_t, std::uint64_t) const noexcept {}
bool SpillFile::free(std::uint64_t, std::uint64_t) noexcept {
    return false;
}

FolioSizes folio_sizes() noexcept {
    return {};
}
bool prefer_medium_pages(void*, std::size_t) noexcept {
    return false;
}
bool prefer_small_pages(void*, std::size_t) noexcept {
    return false;
}
MemoryPressure read_memory_pressure() noexcept {
    return {};
}
bool can_move_memory() noexcept {
    return false;
}
bool move_memory(void*, void*, std::size_t) noexcept {
    return false;
}

// macOS has one node. Windows takes a node with each allocation, and not at all for files.

bool set_numa_policy(void*, std::size_t, NumaPolicy, unsigned) noexcept {
    return false;
}
ThreadNumaPolicy::ThreadNumaPolicy(NumaPolicy, unsigned) noexcept {}
ThreadNumaPolicy::~ThreadNumaPolicy() = default;
FaultSource open_fault_source(FaultScope) noexcept {
    return {};
}
bool is_open(const FaultSource&) noexcept {
    return false;
}
void close_fault_source(const FaultSource&) noexcept {}
bool watch_faults(const FaultSource&, void*, std::size_t) noexcept {
    return false;
}
void unwatch_faults(const FaultSource&, void*, std::size_t) noexcept {}
bool fill_missing(const FaultSource&, void*, const void*, std::size_t, Writable) noexcept {
    return false;
}
bool protect_from_writes(const FaultSource&, void*, std::size_t, Writable) noexcept {
    return false;
}
void wake_faults(const FaultSource&, void*, std::size_t) noexcept {}
bool next_fault(const FaultSource&, PageFault&) noexcept {
    return false;
}
PressureEvent open_pressure_event() noexcept {
    return {};
}
void close_pressure_event(const PressureEvent&) noexcept {}
std::uint64_t count_reports(const PressureEvent&) noexcept {
    return 0;
}

// Other processes cannot read the statistics: they are private memory.

SharedMemory share_memory(const char*, std::size_t, Writers) noexcept {
    return {};
}
void keep_from_forks(void*, std::size_t) noexcept {}
bool hand_files_over(const char*, const int*, unsigned) noexcept {
    return false;
}
bool send_note(const char*, const char*) noexcept {
    return false;
}
SharedMemory share_memory_in(const char*, std::size_t) noexcept {
    return {};
}
bool get_shared_pages(void*, std::size_t) noexcept {
    return true;
}
void remove_shared_file(const char*, const SharedMemory&) noexcept {}
void close_shared_memory(const SharedMemory&) noexcept {}
bool replace_mapping(void*, void*, std::size_t) noexcept {
    return false;
}
bool make_private(void*, const SharedMemory&, std::size_t) noexcept {
    return false;
}
ProcessIdentity identify_process() noexcept {
    return {};
}
bool keep_loaded() noexcept {
    return false;
}
std::atomic<std::uint32_t>* make_process_mark() noexcept {
    return nullptr;
}

// The library does not look into other processes.

bool ObservedFile::is_sealed() const noexcept {
    return false;
}
std::optional<ProcessFacts> facts_of(std::uint64_t) {
    return std::nullopt;
}
std::vector<std::uint64_t> process_numbers() {
    return {};
}
std::string thread_name(std::uint64_t, std::uint64_t) {
    return {};
}
OwnName own_name_of(std::uint64_t) {
    return {};
}
MemoryFiles memory_files_of(std::uint64_t, std::string_view) {
    return {};
}
bool holds_file(std::uint64_t, std::uint64_t, const ObservedFile&) {
    return false;
}
bool maps_memory_file(std::uint64_t, std::string_view, std::uint64_t) {
    return false;
}
ProcessorName processor_name() noexcept {
    return {};
}

// No memory of devices can be exported on these systems, so there are no descriptors of it.

SocketUsers users_of_socket(int) noexcept {
    return {};
}
int send_files(int, const int*, unsigned, const void*, std::size_t) noexcept {
    return ENOTSUP;
}
ReceivedFile receive_file(int, void*, std::size_t) noexcept {
    return {.error = ENOTSUP};
}
void close_file(int) noexcept {}
bool StackMemory::is_readable(std::uintptr_t) noexcept {
    return true;
}

// No thread is started on these systems, so no thread waits.

OwnThread start_own_thread(const char*, void (*)(), Priority) noexcept {
    return {};
}
void join_own_thread(OwnThread) noexcept {}
void detach_own_thread(OwnThread) noexcept {}
void wait_on(const std::atomic<std::uint32_t>&, std::uint32_t, std::uint64_t) noexcept {}
void wake_waiter(std::atomic<std::uint32_t>&) noexcept {}
bool prepare_fences() noexcept {
    return false;
}
bool is_single_threaded() noexcept {
    return false;
}
bool fence_all_threads() noexcept {
    return false;
}

// Without weak undefined symbols, no sanitizer is found, and nothing else is called.
const MemoryToolCalls sanitizer_calls = {};
MemoryTool present_sanitizer() noexcept {
    return MemoryTool::none;
}

}  // namespace tensorpool::platform
