// Managed memory: advice and prefetches.

#include <iterator>

#include "lab/fake_cuda/objects.hpp"

using namespace fake_cuda;

namespace {

/// Returns the managed range that contains all of these addresses, or nullptr.
Range* find_managed(DeviceAddress address, std::size_t bytes) {
    const auto above = driver().ranges.upper_bound(address);
    if (bytes == 0 || above == driver().ranges.begin()) return nullptr;
    const auto found = std::prev(above);
    const bool inside = address + bytes <= found->first + found->second.bytes;
    return inside && found->second.kind == Range::Kind::managed ? &found->second : nullptr;
}

bool is_processor(DeviceNumber number) {
    return number >= host_number && number < driver().device_count;
}

}  // namespace

extern "C" {

Result cuMemAdvise(DeviceAddress address, std::size_t bytes, Advice advice, DeviceNumber device) {
    return enter_context("cuMemAdvise", [&](Lock&, CUctx_st&) {
        Range* const range = find_managed(address, bytes);
        if (range == nullptr) return Result::invalid_value;
        Advised& advised = range->advised;
        const bool of_all = advice == Advice::set_read_mostly ||
                            advice == Advice::unset_read_mostly ||
                            advice == Advice::unset_preferred_location;
        if (!of_all && !is_processor(device)) return Result::invalid_device;
        switch (advice) {
            case Advice::set_read_mostly:
            case Advice::unset_read_mostly:
                advised.read_mostly = advice == Advice::set_read_mostly;
                return Result::success;
            case Advice::set_preferred_location:
                advised.preferred = device;
                return Result::success;
            case Advice::unset_preferred_location:
                advised.preferred = Advised::none;
                return Result::success;
            case Advice::set_accessed_by:
                advised.accessed_by.insert(device);
                return Result::success;
            case Advice::unset_accessed_by:
                advised.accessed_by.erase(device);
                return Result::success;
        }
        return Result::invalid_value;
    });
}

Result cuMemPrefetchAsync(DeviceAddress address, std::size_t bytes, DeviceNumber device,
                          Stream handle) {
    return enter_context("cuMemPrefetchAsync", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (breaks_capture(*stream)) return Result::stream_capture_unsupported;
        if (find_managed(address, bytes) == nullptr) return Result::invalid_value;
        if (!is_processor(device)) return Result::invalid_device;
        return give(*stream, {{}, [address, bytes, device] {
                                  const Lock lock(driver().mutex);
                                  Range* const range = find_managed(address, bytes);
                                  if (range != nullptr) range->advised.prefetched = device;
                              }});
    });
}

// Attributes of one number, in the order of CUmem_range_attribute: read mostly, preferred location,
// the first processor of those that access it, and the last destination of a prefetch.
Result cuMemRangeGetAttribute(int* data, std::size_t bytes, int attribute, DeviceAddress address,
                              std::size_t count) {
    return enter_context("cuMemRangeGetAttribute", [&](Lock&, CUctx_st&) {
        const Range* const range = find_managed(address, count);
        if (range == nullptr || bytes != sizeof *data || attribute < 1 || attribute > 4) {
            return Result::invalid_value;
        }
        const Advised& advised = range->advised;
        const auto first = advised.accessed_by.begin();
        const int answers[] = {advised.read_mostly ? 1 : 0, advised.preferred,
                               first != advised.accessed_by.end() ? *first : Advised::none,
                               advised.prefetched};
        *data = answers[attribute - 1];
        return Result::success;
    });
}

}  // extern "C"
