// Memory of devices and of the host. The host cannot access addresses of device memory.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lab/fake_cuda/objects.hpp"

using namespace fake_cuda;

namespace fake_cuda {
namespace {

DeviceAddress address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

void* pointer_at(DeviceAddress address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) {
    return (bytes + page - 1) / page * page;
}

void* map(std::size_t bytes, int protection) {
    void* const mapped = mmap(nullptr, whole_pages(bytes), protection,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped != MAP_FAILED ? mapped : nullptr;
}

/// The offset of an allocation in its first page. On an H200, pinned memory of 1 B began 512 B
/// after a page.
std::size_t offset_in_page(Range::Kind kind, std::size_t bytes) {
    return kind == Range::Kind::host && bytes < page ? 512 : 0;
}

/// Returns the range that contains the address.
template <class Ranges>
auto find_around(Ranges& ranges, DeviceAddress address) {
    const auto above = ranges.upper_bound(address);
    if (above == ranges.begin()) return ranges.end();
    const auto found = std::prev(above);
    return address < found->first + found->second.bytes ? found : ranges.end();
}

/// Removes a range of one of these kinds that begins at the address, and returns its memory.
Result end_range(DeviceAddress address, std::initializer_list<Range::Kind> kinds, int device) {
    const auto found = driver().ranges.find(address);
    if (found == driver().ranges.end() || found->second.device != device ||
        std::find(kinds.begin(), kinds.end(), found->second.kind) == kinds.end()) {
        return Result::invalid_value;
    }
    const Range range = found->second;
    driver().ranges.erase(found);
    if (range.kind == Range::Kind::device || range.kind == Range::Kind::managed) {
        driver().devices[range.device].used -= range.bytes;
    }
    if (range.pooled) return_to_pool(range.device, range.bytes);
    if (range.kind == Range::Kind::device) delete[] range.memory;
    const std::size_t offset = offset_in_page(range.kind, range.bytes);
    munmap(pointer_at(address - offset), whole_pages(offset + range.bytes));
    return Result::success;
}

/// The device of host memory.
constexpr int no_device = -1;

Result add_range(Range::Kind kind, std::size_t bytes, int device, DeviceAddress* address) {
    if (bytes == 0) return Result::invalid_value;
    if (device != no_device) {
        if (Driver::total_bytes - driver().devices[device].used < bytes) {
            return Result::out_of_memory;
        }
    } else if (bytes > Driver::total_bytes) {
        return Result::out_of_memory;
    }
    const bool for_host = kind != Range::Kind::device;
    const std::size_t offset = offset_in_page(kind, bytes);
    void* const mapped = map(offset + bytes, for_host ? PROT_READ | PROT_WRITE : PROT_NONE);
    if (mapped == nullptr) return Result::out_of_memory;
    if (device != no_device) driver().devices[device].used += bytes;
    char* const memory = for_host ? static_cast<char*>(mapped) + offset : new char[bytes];
    *address = address_of(mapped) + offset;
    driver().ranges[*address] = {kind, bytes, device, memory, false};
    return Result::success;
}

/// Returns memory of this size whose free waits in the stream's order, to be allocated again in the
/// same order, as the driver does without waiting; 0 if there is none.
DeviceAddress reuse_range(const CUstream_st& stream, std::size_t bytes) {
    for (auto& [address, range] : driver().ranges) {
        if (range.freed_on != &stream || !range.pooled || range.bytes != bytes) continue;
        range.freed_on = nullptr;
        ++range.reuses;
        return address;
    }
    return 0;
}

constexpr const char* file_name = "fake_cuda memory";

/// Whether the descriptor is one of exported memory, and not of another file.
bool is_memory_of_device(int file) {
    char target[64] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    return readlink(link.c_str(), target, sizeof target - 1) > 0 &&
           std::string(target).find(file_name) != std::string::npos;
}

/// Adds memory to the driver's and returns its number.
MemoryNumber add_physical(std::shared_ptr<Physical> physical) {
    driver().physical[++driver().last_memory] = std::move(physical);
    return driver().last_memory;
}

}  // namespace

Physical::Physical(std::size_t its_bytes, int its_device, int its_file)
    : bytes(its_bytes), device(its_device), file(its_file) {
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    memory = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0));
}

Physical::~Physical() {
    // Memory of another process counts there.
    if (!imported) driver().devices[device].used -= bytes;
    munmap(memory, bytes);
    if (file >= 0) close(file);
}

