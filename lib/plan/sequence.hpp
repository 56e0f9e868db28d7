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

/// Requests above this size or alignment are left to the pool, because a plan stores granule
/// numbers and alignments in 32 bits.
inline constexpr std::uint64_t max_request_bytes = detail::PlanTables::max_bytes;
inline constexpr std::uint64_t max_request_alignment = std::uint64_t{1} << 30;
/// The maximum number of requests in a plan; the sum of their sizes stays below 2^63 bytes.
inline constexpr std::uint64_t max_requests = std::uint64_t{1} << 24;

/// A request of an iteration. Time within an iteration is counted in requests.
struct Request {
    /// The end of a buffer that was not freed within its iteration. It is left to the pool.
    static constexpr std::uint32_t outlives = UINT32_MAX;

    std::uint64_t bytes = 0;                       ///< a multiple of the granule, above 0
    std::uint64_t pool_bytes = 0;                  ///< usable size of the pool's block; 0: unknown
    std::uint32_t alignment = plan_granule_bytes;  ///< a power of two, at least the granule
    std::uint32_t end = outlives;                  ///< number of requests made before it was freed

    bool is_planned() const noexcept { return end != outlives; }
    friend bool operator==(const Request&, const Request&) = default;
};

/// Returns whether two sequences have the same sizes and alignments in the same order. Lifetimes
/// are ignored.
bool same_requests(std::span<const Request> one, std::span<const Request> other) noexcept;
/// Returns a CRC-64 of the sizes and alignments in their order, to identify a sequence.
std::uint64_t checksum_of(std::span<const Request> requests) noexcept;
/// Returns the lifetimes of the planned requests, in their order.
std::vector<TensorLifetime> lifetimes_of(std::span<const Request> requests);
/// Returns the maximum sum of `pool_bytes` over planned requests that are alive at once.
std::uint64_t pool_peak_of(std::span<const Request> requests);

}  // namespace tensorpool::planned
