// Copies and fills, in the order of a stream.

#include <cstring>

#include "support/fake_cuda/objects.hpp"

using namespace fake_cuda;

namespace fake_cuda {
namespace {

/// One end of a copy.
struct Place {
    DeviceAddress address = 0;
    bool on_device = false;
    int device = 0;
};

Place host_place(const void* pointer) {
    return {reinterpret_cast<std::uintptr_t>(pointer), false, 0};
}
Place owned_device_record(DeviceAddress address, const CUctx_st& context) {
    return {address, true, context.device};
}
/// As unified addressing has it: what the driver does not know is the host's.
Place any_place(DeviceAddress address, std::size_t bytes, const CUctx_st& context) {
    return {address, is_usable(context.device, address, bytes), context.device};
}

bool is_right(const Place& place, std::size_t bytes) {
    if (place.address == 0) return false;
    if (place.on_device) return is_usable(place.device, place.address, bytes);
    // Host memory that the driver knows is its device memory as well; other device memory is not
    // for the host.
    const auto found = driver().ranges.find(place.address);
    return found == driver().ranges.end() || found->second.kind != Range::Kind::device;
}

/// Where it really is, as of now; empty where it is no memory any more.
std::vector<std::pair<char*, std::size_t>> pieces_of(const Place& place, std::size_t bytes) {
    std::vector<std::pair<char*, std::size_t>> pieces;
    if (!place.on_device) {
        pieces.emplace_back(reinterpret_cast<char*>(static_cast<std::uintptr_t>(place.address)),
                            bytes);
    } else if (is_usable(place.device, place.address, bytes)) {
        visit_pieces(place.address, bytes,
                     [&](char* memory, std::size_t piece) { pieces.emplace_back(memory, piece); });
    }
    return pieces;
}

/// REQUIRES: both as many bytes.
void copy_pieces(std::vector<std::pair<char*, std::size_t>> to,
                 std::vector<std::pair<char*, std::size_t>> from) {
    for (std::size_t t = 0, f = 0; t < to.size() && f < from.size();) {
        const std::size_t bytes = std::min(to[t].second, from[f].second);
        std::memcpy(to[t].first, from[f].first, bytes);
        const auto go_on = [bytes](auto& piece, std::size_t& index) {
            piece.first += bytes;
            piece.second -= bytes;
            if (piece.second == 0) ++index;
        };
        go_on(to[t], t);
        go_on(from[f], f);
    }
}

Result give_copy(CUctx_st& context, Stream handle, Place to, Place from, std::size_t bytes) {
    CUstream_st* const stream = stream_of(context, handle);
    if (stream == nullptr) return Result::invalid_handle;
    if (bytes == 0) return Result::success;
    if (!is_right(to, bytes) || !is_right(from, bytes)) return Result::invalid_value;
    return give(*stream, {{}, [&context, to, from, bytes] {
                              const Lock lock(driver().mutex);
                              const auto target = pieces_of(to, bytes);
                              const auto source = pieces_of(from, bytes);
                              if (target.empty() || source.empty()) {
                                  context.lost = Result::illegal_address;
                              } else {
                                  copy_pieces(target, source);
                              }
                          }});
}

}  // namespace
}  // namespace fake_cuda

extern "C" {

Result cuMemcpyAsync(DeviceAddress to, DeviceAddress from, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyAsync", [&](Lock&, CUctx_st& context) {
        return give_copy(context, stream, any_place(to, bytes, context),
                         any_place(from, bytes, context), bytes);
    });
}

Result cuMemcpyHtoDAsync_v2(DeviceAddress to, const void* from, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyHtoDAsync", [&](Lock&, CUctx_st& context) {
        return give_copy(context, stream, owned_device_record(to, context), host_place(from),
                         bytes);
    });
}

Result cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyDtoHAsync", [&](Lock&, CUctx_st& context) {
        return give_copy(context, stream, host_place(to), owned_device_record(from, context),
                         bytes);
    });
}

Result cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                            Stream stream) {
    return enter_context("cuMemcpyDtoDAsync", [&](Lock&, CUctx_st& context) {
        return give_copy(context, stream, owned_device_record(to, context),
                         owned_device_record(from, context), bytes);
    });
}

Result cuMemcpyPeerAsync(DeviceAddress to, Context to_context, DeviceAddress from,
                         Context from_context, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyPeerAsync", [&](Lock&, CUctx_st& context) {
        return give_copy(context, stream, owned_device_record(to, *to_context),
                         owned_device_record(from, *from_context), bytes);
    });
}

Result cuMemsetD8Async(DeviceAddress address, unsigned char byte, std::size_t bytes,
                       Stream handle) {
    return enter_context("cuMemsetD8Async", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (bytes == 0) return Result::success;
        const Place place = owned_device_record(address, context);
        if (!is_right(place, bytes)) return Result::invalid_value;
        return give(*stream, {{}, [&context, place, byte, bytes] {
                                  const Lock lock(driver().mutex);
                                  const auto pieces = pieces_of(place, bytes);
                                  if (pieces.empty()) context.lost = Result::illegal_address;
                                  for (const auto& [memory, piece] : pieces) {
                                      std::memset(memory, byte, piece);
                                  }
                              }});
    });
}

}  // extern "C"
