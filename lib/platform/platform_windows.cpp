// The whole interface for Windows 10 and later.

#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#define _CRT_SECURE_NO_WARNINGS  // getenv
#define PSAPI_VERSION 2          // GetProcessMemoryInfo from kernel32

#include <windows.h>
// Must be included after windows.h, which it needs.
#include <intrin.h>
#include <psapi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/alignment.hpp"
#include "platform/files/observed_file.hpp"
#include "platform/files/trace_output.hpp"
#include "platform/platform.hpp"
#include "platform/process/dynamic_library.hpp"
#include "platform/process/fork_handlers.hpp"
#include "platform/stacks/program_stack.hpp"
#include "platform/stacks/python_frames.hpp"

namespace tensorpool::platform {
namespace {

/// Restores the thread's error code at the end of a scope, like `errno` on other systems.
class LastErrorKeeper {
public:
    LastErrorKeeper() noexcept = default;
    ~LastErrorKeeper() { SetLastError(kept_); }
    LastErrorKeeper(const LastErrorKeeper&) = delete;
    LastErrorKeeper& operator=(const LastErrorKeeper&) = delete;

private:
    DWORD kept_ = GetLastError();
};

SYSTEM_INFO system_info() noexcept {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info;
}

void* reserve_near(void* address, std::size_t bytes) noexcept {
    return VirtualAlloc(address, bytes, MEM_RESERVE, PAGE_NOACCESS);
}

/// Finds an aligned range of `bytes` that is free at this moment; nullptr if there is none.
void* find_aligned(std::size_t bytes, std::size_t alignment) noexcept {
    void* const larger = VirtualAlloc(nullptr, bytes + alignment, MEM_RESERVE, PAGE_NOACCESS);
    if (larger == nullptr) return nullptr;
    VirtualFree(larger, 0, MEM_RELEASE);
    const auto begin = reinterpret_cast<std::uintptr_t>(larger);
    return reinterpret_cast<void*>(base::align_up(begin, alignment));
}

/// Returns whether [address, address + bytes) is exactly one reservation.
bool is_whole_reservation(void* address, std::size_t bytes) noexcept {
    std::size_t at = 0;
    MEMORY_BASIC_INFORMATION region{};
    while (VirtualQuery(static_cast<char*>(address) + at, &region, sizeof region) != 0 &&
           region.State != MEM_FREE && region.AllocationBase == address) {
        at += region.RegionSize;
    }
    return at == bytes;
}

MEMORYSTATUSEX memory_status() noexcept {
    MEMORYSTATUSEX status{};
    status.dwLength = sizeof status;
    if (GlobalMemoryStatusEx(&status)) return status;
    status.ullTotalPhys = status.ullAvailPhys = SIZE_MAX;
    status.ullAvailPageFile = status.ullAvailVirtual = SIZE_MAX;
    return status;
}

/// Windows also calls this, with nullptr, for threads without a value.
void WINAPI end_key(void* value) noexcept {
    if (value != nullptr) run_exit_handler(value);
}

}  // namespace

// Pages and address space ------------------------------------------------------------------------

std::size_t page_bytes() noexcept {
    static const std::size_t bytes = system_info().dwPageSize;
    return bytes;
}

void* reserve(std::size_t bytes, std::size_t alignment) noexcept {
    const LastErrorKeeper last_error_keeper;
    if (bytes == 0 || bytes + alignment < bytes) return nullptr;
    if (alignment <= system_info().dwAllocationGranularity) {
        return reserve_near(nullptr, bytes);
    }
    // A reservation cannot be cut, so this finds a free range and then takes it. Another thread may
    // take it in between; eight such races in a row are not to be expected.
    for (int attempt = 0; attempt < 8; ++attempt) {
        void* const place = find_aligned(bytes, alignment);
        if (place == nullptr) return nullptr;
        if (void* const address = reserve_near(place, bytes)) return address;
    }
    return nullptr;
}

ReservedAt reserve_at(void* address, std::size_t bytes) noexcept {
    const LastErrorKeeper last_error_keeper;
    if (reserve_near(address, bytes) != nullptr) return ReservedAt::done;
    return GetLastError() == ERROR_INVALID_ADDRESS ? ReservedAt::taken : ReservedAt::refused;
}

bool release(void* address, std::size_t bytes) noexcept {
    const LastErrorKeeper last_error_keeper;
    if (bytes == 0) return true;
    if (is_whole_reservation(address, bytes)) return VirtualFree(address, 0, MEM_RELEASE) != 0;
    // For a part of a reservation, Windows takes back the memory only; the address space stays
    // reserved.
    VirtualFree(address, bytes, MEM_DECOMMIT);
    return false;
}

bool commit(void* address, std::size_t bytes) noexcept {
    const LastErrorKeeper last_error_keeper;
    if (bytes == 0) return true;
    return VirtualAlloc(address, bytes, MEM_COMMIT, PAGE_READWRITE) != nullptr;
}

bool decommit(void* address, std::size_t bytes) noexcept {
    const LastErrorKeeper last_error_keeper;
    // With a size of 0, VirtualFree would decommit the whole reservation.
    return bytes == 0 || VirtualFree(address, bytes, MEM_DECOMMIT) != 0;
}

bool make_inaccessible(void* address, std::size_t bytes) noexcept {
    const LastErrorKeeper last_error_keeper;
    DWORD before = 0;
    return VirtualProtect(address, bytes, PAGE_NOACCESS, &before) != 0;
}

bool reserve_again(void* address, std::size_t bytes) noexcept {
    return decommit(address, bytes);
}

bool commit_anew(void* address, std::size_t bytes) noexcept {
    return decommit(address, bytes) && commit(address, bytes);
}

bool offer(void*, std::size_t) noexcept {
    return false;
}

bool decommit_keeps_access() noexcept {
    return false;
}

bool prefault(void* address, std::size_t bytes) noexcept {
    // PrefetchVirtualMemory only reads from the page file; new pages come by touch only. The write
    // changes nothing and is safe while other threads write. The compiler cannot see that the
    // operand is zero; otherwise it might remove the write.
    const volatile char nothing = 0;
    auto* const begin = static_cast<volatile char*>(address);
    for (std::size_t at = 0; at < bytes; at += page_bytes()) _InterlockedOr8(begin + at, nothing);
    return true;
}

void* map(std::size_t bytes, std::size_t alignment) noexcept {
    void* const address = reserve(bytes, alignment);
    if (address == nullptr) return nullptr;
    if (commit(address, bytes)) return address;
    release(address, bytes);
    return nullptr;
}

void unmap(void* address, std::size_t bytes) noexcept {
    release(address, bytes);
}

// NUMA -------------------------------------------------------------------------------------------

// Windows binds pages to a node when they are reserved, and never later. There is no choice
// afterwards, so one node is reported.
unsigned numa_node_count() noexcept {
    return 1;
}

// Memory limits ----------------------------------------------------------------------------------

std::size_t total_memory() noexcept {
    const LastErrorKeeper last_error_keeper;
    return static_cast<std::size_t>(memory_status().ullTotalPhys);
}

std::size_t available_memory() noexcept {
    const LastErrorKeeper last_error_keeper;
    // "Page file" is the memory that the system and the process's job may still commit.
    const MEMORYSTATUSEX status = memory_status();
    return static_cast<std::size_t>(std::min(status.ullAvailPhys, status.ullAvailPageFile));
}

std::size_t committable_memory() noexcept {
    return available_memory();
}

std::size_t resident_memory() noexcept {
    const LastErrorKeeper last_error_keeper;
    PROCESS_MEMORY_COUNTERS counters{};
    counters.cb = sizeof counters;
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)) return 0;
    return counters.WorkingSetSize;
}

