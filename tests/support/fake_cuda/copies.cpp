// Copies and fills, in the order of a stream.

#include <cstring>

#include "support/fake_cuda/objects.hpp"

using namespace fake_cuda;

namespace fake_cuda {
namespace {

/// One end of a copy.
struct End {
    DeviceAddress address = 0;
    bool on_device = false;
    int device = 0;
};

End host_end(const void* pointer) {
    return {reinterpret_cast<std::uintptr_t>(pointer), false, 0};
}
End device_end(DeviceAddress address, const CUctx_st& context) {
    return {address, true, context.device};
}
/// By unified addressing: memory that the driver does not know belongs to the host.
End any_end(DeviceAddress address, std::size_t bytes, const CUctx_st& context) {
    return {address, is_usable(context.device, address, bytes), context.device};
}

bool is_right(const End& end, std::size_t bytes) {
    if (end.address == 0) return false;
    if (end.on_device) return is_usable(end.device, end.address, bytes);
    // Host memory that the driver knows is device memory as well. The host cannot access other
    // device memory.
    const auto found = driver().ranges.find(end.address);
    return found == driver().ranges.end() || found->second.kind != Range::Kind::device;
}

/// Returns where the memory really is at this time; empty if it no longer exists.
std::vector<std::pair<char*, std::size_t>> pieces_of(const End& end, std::size_t bytes) {
    std::vector<std::pair<char*, std::size_t>> pieces;
    if (!end.on_device) {
        pieces.emplace_back(reinterpret_cast<char*>(static_cast<std::uintptr_t>(end.address)),
                            bytes);
    } else if (is_usable(end.device, end.address, bytes)) {
        visit_pieces(end.address, bytes,
                     [&](char* memory, std::size_t piece) { pieces.emplace_back(memory, piece); });
    }
    return pieces;
}

/// REQUIRES: both have the same size.
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

Result give_copy(CUctx_st& context, Stream handle, End to, End from, std::size_t bytes) {
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
        return give_copy(context, stream, any_end(to, bytes, context),
                         any_end(from, bytes, context), bytes);
    });
}

Result cuMemcpyHtoDAsync_v2(DeviceAddress to, const void* from, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyHtoDAsync", [&](Lock&, CUctx_st& context) {
        return give_copy(context, stream, device_end(to, context), host_end(from), bytes);
    });
}

Result cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyDtoHAsync", [&](Lock&, CUctx_st& context) {
        return give_copy(context, stream, host_end(to), device_end(from, context), bytes);
    });
}

Result cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                            Stream stream) {
    return enter_context("cuMemcpyDtoDAsync", [&](Lock&, CUctx_st& context) {
        return give_copy(context, stream, device_end(to, context), device_end(from, context),
                         bytes);
    });
}

Result cuMemcpyPeerAsync(DeviceAddress to, Context to_context, DeviceAddress from,
                         Context from_context, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyPeerAsync", [&](Lock&, CUctx_st& context) {
        return give_copy(context, stream, device_end(to, *to_context),
                         device_end(from, *from_context), bytes);
    });
}

Result cuMemsetD8Async(DeviceAddress address, unsigned char byte, std::size_t bytes,
                       Stream handle) {
    return enter_context("cuMemsetD8Async", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (bytes == 0) return Result::success;
        const End end = device_end(address, context);
        if (!is_right(end, bytes)) return Result::invalid_value;
        return give(*stream, {{}, [&context, end, byte, bytes] {
                                  const Lock lock(driver().mutex);
                                  const auto pieces = pieces_of(end, bytes);
                                  if (pieces.empty()) context.lost = Result::illegal_address;
                                  for (const auto& [memory, piece] : pieces) {
                                      std::memset(memory, byte, piece);
                                  }
                              }});
    });
}

}  // extern "C"
