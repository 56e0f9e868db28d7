#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tensorpool/detail/plan_tables.hpp>
#include <tensorpool/memory_plan.hpp>

namespace tensorpool::planned {

using detail::plan_granule_bytes;

/// What is larger, or aligned to more, is left to the pool: slots have 32 bits for it.
inline constexpr std::uint64_t max_request_bytes = detail::PlanRange::max_bytes;
inline constexpr std::uint64_t max_request_alignment = std::uint64_t{1} << 30;
/// And so many of them: together they stay below 2^63 bytes.
inline constexpr std::uint64_t max_requests = std::uint64_t{1} << 24;

/// A request of an iteration. The clock of an iteration counts its requests.
struct Request {
    /// A buffer that nobody had freed when its iteration ended: no plan holds it.
    static constexpr std::uint32_t outlives = UINT32_MAX;

    std::uint64_t bytes = 0;       ///< whole granules, one at least
    std::uint64_t pool_bytes = 0;  ///< of the pool's block that served it; 0: not known
    std::uint32_t alignment = plan_granule_bytes;  ///< a power of two, a granule at least
    std::uint32_t end = outlives;  ///< how many requests had been made when it was freed

    bool is_planned() const noexcept { return end != outlives; }
    friend bool operator==(const Request&, const Request&) = default;
};

/// The same buffers in the same order, whatever their lifetimes.
bool asks_alike(std::span<const Request> one, std::span<const Request> other) noexcept;
/// CRC-64 of sizes, alignments and order: tells one sequence from another.
std::uint64_t checksum_of(std::span<const Request> requests) noexcept;
/// Of those that are planned, in their order.
std::vector<TensorLifetime> lifetimes_of(std::span<const Request> requests);
/// The most `pool_bytes` of those that are planned, at once.
std::uint64_t pool_peak_of(std::span<const Request> requests);

}  // namespace tensorpool::planned