std::size_t available_address_space() noexcept {
    const LastErrorKeeper last_error_keeper;
    return static_cast<std::size_t>(memory_status().ullAvailVirtual);
}

// Threads and processes --------------------------------------------------------------------------

bool make_thread_key(ThreadKey& key) noexcept {
    const LastErrorKeeper last_error_keeper;
    key = FlsAlloc(end_key);
    return key != FLS_OUT_OF_INDEXES;
}

bool set_thread_key(ThreadKey key, void* value) noexcept {
    const LastErrorKeeper last_error_keeper;
    return FlsSetValue(key, value) != 0;
}

bool set_fork_handlers(ForkStage, void (*)(), void (*)(), void (*)()) noexcept {
    return true;
}

std::uint64_t current_thread_id() noexcept {
    return GetCurrentThreadId();
}

// The rest ---------------------------------------------------------------------------------------

std::uint64_t monotonic_clock_ns() noexcept {
    constexpr std::uint64_t ns_per_second = 1'000'000'000;
    LARGE_INTEGER now;
    LARGE_INTEGER per_second;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&per_second);
    const auto ticks = static_cast<std::uint64_t>(now.QuadPart);
    const auto rate = static_cast<std::uint64_t>(per_second.QuadPart);
    // Whole seconds are converted apart, so that the product cannot overflow.
    return ticks / rate * ns_per_second + ticks % rate * ns_per_second / rate;
}

