#pragma once

#include <algorithm>
#include <exception>
#include <iosfwd>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/crc.hpp>

#include <tensorpool/detail/plan_tables.hpp>
#include <tensorpool/memory_plan.hpp>

#include "platform/platform.hpp"

namespace tensorpool::planned {

/// CRC-64/XZ of bytes and of 64-bit words. Words count as little-endian on every machine.
class Checksum {
public:
    void add(std::uint64_t word) {
        for (unsigned shift = 0; shift != 64; shift += 8) {
            crc_.process_byte(static_cast<unsigned char>(word >> shift));
        }
    }
    void add(const void* bytes, std::size_t count) { crc_.process_bytes(bytes, count); }
    std::uint64_t value() const { return crc_.checksum(); }

private:
    boost::crc_optimal<64, 0x42F0E1EBA9EA3693, UINT64_MAX, UINT64_MAX, true, true> crc_;
};

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
inline bool same_requests(std::span<const Request> one, std::span<const Request> other) noexcept {
    return std::ranges::equal(one, other, [](const Request& a, const Request& b) {
        return a.bytes == b.bytes && a.alignment == b.alignment;
    });
}
/// Returns a CRC-64 of the sizes and alignments in their order, to identify a sequence.
inline std::uint64_t checksum_of(std::span<const Request> requests) noexcept {
    Checksum checksum;
    for (const Request& request : requests) {
        checksum.add(request.bytes);
        checksum.add(request.alignment);
    }
    return checksum.value();
}
/// Returns the lifetimes of the planned requests, in their order.
inline std::vector<TensorLifetime> lifetimes_of(std::span<const Request> requests) {
    std::vector<TensorLifetime> lifetimes;
    lifetimes.reserve(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const Request& request = requests[i];
        if (!request.is_planned()) continue;
        lifetimes.push_back({.begin = static_cast<std::int64_t>(i),
                             .end = request.end,
                             .bytes = request.bytes,
                             .alignment = request.alignment});
    }
    return lifetimes;
}
/// Returns the maximum sum of `pool_bytes` over planned requests that are alive at once.
inline std::uint64_t pool_peak_of(std::span<const Request> requests) {
    std::vector<std::uint64_t> freed(requests.size() + 1);  // before the request of this number
    std::uint64_t now = 0;
    std::uint64_t max = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        now -= freed[i];
        if (!requests[i].is_planned()) continue;
        now += requests[i].pool_bytes;
        freed[requests[i].end] += requests[i].pool_bytes;
        max = std::max(max, now);
    }
    return max;
}

/// A sequence of requests, and the plan's offset for each.
struct LearnedPlan {
    static constexpr std::uint64_t no_offset = UINT64_MAX;

    std::vector<Request> requests;
    std::vector<std::uint64_t> offsets;  ///< `no_offset` for requests left to the pool
    std::uint64_t peak_bytes = 0;
    std::uint64_t lower_bound_bytes = 0;
    std::uint64_t pool_peak_bytes = 0;
    std::uint64_t planning_ns = 0;
};

/// Plans a sequence of requests within a time limit. Throws std::bad_alloc, and what `plan_memory`
/// throws.
inline LearnedPlan plan_sequence(std::vector<Request> requests, std::chrono::nanoseconds budget) {
    const std::uint64_t began = platform::monotonic_clock_ns();
    LearnedPlan plan{.requests = std::move(requests), .offsets = {}};
    const MemoryPlan found = plan_memory(lifetimes_of(plan.requests), {.budget = budget});
    plan.offsets.reserve(plan.requests.size());
    auto next = found.offsets.begin();
    for (const Request& request : plan.requests) {
        plan.offsets.push_back(request.is_planned() ? *next++ : LearnedPlan::no_offset);
    }
    plan.peak_bytes = found.peak_bytes;
    plan.lower_bound_bytes = found.lower_bound_bytes;
    plan.pool_peak_bytes = pool_peak_of(plan.requests);
    plan.planning_ns = platform::monotonic_clock_ns() - began;
    return plan;
}

/// Returns the plan of the planned requests only, in their order, for `validate`.
inline MemoryPlan memory_plan_of(const LearnedPlan& plan) {
    MemoryPlan memory_plan;
    for (const std::uint64_t offset : plan.offsets) {
        if (offset != LearnedPlan::no_offset) memory_plan.offsets.push_back(offset);
    }
    memory_plan.peak_bytes = plan.peak_bytes;
    memory_plan.lower_bound_bytes = plan.lower_bound_bytes;
    return memory_plan;
}

/// The computation of a plan, which may run on another thread. The arena and the executor share its
/// ownership. It does not refer to the arena, which may be destroyed first.
class PlanningJob {
public:
    PlanningJob(std::vector<Request> requests, std::chrono::nanoseconds budget) noexcept
        : requests_(std::move(requests)), budget_(budget) {}

    /// Makes the plan. Further calls do nothing. Any thread.
    // Relaxed: the first thread that calls it runs it. The executor makes the requests visible to
    // that thread.
    void run() noexcept {
        if (started_.exchange(true, std::memory_order_relaxed)) return;
        try {
            plan_ = plan_sequence(std::move(requests_), budget_);
        } catch (const std::exception&) {
            // There was no memory for planning, or the sizes exceed every plan: there is no result.
        }
        done_.store(true, std::memory_order_release);
    }
    /// Returns whether `run` has finished, so that `take` may be called. Acquire: pairs with the
    /// release store in `run`.
    bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
    /// Returns the plan, or nullopt if it could not be made. Requires: `is_done()`.
    std::optional<LearnedPlan> take() noexcept { return std::move(plan_); }

private:
    std::vector<Request> requests_;
    std::chrono::nanoseconds budget_;
    std::optional<LearnedPlan> plan_;
    std::atomic<bool> started_ = false;
    std::atomic<bool> done_ = false;  // stored with release after the plan
};

/// The file format of a plan. Integers are little-endian on every machine:
///
///     8 bytes  "tp-plan\n"
///     u32      version: 1
///     u32      bytes of a request's record: 32
///     u64      number of requests
///     u64      bytes that the plan needs
///     u64      maximum bytes alive at once
///     u64      maximum bytes of the pool's blocks at once
///     u64      checksum of the sequence: of the bytes and the alignment of each request
///     for each request, in order:
///         u64  bytes, a multiple of 64
///         u64  offset; 2^64 - 1: left to the pool
///         u64  bytes of the pool's block that served it while learning
///         u32  number of requests made before it was freed; 2^32 - 1: left to the pool
///         u32  alignment
///     u64      checksum of all bytes before it (CRC-64/XZ)
inline constexpr std::string_view plan_file_magic = "tp-plan\n";
inline constexpr std::uint32_t plan_file_version = 1;
inline constexpr std::uint32_t plan_file_record_bytes = 32;

/// Writes a plan. Throws std::runtime_error if the stream cannot be written.
void write_plan(std::ostream& out, const LearnedPlan& plan);

/// Reads a plan from a stream. Checks every value before it is used, and that no two buffers
/// overlap. Throws std::runtime_error that names the file, the field, what was found and what was
/// expected. `name` is the file's name for messages.
LearnedPlan read_plan(std::istream& in, const std::string& name);

}  // namespace tensorpool::planned
