// Copies and fills, in the order of a stream. What copies of host memory do during the call follows
// "API synchronization behavior" in the CUDA Driver API; where it says "may", the fake does.

#include <cstring>
#include <iterator>

#include "lab/fake_cuda/objects.hpp"

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

/// Returns the range that contains the address, or nullptr.
const Range* range_at(DeviceAddress address) {
    const auto above = driver().ranges.upper_bound(address);
    if (above == driver().ranges.begin()) return nullptr;
    const auto& [begin, range] = *std::prev(above);
    return address - begin < range.bytes ? &range : nullptr;
}

bool is_right(const End& end, std::size_t bytes) {
    if (end.address == 0) return false;
    if (end.on_device) return is_usable(end.device, end.address, bytes);
    // Host memory that the driver knows is device memory as well. The host cannot access other
    // device memory.
    const Range* const range = range_at(end.address);
    return range == nullptr || range->kind != Range::Kind::device;
}

/// Whether the driver does not know the host memory, which so may be paged out.
bool is_pageable(const End& end, std::size_t bytes) {
    return !end.on_device && !is_usable(end.device, end.address, bytes);
}

bool is_on_host(const End& end) {
    const Range* const range = range_at(end.address);
    if (range == nullptr) return !end.on_device;
    return range->kind == Range::Kind::host || range->kind == Range::Kind::registered;
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

/// Blocks of up to this size are copied from pageable memory without a wait for the stream (CUDA
/// C++ Programming Guide, "Concurrent Execution between Host and Device").
constexpr std::size_t max_unwaited_bytes = std::size_t{64} << 10;

/// Submits the work and waits until it is done.
Result give_and_wait(Lock& lock, CUctx_st& context, CUstream_st& stream,
                     std::function<void()> run) {
    const auto done = std::make_shared<bool>(false);
    const Result result = give(stream, {{}, [run = std::move(run), done] {
                                            run();
                                            const Lock guard(driver().mutex);
                                            *done = true;
                                        }});
    if (result != Result::success) return result;
    driver().changed.wait(lock, [&] { return *done; });
    return context.lost;
}

std::function<void()> copy_of(CUctx_st& context, const End& to, const End& from,
                              std::size_t bytes) {
    return [&context, to, from, bytes] {
        const Lock lock(driver().mutex);
        const auto target = pieces_of(to, bytes);
        const auto source = pieces_of(from, bytes);
        if (target.empty() || source.empty()) {
            context.lost = Result::illegal_address;
        } else {
            copy_pieces(target, source);
        }
    };
}

/// Takes the content of pageable memory now, and copies it in the order of the stream.
Result give_staged(Lock& lock, CUctx_st& context, CUstream_st& stream, const End& to,
                   const End& from, std::size_t bytes) {
    if (bytes > max_unwaited_bytes) {
        const Result result = give_and_wait(lock, context, stream, [] {});
        if (result != Result::success) return result;
    }
    const auto* const source = reinterpret_cast<const char*>(from.address);
    const auto staged = std::make_shared<const std::vector<char>>(source, source + bytes);
    return give(
        stream,
        {{}, [copy = copy_of(context, to, host_end(staged->data()), bytes), staged] { copy(); }});
}

Result give_copy(Lock& lock, CUctx_st& context, Stream handle, End to, End from,
                 std::size_t bytes) {
    CUstream_st* const stream = stream_of(context, handle);
    if (stream == nullptr) return Result::invalid_handle;
    if (bytes == 0) return Result::success;
    if (!is_right(to, bytes) || !is_right(from, bytes)) return Result::invalid_value;
    // The launches of a graph read and write the memory itself.
    if (stream->capture == nullptr) {
        const bool within_host = is_on_host(to) && is_on_host(from);
        if (within_host || is_pageable(to, bytes)) {
            return give_and_wait(lock, context, *stream, copy_of(context, to, from, bytes));
        }
        if (is_pageable(from, bytes)) return give_staged(lock, context, *stream, to, from, bytes);
    }
    return give(*stream, {{}, copy_of(context, to, from, bytes)});
}

}  // namespace
}  // namespace fake_cuda

extern "C" {

Result cuMemcpyAsync(DeviceAddress to, DeviceAddress from, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyAsync", [&](Lock& lock, CUctx_st& context) {
        return give_copy(lock, context, stream, any_end(to, bytes, context),
                         any_end(from, bytes, context), bytes);
    });
}

Result cuMemcpyHtoDAsync_v2(DeviceAddress to, const void* from, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyHtoDAsync", [&](Lock& lock, CUctx_st& context) {
        return give_copy(lock, context, stream, device_end(to, context), host_end(from), bytes);
    });
}

Result cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyDtoHAsync", [&](Lock& lock, CUctx_st& context) {
        return give_copy(lock, context, stream, host_end(to), device_end(from, context), bytes);
    });
}

Result cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                            Stream stream) {
    return enter_context("cuMemcpyDtoDAsync", [&](Lock& lock, CUctx_st& context) {
        return give_copy(lock, context, stream, device_end(to, context), device_end(from, context),
                         bytes);
    });
}

Result cuMemcpyPeerAsync(DeviceAddress to, Context to_context, DeviceAddress from,
                         Context from_context, std::size_t bytes, Stream stream) {
    return enter_context("cuMemcpyPeerAsync", [&](Lock& lock, CUctx_st& context) {
        return give_copy(lock, context, stream, device_end(to, *to_context),
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