bool is_usable(int device, DeviceAddress address, std::size_t bytes) {
    const DeviceAddress end = address + bytes;
    while (address < end) {
        if (const auto range = find_around(driver().ranges, address);
            range != driver().ranges.end()) {
            address = range->first + range->second.bytes;
        } else if (const auto mapping = find_around(driver().mappings, address);
                   mapping != driver().mappings.end() &&
                   mapping->second.readers.count(device) != 0) {
            address = mapping->first + mapping->second.bytes;
        } else {
            return false;
        }
    }
    return true;
}

void visit_pieces(DeviceAddress address, std::size_t bytes,
                  const std::function<void(char*, std::size_t)>& visit) {
    while (bytes != 0) {
        std::size_t piece = 0;
        const auto go = [&](DeviceAddress begin, std::size_t all, char* memory) {
            const std::size_t offset = address - begin;
            piece = std::min(bytes, all - offset);
            visit(memory + offset, piece);
        };
        if (const auto range = find_around(driver().ranges, address);
            range != driver().ranges.end()) {
            go(range->first, range->second.bytes, range->second.memory);
        } else {
            const auto mapping = find_around(driver().mappings, address);
            go(mapping->first, mapping->second.bytes, mapping->second.physical->memory);
        }
        address += piece;
        bytes -= piece;
    }
}

}  // namespace fake_cuda

extern "C" {

Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    return enter_context("cuMemGetInfo", [&](Lock&, CUctx_st& context) {
        *total = Driver::total_bytes;
        *free = Driver::total_bytes - driver().devices[context.device].used;
        return Result::success;
    });
}

Result cuMemAlloc_v2(DeviceAddress* address, std::size_t bytes) {
    return enter_unsafe("cuMemAlloc", [&](Lock&, CUctx_st& context) {
        return add_range(Range::Kind::device, bytes, context.device, address);
    });
}

Result cuMemAllocManaged(DeviceAddress* address, std::size_t bytes, unsigned flags) {
    return enter_unsafe("cuMemAllocManaged", [&](Lock&, CUctx_st& context) {
        if (flags != attach_global) return Result::invalid_value;
        return add_range(Range::Kind::managed, bytes, context.device, address);
    });
}

// Waits for the device, as the real driver does.
Result cuMemFree_v2(DeviceAddress address) {
    return enter_unsafe("cuMemFree", [&](Lock& lock, CUctx_st& context) {
        wait_until_idle(lock, context);
        return end_range(address, {Range::Kind::device, Range::Kind::managed}, context.device);
    });
}

Result cuMemAllocAsync(DeviceAddress* address, std::size_t bytes, Stream handle) {
    return enter_context("cuMemAllocAsync", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (breaks_capture(*stream)) return Result::stream_capture_unsupported;
        *address = reuse_range(*stream, bytes);
        if (*address != 0) return Result::success;
        take_from_pool(context.device, bytes);
        const Result result = add_range(Range::Kind::device, bytes, context.device, address);
        if (result != Result::success) return result;
        driver().ranges[*address].pooled = true;
        driver().devices[context.device].pool.in_use += bytes;
        return result;
    });
}

Result cuMemFreeAsync(DeviceAddress address, Stream handle) {
    return enter_context("cuMemFreeAsync", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (breaks_capture(*stream)) return Result::stream_capture_unsupported;
        const auto found = driver().ranges.find(address);
        if (found == driver().ranges.end() || std::exchange(found->second.freed_on, stream)) {
            return Result::invalid_value;
        }
        const auto end = [address, device = context.device, reuses = found->second.reuses] {
            const Lock lock(driver().mutex);
            const auto range = driver().ranges.find(address);
            if (range == driver().ranges.end() || range->second.reuses != reuses) return;
            end_range(address, {Range::Kind::device}, device);
        };
        return give(*stream, {{}, end});
    });
}

Result cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
    return enter_unsafe("cuMemHostAlloc", [&](Lock&, CUctx_st&) {
        if (flags > 7) return Result::invalid_value;
        DeviceAddress address = 0;
        const Result result = add_range(Range::Kind::host, bytes, no_device, &address);
        *memory = pointer_at(address);  // the driver of an H200 stored null when it failed
        return result;
    });
}

Result cuMemFreeHost(void* memory) {
    return enter_unsafe("cuMemFreeHost", [&](Lock& lock, CUctx_st& context) {
        wait_until_idle(lock, context);
        return end_range(address_of(memory), {Range::Kind::host}, no_device);
    });
}

