#pragma once

/// @file
/// Builds traces for tests.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/trace_format.hpp>

namespace tensorpool::command::trace::testing {

/// The bytes of a trace file, chunk after chunk. A cycle takes 10 ns; cycle 1,000 is at
/// 5,000,000,000 ns of the wall clock.
class MadeTrace {
public:
    using Edit = std::function<void(TraceChunkHeader&)>;

    MadeTrace();

    MadeTrace& process(std::uint32_t number = 7, std::uint64_t begun_cycles = 1000);
    MadeTrace& name(std::uint64_t source, TraceSource kind, std::string_view text,
                    std::uint32_t process = 7);
    MadeTrace& module(std::uint64_t number, std::string_view path, std::uint32_t process = 7);
    MadeTrace& entries(const std::vector<TraceEntry>& entries, std::uint32_t ring = 0,
                       std::uint32_t process = 7, std::uint64_t dropped = 0);
    MadeTrace& end(std::uint32_t process = 7);

    /// Adds any chunk. Its header is edited before its check is computed.
    MadeTrace& chunk(TraceChunkKind kind, std::span<const std::byte> payload,
                     const Edit& edit = {});
    /// Makes the next chunks zstd frames.
    MadeTrace& compressed();

    std::span<const std::byte> bytes() const { return bytes_; }
    std::vector<std::byte>& raw() { return bytes_; }
    /// The offsets where the chunks begin, and where the last one ends.
    const std::vector<std::size_t>& boundaries() const { return boundaries_; }

private:
    std::vector<std::byte> bytes_;
    std::vector<std::size_t> boundaries_;
    bool compressed_ = false;
};

/// Returns the payload as a zstd frame.
std::vector<std::byte> zstd_frame(std::span<const std::byte> payload);

TraceEntry thread_entry(std::uint64_t number, std::uint64_t cycles = 1000);
TraceEntry entry(TraceAction action, std::uint64_t cycles, std::uint64_t address,
                 std::uint64_t bytes = 0, std::uint32_t source = 1, unsigned alignment_log2 = 0);
TraceEntry frames_entry(std::vector<std::uint64_t> frames, bool last);

}  // namespace tensorpool::command::trace::testing
