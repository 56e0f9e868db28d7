#pragma once

#include <iosfwd>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/crc.hpp>

#include <tensorpool/detail/plan_tables.hpp>
#include <tensorpool/memory_plan.hpp>

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
bool same_requests(std::span<const Request> one, std::span<const Request> other) noexcept;
/// Returns a CRC-64 of the sizes and alignments in their order, to identify a sequence.
std::uint64_t checksum_of(std::span<const Request> requests) noexcept;
/// Returns the lifetimes of the planned requests, in their order.
std::vector<TensorLifetime> lifetimes_of(std::span<const Request> requests);
/// Returns the maximum sum of `pool_bytes` over planned requests that are alive at once.
std::uint64_t pool_peak_of(std::span<const Request> requests);

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
LearnedPlan plan_sequence(std::vector<Request> requests, std::chrono::nanoseconds budget);

/// Returns the plan of the planned requests only, in their order, for `validate`.
MemoryPlan memory_plan_of(const LearnedPlan& plan);

/// The computation of a plan, which may run on another thread. The arena and the executor share its
/// ownership. It does not refer to the arena, which may be destroyed first.
class PlanningJob {
public:
    PlanningJob(std::vector<Request> requests, std::chrono::nanoseconds budget) noexcept
        : requests_(std::move(requests)), budget_(budget) {}

    /// Makes the plan. Further calls do nothing. Any thread.
    void run() noexcept;
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