Result cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
    return enter_unsafe("cuMemHostRegister", [&](Lock&, CUctx_st&) {
        if (memory == nullptr || bytes == 0 || flags > 15) return Result::invalid_value;
        const DeviceAddress address = address_of(memory);
        const auto after = driver().ranges.lower_bound(address);
        const bool meets_next = after != driver().ranges.end() && after->first < address + bytes;
        if (meets_next || find_around(driver().ranges, address) != driver().ranges.end()) {
            return Result::host_memory_already_registered;
        }
        driver().ranges[address] = {Range::Kind::registered, bytes, no_device,
                                    static_cast<char*>(memory), false};
        return Result::success;
    });
}

Result cuMemHostUnregister(void* memory) {
    return enter_unsafe("cuMemHostUnregister", [&](Lock&, CUctx_st&) {
        const auto found = driver().ranges.find(address_of(memory));
        if (found == driver().ranges.end() || found->second.kind != Range::Kind::registered) {
            return Result::host_memory_not_registered;
        }
        driver().ranges.erase(found);
        return Result::success;
    });
}

Result cuPointerGetAttribute(void* data, PointerAttribute attribute, DeviceAddress address) {
    return enter_context("cuPointerGetAttribute", [&](Lock&, CUctx_st&) {
        if (attribute != PointerAttribute::host_pointer) return Result::invalid_value;
        const auto found = find_around(driver().ranges, address);
        const bool has_one =
            found != driver().ranges.end() && found->second.kind != Range::Kind::device;
        *static_cast<void**>(data) = has_one ? pointer_at(address) : nullptr;
        return has_one ? Result::success : Result::invalid_value;
    });
}

// Virtual memory ------------------------------------------------------------------------------

Result cuMemGetAllocationGranularity(std::size_t* granularity,
                                     const AllocationProperties* properties, Granularity) {
    return enter("cuMemGetAllocationGranularity", [&](Lock&) {
        if (properties->type != AllocationType::pinned ||
            properties->location.type != LocationType::device ||
            properties->location.id >= driver().device_count) {
            return Result::invalid_value;
        }
        *granularity = Driver::granularity;
        return Result::success;
    });
}

// Reserves whole pages of the host. Without an alignment the addresses are aligned to a page only,
// because the reference does not name the default.
Result cuMemAddressReserve(DeviceAddress* address, std::size_t bytes, std::size_t alignment,
                           DeviceAddress, unsigned long long flags) {
    return enter_unsafe("cuMemAddressReserve", [&](Lock&, CUctx_st&) {
        if (bytes == 0 || bytes % page != 0 || flags != 0 || (alignment & (alignment - 1)) != 0) {
            return Result::invalid_value;
        }
        // Reserves more, so that it can be aligned, or not.
        const std::size_t step = std::max(alignment, page);
        void* const mapped = map(bytes + step, PROT_NONE);
        if (mapped == nullptr) return Result::out_of_memory;
        const DeviceAddress from = address_of(mapped);
        *address = (from + step - 1) / step * step;
        if (alignment == 0 && *address % Driver::granularity == 0) *address += page;
        munmap(mapped, *address - from);
        munmap(pointer_at(*address + bytes), from + step - *address);
        driver().reservations[*address] = bytes;
        return Result::success;
    });
}

Result cuMemAddressFree(DeviceAddress address, std::size_t bytes) {
    return enter_unsafe("cuMemAddressFree", [&](Lock&, CUctx_st&) {
        const auto found = driver().reservations.find(address);
        if (found == driver().reservations.end() || found->second != bytes) {
            return Result::invalid_value;
        }
        const auto mapped = driver().mappings.lower_bound(address);
        if (mapped != driver().mappings.end() && mapped->first < address + bytes) {
            return Result::invalid_value;
        }
        driver().reservations.erase(found);
        munmap(pointer_at(address), bytes);
        return Result::success;
    });
}

Result cuMemCreate(MemoryNumber* memory, std::size_t bytes, const AllocationProperties* properties,
                   unsigned long long flags) {
    return enter_unsafe("cuMemCreate", [&](Lock&, CUctx_st&) {
        const int device = properties->location.id;
        const bool rdma = properties->gpu_direct_rdma_capable != 0;
        if (bytes == 0 || bytes % Driver::granularity != 0 || flags != 0 || device < 0 ||
            properties->type != AllocationType::pinned || device >= driver().device_count ||
            properties->requested_handle_types > HandleType::file_descriptor ||
            (rdma && !driver().rdma)) {
            return Result::invalid_value;
        }
        if (rdma && driver().refuses_rdma) return Result::not_supported;
        if (Driver::total_bytes - driver().devices[device].used < bytes) {
            return Result::out_of_memory;
        }
        int file = -1;
        if (properties->requested_handle_types == HandleType::file_descriptor) {
            file = memfd_create(file_name, MFD_CLOEXEC);
            if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
                return Result::out_of_memory;
            }
        }
        driver().devices[device].used += bytes;
        *memory = add_physical(std::make_shared<Physical>(bytes, device, file));
        return Result::success;
    });
}