std::uint64_t wall_clock_ns() noexcept {
    // Ticks of 100 ns since 1601.
    constexpr std::uint64_t until_1970 = 116'444'736'000'000'000;
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    const std::uint64_t ticks = std::uint64_t{now.dwHighDateTime} << 32 | now.dwLowDateTime;
    return (ticks - until_1970) * 100;
}

std::uint64_t thread_time_ns() noexcept {
    FILETIME created, ended, kernel, user;
    if (GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user) == 0) return 0;
    const auto ticks = [](FILETIME time) {
        return std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime;
    };
    return (ticks(kernel) + ticks(user)) * 100;
}

unsigned current_processor() noexcept {
    PROCESSOR_NUMBER number;
    GetCurrentProcessorNumberEx(&number);
    return number.Group * 64U + number.Number;
}

const char* environment_variable(const char* name) noexcept {
    return std::getenv(name);
}

void write_to_stderr(const char* text, std::size_t bytes) noexcept {
    const LastErrorKeeper last_error_keeper;
    constexpr std::size_t max_at_once = std::size_t{1} << 30;
    const HANDLE stream = GetStdHandle(STD_ERROR_HANDLE);
    while (bytes > 0) {
        const auto wanted = static_cast<DWORD>(std::min(bytes, max_at_once));
        DWORD written = 0;
        if (!WriteFile(stream, text, wanted, &written, nullptr) || written == 0) return;
        text += written;
        bytes -= written;
    }
}

void abort_process() noexcept {
    std::abort();
}

ObservedFile::ObservedFile(int) noexcept {}
const void* ObservedFile::map(std::size_t) const noexcept {
    return nullptr;
}
ObservedFile ObservedFile::reopen_for_writing() const {
    return {};
}
void* ObservedFile::map_for_writing(std::size_t) const noexcept {
    return nullptr;
}
bool ObservedFile::hold_lock() const noexcept {
    return false;
}
ObservedFile::Lock ObservedFile::lock() const noexcept {
    return Lock::unknown;
}
std::vector<std::uint64_t> numbers_in(const std::string&) {
    return {};
}
ObservedFile open_in(const std::string&, std::uint64_t) {
    return {};
}
bool remove_in(const std::string&, std::uint64_t, const ObservedFile&) {
    return false;
}

bool TraceOutput::open(const char* path) noexcept {
    std::snprintf(path_, sizeof path_, "%s", path);
    std::snprintf(problem_, sizeof problem_, "recording is not supported on this system");
    return false;
}

void TraceOutput::close() noexcept {}

bool TraceOutput::append(Part, Part) noexcept {
    return false;
}

bool install_guard(void* address, std::size_t bytes) noexcept {
    return decommit(address, bytes);
}

bool remove_guard(void* address, std::size_t bytes) noexcept {
    return commit(address, bytes);
}

std::uint64_t random_bits() noexcept {
    int on_stack = 0;
    return monotonic_clock_ns() * 0x9E3779B97F4A7C15 ^ reinterpret_cast<std::uintptr_t>(&on_stack);
}

const char* const cuda_driver_name = "nvcuda.dll";

bool DynamicLibrary::open(const std::string& name) {
    handle_ = LoadLibraryA(name.c_str());
    if (handle_ != nullptr) return true;
    problem_ = name + ": LoadLibrary failed with error " + std::to_string(GetLastError());
    return false;
}

void* DynamicLibrary::find(const char* symbol) const noexcept {
    return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle_), symbol));
}

bool handle_faults(FaultFunction) noexcept {
    return false;
}

std::size_t capture_stack(std::uintptr_t*, std::size_t, const std::uintptr_t**) noexcept {
    return 0;
}

CodeOrigin find_code(std::uintptr_t) noexcept {
    return {};
}

bool find_python() noexcept {
    return false;
}

std::size_t capture_python_frames(PythonFrame*, std::size_t) noexcept {
    return 0;
}

std::uint64_t hash_python_stack(std::size_t) noexcept {
    return 0;
}

bool is_python_interpreter(std::uintptr_t) noexcept {
    return false;
}

bool runs_python_code(std::uintptr_t) noexcept {
    return false;
}

std::uint64_t identify_python_code(const void*) noexcept {
    return 0;
}

std::size_t name_python_code(const void*, char*, std::size_t) noexcept {
    return 0;
}

}  // namespace tensorpool::platform
