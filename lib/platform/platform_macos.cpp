// What only macOS has. The rest is in platform_posix.cpp.

#include <mach/mach.h>
#include <mach/vm_page_size.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysctl.h>

#include <algorithm>
#include <cstdint>

#include "platform/files/file_pages.hpp"
#include "platform/files/input_file.hpp"
#include "platform/memory/touch_pages_posix.hpp"
#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

/// Returns the bytes of free pages and of inactive ones, which the system reclaims before it swaps;
/// SIZE_MAX if they are unknown.
std::size_t free_and_inactive_memory() noexcept {
    vm_statistics64_data_t pages{};
    mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
    const host_t host = mach_host_self();
    const kern_return_t result =
        host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count);
    // Each call of mach_host_self adds a reference.
    mach_port_deallocate(mach_task_self(), host);
    if (result != KERN_SUCCESS) return SIZE_MAX;
    return (std::size_t{pages.free_count} + pages.inactive_count) * vm_kernel_page_size;
}

}  // namespace

// The system does not say.
unsigned current_processor() noexcept {
    return 0;
}

// Pages ------------------------------------------------------------------------------------------

bool decommit(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    // On macOS MADV_DONTNEED keeps the content. A new mapping in place of the old one does not.
    return mmap(address, bytes, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0) != MAP_FAILED;
}

bool commit_anew(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return mmap(address, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool offer(void*, std::size_t) noexcept {
    return false;
}

bool decommit_keeps_access() noexcept {
    return false;
}

bool prefault(void* address, std::size_t bytes) noexcept {
    touch_pages(address, bytes);
    return true;
}

// NUMA -------------------------------------------------------------------------------------------

unsigned numa_node_count() noexcept {
    return 1;
}

// Memory limits ----------------------------------------------------------------------------------

std::size_t total_memory() noexcept {
    const SystemCalls system_calls;
    std::uint64_t bytes = 0;
    std::size_t size = sizeof bytes;
    if (sysctlbyname("hw.memsize", &bytes, &size, nullptr, 0) != 0) return SIZE_MAX;
    return static_cast<std::size_t>(bytes);
}

std::size_t available_memory() noexcept {
    const SystemCalls system_calls;
    return std::min(free_and_inactive_memory(), total_memory());
}

std::size_t committable_memory() noexcept {
    return available_memory();
}

std::size_t resident_memory() noexcept {
    const SystemCalls system_calls;
    mach_task_basic_info_data_t info{};
    mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
    const kern_return_t result = task_info(mach_task_self(), MACH_TASK_BASIC_INFO,
                                           reinterpret_cast<task_info_t>(&info), &count);
    return result == KERN_SUCCESS ? static_cast<std::size_t>(info.resident_size) : 0;
}

std::size_t available_address_space() noexcept {
    // The system accepts RLIMIT_AS and does not enforce it.
    return SIZE_MAX;
}

// Threads and processes --------------------------------------------------------------------------

std::uint64_t current_thread_id() noexcept {
    std::uint64_t id = 0;
    pthread_threadid_np(nullptr, &id);
    return id;
}

std::size_t locked_memory() noexcept {
    return 0;
}

MemoryRoom memory_room() noexcept {
    return {committable_memory(), total_memory(), false};
}

Outcome populate_for_reading(void*, std::size_t) noexcept {
    return Outcome::unsupported;
}

std::size_t resident_file_bytes(const void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    auto* const begin = static_cast<char*>(const_cast<void*>(address));
    char answers[1024];
    const std::size_t most = sizeof answers * page_bytes();
    std::size_t pages = 0;
    for (std::size_t at = 0; at < bytes; at += most) {
        const std::size_t some = std::min(most, bytes - at);
        if (mincore(begin + at, some, answers) != 0) return 0;
        pages += static_cast<std::size_t>(
            std::count_if(answers, answers + some / page_bytes(),
                          [](char answer) { return (answer & MINCORE_INCORE) != 0; }));
    }
    return pages * page_bytes();
}

bool InputFile::drop_from_cache(std::uint64_t, std::uint64_t) const noexcept {
    return false;
}

}  // namespace tensorpool::platform