Result cuMemExportToShareableHandle(void* shareable, MemoryNumber memory, HandleType type,
                                    unsigned long long flags) {
    return enter_unsafe("cuMemExportToShareableHandle", [&](Lock&, CUctx_st&) {
        const auto found = driver().physical.find(memory);
        if (found == driver().physical.end() || found->second->file < 0 ||
            type != HandleType::file_descriptor || flags != 0) {
            return Result::invalid_value;
        }
        *static_cast<int*>(shareable) = fcntl(found->second->file, F_DUPFD_CLOEXEC, 0);
        return Result::success;
    });
}

// The memory belongs to the device of the context.
Result cuMemImportFromShareableHandle(MemoryNumber* memory, void* shareable, HandleType type) {
    return enter_unsafe("cuMemImportFromShareableHandle", [&](Lock&, CUctx_st& context) {
        const auto file = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
        struct stat properties {};
        const bool is_exported = type == HandleType::file_descriptor &&
                                 fstat(file, &properties) == 0 && is_memory_of_device(file);
        if (!is_exported) return Result::invalid_value;
        const auto physical =
            std::make_shared<Physical>(static_cast<std::size_t>(properties.st_size), context.device,
                                       fcntl(file, F_DUPFD_CLOEXEC, 0));
        physical->imported = true;
        *memory = add_physical(physical);
        return Result::success;
    });
}

// The memory is freed when it is no longer mapped anywhere.
Result cuMemRelease(MemoryNumber memory) {
    return enter_unsafe("cuMemRelease", [&](Lock&, CUctx_st&) {
        return driver().physical.erase(memory) != 0 ? Result::success : Result::invalid_value;
    });
}

Result cuMemMap(DeviceAddress address, std::size_t bytes, std::size_t offset, MemoryNumber memory,
                unsigned long long flags) {
    return enter_unsafe("cuMemMap", [&](Lock&, CUctx_st&) {
        const auto found = driver().physical.find(memory);
        auto around = driver().reservations.upper_bound(address);
        if (found == driver().physical.end() || offset != 0 || flags != 0 ||
            bytes != found->second->bytes || around == driver().reservations.begin()) {
            return Result::invalid_value;
        }
        --around;
        const auto next = driver().mappings.lower_bound(address);
        if (address % Driver::granularity != 0 ||
            address + bytes > around->first + around->second ||
            find_around(driver().mappings, address) != driver().mappings.end() ||
            (next != driver().mappings.end() && next->first < address + bytes)) {
            return Result::invalid_value;
        }
        driver().mappings[address] = {bytes, found->second, {}};
        return Result::success;
    });
}

// Unmaps one whole mapping; the reference promises no more.
Result cuMemUnmap(DeviceAddress address, std::size_t bytes) {
    return enter_unsafe("cuMemUnmap", [&](Lock&, CUctx_st&) {
        const auto found = driver().mappings.find(address);
        if (found == driver().mappings.end() || found->second.bytes != bytes) {
            return Result::invalid_value;
        }
        driver().mappings.erase(found);
        return Result::success;
    });
}

// The range must consist of whole mappings.
Result cuMemSetAccess(DeviceAddress address, std::size_t bytes, const AccessDescription* access,
                      std::size_t count) {
    return enter_unsafe("cuMemSetAccess", [&](Lock&, CUctx_st&) {
        const DeviceAddress end = address + bytes;
        DeviceAddress at = address;
        auto found = driver().mappings.find(at);
        for (; found != driver().mappings.end() && found->first == at && at < end; ++found) {
            at += found->second.bytes;
        }
        if (at != end || bytes == 0) return Result::invalid_value;
        for (std::size_t index = 0; index < count; ++index) {
            const int reader = access[index].location.id;
            if (access[index].location.type != LocationType::device ||
                access[index].flags != Access::read_write || reader >= driver().device_count) {
                return Result::invalid_value;
            }
            for (auto each = driver().mappings.find(address);
                 each != driver().mappings.end() && each->first < end; ++each) {
                if (!driver().peers && each->second.physical->device != reader) {
                    return Result::invalid_device;
                }
                each->second.readers.insert(reader);
            }
        }
        return Result::success;
    });
}

}  // extern "C"
