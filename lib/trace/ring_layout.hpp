#pragma once

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/trace_format.hpp>

#include "platform/platform.hpp"

/// The two pieces of memory that a recorded process shares with its recorder.
///
/// The *rings*, which the process writes and the recorder reads:
///
///     header | heads of the rings | names | modules | rings
///
/// The *control*, which the recorder writes too: its requests, and the position up to which it has
/// read each ring. The process checks all of it and trusts nothing beyond that.
///
/// A ring has one writer, the thread that owns it, and one reader. The writer fills an entry, then
/// adds 1 to `written` with release. The reader takes the entries between its tail and `written`,
/// then stores the tail with release. Neither of them ever waits. A model in
/// tests/models/trace_ring_test.cpp goes through every order of their steps.
namespace tensorpool::trace {

using detail::Counter;

inline constexpr auto relaxed = std::memory_order_relaxed;

inline constexpr std::uint64_t rings_magic = 0x73676e6972707465;  // "etprings" in memory
inline constexpr std::uint64_t rings_version = 2;

struct alignas(64) RingHead {
    Counter written;  // entries written so far
    Counter dropped;  // entries that found no room
    Counter thread;   // the present or last owner; 0: none yet
};

inline constexpr std::size_t ring_count = 512;
// 512 KiB a ring: with one call a microsecond, the recorder may sleep for 16 ms.
inline constexpr std::size_t ring_entries = 16'384;
inline constexpr std::size_t name_count = 1024;
inline constexpr std::size_t module_count = 2048;

struct RingsHeader {
    Counter magic;  // stored last, with release
    Counter version;
    Counter bytes;
    Counter rings;          // taken so far
    Counter names;          // written
    Counter modules;        // written
    Counter ended;          // 1: nothing follows, except from calls in progress
    Counter left_out;       // threads without a ring
    Counter names_dropped;  // names that found no room
    TraceProcess process;
};

inline constexpr std::size_t heads_offset = 4096;
inline constexpr std::size_t names_offset = heads_offset + ring_count * sizeof(RingHead);
inline constexpr std::size_t modules_offset = names_offset + name_count * sizeof(TraceName);
inline constexpr std::size_t rings_offset =
    (modules_offset + module_count * sizeof(TraceModule) + 4095) / 4096 * 4096;
inline constexpr std::size_t ring_bytes = ring_entries * sizeof(TraceEntry);
inline constexpr std::size_t rings_bytes = rings_offset + ring_count * ring_bytes;
static_assert(sizeof(RingsHeader) <= heads_offset);

/// What rings consist of, for a class with a function `memory`, which returns where they begin.
template <class Owner>
class RingTables {
public:
    /// REQUIRES, for all functions: there is memory.
    RingsHeader& header() const noexcept { return *at<RingsHeader>(0); }
    RingHead& head(std::size_t ring) const noexcept { return at<RingHead>(heads_offset)[ring]; }
    TraceEntry* entries(std::size_t ring) const noexcept {
        return at<TraceEntry>(rings_offset + ring * ring_bytes);
    }
    TraceName* name_table() const noexcept { return at<TraceName>(names_offset); }
    TraceModule* module_table() const noexcept { return at<TraceModule>(modules_offset); }

private:
    template <class T>
    T* at(std::size_t offset) const noexcept {
        void* const memory = static_cast<const Owner*>(this)->memory();
        return reinterpret_cast<T*>(static_cast<std::byte*>(memory) + offset);
    }
};

/// Returns the number up to which a writer may write. The writer is about to write entry `next`,
/// found the reader at `tail`, and its ring has `entries` entries. Returns `next` if there is no
/// room, or if `tail` is an impossible value.
constexpr std::uint64_t room_until(std::uint64_t next, std::uint64_t tail,
                                   std::uint64_t entries) noexcept {
    const std::uint64_t unread = next - tail;
    return unread < entries ? tail + entries : next;
}

inline constexpr std::uint64_t control_magic = 0x6c746e6f63707465;  // "etpcontl" in memory
inline constexpr std::uint64_t control_version = 3;

struct Control {
    Counter magic;
    Counter version;
    Counter process;  // the owner: its number in its own name space
    // The low half counts changes of the recorder's wish; odd: a recording is wanted. The high half
    // counts all other requests. A request stores its own words first.
    Counter asked;
    Counter stack_interval;  // bytes between two sampled stacks; 0: none
    // The recorder adds to it several times a second. If it stands still, there is no reader any
    // more.
    Counter beats;
    alignas(64) Counter tails[ring_count];
    // Requests to trim so far. The answer to the last one: first the bytes by which capacities
    // fell, then, with release, its number.
    Counter trims_asked;
    Counter trimmed_bytes;
    Counter trims;
    // The wanted mean distance between samples of the heap profile, plus 1; 0: none is wanted. The
    // process takes it out.
    Counter profile_interval;
    // Requests to name the holders of arrays so far, and the number of the last one answered,
    // stored with release after the answer (see trace/recorder.hpp).
    Counter holders_asked;
    Counter holders;
    // The background trimmer waits on it. A process that sends a request adds to it and wakes the
    // trimmer.
    std::atomic<std::uint32_t> wake;
};

inline constexpr std::uint64_t recording_mask = UINT32_MAX;
inline constexpr unsigned request_shift = 32;
inline constexpr std::uint64_t one_request = std::uint64_t{1} << request_shift;

inline constexpr std::size_t control_bytes = 8192;
static_assert(sizeof(Control) <= control_bytes);

}  // namespace tensorpool::trace
